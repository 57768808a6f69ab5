"""What a plugin offers at each extension point, over all nodes of a question at once.

Source: k8s.io/kube-scheduler framework interfaces PreFilter, Filter, PreScore, Score and NormalizeScore; Filter and
Score take the whole batch, because a call per node would cost more than the answer.
"""

from typing import Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from core.events import Kind
from core.framework.status import Status
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.topology import Int64Array
from core.objects.pod import Pod

FilterState = TypeVar("FilterState")
ScoreState = TypeVar("ScoreState")

Codes: TypeAlias = NDArray[np.uint8]

MAX_NODE_SCORE = 100
"""The highest normalised score (upstream MaxNodeScore)."""


class Verdicts:
    """A status for each node of a batch: `codes[i]` is the index of its status in `statuses`, and 0 is success."""

    __slots__ = ("codes", "statuses")

    def __init__(self, codes: Codes, statuses: tuple[Status, ...]) -> None:
        self.codes = codes
        self.statuses = statuses

    def status(self, position: int) -> Status:
        """Return the status of one node of the batch."""
        return self.statuses[int(self.codes[position])]


class FilterPlugin(Protocol[FilterState]):
    """A predicate. The state that `pre_filter` gives is stale after the next event."""

    @property
    def name(self) -> str:
        """The plugin's name, upstream's."""

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of objects that its answers follow from; what is not watched is missing in the mirror."""

    def pre_filter(self, mirror: ClusterMirror, pod: Pod) -> tuple[Status, FilterState | None]:
        """Gather what the pod asks. No state: all nodes pass (SKIP), or all fail with the status."""

    def filter(self, state: FilterState, batch: NodeBatch) -> Verdicts:
        """Judge every node of the batch."""


class ScorePlugin(Protocol[ScoreState]):
    """A priority. The state that `pre_score` gives is stale after the next event."""

    @property
    def name(self) -> str:
        """The plugin's name, upstream's."""

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of objects that its answers follow from; what is not watched is missing in the mirror."""

    def pre_score(self, mirror: ClusterMirror, pod: Pod) -> tuple[Status, ScoreState | None]:
        """Gather what the pod prefers. No state: every node gets 0 (SKIP)."""

    def score(self, state: ScoreState, batch: NodeBatch) -> Int64Array:
        """Return the raw score of every node of the batch."""

    def normalize(self, state: ScoreState, raw: Int64Array) -> Int64Array:
        """Turn the raw scores of the nodes asked into 0..MAX_NODE_SCORE."""
