"""The score side of PodTopologySpread: soft constraints. The fewer pods in a node's domains, the better.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/podtopologyspread/scoring.go.
"""

import math
from collections.abc import Collection, Sequence

import numpy as np

from core.framework.interface import MOST_TRAITS, Versions
from core.framework.scores import MAX_NODE_SCORE, NOT_SCORED, mapped, rounded_all
from core.mirror.cluster import ClusterMirror
from core.mirror.label_columns import BatchColumn, BatchLabels, LabelColumn
from core.mirror.node_info import NodeBatch
from core.mirror.topology import ABSENT, BoolArray, Float64Array, Int64Array, IntpArray
from core.objects.node import HOSTNAME
from core.objects.pod import Pod, SpreadConstraint
from core.plugins.podtopologyspread.constraints import ConstrainedDomains, Domains, having_all
from core.plugins.podtopologyspread.pod_counts import PodCounter, PodCounts


class PreScoreState:
    """The soft constraints of one incoming pod over the nodes of a request. Stale after a change of anything but a pod.

    What a constraint gives a node follows from one number, its trait: the pods on it for the hostname, and else its
    domain. It is ABSENT without the label. Scores of a constraint are added to the totals at once. Stored for each
    constraint, they would take 40 KB at 5,000 nodes.
    """

    __slots__ = ("_batch", "_constraints", "_keys", "_labels", "_mirror", "_needed", "_pod", "_scored", "_traits")

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
        self._traits: list[_Trait] = []  # by constraint, once `of_all` was called

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
        weights: dict[str, float] = {}
        totals = np.zeros(len(batch), np.float64)
        for constraint in self._constraints:
            key = constraint.topology_key
            column = labels.of(key)
            if column is None:
                continue
            if key not in weights:
                weights[key] = _weight(self._size(key))
            pods = None
            if key != HOSTNAME:  # by domain before by node, because there are fewer domains
                pods = domains.of(constraint, column.column).sums(self._counter(constraint))
            totals += _worth(constraint, self._trait(constraint, column, batch), weights[key], pods)
        raw = rounded_all(totals)
        if scored is not None:
            raw[~scored] = NOT_SCORED
        return raw

    def of_all(self, batch: NodeBatch) -> Sequence[Int64Array] | None:
        """Return the traits of all nodes, by constraint. None: there are too many, or no node has all the labels."""
        domains = ConstrainedDomains(self._mirror, self._pod, self._needed)
        found: list[Int64Array] = []
        self._traits = []
        for constraint in self._constraints:
            column = self._labels.of(constraint.topology_key)
            if len(found) == MOST_TRAITS or (column is None and self._needed):
                return None
            if column is not None:
                found.append(self._trait(constraint, column, batch))
                self._traits.append(_Trait(constraint, column.column, domains.of(constraint, column.column)))
        return found

    def on(self, _position: int, slot: int) -> list[int]:
        """Return the traits of the known node of a slot."""
        found = []
        for each in self._traits:
            trait = each.column.of_slot.item(slot)
            if trait != ABSENT and each.of_host:
                trait = self._counter(each.constraint).on(slot)
            found.append(trait)
        return found

    def follows(self, earlier: "PreScoreState", _slots: Collection[int]) -> bool:
        """Return whether it is the same state, which lasts until a node changes."""
        return earlier is self

    def scores(self, traits: Sequence[Int64Array], nodes: Int64Array) -> Int64Array:
        """Return the raw score of each group of nodes with the same traits. `nodes` are how many count."""
        scored = None
        if self._needed:
            scored = np.logical_and.reduce([each != ABSENT for each in traits])
            nodes = nodes * scored
        totals = np.zeros(len(nodes))
        for each, trait in zip(self._traits, traits, strict=True):
            if each.of_host:
                totals += each.worth(trait, int(np.add.reduce(nodes)))
            else:
                pods = each.pods(self._counter(each.constraint))
                totals += _worth(each.constraint, trait, _weight(each.number(trait, nodes > 0)), pods)
        raw = rounded_all(totals)
        if scored is not None:
            raw[~scored] = NOT_SCORED
        return raw

    def _trait(self, constraint: SpreadConstraint, column: BatchColumn, batch: NodeBatch) -> Int64Array:
        ids = column.topology_ids()
        if constraint.topology_key != HOSTNAME:
            return ids
        pods = self._counter(constraint).per_slot(self._mirror.nodes.capacity).take(batch.slots)
        if ids.min(initial=0) < 0:
            pods[ids == ABSENT] = ABSENT
        return pods

    def _counter(self, constraint: SpreadConstraint) -> PodCounter:
        return self._mirror.derived(PodCounts).of(self._pod.namespace, constraint.selector)

    def _scored_of(self, batch: NodeBatch, labels: BatchLabels) -> BoolArray | None:
        """Return which nodes are scored. None: all."""
        if not self._needed and not batch.unmirrored:
            return None
        scored = having_all(labels, self._needed, batch)
        scored[batch.unknown] = False
        return scored

    def _size(self, key: str) -> int:
        """Return the number of domains among the scored nodes of the request. For the hostname, each is a domain."""
        scored = self._scored
        if key == HOSTNAME:
            return len(self._batch) if scored is None else int(scored.sum())
        column = self._labels.of(key)
        if column is None:
            return int(scored is None or scored.any())
        return _number_of_domains(column.id_of(""), column.ids if scored is None else column.ids[scored])


class _Trait:
    """A constraint with its pods by domain: a decision changes one domain. Stale like the state."""

    __slots__ = ("_domains", "_number", "_of_nodes", "_pods", "_version", "_worth", "column", "constraint", "of_host")

    def __init__(self, constraint: SpreadConstraint, column: LabelColumn, domains: Domains) -> None:
        self.constraint = constraint
        self.of_host = constraint.topology_key == HOSTNAME
        self.column = column
        self._domains = domains
        self._version = 0
        self._pods: Int64Array | None = None
        self._number = b"", 0
        self._of_nodes: tuple[Int64Array | None, int] = None, 0
        self._worth: Float64Array = np.zeros(0)

    def worth(self, trait: Int64Array, size: int) -> Float64Array:
        """Return what the hostname gives groups with these numbers of pods, of so many nodes. Mostly as before.

        The caller must not change the array.
        """
        if trait is not self._of_nodes[0] or size != self._of_nodes[1]:
            self._of_nodes = trait, size
            self._worth = _worth(self.constraint, trait, _weight(size), None)
        return self._worth

    def number(self, trait: Int64Array, among: BoolArray) -> int:
        """Return the number of domains of some groups, with their traits. It is mostly as before."""
        groups = among.tobytes()
        if groups != self._number[0]:
            self._number = groups, _number_of_domains(self.column.ids.get(""), trait[among])
        return self._number[1]

    def pods(self, counter: PodCounter) -> Int64Array:
        """Return the number of pods by value id. The caller must not change the array."""
        changes = counter.since(self._version)
        if self._pods is None or changes is None:
            self._pods = self._domains.sums(counter)
        else:
            for slot, delta in changes:
                self._domains.add(self._pods, slot, delta)
        self._version = counter.version
        return self._pods


def _weight(size: int) -> float:
    """Return the weight of a topology key: the more domains among the requested nodes, the greater it is.

    So many small domains keep their influence.
    """
    return math.log(size + 2)


def _worth(constraint: SpreadConstraint, trait: Int64Array, weight: float, pods: Int64Array | None) -> Float64Array:
    """Return what a constraint gives by the traits, 0 for ABSENT. `pods` are by domain. None: the traits are pods."""
    worth: Float64Array = (trait if pods is None else pods) * np.float64(weight)
    worth += float(constraint.max_skew - 1)
    if pods is not None:
        worth[ABSENT] = 0.0
        return worth.take(trait)
    if len(trait) and trait.item(trait.argmin()) < 0:
        worth[trait == ABSENT] = 0.0
    return worth


def turned(raw: Int64Array, lowest: int) -> Int64Array:
    """Invert and normalise the raw scores of nodes that are all scored. `lowest` is the lowest of them."""
    highest = raw.item(raw.argmax())
    if highest > 0:
        found = mapped(raw, lowest, highest, lambda scores: MAX_NODE_SCORE * (highest + lowest - scores) // highest)
    else:
        found = np.full_like(raw, MAX_NODE_SCORE)
    if lowest < 0:  # only with a maxSkew below 1. To upstream, a node with -1 is one that is not scored
        found[raw == -1] = 0
    return found


def _number_of_domains(empty: int | None, ids: IntpArray) -> int:
    """Count the values of the label among nodes with these ids. A node without the label has the empty value.

    `empty` is the id of the empty value. Source: initPreScoreState, where a missing key of a Go map gives the empty
    value.
    """
    present = np.bincount(ids + 1) > 0  # ABSENT gives 0
    if len(present) and present[0] and empty is not None and empty + 1 < len(present) and present[empty + 1]:
        present[0] = False
    return int(np.count_nonzero(present))
