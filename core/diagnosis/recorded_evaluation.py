"""An evaluation that records each plugin's results, so that an explanation shows the very decision."""

from collections.abc import Sequence
from typing import Any, Final

from core.framework.composite import Composite
from core.framework.evaluation import FreshEvaluation, everywhere, first_failures
from core.framework.interface import AnyFilter, AnyScore, Verdicts
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.topology import Int64Array, IntpArray
from core.objects.pod import Pod


class RecordedEvaluation:
    """Asks the plugins afresh. For one batch of nodes for the filters, and one for the scores."""

    source = "none"

    def __init__(self, mirror: ClusterMirror, pod: Pod) -> None:
        self.of_filters: dict[str, Verdicts | None] = {}
        """Plugin -> its verdicts on every node that was filtered; None: all pass."""
        self.states: dict[str, Any] = {}
        """Plugin, or part of a composite one -> its PreFilter state; None: skipped, or a failure."""
        self.of_scores: dict[str, Int64Array | None] = {}
        """Plugin -> its raw scores of every node that was scored; None: it has nothing to say."""
        self.mirror: Final = mirror
        self.pod: Final = pod
        self._fresh = FreshEvaluation(mirror, pod)

    def verdicts(self, plugin: AnyFilter, batch: NodeBatch) -> Verdicts | None:
        """Run PreFilter and Filter, once: a second run returns the recorded result."""
        if plugin.name in self.of_filters:
            return self.of_filters[plugin.name]
        status, state = plugin.pre_filter(self.mirror, self._fresh.pod)
        found = everywhere(status, batch) if state is None else plugin.filter(state, batch)
        self.states[plugin.name], self.of_filters[plugin.name] = state, found
        if isinstance(plugin, Composite) and state is not None:
            self.states.update({each.part.name: each.state for each in state})
        return found

    def filtered(self, filters: Sequence[AnyFilter], batch: NodeBatch) -> Verdicts:
        """Run PreFilter and Filter of all plugins, on all nodes: also where an earlier one has failed."""
        return first_failures(filters, batch, self.verdicts)

    def raw_scores(self, plugin: AnyScore, batch: NodeBatch) -> Int64Array | None:
        """Run PreScore and Score."""
        found = self.of_scores[plugin.name] = self._fresh.raw_scores(plugin, batch)
        return found

    def best(
        self, _filters: Sequence[AnyFilter], _scores: Sequence[tuple[AnyScore, int]], _batch: NodeBatch
    ) -> IntpArray | None:
        """Return None: only results of plugins can be explained."""
        return None
