"""One question, answered from the mirror between two events: which nodes fit, and how well."""

from collections.abc import Mapping
from typing import Final

import numpy as np

from core.framework.evaluation import Evaluation
from core.framework.interface import Verdicts
from core.framework.status import Code, Status
from core.mirror.node_info import NodeBatch
from core.mirror.topology import BoolArray, Int64Array, IntpArray
from core.nominated_pods import Refusal, refusals
from core.profile import Profile

UNKNOWN_NODE: Final = Status(
    # Unresolvable: where nothing is known of a node, there is no victim whose removal could be known to help.
    Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
    ("node(s) unknown to the extender",),
)

OUT_OF_PARTITION: Final = Status(
    # Unresolvable: no preemption brings a node of another scheduler into this one's partition.
    Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
    ("node(s) out of the scheduler's partition",),
)


def filter_nodes(
    profile: Profile, evaluation: Evaluation, batch: NodeBatch, *, beside_nominated: bool = True
) -> Verdicts:
    """Judge each node of the batch: the status of the first predicate that fails there, or success.

    Pods that are nominated for a node count there as they do upstream, see core/nominated_pods.py, unless
    `beside_nominated` is false. A node of which nothing is known fails with UNKNOWN_NODE, and one out of the partition
    with OUT_OF_PARTITION, whatever the pod asks and the predicates say.
    """
    verdicts = evaluation.filtered(profile.filters, batch)
    if beside_nominated:
        refused = refusals(evaluation.mirror, profile.filters, evaluation.pod, batch)
        if refused:
            verdicts = _refused(verdicts, refused)
    unknown, outside = batch.unknown, batch.out_of_partition
    if not unknown and outside is None:
        return verdicts
    codes = verdicts.codes.astype(np.int64)
    codes[unknown] = len(verdicts.statuses)
    codes[outside if outside is not None else []] = len(verdicts.statuses) + 1
    return Verdicts(codes, (*verdicts.statuses, UNKNOWN_NODE, OUT_OF_PARTITION))


def _refused(verdicts: Verdicts, refused: Mapping[int, Refusal]) -> Verdicts:
    """Return the verdicts with other statuses for some nodes."""
    statuses = dict.fromkeys(refusal.failure.status for refusal in refused.values())
    code_of = {status: len(verdicts.statuses) + place for place, status in enumerate(statuses)}
    codes = verdicts.codes.astype(np.int64)  # a copy: a recorded evaluation keeps the verdicts themselves
    for position, refusal in refused.items():
        codes[position] = code_of[refusal.failure.status]
    return Verdicts(codes, (*verdicts.statuses, *statuses))


def score_nodes(profile: Profile, evaluation: Evaluation, batch: NodeBatch) -> Int64Array:
    """Score each node of the batch, 0..100: the weighted mean, rounded down, of the plugins' normalised scores.

    A node of which nothing is known, or out of the partition, gets 0 and has no part in the normalisation of the
    others.
    """
    scored = _scored(batch)
    part = batch if scored is None else batch.part(scored)
    means = _weighted_means(profile, evaluation, part)
    if scored is None:
        return means
    total = np.zeros(len(batch), np.int64)
    total[scored] = means
    return total


def best_nodes(profile: Profile, evaluation: Evaluation, batch: NodeBatch, fitting: IntpArray) -> IntpArray:
    """Return the positions, of those that fit, of the nodes with the highest score; more than one where they tie.

    As in kube-scheduler, the scores are normalised over the nodes that fit, and compared by their exact weighted sum:
    by the mean of `score_nodes`, which is rounded, nodes would tie that do not.
    Source: k8s.io/kubernetes pkg/scheduler/schedule_one.go (schedulePod, selectHost).
    """
    if len(fitting) <= 1 or not profile.scores:
        return fitting
    sums = _weighted_sums(profile, evaluation, batch if len(fitting) == len(batch) else batch.part(fitting))
    return fitting.compress(sums == sums.max())


def _weighted_means(profile: Profile, evaluation: Evaluation, batch: NodeBatch) -> Int64Array:
    sums = _weighted_sums(profile, evaluation, batch)
    if len(profile.scores) <= 1:  # its own mean: to divide 5,000 numbers takes 20 us
        return sums
    return sums // sum(weight for _, weight in profile.scores)


def _weighted_sums(profile: Profile, evaluation: Evaluation, batch: NodeBatch) -> Int64Array:
    """Return the sums of weight and normalised score; a score that is alone is not weighed, which changes no order."""
    total: Int64Array | None = None
    for plugin, weight in profile.scores:
        raw = evaluation.raw_scores(plugin, batch)
        if raw is None:
            continue
        score = plugin.normalize(raw)
        weighted = weight * score if len(profile.scores) > 1 else score
        total = weighted if total is None else total + weighted
    return np.zeros(len(batch), np.int64) if total is None else total


def _scored(batch: NodeBatch) -> IntpArray | None:
    """Return the positions of the nodes that are scored at all; None: all are."""
    unknown, outside = batch.unknown, batch.out_of_partition
    if not unknown and outside is None:
        return None
    scored: BoolArray = np.ones(len(batch), np.bool_) if outside is None else ~outside
    scored[unknown] = False
    return np.flatnonzero(scored)
