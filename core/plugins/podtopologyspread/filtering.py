"""The filter side of PodTopologySpread: hard constraints.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/podtopologyspread/filtering.go.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

import msgspec
import numpy as np

from core.framework.interface import SUCCESS, Code, Codes, Status, Verdicts, Versions
from core.mirror.cluster import ClusterMirror
from core.mirror.label_columns import BatchColumn, BatchLabels
from core.mirror.node_info import NodeBatch
from core.mirror.topology import ABSENT, Int64Array, IntpArray
from core.objects.pod import HONOR, Pod, SpreadConstraint
from core.plugins.podtopologyspread.constraints import ConstrainedDomains, Domains
from core.plugins.podtopologyspread.pod_counts import PodCounter, PodCounts

NAME: Final = "PodTopologySpread"
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

    @property
    def honors_taints(self) -> bool:
        """Whether a constraint counts no node that the pod does not tolerate."""
        return any(constraint.node_taints_policy == HONOR for constraint in self._constraints)

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
