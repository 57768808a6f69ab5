"""The extension points of a plugin, for all nodes of a request at once.

Source: k8s.io/kube-scheduler framework interfaces PreFilter, Filter, PreScore, Score and NormalizeScore. Filter and
Score take the whole batch, because a call per node would cost more than the computation.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable
from typing import Any, Final, Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from core.events import Kind
from core.framework.invalidation import InvalidationRule
from core.framework.status import Status
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.topology import Int64Array
from core.objects.pod import Pod

FilterState = TypeVar("FilterState")
ScoreState = TypeVar("ScoreState")

Codes: TypeAlias = NDArray[np.integer[Any]]
Versions: TypeAlias = tuple[Hashable, ...]

MAX_NODE_SCORE = 100
"""The highest normalised score (upstream MaxNodeScore)."""
NOT_SCORED: Final = -(2**62)
"""Raw score of a node that a plugin excludes from normalisation. The node gets 0."""


class Verdicts:
    """A status for each node of a batch: `codes[i]` is the index of its status in `statuses`, and 0 is success.

    `of_pre_filter` is true if PreFilter failed, so Filter did not run for any node.
    """

    __slots__ = ("codes", "of_pre_filter", "statuses")

    def __init__(self, codes: Codes, statuses: tuple[Status, ...], *, of_pre_filter: bool = False) -> None:
        self.codes = codes
        self.statuses = statuses
        self.of_pre_filter = of_pre_filter

    def status(self, position: int) -> Status:
        """Return the status of one node of the batch."""
        return self.statuses[int(self.codes[position])]


class Plugin:
    """The declarations of every plugin. The equivalence cache uses them to key and invalidate results."""

    name: str
    """The plugin's name, as upstream."""
    kinds: tuple[Kind, ...]
    """The kinds of objects that the results depend on. The mirror lacks objects of kinds that are not watched."""
    class_fields: tuple[str, ...]
    """The fields of the Pod that the plugin reads. With the equivalence cache, it gets a pod with only these fields."""
    invalidated_by: tuple[InvalidationRule, ...]
    """The events that change a result for a node, except creation and deletion of the node itself (NODE_LIFE)."""

    def references(self, _mirror: ClusterMirror, _pod: Pod, /) -> Hashable:
        """Return the objects behind the names in the pod's fields, such as the UIDs of its claims, or None.

        The cache does not call a plugin that leaves this as it is.
        """


class FilterPlugin(Plugin, ABC, Generic[FilterState]):
    """A predicate. The state from `pre_filter` is stale after the next event."""

    @abstractmethod
    def pre_filter(self, mirror: ClusterMirror, pod: Pod, /) -> tuple[Status, FilterState | None]:
        """Collect the pod's requirements. Without a state, all nodes pass (SKIP) or all fail with the status."""

    @abstractmethod
    def filter(self, state: FilterState, batch: NodeBatch, /) -> Verdicts:
        """Judge every node of the batch. The verdict on an unknown node is ignored."""

    def filter_versions(self, _state: FilterState, /) -> Versions:
        """Return the versions of all counters that the verdicts depend on, for Scope.COUNTERS. Here: of none."""
        return ()


class ScorePlugin(Plugin, ABC, Generic[ScoreState]):
    """A priority. The state from `pre_score` is stale after the next event."""

    scores_alone: bool
    """Whether a node's raw score is independent of the other nodes of the request, so that it can be cached."""
    normalizes_alone: bool
    """Whether a node's normalised score is independent of the other nodes of the request."""

    @abstractmethod
    def pre_score(self, mirror: ClusterMirror, pod: Pod, batch: NodeBatch, /) -> tuple[Status, ScoreState | None]:
        """Collect the pod's preferences. Without a state, every node gets 0 (SKIP)."""

    @abstractmethod
    def score(self, state: ScoreState, batch: NodeBatch, /) -> Int64Array:
        """Return the raw score of every node of the batch."""

    def score_versions(self, _state: ScoreState, /) -> Versions:
        """Return the versions of all counters that the raw scores depend on, for Scope.COUNTERS. Here: of none."""
        return ()

    @abstractmethod
    def normalize(self, raw: Int64Array, /) -> Int64Array:
        """Normalise the raw scores of the requested nodes to 0..MAX_NODE_SCORE. NOT_SCORED becomes 0."""


AnyFilter: TypeAlias = FilterPlugin[Any]
AnyScore: TypeAlias = ScorePlugin[Any]
