"""Upper bounds for how many of some pods the resources of a node can hold together."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.topology import Int64Array
from core.objects.pod import Pod
from core.plugins.noderesources.columns import NATIVE, PODS, ResourceColumns
from core.plugins.noderesources.device_classes import EVERY_SCHEDULER, DeviceSchedulers, left_to_devices
from core.plugins.noderesources.filtering import IgnoredResources

Float64Array: TypeAlias = NDArray[np.float64]

_MOST: Final = 2**63 - 1


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
    free = columns.allocatable_of(PODS, batch) - columns.requested_of(PODS, batch)
    most: Int64Array = np.clip(free, 0, len(pods))
    shares: list[Float64Array] = [np.maximum(free, 0) / len(pods)]
    members = [mirror.counted(pod) for pod in pods]
    requests = [pod.requests for pod in members]
    for resource in sorted({name for each in requests for name, amount in each.items() if amount > 0}):
        if resource in ignored or _is_left_to_devices(mirror, members, schedulers, resource, batch):
            continue
        asked = sorted(amount for each in requests if (amount := each.get(resource, 0)) > 0)
        sums = np.array([min(each, _MOST) for each in accumulate(asked)], np.int64)
        free = columns.allocatable_of(resource, batch) - columns.requested_of(resource, batch)
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
