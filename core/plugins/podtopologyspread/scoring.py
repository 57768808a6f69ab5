"""The score side of PodTopologySpread: soft constraints. The fewer pods in a node's domains, the better.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/podtopologyspread/scoring.go.
"""

import math
from collections.abc import Sequence
from typing import Final

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

_TWO: Final = 2


class PreScoreState:
    """The soft constraints of one incoming pod over the nodes of a request. Stale after a change of anything but a pod.

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
        if batch.slots is not self._batch.slots:
            labels = BatchLabels(self._mirror, batch, self._keys)
            scored = self._scored_of(batch, labels)
        domains = ConstrainedDomains(self._mirror, self._pod, self._needed)
        raw = self._by_domain_mostly(batch, labels, domains)
        if raw is None:
            totals = np.zeros(len(batch), np.float64)
            for constraint in self._constraints:
                column = labels.of(constraint.topology_key)
                if column is not None:
                    totals += self._worth(constraint, batch, column, domains)
            raw = rounded_all(totals)
        if scored is not None:
            raw[~scored] = NOT_SCORED
        return raw

    def _by_domain_mostly(
        self, batch: NodeBatch, labels: BatchLabels, domains: ConstrainedDomains
    ) -> Int64Array | None:
        """Return the raw scores of all nodes by a constraint of the hostname and another one. None: it is another case.

        Upstream's own constraints are these. Nodes without a counted pod have the score of their domain, so only a few
        are scored by themselves. The sum of two numbers does not depend on their order.
        """
        nodes, known = self._mirror.nodes, {each.topology_key: each for each in self._constraints}
        by_host = known.pop(HOSTNAME, None)
        if by_host is None or len(known) != 1 or len(self._constraints) != _TWO:
            return None
        (other,) = known.values()
        column = labels.of(other.topology_key)
        if column is None or batch.slots is not nodes.all_slots() or not self._all_have(HOSTNAME):
            return None
        by_domain, least = self._by_domain(other, column, domains), float(by_host.max_skew - 1)
        raw = rounded_all(by_domain + least).take(column.ids)
        slots, pods = self._counter(by_host).by_slot()
        positions = nodes.all_positions.take(slots)
        there = pods * np.float64(self._weight(HOSTNAME)) + least
        raw[positions] = rounded_all(there + by_domain.take(column.ids.take(positions)))
        return raw

    def _all_have(self, key: str) -> bool:
        """Return whether all known nodes have a label."""
        nodes = self._mirror.nodes
        return nodes.label_keys[key] == len(nodes.slots)

    def _counter(self, constraint: SpreadConstraint) -> PodCounter:
        return self._mirror.derived(PodCounts).of(self._pod.namespace, constraint.selector)

    def _scored_of(self, batch: NodeBatch, labels: BatchLabels) -> BoolArray | None:
        """Return which nodes are scored. None: all."""
        if not self._needed and not batch.unmirrored:
            return None
        scored = having_all(labels, self._needed, batch)
        scored[batch.unknown] = False
        return scored

    def _weight(self, key: str) -> float:
        """Return the weight of a topology key: the more domains among the requested nodes, the greater it is.

        So many small domains keep their influence. For the hostname, each node is a domain.
        """
        weight = self._weights.get(key)
        if weight is None:
            weight = self._weights[key] = math.log(self._size(key) + 2)
        return weight

    def _size(self, key: str) -> int:
        """Return the number of domains among the scored nodes of the request."""
        scored = self._scored
        if key == HOSTNAME:
            return len(self._batch) if scored is None else int(scored.sum())
        column = self._labels.of(key)
        is_whole = scored is None and self._batch.slots is self._mirror.nodes.all_slots()
        if is_whole and column is not None and self._all_have(key):
            return len(column.column.ids)
        return _number_of_domains(column, np.ones(len(self._batch), np.bool_) if scored is None else scored)

    def _by_domain(
        self, constraint: SpreadConstraint, column: BatchColumn, domains: ConstrainedDomains
    ) -> Float64Array:
        """Return the score of a constraint by value id, 0 for ABSENT."""
        numbers = domains.of(constraint, column.column).sums(self._counter(constraint))
        by_domain: Float64Array = numbers * np.float64(self._weight(constraint.topology_key))
        by_domain += float(constraint.max_skew - 1)
        by_domain[ABSENT] = 0.0
        return by_domain

    def _worth(
        self, constraint: SpreadConstraint, batch: NodeBatch, column: BatchColumn, domains: ConstrainedDomains
    ) -> Float64Array:
        """Return the score of a constraint for each node of the batch, 0 without its label."""
        ids = column.topology_ids()
        if constraint.topology_key != HOSTNAME:
            # By domain before by node, because there are fewer domains.
            return self._by_domain(constraint, column, domains).take(ids)
        numbers = self._counter(constraint).per_slot(self._mirror.nodes.capacity).take(batch.slots)
        worth: Float64Array = numbers * np.float64(self._weight(constraint.topology_key))
        worth += float(constraint.max_skew - 1)
        if ids.min(initial=0) < 0:
            worth[ids == ABSENT] = 0.0
        return worth


def turned(raw: Int64Array, lowest: int) -> Int64Array:
    """Invert and normalise the raw scores of nodes that are all scored. `lowest` is the lowest of them."""
    highest = int(raw.max())
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
