"""How many of some pods the resources of a node can hold together, at most."""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Final

import numpy as np

from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.topology import Int64Array
from core.objects.pod import Pod
from core.plugins.noderesources.columns import NATIVE, PODS, ResourceColumns
from core.plugins.noderesources.device_classes import left_to_devices
from core.plugins.noderesources.filtering import IgnoredResources

_MOST: Final = 2**63 - 1


def most_pods(mirror: ClusterMirror, pods: Sequence[Pod], ignored: IgnoredResources, batch: NodeBatch) -> Int64Array:
    """Return for each node a number that no placement of these pods by NodeResourcesFit exceeds there.

    For each resource, it counts the smallest requests first. What is left to devices on some node is not counted.
    Stale after the next event.
    """
    columns = mirror.derived(ResourceColumns)
    free = columns.allocatable_of(PODS, batch) - columns.requested_of(PODS, batch)
    most: Int64Array = np.clip(free, 0, len(pods))
    requests = [mirror.counted(pod).requests for pod in pods]
    for resource in sorted({name for each in requests for name, amount in each.items() if amount > 0}):
        if resource in ignored or _is_left_to_devices(mirror, requests, resource, batch):
            continue
        asked = sorted(amount for each in requests if (amount := each.get(resource, 0)) > 0)
        sums = np.array([min(each, _MOST) for each in accumulate(asked)], np.int64)
        free = columns.allocatable_of(resource, batch) - columns.requested_of(resource, batch)
        most = np.minimum(most, len(pods) - len(asked) + np.searchsorted(sums, free, side="right"))
    return most


def _is_left_to_devices(
    mirror: ClusterMirror, requests: Sequence[Mapping[str, int]], resource: str, batch: NodeBatch
) -> bool:
    if resource in NATIVE:
        return False
    columns = mirror.derived(ResourceColumns)
    asking = {frozenset(each): each for each in requests if each.get(resource)}
    return any(left_to_devices(mirror, each).on(resource, columns, {}, batch) is not None for each in asking.values())
