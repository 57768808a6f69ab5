"""The extension points of a plugin, for all nodes of a request at once.

Source: k8s.io/kube-scheduler framework interfaces PreFilter, Filter, PreScore, Score and NormalizeScore. Filter and
Score take the whole batch, because a call per node would cost more than the computation.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from enum import IntEnum
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from core.events import Kind
from core.framework.arguments import Args
from core.framework.invalidation import InvalidationRule
from core.mirror.changes import Listener
from core.mirror.cluster import ClusterMirror
from core.mirror.fork import Fork
from core.mirror.node_info import NodeBatch
from core.mirror.topology import Float64Array, Int64Array
from core.objects.labels import in_bytes
from core.objects.node import Node
from core.objects.pod import Pod
from core.objects.quantity import shortened
from core.releases.release import Rules


class Code(IntEnum):
    """The result code of a plugin for a pod, or for a pod on a node."""

    SUCCESS = 0
    ERROR = 1
    UNSCHEDULABLE = 2
    """Removing pods (preemption) may help."""
    UNSCHEDULABLE_AND_UNRESOLVABLE = 3
    """Preemption cannot help."""
    SKIP = 4
    """The plugin does not apply to this pod: as a filter it passes every node, as a score it gives all nodes 0."""

    @property
    def label(self) -> str:
        """The code in Go's spelling, such as `UnschedulableAndUnresolvable`."""
        return "".join(part.capitalize() for part in self.name.split("_"))


class Status(msgspec.Struct, frozen=True, gc=False):
    """A code with its reasons, in upstream's order. Success has no reasons."""

    code: Code
    reasons: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        """The reasons as one text, joined as upstream does. A long text is truncated, because each node gets a copy."""
        return shortened(", ".join(self.reasons))


SUCCESS: Final = Status(Code.SUCCESS)
SKIP: Final = Status(Code.SKIP)
PASSED: Final = (Code.SUCCESS, Code.SKIP)
"""The codes of a PreFilter without a state after which all nodes pass."""


def text_of(mirror: ClusterMirror, message: str) -> str:
    """Return a message from the decoding of a pod in the release's wording."""
    return in_bytes(message) if mirror.rules.label_errors_in_bytes else message


FilterState = TypeVar("FilterState")
ScoreState = TypeVar("ScoreState")

Codes: TypeAlias = NDArray[np.integer[Any]]
Versions: TypeAlias = tuple[Hashable, ...]


class Verdicts(msgspec.Struct, eq=False, gc=False):
    """A status for each node of a batch: `codes[i]` is the index of its status in `statuses`, and 0 is success.

    `of_pre_filter` is true if PreFilter failed, so Filter did not run for any node.
    """

    codes: Codes
    statuses: tuple[Status, ...]
    of_pre_filter: bool = False
    present: tuple[int, ...] | None = None
    """The codes that some node has, once `found` has determined them."""
    text: str | None = None
    """The result of `reasons_text`, once it was needed. A class that fits nowhere has the same verdicts for long."""
    stored: tuple[bytes, bytes] | None = None
    """A response that was made of them, after what it is for."""

    def found(self) -> tuple[int, ...]:
        """Return the codes that some node has, in order."""
        if self.present is None:
            self.present = tuple(np.bincount(self.codes).nonzero()[0].tolist())
        return self.present

    def has_error(self) -> bool:
        """Return whether some node has an error. It may not occur again, so it must not be cached."""
        errors = [code for code, status in enumerate(self.statuses) if status.code is Code.ERROR]
        return bool(errors) and not set(errors).isdisjoint(self.found())

    def status(self, position: int) -> Status:
        """Return the status of one node of the batch."""
        return self.statuses[int(self.codes[position])]


class Plugin:
    """The declarations of every plugin. The equivalence cache uses them to key and invalidate results."""

    name: str
    """The plugin's name, as upstream."""
    kinds: tuple[Kind, ...] = (Node,)
    """The kinds of objects that the results depend on. The mirror lacks objects of kinds that are not watched."""
    class_fields: tuple[str, ...]
    """The fields of the Pod that the plugin reads. With the equivalence cache, it gets a pod with only these fields."""
    invalidated_by: tuple[InvalidationRule, ...]
    """The events that change a result for a node, except creation and deletion of the node itself (NODE_LIFE)."""
    former_filters: tuple[str, ...] = ()
    """The names of predicates, and of plugins that only filtered, which became the filter of this plugin."""
    former_scores: tuple[tuple[str, str], ...] = ()
    """The names of priorities that became its score, each with a scoring strategy, empty if it has one only."""
    states: tuple[Callable[[ClusterMirror], Listener], ...] = ()
    """The states that the mirror keeps for the plugin from its start (core/scheduling_cycle.py, states_of)."""

    state_lasts: bool = False
    """Whether a state of its PreScore, or of its PreFilter if that reads no counters, has nothing that pods change, but
    reads that when it is used. So it stays right for a class until an event makes the results of all nodes invalid."""

    # The configuration of kube-scheduler's plugin of this name:

    points: Collection[str] = ()
    """The extension points that it implements."""
    needs_pre: Collection[str] = ()
    """Those of filter and score that fail if it did not run at preFilter or preScore. Others do not."""
    pre_filter_rejects: bool = False
    """Whether its PreFilter may reject a pod for all nodes, even if its Filter is off. Other pods are no reason."""
    costly_pre: bool = False
    """Whether it visits all pods at preFilter or preScore, which run even if nothing comes after them."""
    arguments: type[Args] | None = None
    """The arguments as people write them. None: those of the constructor, in camelCase."""
    of_scores: Collection[str] = ()
    """The arguments of its constructor that affect no verdict."""
    of_verdicts: Collection[str] = ()
    """The arguments of its constructor that affect no score. All others affect both."""
    left_out: Mapping[str, Any] = {}
    """Its arguments that affect no verdict, and that Kindred does not have: name -> type."""
    not_scored: Sequence[tuple[str, Sequence[object]]] = ()
    """Those of them that affect its scores, with the values that mean the default."""
    waits_by: str = ""
    """The argument for how long a binding may wait for it."""
    missed: str = ""
    """What happens if no program runs its Filter. Set if it binds or allocates what pods claim: nothing replaces it."""

    def epoch(self, _mirror: ClusterMirror, /) -> int | None:
        """Return a number. While it is the same, a state of PreFilter or PreScore stays right for a class.

        Such a state reads the numbers of pods when it is used, so that pods may come and go. None: a state is stale
        after the next event.
        """

    def references(self, _mirror: ClusterMirror, _pod: Pod, /) -> Hashable:
        """Return the objects behind the names in the pod's fields, such as the UIDs of its claims, or None.

        It reads the declared fields, and no pod of the mirror. The cache does not call a plugin that leaves this as it
        is.
        """

    def knows_each(self, _mirror: ClusterMirror, _pod: Pod, /) -> bool:
        """Return whether the results depend on the pod's own UID and name, so that no other pod has its class."""
        return False

    def concerns(self, _mirror: ClusterMirror, _pod: Pod, /) -> bool:
        """Return whether an explanation of the pod has the plugin. It passes every node for all others."""
        return True

    @staticmethod
    def effect_of(argument: object, /) -> object:
        """Return what is equal for all values of an argument of the constructor that have the same effect."""
        return tuple(argument) if isinstance(argument, list) else argument

    @staticmethod
    def reserves_for(_mirror: ClusterMirror, _pod: Pod, /) -> str:
        """Return what kube-scheduler's plugin reserves for a pod, on nodes that its Filter saw. Empty: nothing."""
        return ""

    def reserve(self, _mirror: ClusterMirror, _fork: Fork, _pod: Pod, /) -> None:
        """Suppose what the Reserve step of kube-scheduler's plugin assumes for a pod that is supposed on its node."""


class Capacity(NamedTuple):
    """How many of some pods each node can hold."""

    most: Int64Array
    """An upper bound of the pods on the node, in any placement that the plugin allows."""
    shares: Float64Array
    """The free amount by resource and node, as a share of the sum of their requests: first of pods, then of the other
    resources by name."""

    @property
    def times(self) -> Float64Array:
        """How many times over all of them fit on each node, by the scarcest resource."""
        times: Float64Array = self.shares.min(axis=0)
        return times


class FilterPlugin(Plugin, ABC, Generic[FilterState]):
    """A predicate. The state from `pre_filter` is stale after the next event."""

    judges_resizes: bool = False
    """Whether it judges a pod on its node after a resize. All others skip such a pod in PreFilter (v1.37)."""
    points: Collection[str] = ("preFilter", "filter")

    @abstractmethod
    def pre_filter(self, mirror: ClusterMirror, pod: Pod, /) -> tuple[Status, FilterState | None]:
        """Collect the pod's requirements. Without a state, all nodes pass (SKIP) or all fail with the status."""

    @abstractmethod
    def filter(self, state: FilterState, batch: NodeBatch, /) -> Verdicts:
        """Judge every node of the batch. The verdict on an unknown node is ignored."""

    def is_small(self, _state: FilterState, /) -> bool:
        """Return whether a state may be kept while its `epoch` lasts. Nobody counts the bytes that it keeps."""
        return True

    def status_on(self, _state: FilterState, _slot: int, /) -> Status | None:
        """Return the verdict on the known node of a slot: SUCCESS itself, or a failure. None: `filter` says.

        After a decision, one node is judged again. There, arrays take several times as long as numbers.
        """
        return None

    def filter_versions(self, _state: FilterState, /) -> Versions:
        """Return the versions of all counters that the verdicts depend on, for Scope.COUNTERS. Here: of none."""
        return ()

    def passes_alike(self, _state: FilterState, _before: Versions, _slots: Collection[int], /) -> bool:
        """Return whether all other nodes have the verdicts of earlier versions, if pods changed on these slots alone.

        So the nodes of these slots are judged again, and no other.
        """
        return False

    def filters_in(self, _rules: Rules, /) -> bool:
        """Return whether a release has the filter."""
        return True

    def is_first_in(self, _rules: Rules, /) -> bool:
        """Return whether the filter comes first in the default order of a release."""
        return False

    def left_to_devices(self, _mirror: ClusterMirror, _pod: Pod, _batch: NodeBatch, /) -> Sequence[str]:
        """Return the resources that the filter leaves to devices on some node, sorted, each with its DeviceClass."""
        return ()

    def device_needs(self, _mirror: ClusterMirror, _pod: Pod, /) -> Mapping[str, str]:
        """Return the reasons that a device would take away -> what the pod needs for that. Here: none."""
        return {}

    def capacity_for(self, _mirror: ClusterMirror, _pods: Sequence[Pod], _batch: NodeBatch, /) -> Capacity | None:
        """Return how many of some pods, at least one, each node can hold. None: the plugin sets no bound."""
        return None


class DeviceAmounts(Protocol):
    """How many devices nodes have for extended resources."""

    def backs(self, resource: str, /) -> bool:
        """Return whether devices provide a resource."""

    def of(self, resource: str, batch: NodeBatch, /) -> tuple[Int64Array, Int64Array] | None:
        """Return for each node how many devices it has, and how many are allocated. None: it is not known."""


MOST_TRAITS: Final = 6
"""Nodes that differ by more numbers for one plugin would be too many groups. A pod may have thousands of terms."""


class Traits(Protocol):
    """A state of PreScore that knows numbers of each node by which raw scores differ.

    Pods on other nodes change none of them: a domain, not its pods. Valid until a change of anything but a pod that a
    rule of the plugin names.
    """

    def of_all(self, batch: NodeBatch, /) -> Sequence[Int64Array] | None:
        """Return the numbers of all nodes of the batch of `pre_score`. None: they differ by too many."""

    def on(self, position: int, slot: int, /) -> Sequence[int]:
        """Return the numbers of the node at a position, with a slot."""

    def follows(self, earlier: Any, slots: Collection[int], /) -> bool:  # noqa: ANN401  # of the same class
        """Return whether other nodes have the numbers of an earlier state, if pods changed on these slots alone.

        Then `of_all` is not called.
        """

    def scores(self, traits: Sequence[Int64Array], nodes: Int64Array, /) -> Int64Array:
        """Return the raw score of each group with the same numbers, if so many nodes of each one are scored.

        A group without nodes may have any score.
        """


class ScorePlugin(Plugin, ABC, Generic[ScoreState]):
    """A priority. The state from `pre_score` is stale after the next event."""

    points: Collection[str] = ("preScore", "score")
    scores_alone: bool = False
    """Whether a node's raw score is independent of the other nodes of the request, so that it can be cached.

    If not, whether `pre_score` skips a pod follows from the pod's class.
    """
    normalizes_alone: bool = False
    """Whether a node's normalised score is independent of the other nodes of the request."""
    by_traits: bool = False
    """Whether the states of `pre_score` are Traits."""
    may_count_devices: bool = False
    """Whether its arguments name a resource that devices may provide."""

    @abstractmethod
    def pre_score(self, mirror: ClusterMirror, pod: Pod, batch: NodeBatch, /) -> tuple[Status, ScoreState | None]:
        """Collect the pod's preferences. Without a state, every node gets 0 (SKIP)."""

    @abstractmethod
    def score(self, state: ScoreState, batch: NodeBatch, /) -> Int64Array:
        """Return the raw score of every node of the batch."""

    def score_on(self, _state: ScoreState, _slot: int, /) -> int | None:
        """Return the raw score of the known node of a slot. None: `score` says. See `FilterPlugin.status_on`.

        Of a plugin that `normalizes_alone`, it is a score that `normalize` leaves as it is.
        """
        return None

    def counts_devices(self, _amounts: DeviceAmounts, _pod: Pod, /) -> bool:
        """Return whether the score for a pod depends on devices. Responses count them only to choose a node."""
        return False

    def with_devices(self, state: ScoreState, _amounts: DeviceAmounts, /) -> ScoreState:
        """Return the state of `pre_score` that counts devices, too."""
        return state

    def scores_in(self, _rules: Rules, /) -> bool:
        """Return whether the plugin scores in a release."""
        return True

    def score_versions(self, _state: ScoreState, /) -> Versions:
        """Return the versions of all counters that the raw scores depend on, for Scope.COUNTERS. Here: of none."""
        return ()

    def normalize(self, raw: Int64Array, /) -> Int64Array:
        """Normalise the raw scores of the requested nodes to 0..MAX_NODE_SCORE, NOT_SCORED to 0. Here: as they are.

        The result for a node follows from its raw score, and the lowest and the highest one of all.
        """
        return raw


AnyFilter: TypeAlias = FilterPlugin[Any]
AnyScore: TypeAlias = ScorePlugin[Any]


MAX_REASONS: Final = 20
"""Reasons in the text of a refusal."""


def reasons_text(verdicts: Verdicts) -> str:
    """Return each reason that some node has, once and in alphabetical order: `Insufficient cpu, node(s) were ...`.

    It has no counts. They change with every pod that is placed, and kube-scheduler writes each new text to the API
    server, with an Event.
    """
    if verdicts.text is None:
        reasons = sorted({reason for code in verdicts.found() for reason in verdicts.statuses[code].reasons})
        if len(reasons) > MAX_REASONS:
            reasons[MAX_REASONS:] = [f"and {len(reasons) - MAX_REASONS} reasons more"]
        verdicts.text = ", ".join(reasons)
    return verdicts.text
