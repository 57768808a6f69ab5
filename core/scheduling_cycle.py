"""Evaluates one request on the mirror, between two events: which nodes fit, and their scores."""

from collections.abc import Mapping
from typing import Final

import numpy as np

from core.framework.evaluation import Evaluation, best_nodes, weighted_sums
from core.framework.interface import Verdicts
from core.framework.status import Code, Status
from core.mirror.node_info import NodeBatch
from core.mirror.topology import BoolArray, Int64Array, IntpArray
from core.nominated_pods import Refusal, refusals
from core.profile import Profile

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
    profile: Profile, evaluation: Evaluation, batch: NodeBatch, *, beside_nominated: bool = True
) -> Verdicts:
    """Judge each node of the batch: the status of the first predicate that fails there, or success.

    Nominated pods count as they do upstream (core/nominated_pods.py), unless `beside_nominated` is false. For every
    pod, an unknown node fails with UNKNOWN_NODE, and a node out of the partition with OUT_OF_PARTITION.
    """
    filters = profile.under(evaluation.mirror.rules).filters
    verdicts = evaluation.filtered(filters, batch)
    if beside_nominated:
        refused = refusals(evaluation.mirror, filters, evaluation.pod, batch)
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
    codes = verdicts.codes.astype(np.int64)  # a copy, because a recorded evaluation keeps the original
    for position, refusal in refused.items():
        codes[position] = code_of[refusal.failure.status]
    return Verdicts(codes, (*verdicts.statuses, *statuses))


def score_nodes(profile: Profile, evaluation: Evaluation, batch: NodeBatch) -> Int64Array:
    """Score each node of the batch, 0..100: the weighted mean, rounded down, of the plugins' normalised scores.

    A node that is unknown or out of the partition gets 0. It takes no part in the normalisation of the others.
    """
    profile = profile.under(evaluation.mirror.rules)
    scored = _scored(batch)
    part = batch if scored is None else batch.part(scored)
    means = _weighted_means(profile, evaluation, part)
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
    plain = not batch.strangers and batch.out_of_partition is None
    if plain and not refusals(evaluation.mirror, profile.filters, evaluation.pod, batch):
        best = evaluation.best(profile.filters, profile.scores, batch)
        if best is not None:
            return best, None
    verdicts = filter_nodes(profile, evaluation, batch)
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


def _weighted_means(profile: Profile, evaluation: Evaluation, batch: NodeBatch) -> Int64Array:
    sums = weighted_sums(profile.scores, evaluation, batch)
    if len(profile.scores) <= 1:  # the mean of one score is the score itself: to divide 5,000 numbers takes 20 us
        return sums
    return sums // sum(weight for _, weight in profile.scores)


def _scored(batch: NodeBatch) -> IntpArray | None:
    """Return the positions of the nodes to score, or None for all nodes."""
    unknown, outside = batch.unknown, batch.out_of_partition
    if not unknown and outside is None:
        return None
    scored: BoolArray = np.ones(len(batch), np.bool_) if outside is None else ~outside
    scored[unknown] = False
    return np.flatnonzero(scored)
