"""An evaluation that records each plugin's results, so that an explanation shows exactly the decision."""

from collections.abc import Sequence
from typing import Any, Final

from core.framework.evaluation import Composite, FreshEvaluation, everywhere, first_failures
from core.framework.interface import AnyFilter, AnyScore, Verdicts
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.topology import Int64Array, IntpArray
from core.objects.pod import Pod


class RecordedEvaluation:
    """Runs the plugins afresh, for one batch of nodes for the filters, and one for the scores."""

    source = "none"

    def __init__(self, mirror: ClusterMirror, pod: Pod) -> None:
        self.of_filters: dict[str, Verdicts | None] = {}
        """Plugin -> its verdicts on every filtered node. None means that all pass."""
        self.states: dict[str, Any] = {}
        """Plugin, or part of a composite -> its PreFilter state. None if it skipped or failed."""
        self.of_scores: dict[str, Int64Array | None] = {}
        """Plugin -> its raw scores of every scored node. None if it skips the pod."""
        self.mirror: Final = mirror
        self.pod: Final = pod
        self._fresh = FreshEvaluation(mirror, pod)

    def verdicts(self, plugin: AnyFilter, batch: NodeBatch) -> Verdicts | None:
        """Run PreFilter and Filter once. A second call returns the recorded result."""
        if plugin.name in self.of_filters:
            return self.of_filters[plugin.name]
        status, state = plugin.pre_filter(self.mirror, self._fresh.pod)
        found = everywhere(status, batch) if state is None else plugin.filter(state, batch)
        self.states[plugin.name], self.of_filters[plugin.name] = state, found
        if isinstance(plugin, Composite) and state is not None:
            self.states.update({each.part.name: each.state for each in state})
        return found

    def filtered(self, filters: Sequence[AnyFilter], batch: NodeBatch) -> Verdicts:
        """Run PreFilter and Filter of all plugins on all nodes, even after an earlier plugin has failed a node."""
        return first_failures(filters, batch, self.verdicts)

    def raw_scores(self, plugin: AnyScore, batch: NodeBatch) -> Int64Array | None:
        """Run PreScore and Score."""
        found = self.of_scores[plugin.name] = self._fresh.raw_scores(plugin, batch)
        return found

    def best(
        self, _filters: Sequence[AnyFilter], _scores: Sequence[tuple[AnyScore, int]], _batch: NodeBatch
    ) -> IntpArray | None:
        """Return None: an explanation needs the plugins' results."""
        return None
