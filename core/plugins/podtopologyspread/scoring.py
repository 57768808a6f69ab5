"""The score side of PodTopologySpread: soft constraints. The fewer pods in a node's domains, the better.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/podtopologyspread/scoring.go.
"""

import math
from collections.abc import Sequence

import numpy as np

from core.framework.interface import Versions
from core.framework.scores import MAX_NODE_SCORE, NOT_SCORED, mapped, rounded_all
from core.mirror.cluster import ClusterMirror
from core.mirror.label_columns import BatchColumn, BatchLabels
from core.mirror.node_info import NodeBatch
from core.mirror.topology import ABSENT, BoolArray, Float64Array, Int64Array
from core.objects.node import HOSTNAME
from core.objects.pod import Pod, SpreadConstraint
from core.plugins.podtopologyspread.constraints import ConstrainedDomains, having_all
from core.plugins.podtopologyspread.pod_counts import PodCounter, PodCounts


class PreScoreState:
    """The soft constraints of one incoming pod over the nodes of a request. Stale after the next event.

    Counts of a constraint are added to the totals at once. Stored for each constraint, they would take 40 KB at 5,000
    nodes.
    """

    __slots__ = ("_batch", "_constraints", "_keys", "_labels", "_mirror", "_needed", "_pod", "_scored", "_weights")

    def __init__(
        self,
        mirror: ClusterMirror,
        pod: Pod,
        constraints: Sequence[SpreadConstraint],
        batch: NodeBatch,
        *,
        require_all_topologies: bool,
    ) -> None:
        """`require_all_topologies` excludes nodes that lack a label of any constraint."""
        self._mirror = mirror
        self._pod = pod
        self._constraints = constraints
        self._keys = tuple(sorted({each.topology_key for each in constraints}))
        self._needed = self._keys if require_all_topologies else ()
        self._batch = batch
        self._labels = BatchLabels(mirror, batch, self._keys)
        self._scored = self._scored_of(batch, self._labels)
        self._weights: dict[str, float] = {}  # topology key -> weight

    def versions(self) -> Versions:
        """Return the versions of all counters that the raw scores depend on."""
        return tuple(self._counter(constraint).version for constraint in self._constraints)

    def score(self, batch: NodeBatch) -> Int64Array:
        """Return the raw score of each node, where lower is better, or NOT_SCORED for an excluded node."""
        labels, scored = self._labels, self._scored
        if batch is not self._batch:
            labels = BatchLabels(self._mirror, batch, self._keys)
            scored = self._scored_of(batch, labels)
        totals = np.zeros(len(batch), np.float64)
        if scored.any():
            domains = ConstrainedDomains(self._mirror, self._pod, self._needed)
            for constraint in self._constraints:
                weight = self._weight(constraint.topology_key)
                column = labels.of(constraint.topology_key)
                if column is not None:
                    totals += self._worth(constraint, weight, batch, column, domains)
        raw = rounded_all(totals)
        if not scored.all():
            raw[~scored] = NOT_SCORED
        return raw

    def _counter(self, constraint: SpreadConstraint) -> PodCounter:
        return self._mirror.derived(PodCounts).of(self._pod.namespace, constraint.selector)

    def _scored_of(self, batch: NodeBatch, labels: BatchLabels) -> BoolArray:
        scored = having_all(labels, self._needed, batch)
        scored[batch.unknown] = False
        return scored

    def _weight(self, key: str) -> float:
        """Return the weight of a topology key: the more domains among the requested nodes, the greater it is.

        So many small domains keep their influence. For the hostname, each node is a domain.
        """
        weight = self._weights.get(key)
        if weight is None:
            scored = self._scored
            size = int(scored.sum()) if key == HOSTNAME else _number_of_domains(self._labels.of(key), scored)
            weight = self._weights[key] = math.log(size + 2)
        return weight

    def _worth(
        self,
        constraint: SpreadConstraint,
        weight: float,
        batch: NodeBatch,
        column: BatchColumn,
        domains: ConstrainedDomains,
    ) -> Float64Array:
        """Return the score of a constraint for each node of the batch, 0 without its label."""
        counter, ids, least = self._counter(constraint), column.topology_ids(), float(constraint.max_skew - 1)
        if constraint.topology_key != HOSTNAME:
            # By domain before by node, because there are fewer domains.
            by_domain: Float64Array = domains.of(constraint, column.column).sums(counter) * np.float64(weight)
            by_domain += least
            by_domain[ABSENT] = 0.0
            return by_domain.take(ids)
        worth: Float64Array = counter.per_slot(self._mirror.nodes.capacity).take(batch.slots) * np.float64(weight)
        worth += least
        if ids.min(initial=0) < 0:
            worth[ids == ABSENT] = 0.0
        return worth


def turned(raw: Int64Array) -> Int64Array:
    """Invert and normalise the raw scores of nodes that are all scored."""
    lowest, highest = int(raw.min()), int(raw.max())
    if highest <= 0:
        return np.full_like(raw, MAX_NODE_SCORE)
    return mapped(raw, lowest, highest, lambda scores: MAX_NODE_SCORE * (highest + lowest - scores) // highest)


def _number_of_domains(column: BatchColumn | None, scored: BoolArray) -> int:
    """Count the values of the label among the scored nodes. A node without the label has the empty value.

    Source: initPreScoreState, where a missing key of a Go map gives the empty value.
    """
    if column is None:
        return int(scored.any())
    ids = column.ids if scored.all() else column.ids[scored]
    present = np.bincount(ids + 1) > 0  # ABSENT gives 0
    empty = column.id_of("")
    if len(present) and present[0] and empty is not None and empty + 1 < len(present) and present[empty + 1]:
        present[0] = False
    return int(present.sum())
