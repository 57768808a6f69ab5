"""Counts the pods that are nominated for a node when another pod is judged there.

Source: k8s.io/kubernetes v1.37 pkg/scheduler/framework/runtime/framework.go (RunFilterPluginsWithNominatedPods,
addGENominatedPods). Upstream judges a node twice, because a nominated pod may never come: once with the nominated pods
that are at least as important as the incoming pod, and once without them. The pod must fit both times. If it fails with
them, that failure is the node's status, even if the node also fails without them.

The evaluation, cached or not, gives the verdicts without nominated pods. This module computes the verdicts with them
afresh, for each node on its own: pods that are nominated for other nodes do not count. No cell of the equivalence cache
depends on a nomination, so a nomination invalidates no cell.

The nominations are those in the watch, of every scheduler. A nomination that a scheduler has made but not yet written
is unknown here.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

import msgspec
import numpy as np
from msgspec.structs import replace

from core.framework.fit_checks import Failure, FitChecks
from core.framework.interface import AnyFilter
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NO_SLOT, NodeBatch
from core.objects.pod import Pod


class Refusal(msgspec.Struct, frozen=True, gc=False):
    """Why a pod does not fit a node with the pods that are nominated for it."""

    failure: Failure
    nominated: tuple[Pod, ...]
    """The nominated pods that count on the node, whether or not they contribute to the failure."""


NO_REFUSALS: Final[Mapping[int, Refusal]] = MappingProxyType({})


def refusals(mirror: ClusterMirror, filters: Sequence[AnyFilter], pod: Pod, batch: NodeBatch) -> Mapping[int, Refusal]:
    """Return the nodes, by position in the batch, that the pod does not fit with the pods nominated for them.

    Stale after the next event. Nodes that are unknown or out of the partition are left out, because their status does
    not depend on pods. Raises WorkLimitError if the pod takes too much work on this number of nodes.
    """
    if not mirror.pending.nominated:
        return NO_REFUSALS
    nominated = _nominated_in(mirror, pod, batch)
    if not nominated:
        return NO_REFUSALS
    found = {}
    with mirror.work.apart():
        checks = FitChecks(mirror, filters, pod, [batch.names[position] for position in nominated])
        for place, (position, pods) in enumerate(nominated.items()):
            failure = checks.failure_beside(place, pods)
            if failure is not None:
                found[position] = Refusal(failure, pods)
    return found


def nominated_beside(mirror: ClusterMirror, pod: Pod, node: str) -> tuple[Pod, ...]:
    """Return the nominated pods that count when a pod is judged on a node, in the form that plugins need.

    These are the other pods of the same or a greater priority. An assumed pod counts only on the node where it is
    assumed. A terminating pod counts like any other: PodTopologySpread counts no terminating pods, but does not check
    that when a pod is added (podtopologyspread/filtering.go, updateWithPod).
    """
    return tuple(
        replace(each, terminating=False) if each.terminating else each
        for each in mirror.pending.nominated_for(node).values()
        if each.priority >= pod.priority and each.uid != pod.uid and not mirror.is_mirrored(each.uid)
    )


def _nominated_in(mirror: ClusterMirror, pod: Pod, batch: NodeBatch) -> Mapping[int, tuple[Pod, ...]]:
    """Return the nominated pods that count, by the position of their node in the batch. Other nodes have no entry.

    The cost follows the smaller of the batch and the number of nodes with nominated pods, plus one pass of numpy.
    """
    nominated = mirror.pending.nominated
    if len(batch) <= len(nominated):
        positions = [position for position, name in enumerate(batch.names) if name in nominated]
    else:
        slots = [slot for name in nominated if (slot := mirror.nodes.slots.get(name, NO_SLOT)) != NO_SLOT]
        positions = np.flatnonzero(np.isin(batch.slots, slots)).tolist()
    if not positions:
        return {}
    outside = batch.out_of_partition
    found = {
        position: nominated_beside(mirror, pod, batch.names[position])
        for position in positions
        if position not in batch.strangers and not (outside is not None and outside[position])
    }
    return {position: pods for position, pods in found.items() if pods}
