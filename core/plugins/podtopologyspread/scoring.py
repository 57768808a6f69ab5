"""The score side: constraints that should hold; the fewer pods in a node's domains, the better.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/podtopologyspread/scoring.go.
"""

import math
from collections.abc import Sequence
from typing import Final, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from core.framework.interface import MAX_NODE_SCORE, NOT_SCORED, Versions
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.topology import ABSENT, BoolArray, Int64Array, TopologyColumn
from core.objects.pod import Pod
from core.objects.topology_spread import SpreadConstraint
from core.plugins.podtopologyspread.constraints import HOSTNAME
from core.plugins.podtopologyspread.domains import CountedNodes, NodeDomains
from core.plugins.podtopologyspread.pod_counts import PodCounter, PodCounts

FloatArray: TypeAlias = NDArray[np.float64]

_HALF: Final = 0.5


class Preference(msgspec.Struct, frozen=True, gc=False):
    """A soft constraint with what it counts. `numbers` are by value id; by slot for the hostname, as each node counts.

    `weight` grows with the number of domains, lest the pods of many small ones be watered down.
    """

    constraint: SpreadConstraint
    counter: PodCounter
    column: TopologyColumn
    numbers: Int64Array
    weight: float

    def add_to(self, totals: FloatArray, batch: NodeBatch) -> None:
        """Add what the constraint is worth to each node of the batch that has its label."""
        value_ids = batch.value_ids(self.column)
        indexes = batch.slots if self.constraint.topology_key == HOSTNAME else value_ids
        worth = self.numbers[indexes] * self.weight + float(self.constraint.max_skew - 1)
        totals += np.where(value_ids == ABSENT, 0.0, worth)


class PreScoreState:
    """The soft constraints of one incoming pod over the nodes of a question. Stale after the next event."""

    __slots__ = ("_needed", "_preferences")

    def __init__(
        self,
        mirror: ClusterMirror,
        pod: Pod,
        constraints: Sequence[SpreadConstraint],
        batch: NodeBatch,
        *,
        require_all_topologies: bool,
    ) -> None:
        """Count the pods; `require_all_topologies` leaves out the nodes that lack a label of any constraint."""
        domains, counts = mirror.derived(NodeDomains), mirror.derived(PodCounts)
        labels = tuple(sorted({each.topology_key for each in constraints})) if require_all_topologies else ()
        self._needed = [domains.column(key) for key in labels]
        scored = self._scored(batch)
        self._preferences: list[Preference] = []
        for constraint in constraints:
            counter = counts.of(pod.namespace, constraint.selector)
            if constraint.topology_key == HOSTNAME:
                column, size = domains.column(HOSTNAME), int(scored.sum())
                numbers = counter.per_slot(mirror.nodes.capacity)
            else:
                found = domains.of(constraint.topology_key, CountedNodes.of(constraint, pod, labels))
                column, size = found.column, _number_of_domains(found.column, batch, scored)
                numbers = found.sums(counter)
            self._preferences.append(Preference(constraint, counter, column, numbers, math.log(size + 2)))

    def versions(self) -> Versions:
        """Return the versions of all counters that the raw scores follow from."""
        return tuple(preference.counter.version for preference in self._preferences)

    def score(self, batch: NodeBatch) -> Int64Array:
        """Return the raw score of each node, the lower the better; NOT_SCORED for those that are left out."""
        totals = np.zeros(len(batch), np.float64)
        for preference in self._preferences:
            preference.add_to(totals, batch)
        raw = rounded(totals)
        raw[~self._scored(batch)] = NOT_SCORED
        return raw

    def _scored(self, batch: NodeBatch) -> BoolArray:
        scored = np.ones(len(batch), np.bool_)
        scored[batch.unknown] = False
        for column in self._needed:
            scored &= batch.value_ids(column) != ABSENT
        return scored


def rounded(numbers: FloatArray) -> Int64Array:
    """Round as Go's math.Round does, halves up; `floor(number + 0.5)` would round some numbers below a half up, too."""
    whole = np.floor(numbers)
    return (whole + (numbers - whole >= _HALF)).astype(np.int64)


def normalized(raw: Int64Array) -> Int64Array:
    """Turn the raw scores of the nodes asked round and into 0..100: 100 for all where none counts any pods."""
    scored = raw != NOT_SCORED
    if not scored.any():
        return np.zeros_like(raw)
    lowest, highest = int(raw[scored].min()), int(raw[scored].max())
    if highest <= 0:
        return np.where(scored, MAX_NODE_SCORE, 0)
    turned = MAX_NODE_SCORE * (highest + lowest - np.where(scored, raw, highest)) // highest
    return np.where(scored, turned, 0)


def _number_of_domains(column: TopologyColumn, batch: NodeBatch, scored: BoolArray) -> int:
    """Count the values of the label among the nodes that are scored; one that lacks it has the empty value.

    Source: initPreScoreState, where a Go map has it so.
    """
    ids = batch.value_ids(column)
    present = np.bincount(ids[scored & (ids >= 0)], minlength=len(column.values)) > 0
    others = {
        node.labels.get(column.key, "")
        for position, node in batch.strangers.items()
        if node is not None and scored[position] and ids[position] < 0
    }
    if (ids[scored] == ABSENT).any():
        others.add("")
    if (empty := column.ids.get("")) is not None and present[empty]:
        others.discard("")
    return int(present.sum()) + len(others)
