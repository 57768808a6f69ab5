"""One question, answered from the mirror between two events: which nodes fit, and how well."""

from typing import Any, Final

import numpy as np

from core.framework.interface import ScorePlugin, Verdicts
from core.framework.status import SUCCESS, Code, Status
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.topology import BoolArray, Int64Array
from core.objects.pod import Pod
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


def filter_nodes(profile: Profile, mirror: ClusterMirror, pod: Pod, batch: NodeBatch) -> Verdicts:
    """Judge each node of the batch: the status of the first predicate that fails there, or success.

    A node of which nothing is known fails with UNKNOWN_NODE, and one out of the partition with OUT_OF_PARTITION,
    whatever the pod asks and the predicates say.
    """
    codes = np.zeros(len(batch), np.uint8)
    statuses = [SUCCESS]
    for plugin in profile.filters:
        status, state = plugin.pre_filter(mirror, pod)
        if state is not None:
            verdicts = plugin.filter(state, batch)
        elif status.code is Code.SKIP:
            continue
        else:
            verdicts = Verdicts(np.full(len(batch), 1, np.uint8), (SUCCESS, status))
        fails_first_here = (codes == 0) & (verdicts.codes > 0)
        codes[fails_first_here] = verdicts.codes[fails_first_here] + (len(statuses) - 1)
        statuses += verdicts.statuses[1:]
    if unknown := batch.unknown:
        codes[unknown] = len(statuses)
        statuses.append(UNKNOWN_NODE)
    if (outside := batch.out_of_partition) is not None:
        codes[outside] = len(statuses)
        statuses.append(OUT_OF_PARTITION)
    return Verdicts(codes, tuple(statuses))


def score_nodes(profile: Profile, mirror: ClusterMirror, pod: Pod, batch: NodeBatch) -> Int64Array:
    """Score each node of the batch, 0..100: the weighted mean, rounded down, of the plugins' normalised scores.

    A node of which nothing is known, or out of the partition, gets 0 and has no part in the normalisation of the
    others.
    """
    total = np.zeros(len(batch), np.int64)
    weights = sum(weight for _, weight in profile.scores)
    scored = _scored(batch)
    for plugin, weight in profile.scores:
        total += weight * _normalized_scores(plugin, mirror, pod, batch, scored)
    return total // weights if weights else total


def _normalized_scores(
    plugin: ScorePlugin[Any], mirror: ClusterMirror, pod: Pod, batch: NodeBatch, scored: BoolArray | None
) -> Int64Array:
    _, state = plugin.pre_score(mirror, pod)
    if state is None:
        return np.zeros(len(batch), np.int64)
    raw = plugin.score(state, batch)
    if scored is None:
        return plugin.normalize(state, raw)
    scores = np.zeros(len(batch), np.int64)
    scores[scored] = plugin.normalize(state, raw[scored])
    return scores


def _scored(batch: NodeBatch) -> BoolArray | None:
    """Tell which nodes are scored at all; None: all are."""
    unknown, outside = batch.unknown, batch.out_of_partition
    if not unknown and outside is None:
        return None
    scored: BoolArray = np.ones(len(batch), np.bool_) if outside is None else ~outside
    scored[unknown] = False
    return scored
