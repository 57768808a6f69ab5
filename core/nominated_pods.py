"""The pods that are nominated for nodes, counted there when another pod is judged.

Source: k8s.io/kubernetes v1.37 pkg/scheduler/framework/runtime/framework.go (RunFilterPluginsWithNominatedPods,
addGENominatedPods). Upstream judges a node twice: with the pods that are nominated for it and are not less important
than the incoming one, and without any, because a nominated pod may never come. A node has to pass both times. A failure
with them is the node's status, also where the node fails without them for another reason.

The verdicts without nominated pods are those of the evaluation, from the cache or not. The verdicts with them are
computed here, afresh, and for each node on its own: pods that are nominated for other nodes do not count. No cell of
the equivalence cache follows from a nomination, so the cache gives the same answers as a fresh evaluation, and a
nomination makes no cell invalid.

The nominations are those that the watch shows, of every scheduler. A nomination that a scheduler has made and not
written yet is unknown here.
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
    """Why a pod does not fit a node together with the pods that are nominated for it."""

    failure: Failure
    nominated: tuple[Pod, ...]
    """The pods that count there, whether or not they have a part in the failure."""


NO_REFUSALS: Final[Mapping[int, Refusal]] = MappingProxyType({})


def refusals(mirror: ClusterMirror, filters: Sequence[AnyFilter], pod: Pod, batch: NodeBatch) -> Mapping[int, Refusal]:
    """Return the nodes, by position in the batch, that the pod does not fit with the pods nominated for them.

    Stale after the next event. Nodes that the mirror does not know, or out of the partition, are left out: what is said
    of them does not follow from pods. Raises WorkLimitError for a pod that takes too much work on so many nodes.
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
    """Return the pods nominated for a node that count when a pod is judged there, as plugins have to be told of them.

    These are the other pods of the same or a greater priority. A pod that is assumed already counts where it is assumed
    and nowhere else. A pod that terminates counts as one that does not: PodTopologySpread counts no pods that
    terminate, but does not look at that when a pod is added (podtopologyspread/filtering.go, updateWithPod).
    """
    return tuple(
        replace(each, terminating=False) if each.terminating else each
        for each in mirror.pending.nominated_for(node).values()
        if each.priority >= pod.priority and each.uid != pod.uid and not mirror.is_mirrored(each.uid)
    )


def _nominated_in(mirror: ClusterMirror, pod: Pod, batch: NodeBatch) -> Mapping[int, tuple[Pod, ...]]:
    """Return the pods that count, by the position of their node in the batch, for the nodes that have any.

    Costs the lesser of the nodes of the batch and the nodes with nominated pods, besides one pass of numpy.
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
