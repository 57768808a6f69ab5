"""The filter side of NodeResourcesFit: finds every resource that is too scarce on a node, for all nodes at once.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/noderesources/fit.go (Filter, fitsRequest).
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import accumulate, compress
from typing import Final

import msgspec
import numpy as np

from core.framework.interface import SUCCESS, Capacity, Code, Status, Verdicts
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.topology import BoolArray, Float64Array, Int64Array, IntpArray
from core.objects.pod import Pod
from core.objects.quantity import MAX_INT64
from core.plugins.in_tree import EVERY_SCHEDULER, DeviceSchedulers
from core.plugins.noderesources.columns import (
    LARGEST_AMOUNT,
    NATIVE,
    NOTHING_LEFT,
    PODS,
    LeftToDevices,
    ResourceColumns,
    insufficient,
    is_extended,
    left_to_devices,
    offered_by_unmirrored,
)

MAX_REPORTED: Final = 128
"""How many insufficient resources are reported by name, at most. Each node of the response has a list of its own."""
_OTHERS: Final = "Insufficient other resources"
_TOO_MANY: Final = "Too many pods"
_ONE_POD: Final = (PODS, 1)


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
    requested: int
    allocatable: Int64Array
    in_use: Int64Array
    short: BoolArray


class PreFilterState:
    """The requests of one incoming pod, in the order of the reasons. Stale after the next event."""

    __slots__ = ("_columns", "_left", "_requested")

    def __init__(
        self,
        columns: ResourceColumns,
        requests: Mapping[str, int],
        ignored: IgnoredResources,
        left: LeftToDevices = NOTHING_LEFT,
    ) -> None:
        self._columns = columns
        self._left = left
        self._requested = [(resource, requests[resource]) for resource in NATIVE if requests.get(resource, 0) > 0]
        # Upstream has the other resources in the order of a Go map, so any order is right.
        self._requested += [
            (resource, amount)
            for resource, amount in sorted(requests.items())
            if amount and resource not in NATIVE and resource not in ignored
        ]

    def judge(self, batch: NodeBatch) -> Verdicts:
        """Give each node its verdict: unresolvable where the pod asks for more of anything short than there ever is."""
        if len(batch.slots) == 1 and not batch.unmirrored:
            status = self.status_on(batch.slots.item(0))
            if status is not None:
                return Verdicts(np.full(1, status is not SUCCESS, np.intp), (SUCCESS, status))
        columns, offered = self._columns, offered_by_unmirrored(batch)
        shortages = _Shortages(len(batch))
        unresolvable = np.zeros(len(batch), np.bool_)
        others: BoolArray | None = None  # other insufficient resources, beyond the named ones
        too_many = columns.requested.at(PODS, batch) >= columns.allocatable_of(PODS, batch, offered)
        shortages.amend(too_many, _with_reason(_TOO_MANY))
        reported = 0
        for resource, amount in self._requested:
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
            reported += 1
            if reported <= MAX_REPORTED:
                shortages.amend(short, _with_reason(insufficient(resource)))
                continue
            others = short if others is None else others | short
            if others.all() and unresolvable.all():
                break
        if others is not None:
            shortages.amend(others, _with_reason(_OTHERS))
        shortages.amend(unresolvable, _unresolvable)
        return Verdicts(shortages.codes, tuple(shortages.statuses))

    def status_on(self, slot: int) -> Status | None:
        """Return the verdict on the known node of a slot. None: look closer, as for amounts that are not plain ones."""
        if self._left is not NOTHING_LEFT or len(self._requested) > MAX_REPORTED:
            return None
        allocatable, requested = self._columns.allocatable, self._columns.requested
        reasons: list[str] = []  # `list[str]()` takes 0.6 us
        code = Code.UNSCHEDULABLE
        for number, (resource, amount) in enumerate((_ONE_POD, *self._requested)):
            offered = allocatable.on(resource, slot)
            free = offered - requested.on(resource, slot)
            if not -LARGEST_AMOUNT <= free <= LARGEST_AMOUNT:
                return None
            if amount > free:
                if amount <= 0:
                    return None
                reasons.append(insufficient(resource) if number else _TOO_MANY)
                if number and amount > offered:
                    code = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        return Status(code, tuple(reasons)) if reasons else SUCCESS

    def measured(self, batch: NodeBatch, limit: int) -> Iterator[MeasuredResource]:
        """Yield the measurements: the number of pods, and up to `limit` resources in the order of the reasons."""
        columns, offered = self._columns, offered_by_unmirrored(batch)
        for resource, requested in ((PODS, 1), *self._requested[:limit]):
            allocatable = columns.allocatable_of(resource, batch, offered)
            in_use = columns.requested.at(resource, batch)
            left = self._left.on(resource, columns, offered, batch)
            short = allocatable - in_use < requested
            yield MeasuredResource(resource, requested, allocatable, in_use, short if left is None else short & ~left)


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


def capacity_for(
    mirror: ClusterMirror,
    pods: Sequence[Pod],
    ignored: IgnoredResources,
    batch: NodeBatch,
    schedulers: DeviceSchedulers = EVERY_SCHEDULER,
) -> Capacity:
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
        requested = sorted(amount for each in requests if (amount := each.get(resource, 0)) > 0)
        sums = np.array([min(each, MAX_INT64) for each in accumulate(requested)], np.int64)
        free = columns.allocatable_of(resource, batch) - columns.requested.at(resource, batch)
        most = np.minimum(most, len(pods) - len(requested) + np.searchsorted(sums, free, side="right"))
        shares.append(np.maximum(free, 0) / sums[-1])
    return Capacity(most, np.array(shares))


def _is_left_to_devices(
    mirror: ClusterMirror, pods: Sequence[Pod], schedulers: DeviceSchedulers, resource: str, batch: NodeBatch
) -> bool:
    if resource in NATIVE:
        return False
    columns = mirror.derived(ResourceColumns)
    asking = {(pod.scheduler_name, frozenset(pod.requests)): pod for pod in pods if pod.requests.get(resource)}
    left = (left_to_devices(mirror, pod, schedulers) for pod in asking.values())
    return any(each.on(resource, columns, {}, batch) is not None for each in left)
