"""Topology spread constraints of the pod, as PodTopologySpread measures them: pods and skew by domain."""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
import numpy as np

from core.diagnosis.diagnosis import Diagnosis
from core.mirror.label_columns import BatchColumn
from core.mirror.node_info import NodeBatch
from core.mirror.topology import ABSENT
from core.plugins.podtopologyspread.plugin import MeasuredConstraint, PodTopologySpread, PreFilterState

MAX_CONSTRAINTS: Final = 16


class SpreadOnNode(msgspec.Struct, frozen=True, gc=False):
    """A constraint (DoNotSchedule) on one node."""

    topology_key: str
    max_skew: int
    domain: str | None
    """None if the node does not have the topology key."""
    pods: int
    """Pods that the constraint counts in the domain."""
    fewest: int
    """Pods in the domain with the fewest. 0 if there are fewer domains than minDomains."""
    skew: int
    """The skew with the pod in the domain. If it is greater than max_skew, the node is rejected."""


class SpreadDomain(msgspec.Struct, frozen=True, gc=False):
    """A domain, with its pods and its skew if the pod is placed there."""

    value: str
    pods: int
    skew: int


class SpreadInCluster(msgspec.Struct, frozen=True, gc=False):
    """A constraint (DoNotSchedule) over all its domains. If some are not shown, the shown ones have most pods."""

    topology_key: str
    max_skew: int
    min_domains: int
    fewest: int
    domains: int
    shown: Sequence[SpreadDomain]
    nodes_without_key: int
    nodes_refused: int
    """Nodes in domains whose skew would be too large."""
    holding: Sequence[str] = ()
    """Some of the domains that hold the minimum at `fewest`, but whose nodes all refuse the pod for another reason."""
    domains_holding: int = 0
    """How many there are. 0 where another domain with as few pods has a node that only the skew may refuse."""


def measured_constraints(decision: Diagnosis, batch: NodeBatch) -> Iterator[MeasuredConstraint]:
    """Yield up to 16 hard constraints on nodes. None if PodTopologySpread is not enabled or has no constraint."""
    state = decision.state_of(PodTopologySpread.name)
    if isinstance(state, PreFilterState):
        yield from state.measured(batch, MAX_CONSTRAINTS)


def spread_on_node(decision: Diagnosis, position: int) -> Sequence[SpreadOnNode]:
    """Return the constraints on one node."""
    found = []
    for each in measured_constraints(decision, decision.batch.part(np.array([position]))):
        value_id = ABSENT if each.column is None else int(each.column.topology_ids()[0])
        node = decision.node(position)
        found.append(
            SpreadOnNode(
                topology_key=each.constraint.topology_key,
                max_skew=each.constraint.max_skew,
                domain=None if node is None else node.labels.get(each.constraint.topology_key),
                pods=0 if value_id == ABSENT else int(each.numbers[value_id]),
                fewest=each.fewest,
                skew=0 if value_id == ABSENT else int(each.skews[value_id]),
            )
        )
    return found


def spread_in_cluster(decision: Diagnosis, limit: int) -> Sequence[SpreadInCluster]:
    """Return the constraints, with up to `limit` domains each."""
    return [_summed(decision, each, limit) for each in measured_constraints(decision, decision.batch)]


def _holding(decision: Diagnosis, each: MeasuredConstraint, column: BatchColumn) -> Sequence[str]:
    """Return the domains that hold the minimum, if other plugins refuse all their nodes.

    By default the nodes that a pod does not tolerate count (nodeTaintsPolicy: Ignore), so that no domain may ever have
    more than maxSkew pods. Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/podtopologyspread/common.go.
    """
    fewest = each.domains[each.numbers[each.domains] == each.fewest]
    open_to_it = np.ones(len(decision.batch), np.bool_)
    for plugin, refused in decision.refusing.items():
        if plugin != PodTopologySpread.name:
            open_to_it &= ~refused
    if np.isin(column.topology_ids()[open_to_it], fewest).any():
        return ()
    return [column.column.values[value_id] for value_id in fewest.tolist()]


def _summed(decision: Diagnosis, each: MeasuredConstraint, limit: int) -> SpreadInCluster:
    without, refused, shown = len(decision.batch), 0, []
    holding: Sequence[str] = ()
    if each.column is not None:
        ids = each.column.topology_ids()
        without = int(np.count_nonzero(ids == ABSENT))
        refused = int(np.count_nonzero((each.skews > each.constraint.max_skew).take(ids) & (ids != ABSENT)))
        most = each.domains[np.argsort(-each.numbers[each.domains], kind="stable")[:limit]].tolist()
        values = each.column.column.values
        shown = [
            SpreadDomain(values[each_id], int(each.numbers[each_id]), int(each.skews[each_id])) for each_id in most
        ]
        holding = _holding(decision, each, each.column) if refused else ()
    return SpreadInCluster(
        topology_key=each.constraint.topology_key,
        max_skew=each.constraint.max_skew,
        min_domains=each.constraint.min_domains,
        fewest=each.fewest,
        domains=len(each.domains),
        shown=shown,
        nodes_without_key=without,
        nodes_refused=refused,
        holding=holding[:limit],
        domains_holding=len(holding),
    )
