"""The plugin PodTopologySpread: its arguments and its extension points.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/podtopologyspread (plugin.go, filtering.go, scoring.go).
"""

import math
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

import msgspec
import numpy as np

from core.events import Kind
from core.framework.interface import (
    MAX_NODE_SCORE,
    NOT_SCORED,
    SKIP,
    SUCCESS,
    Code,
    Codes,
    FilterPlugin,
    InvalidationRule,
    Operation,
    Scope,
    ScorePlugin,
    Status,
    Verdicts,
    Versions,
    mapped,
    rounded_all,
    said,
)
from core.mirror.cluster import ClusterMirror
from core.mirror.label_columns import BatchColumn, BatchLabels
from core.mirror.node_info import NodeBatch
from core.mirror.topology import ABSENT, BoolArray, Float64Array, Int64Array, IntpArray
from core.objects.kinds import Service
from core.objects.labels import Selector
from core.objects.node import HOSTNAME, Node
from core.objects.pod import DO_NOT_SCHEDULE, SCHEDULE_ANYWAY, Pod, SpreadConstraint
from core.plugins.podtopologyspread import constraints as resolving
from core.plugins.podtopologyspread.constraints import (
    CONTROLLERS,
    ConstrainedDomains,
    Domains,
    NodeDomains,
    default_selector,
    domains_differ,
    having_all,
)
from core.plugins.podtopologyspread.pod_counts import PodCounter, PodCounts

# The filter side (filtering.go): hard constraints.

_REASON: Final = "node(s) didn't match pod topology spread constraints"
CONSTRAINTS_NOT_MATCHED: Final = Status(Code.UNSCHEDULABLE, (_REASON,))
LABEL_MISSING: Final = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (f"{_REASON} (missing required label)",))
_STATUSES: Final = (SUCCESS, CONSTRAINTS_NOT_MATCHED, LABEL_MISSING)

_MIN_OF_NO_DOMAINS: Final = 2**31 - 1  # newCriticalPaths


class MeasuredConstraint(msgspec.Struct, frozen=True):
    """One hard constraint of a pod: the pods by domain, and the domain of each node of a batch.

    `numbers` and `skews` are by value id of `column`. `domains` are the value ids of the domains that count. `skews`
    include the incoming pod. `column` is None if no node has the topology key.
    """

    constraint: SpreadConstraint
    column: BatchColumn | None
    numbers: Int64Array
    skews: Int64Array
    domains: IntpArray
    fewest: int


class PreFilterState:
    """The hard constraints of one incoming pod, resolved to counters. Stale after the next event.

    Domains are created only when nodes are judged. A read of the versions does not create them.
    """

    __slots__ = ("_constraints", "_counters", "_mirror", "_pod")

    def __init__(self, mirror: ClusterMirror, pod: Pod, constraints: Sequence[SpreadConstraint]) -> None:
        counts = mirror.derived(PodCounts)
        self._mirror = mirror
        self._pod = pod
        self._constraints = constraints
        self._counters = [counts.of(pod.namespace, constraint.selector) for constraint in constraints]

    def versions(self) -> Versions:
        """Return the versions of all counters that the verdicts depend on."""
        return tuple(counter.version for counter in self._counters)

    def judge(self, batch: NodeBatch) -> Verdicts:
        """Return the verdict on each node: the first constraint that fails there.

        An unknown node is judged as if it were a node of the cluster without pods. It would add an empty domain, which
        lowers the minimum to 0. This does not change the node's own verdict, and no other node is judged with it.
        """
        codes: Codes | None = None
        keys = tuple(sorted({constraint.topology_key for constraint in self._constraints}))
        labels = BatchLabels(self._mirror, batch, keys)
        domains = ConstrainedDomains(self._mirror, self._pod, keys)
        for constraint, counter in zip(self._constraints, self._counters, strict=True):
            column = labels.of(constraint.topology_key)
            if column is None:  # no node has the label, so all nodes that passed so far fail here
                found: Codes = np.full(len(batch), _STATUSES.index(LABEL_MISSING), np.uint8)
            else:
                by_value = self._judge_domains(constraint, domains.of(constraint, column.column), counter)
                found = by_value.take(column.topology_ids())
            codes = found if codes is None else np.where(codes, codes, found)
            if codes.all():
                break
        return Verdicts(np.zeros(len(batch), np.uint8) if codes is None else codes, _STATUSES)

    def measured(self, batch: NodeBatch, limit: int) -> Iterator[MeasuredConstraint]:
        """Yield the measurements of up to `limit` constraints."""
        keys = tuple(sorted({constraint.topology_key for constraint in self._constraints}))
        labels = BatchLabels(self._mirror, batch, keys)
        domains = ConstrainedDomains(self._mirror, self._pod, keys)
        nothing = np.empty(0, np.int64)
        for constraint, counter in islice(zip(self._constraints, self._counters, strict=True), limit):
            column = labels.of(constraint.topology_key)
            if column is None:
                yield MeasuredConstraint(constraint, None, nothing, nothing, np.empty(0, np.intp), 0)
                continue
            of_constraint = domains.of(constraint, column.column)
            numbers, fewest, skews = self._skews(constraint, of_constraint, counter)
            yield MeasuredConstraint(constraint, column, numbers, skews, of_constraint.ids, fewest)

    def _judge_domains(self, constraint: SpreadConstraint, domains: Domains, counter: PodCounter) -> Codes:
        """Return the code of each value id's nodes."""
        _, _, skews = self._skews(constraint, domains, counter)
        codes = np.where(skews > constraint.max_skew, np.uint8(_STATUSES.index(CONSTRAINTS_NOT_MATCHED)), np.uint8(0))
        codes[ABSENT] = _STATUSES.index(LABEL_MISSING)
        return codes

    def _skews(
        self, constraint: SpreadConstraint, domains: Domains, counter: PodCounter
    ) -> tuple[Int64Array, int, Int64Array]:
        """Return the pods by value id, the minimum of any domain, and the skews by value id with the pod there."""
        numbers = domains.sums(counter)
        fewest = int(numbers[domains.ids].min(initial=_MIN_OF_NO_DOMAINS))
        if len(domains.ids) < constraint.min_domains:
            fewest = 0
        skews = numbers + int(constraint.selector.matches(self._pod.labels)) - fewest
        return numbers, fewest, skews


# The score side (scoring.go): soft constraints. The fewer pods in a node's domains, the better.


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


def _turned(raw: Int64Array) -> Int64Array:
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


_INVALIDATED_BY: Final = (
    InvalidationRule(
        kind=Node,
        operations=(Operation.ADD, Operation.DELETE),
        scope=Scope.ALL,
        because="a domain can come or go with a node, and with it the fewest pods of any domain, which all are held to",
    ),
    InvalidationRule(
        kind=Node,
        operations=(Operation.UPDATE,),
        scope=Scope.ALL,
        when="a label or a taint changed",
        because=(
            "any label can be a topology key or be asked for by node affinity, and by the policies of a constraint the "
            "node is counted or not; the pods of its domain, and the fewest of any domain, are then others for all"
        ),
        touches=domains_differ,
    ),
    InvalidationRule(
        kind=Pod,
        scope=Scope.COUNTERS,
        when="a constraint of the class selects it, and it came, went, changed its labels or began to terminate",
        because="it can change the fewest pods of any domain, so that the skew of every domain is another",
    ),
)


class PodTopologySpread(FilterPlugin[PreFilterState], ScorePlugin[PreScoreState]):
    """Filters and scores by how evenly pods are spread over topology domains, exactly as the in-tree plugin.

    Pods without constraints get the default ones: upstream's two for `defaulting_type` System, else
    `default_constraints`. Default constraints have no selector, because it is derived from the Services and the
    controller of the pod. Raises ValueError for arguments that upstream's ValidatePodTopologySpreadArgs rejects.
    """

    name = "PodTopologySpread"
    kinds: tuple[Kind, ...] = (Node, Pod)
    class_fields: tuple[str, ...] = ("namespace", "labels", "tolerations", "node_affinity", "spread")
    invalidated_by = _INVALIDATED_BY
    states = (PodCounts, NodeDomains)
    scores_alone = False
    normalizes_alone = False

    def __init__(
        self,
        *,
        defaulting_type: resolving.DefaultingType = "System",
        default_constraints: tuple[SpreadConstraint, ...] = (),
    ) -> None:
        resolving.check_arguments(defaulting_type, default_constraints)
        self._system_defaulted = defaulting_type == "System"
        self._defaults = resolving.SYSTEM_DEFAULTS if self._system_defaulted else default_constraints
        if self._defaults:
            self.kinds += (Service, *CONTROLLERS.values())
            self.class_fields += ("controller",)

    def references(self, mirror: ClusterMirror, pod: Pod) -> Selector | None:
        """Return the selector of the default constraints if they apply. It depends on Services and controllers."""
        return default_selector(mirror, pod) if self._defaults and not pod.spread else None

    def pre_filter(self, mirror: ClusterMirror, pod: Pod) -> tuple[Status, PreFilterState | None]:
        """Resolve the hard constraints to counters. Returns an error for a pod with an invalid constraint."""
        try:
            constraints = self._constraints(mirror, pod, DO_NOT_SCHEDULE)
        except resolving.BrokenConstraintError as error:
            reason = f"get constraints from pod: obtaining pod's hard topology spread constraints: {error}"
            return Status(Code.ERROR, (said(mirror, reason),)), None
        if not constraints:
            return SKIP, None
        mirror.derived(PodCounts).charge(pod.namespace, constraints, len(mirror.nodes.slots))
        return SUCCESS, PreFilterState(mirror, pod, constraints)

    def filter(self, state: PreFilterState, batch: NodeBatch) -> Verdicts:
        """Judge every node of the batch."""
        return state.judge(batch)

    def filter_versions(self, state: PreFilterState) -> Versions:
        """Return the versions of all counters that the verdicts depend on."""
        return state.versions()

    def pre_score(self, mirror: ClusterMirror, pod: Pod, batch: NodeBatch) -> tuple[Status, PreScoreState | None]:
        """Resolve the soft constraints to counters, weighted by the number of domains among the requested nodes."""
        try:
            constraints = self._constraints(mirror, pod, SCHEDULE_ANYWAY)
        except resolving.BrokenConstraintError as error:
            reason = f"calculating preScoreState: obtaining pod's soft topology spread constraints: {error}"
            return Status(Code.ERROR, (said(mirror, reason),)), None
        if not constraints:
            return SKIP, None
        mirror.derived(PodCounts).charge(pod.namespace, constraints, len(batch))
        # With upstream's own constraints, a node without a zone is still scored by its hostname.
        require_all_topologies = bool(pod.spread) or not self._system_defaulted
        return SUCCESS, PreScoreState(mirror, pod, constraints, batch, require_all_topologies=require_all_topologies)

    def score(self, state: PreScoreState, batch: NodeBatch) -> Int64Array:
        """Return the raw score of every node: the weighted pods of its domains. Fewer is better."""
        return state.score(batch)

    def score_versions(self, state: PreScoreState) -> Versions:
        """Return the versions of all counters that the raw scores depend on."""
        return state.versions()

    def normalize(self, raw: Int64Array) -> Int64Array:
        """Invert the raw scores of the requested nodes, and normalise them to 0..100. Without counted pods: all 100."""
        if len(raw) and raw.min() > NOT_SCORED:
            return _turned(raw)
        scored = raw != NOT_SCORED
        scores = np.zeros_like(raw)
        if scored.any():
            scores[scored] = _turned(raw[scored])
        return scores

    def _constraints(self, mirror: ClusterMirror, pod: Pod, action: str) -> tuple[SpreadConstraint, ...]:
        if pod.spread:
            return resolving.own_constraints(pod, action)
        if not any(each.when_unsatisfiable == action for each in self._defaults):
            return ()
        return resolving.default_constraints(self._defaults, action, default_selector(mirror, pod))
