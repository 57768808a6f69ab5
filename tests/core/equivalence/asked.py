"""A small cluster, a plugin that says what the test says, and a cache that is asked about one class of pods."""

from collections.abc import Sequence

from core.equivalence.cache import CacheOptions, EquivalenceCache
from core.framework.evaluation import Evaluation
from core.framework.interface import Scope, Status
from core.mirror.node_info import NodeBatch
from core.objects.kinds import Namespace
from core.objects.pod import Pod
from tests.core.equivalence.said_plugin import SaidPlugin, scores, statuses, when, whole
from tests.core.mirror.values import mirror_of, node, pod

POD_RULE, NAMESPACE_RULE = when(Pod, Scope.NODE), when(Namespace, Scope.ALL)


class Asked:
    """Nodes `a`, `b` and `c`, a plugin, and a cache that is asked about one class of pods."""

    def __init__(self, plugin: SaidPlugin | None = None) -> None:
        self.mirror = mirror_of(node("a"), node("b"), node("c"))
        self.plugin = plugin or SaidPlugin(invalidated_by=(POD_RULE, NAMESPACE_RULE))
        self.cache = EquivalenceCache(self.mirror, [self.plugin], CacheOptions(mode="spec"))

    def evaluation(self) -> Evaluation:
        return self.cache.evaluation(pod("p"))

    def statuses(self, *names: str) -> list[Status]:
        return statuses(self.evaluation(), self.plugin, self.batch(*names))

    def scores(self, *names: str) -> Sequence[int | None]:
        return scores(self.evaluation(), self.plugin, self.batch(*names))

    def batch(self, *names: str) -> NodeBatch:
        return self.mirror.batch(names) if names else whole(self.mirror)
