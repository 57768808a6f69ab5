"""The plugin NodeResourcesFit: its arguments and its extension points.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/noderesources/fit.go. Devices that back an extended resource
are not scored, because upstream reads ResourceSlices and their allocations for that.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import accumulate, compress
from typing import Final, NamedTuple

import msgspec
import numpy as np

from core.events import Kind
from core.framework.interface import (
    SUCCESS,
    Code,
    FilterPlugin,
    InvalidationRule,
    Operation,
    Scope,
    ScorePlugin,
    Status,
    Verdicts,
)
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.topology import BoolArray, Float64Array, Int64Array, IntpArray
from core.objects.kinds import DeviceClass
from core.objects.labels import label_key_errors
from core.objects.node import Node
from core.objects.pod import Pod
from core.objects.quantity import MAX_INT64
from core.plugins.noderesources.columns import (
    EVERY_SCHEDULER,
    LARGEST_AMOUNT,
    NATIVE,
    NOTHING_LEFT,
    PODS,
    DeviceSchedulers,
    LeftToDevices,
    ResourceColumns,
    cpu_and_memory,
    insufficient,
    is_extended,
    left_to_devices,
    offered_by_strangers,
    requests_changed,
    stands_for,
)
from core.plugins.noderesources.strategies import ScoreState, ScoringStrategy, in_range, with_default_weights

# The filter side (Filter, fitsRequest): finds every resource that is too scarce on a node, for all nodes at once.

MAX_TOLD: Final = 128
"""How many insufficient resources are reported by name, at most. Each node of the response has a list of its own."""
_OTHERS: Final = "Insufficient other resources"


class IgnoredResources:
    """The ignored extended resources, by name or by the part of the name before the `/`."""

    __slots__ = ("_groups", "_names")

    def __init__(self, names: Collection[str], groups: Collection[str]) -> None:
        self._names = frozenset(names)
        self._groups = frozenset(groups)

    def __contains__(self, resource: str) -> bool:
        return is_extended(resource) and (resource in self._names or resource.partition("/")[0] in self._groups)


class MeasuredResource(msgspec.Struct, frozen=True):
    """One resource on each node of a batch: the pod's request, and whether the node has too little of the resource."""

    resource: str
    asked: int
    allocatable: Int64Array
    in_use: Int64Array
    short: BoolArray


class PreFilterState:
    """The requests of one incoming pod, in the order of the reasons. Stale after the next event."""

    __slots__ = ("_asked", "_columns", "_left")

    def __init__(
        self,
        columns: ResourceColumns,
        requests: Mapping[str, int],
        ignored: IgnoredResources,
        left: LeftToDevices = NOTHING_LEFT,
    ) -> None:
        self._columns = columns
        self._left = left
        self._asked = [(resource, requests[resource]) for resource in NATIVE if requests.get(resource, 0) > 0]
        # Upstream has the other resources in the order of a Go map, so any order is right.
        self._asked += [
            (resource, amount)
            for resource, amount in sorted(requests.items())
            if amount and resource not in NATIVE and resource not in ignored
        ]

    def judge(self, batch: NodeBatch) -> Verdicts:
        """Give each node its verdict: unresolvable where the pod asks for more of anything short than there ever is."""
        if self._fits_one(batch):
            return Verdicts(np.zeros(1, np.intp), (SUCCESS,))
        columns, offered = self._columns, offered_by_strangers(batch)
        shortages = _Shortages(len(batch))
        unresolvable = np.zeros(len(batch), np.bool_)
        others: BoolArray | None = None  # other insufficient resources, beyond the named ones
        too_many = columns.requested.at(PODS, batch) >= columns.allocatable_of(PODS, batch, offered)
        shortages.amend(too_many, _with_reason("Too many pods"))
        told = 0
        for resource, amount in self._asked:
            left = self._left.on(resource, columns, offered, batch)
            if left is None and columns.no_node_offers(resource, amount, offered):
                short, never = np.ones((2, len(batch)), np.bool_)
            else:
                allocatable = columns.allocatable_of(resource, batch, offered)
                short = allocatable - columns.requested.at(resource, batch) < amount
                if left is not None:
                    short &= ~left
                if not short.any():
                    continue
                never = short & (allocatable < amount)
            unresolvable |= never
            told += 1
            if told <= MAX_TOLD:
                shortages.amend(short, _with_reason(insufficient(resource)))
                continue
            others = short if others is None else others | short
            if others.all() and unresolvable.all():
                break
        if others is not None:
            shortages.amend(others, _with_reason(_OTHERS))
        shortages.amend(unresolvable, _unresolvable)
        return Verdicts(shortages.codes, tuple(shortages.statuses))

    def _fits_one(self, batch: NodeBatch) -> bool:
        """Return whether a batch is one known node that has enough of everything. False: look closer.

        After a decision one node is judged again, where arrays take ten times as long as numbers.
        """
        if len(batch) != 1 or batch.strangers or self._left is not NOTHING_LEFT:
            return False
        slot, allocatable, requested = batch.slots.item(0), self._columns.allocatable, self._columns.requested
        return all(
            amount <= allocatable.on(resource, slot) - requested.on(resource, slot) <= LARGEST_AMOUNT
            for resource, amount in ((PODS, 1), *self._asked)
        )

    def measured(self, batch: NodeBatch, limit: int) -> Iterator[MeasuredResource]:
        """Yield the measurements: the number of pods, and up to `limit` resources in the order of the reasons."""
        columns, offered = self._columns, offered_by_strangers(batch)
        for resource, asked in ((PODS, 1), *self._asked[:limit]):
            allocatable = columns.allocatable_of(resource, batch, offered)
            in_use = columns.requested.at(resource, batch)
            left = self._left.on(resource, columns, offered, batch)
            short = allocatable - in_use < asked
            yield MeasuredResource(resource, asked, allocatable, in_use, short if left is None else short & ~left)


class _Shortages:
    """The distinct statuses of a batch, and the code of each node. Nodes with equal shortages share a status."""

    __slots__ = ("codes", "statuses")

    def __init__(self, length: int) -> None:
        self.codes: IntpArray = np.zeros(length, np.intp)
        self.statuses = [SUCCESS]

    def amend(self, which: BoolArray, amended: Callable[[Status], Status]) -> None:
        """Change the status of some nodes."""
        if not which.any():
            return
        # Each status unchanged and amended. Those that some node has are kept, and success, which is code 0.
        codes = self.codes + which * len(self.statuses)
        statuses = [*self.statuses, *map(amended, self.statuses)]
        used = np.bincount(codes, minlength=len(statuses)) > 0
        used[0] = True
        self.codes = (np.cumsum(used) - 1)[codes]
        self.statuses = list(compress(statuses, used.tolist()))


def _with_reason(reason: str) -> Callable[[Status], Status]:
    return lambda status: Status(Code.UNSCHEDULABLE, (*status.reasons, reason))


def _unresolvable(status: Status) -> Status:
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, status.reasons)


class Room(NamedTuple):
    """How many of some pods each node can hold, by its resources."""

    most: Int64Array
    """An upper bound of the pods on the node, in any placement that NodeResourcesFit allows."""
    shares: Float64Array
    """The free amount by resource and node, as a share of the sum of their requests: first of pods, then of the other
    resources by name."""

    @property
    def times(self) -> Float64Array:
        """How many times over all of them fit on each node, by the scarcest resource."""
        times: Float64Array = self.shares.min(axis=0)
        return times


def room_for(
    mirror: ClusterMirror,
    pods: Sequence[Pod],
    ignored: IgnoredResources,
    batch: NodeBatch,
    schedulers: DeviceSchedulers = EVERY_SCHEDULER,
) -> Room:
    """Return how many of some pods, at least one, each node can hold. Stale after the next event.

    For each resource, `most` counts the smallest requests first. A resource that devices back on some node sets no
    bound. `schedulers` have a plugin that allocates devices.
    """
    columns = mirror.derived(ResourceColumns)
    free = columns.allocatable_of(PODS, batch) - columns.requested.at(PODS, batch)
    most: Int64Array = np.clip(free, 0, len(pods))
    shares: list[Float64Array] = [np.maximum(free, 0) / len(pods)]
    members = [mirror.counted(pod) for pod in pods]
    requests = [pod.requests for pod in members]
    for resource in sorted({name for each in requests for name, amount in each.items() if amount > 0}):
        if resource in ignored or _is_left_to_devices(mirror, members, schedulers, resource, batch):
            continue
        asked = sorted(amount for each in requests if (amount := each.get(resource, 0)) > 0)
        sums = np.array([min(each, MAX_INT64) for each in accumulate(asked)], np.int64)
        free = columns.allocatable_of(resource, batch) - columns.requested.at(resource, batch)
        most = np.minimum(most, len(pods) - len(asked) + np.searchsorted(sums, free, side="right"))
        shares.append(np.maximum(free, 0) / sums[-1])
    return Room(most, np.array(shares))


def _is_left_to_devices(
    mirror: ClusterMirror, pods: Sequence[Pod], schedulers: DeviceSchedulers, resource: str, batch: NodeBatch
) -> bool:
    if resource in NATIVE:
        return False
    columns = mirror.derived(ResourceColumns)
    asking = {(pod.scheduler_name, frozenset(pod.requests)): pod for pod in pods if pod.requests.get(resource)}
    left = (left_to_devices(mirror, pod, schedulers) for pod in asking.values())
    return any(each.on(resource, columns, {}, batch) is not None for each in left)


LEAST_ALLOCATED: Final = ScoringStrategy()

_INVALIDATED_BY: Final = (
    InvalidationRule(
        kind=Node,
        operations=(Operation.UPDATE,),
        scope=Scope.NODE,
        when="an allocatable amount changed",
        because="a pod must fit into the allocatable amount less the requests",
        touches=lambda before, after: before.allocatable != after.allocatable,
    ),
    InvalidationRule(
        kind=Pod,
        scope=Scope.NODE,
        when="it comes, goes, or asks for something else than before",
        because="every pod takes one of the node's pods, and what it asks for; also one that was resized in place",
        touches=requests_changed,
    ),
    InvalidationRule(
        kind=DeviceClass,
        scope=Scope.ALL,
        when="it comes or goes, or its extended resource changed",
        because="its resource is left to devices on every node that does not offer it itself",
        touches=lambda before, after: stands_for(before) != stands_for(after),
    ),
)


class NodeResourcesFit(FilterPlugin[PreFilterState], ScorePlugin[ScoreState]):
    """Filters by all requests of a pod, and scores by the requested amounts, exactly as the in-tree plugin.

    `ignored_resources` and `ignored_resource_groups` name extended resources that the filter ignores, because another
    extender checks them. `device_schedulers` have the plugin DynamicResources. Pods of all other schedulers need the
    amounts that nodes list, whatever devices there are: no program would allocate a device. Raises ValueError for
    arguments that upstream's ValidateNodeResourcesFitArgs rejects.
    """

    name = "NodeResourcesFit"
    kinds: tuple[Kind, ...] = (Node, Pod, DeviceClass)
    class_fields: tuple[str, ...] = ("requests", "scored_requests")
    invalidated_by = _INVALIDATED_BY
    states = (ResourceColumns,)
    scores_alone = True
    normalizes_alone = True

    def __init__(
        self,
        *,
        ignored_resources: Sequence[str] = (),
        ignored_resource_groups: Sequence[str] = (),
        scoring_strategy: ScoringStrategy = LEAST_ALLOCATED,
        device_schedulers: DeviceSchedulers = EVERY_SCHEDULER,
    ) -> None:
        errors = [
            *_ignored_errors("ignoredResources", ignored_resources),
            *_ignored_errors("ignoredResourceGroups", ignored_resource_groups),
            *scoring_strategy.errors(),
        ]
        if errors:
            raise ValueError("; ".join(errors))
        self._ignored = IgnoredResources(ignored_resources, ignored_resource_groups)
        self._resources = with_default_weights(scoring_strategy.resources)
        self._scorer = scoring_strategy.scorer()
        self.device_schedulers: Final = device_schedulers
        if device_schedulers != EVERY_SCHEDULER:
            self.class_fields += ("scheduler_name",)

    def pre_filter(self, mirror: ClusterMirror, pod: Pod) -> tuple[Status, PreFilterState]:
        """Collect the pod's requests. Never skipped, because every pod counts against the node's pods."""
        left = left_to_devices(mirror, pod, self.device_schedulers)
        return SUCCESS, PreFilterState(mirror.derived(ResourceColumns), pod.requests, self._ignored, left)

    def filter(self, state: PreFilterState, batch: NodeBatch) -> Verdicts:
        """Judge every node of the batch."""
        return state.judge(batch)

    def left_to_devices(self, mirror: ClusterMirror, pod: Pod, batch: NodeBatch) -> Sequence[str]:
        """Return the requests that the filter does not check on some node of the batch, sorted."""
        left = left_to_devices(mirror, mirror.counted(pod), self.device_schedulers)
        return left.anywhere(mirror.derived(ResourceColumns), offered_by_strangers(batch), batch)

    def room_for(self, mirror: ClusterMirror, pods: Sequence[Pod], batch: NodeBatch) -> Room:
        """Return how many of some pods each node can hold, by the resources that the filter checks. See room_for."""
        return room_for(mirror, pods, self._ignored, batch, self.device_schedulers)

    def pre_score(self, mirror: ClusterMirror, pod: Pod, _batch: NodeBatch) -> tuple[Status, ScoreState]:
        """Collect the pod's amounts for scoring."""
        # Not the amounts of a pod on a node: upstream's scorer reads only the containers of the incoming pod.
        asked = {**pod.requests, **cpu_and_memory(pod.scored_requests)}
        return SUCCESS, ScoreState(mirror.derived(ResourceColumns), asked, non_zero=True)

    def score(self, state: ScoreState, batch: NodeBatch) -> Int64Array:
        """Return the score of every node by the strategy."""
        return state.score(self._resources, self._scorer, batch)

    def normalize(self, raw: Int64Array) -> Int64Array:
        """Return the scores, which are already 0..100 (upstream has no NormalizeScore)."""
        return in_range(raw)


def _ignored_errors(argument: str, names: Sequence[str]) -> Iterator[str]:
    for index, name in enumerate(names):
        if argument == "ignoredResourceGroups" and "/" in name:
            yield f"{argument}[{index}]: resource group name can't contain '/', got {name}"
        for error in label_key_errors(name):
            yield f"{argument}[{index}]: {error}, got {name}"
