"""Evaluates one request on the mirror, between two events: which nodes fit, and their scores."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec
import numpy as np
from msgspec.structs import replace

from core.framework.evaluation import Evaluation, Failure, FitChecks, best_nodes, weighted_sums
from core.framework.interface import AnyFilter, Code, Status, Verdicts
from core.mirror.changes import Listener
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NO_SLOT, NodeBatch
from core.mirror.topology import BoolArray, Int64Array, IntpArray
from core.objects.pod import Pod
from core.profile import Profile

# Counts the pods that are nominated for a node when another pod is judged there.
#
# Source: k8s.io/kubernetes v1.37 pkg/scheduler/framework/runtime/framework.go (RunFilterPluginsWithNominatedPods,
# addGENominatedPods). Upstream judges a node twice, because a nominated pod may never come: once with the nominated
# pods that are at least as important as the incoming pod, and once without them. The pod must fit both times. If it
# fails with them, that failure is the node's status, even if the node also fails without them.
#
# The evaluation, cached or not, gives the verdicts without nominated pods. This module computes the verdicts with
# them afresh, for each node on its own: pods that are nominated for other nodes do not count. No cell of the
# equivalence cache depends on a nomination, so a nomination invalidates no cell.


class NominatedRejection(msgspec.Struct, frozen=True, gc=False):
    """Why a pod does not fit a node with the pods that are nominated for it."""

    failure: Failure
    nominated: tuple[Pod, ...]
    """The nominated pods that count on the node, whether or not they contribute to the failure."""


_NOWHERE: Final[IntpArray] = np.empty(0, np.intp)
NO_REJECTIONS: Final[Mapping[int, NominatedRejection]] = {}


def rejections_by_nominated(
    mirror: ClusterMirror, filters: Sequence[AnyFilter], pod: Pod, batch: NodeBatch
) -> Mapping[int, NominatedRejection]:
    """Return the nodes, by position in the batch, that the pod does not fit with the pods nominated for them.

    Stale after the next event. Nodes that are unknown or out of the partition are left out, because their status does
    not depend on pods. Raises WorkLimitError if the pod takes too much work on this number of nodes.
    """
    if not mirror.pending.nominated:
        return NO_REJECTIONS
    nominated = _nominated_in(mirror, pod, batch)
    if not nominated:
        return NO_REJECTIONS
    found = {}
    with mirror.work.apart():
        checks = FitChecks(mirror, filters, pod, [batch.names[position] for position in nominated])
        for place, (position, pods) in enumerate(nominated.items()):
            failure = checks.failure_with(place, pods)
            if failure is not None:
                found[position] = NominatedRejection(failure, pods)
    return found


def nominated_on(mirror: ClusterMirror, pod: Pod, node: str) -> tuple[Pod, ...]:
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
        position: nominated_on(mirror, pod, batch.names[position])
        for position in positions
        if position not in batch.unmirrored and not (outside is not None and outside[position])
    }
    return {position: pods for position, pods in found.items() if pods}


UNKNOWN_NODE: Final = Status(
    # Unresolvable: the mirror has no pods of an unknown node that could be evicted.
    Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
    ("node(s) unknown to the extender",),
)

OUT_OF_PARTITION: Final = Status(
    # Unresolvable: preemption cannot move a node of another scheduler into this partition.
    Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
    ("node(s) out of the scheduler's partition",),
)


def filter_nodes(
    profile: Profile, evaluation: Evaluation, batch: NodeBatch, *, with_nominated: bool = True
) -> Verdicts:
    """Judge each node of the batch: the status of the first predicate that fails there, or success.

    Nominated pods count as they do upstream, unless `with_nominated` is false. For every pod, an unknown node fails
    with UNKNOWN_NODE, and a node out of the partition with OUT_OF_PARTITION.
    """
    filters = profile.under(evaluation.mirror.rules).filters
    verdicts = evaluation.filtered(filters, batch)
    if with_nominated:
        rejections = rejections_by_nominated(evaluation.mirror, filters, evaluation.pod, batch)
        if rejections:
            verdicts = _with_rejections(verdicts, rejections)
    unknown, outside = batch.unknown, batch.out_of_partition
    if not unknown and outside is None:
        return verdicts
    codes = verdicts.codes.astype(np.int64)
    codes[unknown] = len(verdicts.statuses)
    codes[outside if outside is not None else []] = len(verdicts.statuses) + 1
    return Verdicts(codes, (*verdicts.statuses, UNKNOWN_NODE, OUT_OF_PARTITION))


def _with_rejections(verdicts: Verdicts, rejections: Mapping[int, NominatedRejection]) -> Verdicts:
    statuses = dict.fromkeys(rejection.failure.status for rejection in rejections.values())
    code_of = {status: len(verdicts.statuses) + place for place, status in enumerate(statuses)}
    codes = verdicts.codes.astype(np.int64)  # a copy, because a recorded evaluation keeps the original
    for position, rejection in rejections.items():
        codes[position] = code_of[rejection.failure.status]
    return Verdicts(codes, (*verdicts.statuses, *statuses))


def score_nodes(profile: Profile, evaluation: Evaluation, batch: NodeBatch) -> Int64Array:
    """Score each node of the batch, 0..100: the weighted mean, rounded down, of the plugins' normalised scores.

    A node that is unknown or out of the partition gets 0. It takes no part in the normalisation of the others.
    """
    profile = profile.under(evaluation.mirror.rules)
    scored = _scored(batch)
    part = batch if scored is None else batch.part(scored)
    means = weighted_sums(profile.scores, evaluation, part)
    if len(profile.scores) > 1:  # the mean of one score is the score itself: to divide 5,000 numbers takes 20 us
        means //= sum(weight for _, weight in profile.scores)
    if scored is None:
        return means
    total = np.zeros(len(batch), np.int64)
    total[scored] = means
    return total


def choose_nodes(profile: Profile, evaluation: Evaluation, batch: NodeBatch) -> tuple[IntpArray, Verdicts | None]:
    """Return the positions of the nodes to choose from: the fitting nodes with the highest score (`best_nodes`).

    If no node fits, there are no positions. Only then are the verdicts of `filter_nodes` always returned.
    """
    profile = profile.under(evaluation.mirror.rules)
    plain = not batch.unmirrored and batch.out_of_partition is None
    if plain and not rejections_by_nominated(evaluation.mirror, profile.filters, evaluation.pod, batch):
        best = evaluation.best(profile.filters, profile.scores, batch)
        if best is not None:
            return best, None
        verdicts = evaluation.filtered(profile.filters, batch)
    else:
        verdicts = filter_nodes(profile, evaluation, batch)
    if 0 not in verdicts.found():
        return _NOWHERE, verdicts
    return best_nodes(profile.scores, evaluation, batch, (verdicts.codes == 0).nonzero()[0]), verdicts


def best_by_score(profile: Profile, evaluation: Evaluation, batch: NodeBatch) -> IntpArray:
    """Return the positions of the nodes with the highest score, whether or not the pod fits them.

    Nodes that are unknown or out of the partition are returned only if there are no others.
    """
    scored, everywhere = _scored(batch), np.arange(len(batch))
    if scored is not None and not len(scored):
        return everywhere
    positions = everywhere if scored is None else scored
    return best_nodes(profile.under(evaluation.mirror.rules).scores, evaluation, batch, positions)


def _scored(batch: NodeBatch) -> IntpArray | None:
    """Return the positions of the nodes to score, or None for all nodes."""
    unknown, outside = batch.unknown, batch.out_of_partition
    if not unknown and outside is None:
        return None
    scored: BoolArray = np.ones(len(batch), np.bool_) if outside is None else ~outside
    scored[unknown] = False
    return np.flatnonzero(scored)


# How many of the fitting nodes are passed on for scoring, and which ones.
#
# Source: k8s.io/kubernetes v1.36 pkg/scheduler/schedule_one.go (numFeasibleNodesToFind, nextStartNodeIndex).
#
# kube-scheduler normally stops filtering at a sample, before it calls extenders. If it leaves a hard rule to an
# extender, it must send all nodes (percentageOfNodesToScore: 100), and then it scores all that fit. A sample after
# the extender's filter avoids this cost, and the pod fits every node in the sample.

_MIN_FEASIBLE_NODES: Final = 100
_MIN_PERCENTAGE: Final = 5

ADAPTIVE: Final = 0
"""The percentage that depends on the number of nodes: 50, less 1 for each 125 nodes."""
ALL: Final = 100


def nodes_to_score(percentage: int, nodes: int) -> int:
    """Return how many fitting nodes are enough in a cluster of `nodes` nodes."""
    if percentage == ADAPTIVE:
        percentage = max(50 - nodes // 125, _MIN_PERCENTAGE)
    return max(nodes * percentage // 100, _MIN_FEASIBLE_NODES)


class NodeSample:
    """Samples nodes: the best ones by the scores of the profile. Ties are broken in rotation."""

    def __init__(self, percentage: int) -> None:
        """Sample `percentage` of the cluster's nodes, 0 (ADAPTIVE) to 100 (ALL), but at least 100 nodes."""
        self._percentage = percentage

    def of(  # noqa: PLR0913  # an evaluation with its nodes, and where the rotation is
        self, profile: Profile, evaluation: Evaluation, batch: NodeBatch, fitting: IntpArray, *, nodes: int, start: int
    ) -> IntpArray:
        """Return a sample of the positions `fitting`, in the order of the batch. `nodes` is the cluster's size.

        `start` is where the rotation begins. The next sample begins `len(sample)` later.
        """
        if self._percentage == ALL:
            return fitting
        needed = nodes_to_score(self._percentage, nodes)
        if len(fitting) <= needed:
            return fitting
        turned = np.roll(fitting, -(start % len(fitting)))
        scores = score_nodes(profile, evaluation, batch.part(turned))
        best = np.argsort(-scores, kind="stable")[:needed]
        return np.sort(turned[best])


def states_of(profile: Profile) -> list[Callable[[ClusterMirror], Listener]]:
    """Return what creates the states that the plugins of a profile need, for `ClusterMirror.derived`.

    A state that is created at a plugin's first request must read all pods, during which no other request is served. A
    state that is created before the first pods takes each as an event, which takes several times as long. So they are
    created between the first list of pods and the first request. States of nodes alone take milliseconds, so they may
    be created late.
    """
    return list(dict.fromkeys(make for plugin in profile.plugins for make in plugin.states))
