"""What PodTopologySpread adds to explanations: pods and skew by domain, and remedies for constraints."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

import msgspec
import numpy as np

from core.events import Kind
from core.explaining import pod_steps
from core.explaining.decision import Decision
from core.explaining.explained import DomainRule, Event, Explained, Measured, Remedies
from core.explaining.obstacles import (
    MAX_STEPS,
    Candidates,
    Obstacles,
    Proposal,
    Search,
    Turn,
    other_keys,
    pods_of,
    proposed,
)
from core.explaining.remedy import Step
from core.explaining.words import counted, such_as
from core.mirror.cluster import ClusterMirror
from core.mirror.label_columns import BatchColumn
from core.mirror.node_info import NodeBatch
from core.mirror.topology import ABSENT, Int64Array
from core.objects.kinds import Service
from core.objects.pod import DO_NOT_SCHEDULE, HONOR, Pod, SpreadConstraint
from core.plugins.podtopologyspread.constraints import CONTROLLERS
from core.plugins.podtopologyspread.filtering import NAME, MeasuredConstraint, PreFilterState
from core.plugins.podtopologyspread.pod_counts import PodCounts

_LOOKED_AT: Final = 4
"""How many nodes are checked for constraints to relax."""
_REVISIONS: Final = ("pod-template-hash", "rollouts-pod-template-hash", "controller-revision-hash")
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

    @property
    def text(self) -> str:
        """The constraint on the node in words."""
        if self.domain is None:
            return f"spread by {self.topology_key}: no such label"
        pods = f"{self.domain} has {counted(self.pods, 'pod')}, the fewest {self.fewest}"
        return f"spread by {self.topology_key}: {pods}: skew {self.skew} of at most {self.max_skew}"


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

    @property
    def text(self) -> str:
        """The constraint over its domains in words."""
        listed = ", ".join(f"{one.value} {one.pods} (skew {one.skew})" for one in self.shown)
        text = (
            f"spread by {self.topology_key}, maxSkew {self.max_skew}: {listed or 'no domain'}; "
            f"too uneven on {counted(self.nodes_refused, 'node')}, no such label on {self.nodes_without_key:,}"
        )
        if self.domains < self.min_domains:
            text += f"; minDomains {self.min_domains}, and there are {self.domains}: the minimum counts as 0"
        if self.domains_holding:
            domains = counted(self.domains_holding, "domain")
            hold = "holds" if self.domains_holding == 1 else "hold"
            text += f"; {domains} with nodes that only refuse the pod {hold} the minimum at {self.fewest:,}: "
            text += such_as(self.holding, self.domains_holding)
        return text


def measured_constraints(decision: Decision, batch: NodeBatch) -> Iterator[MeasuredConstraint]:
    """Yield up to 16 hard constraints on nodes. None if PodTopologySpread is not enabled or has no constraint."""
    state = decision.state_of(NAME)
    if isinstance(state, PreFilterState):
        yield from state.measured(batch, MAX_CONSTRAINTS)


def spread_on_node(decision: Decision, position: int) -> Sequence[SpreadOnNode]:
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


def spread_in_cluster(decision: Decision, limit: int) -> Sequence[SpreadInCluster]:
    """Return the constraints, with up to `limit` domains each."""
    return [_summed(decision, each, limit) for each in measured_constraints(decision, decision.batch)]


def _holding(decision: Decision, each: MeasuredConstraint, column: BatchColumn) -> Sequence[str]:
    """Return the domains that hold the minimum, if other plugins refuse all their nodes.

    By default the nodes that a pod does not tolerate count (nodeTaintsPolicy: Ignore), so that no domain may ever have
    more than maxSkew pods. Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/podtopologyspread/common.go.
    """
    fewest = each.domains[each.numbers[each.domains] == each.fewest]
    open_to_it = np.ones(len(decision.batch), np.bool_)
    for plugin, rejected in decision.refusing.items():
        if plugin != NAME:
            open_to_it &= ~rejected
    if np.isin(column.topology_ids()[open_to_it], fewest).any():
        return ()
    return [column.column.values[value_id] for value_id in fewest.tolist()]


def _summed(decision: Decision, each: MeasuredConstraint, limit: int) -> SpreadInCluster:
    without, rejected, listed = len(decision.batch), 0, []
    holding: Sequence[str] = ()
    if each.column is not None:
        ids = each.column.topology_ids()
        without = int(np.count_nonzero(ids == ABSENT))
        rejected = int(np.count_nonzero((each.skews > each.constraint.max_skew).take(ids) & (ids != ABSENT)))
        most = each.domains[np.argsort(-each.numbers[each.domains], kind="stable")[:limit]].tolist()
        values = each.column.column.values
        listed = [
            SpreadDomain(values[each_id], int(each.numbers[each_id]), int(each.skews[each_id])) for each_id in most
        ]
        holding = _holding(decision, each, each.column) if rejected else ()
    return SpreadInCluster(
        topology_key=each.constraint.topology_key,
        max_skew=each.constraint.max_skew,
        min_domains=each.constraint.min_domains,
        fewest=each.fewest,
        domains=len(each.domains),
        shown=listed,
        nodes_without_key=without,
        nodes_refused=rejected,
        holding=holding[:limit],
        domains_holding=len(holding),
    )


def raise_max_skew(obstacles: Obstacles, position: int) -> Sequence[Step] | None:
    """Raise maxSkew of the pod's own constraints that a node fails. None if the node lacks the topology key."""
    steps: list[Step] = []
    node = obstacles.decision.node(position)
    for place, each, value_id in _failed_constraints(obstacles, position):
        if value_id == ABSENT or node is None:
            return None
        key, max_skew = each.constraint.topology_key, each.constraint.max_skew
        steps.append(pod_steps.RaiseMaxSkew(place, key, node.labels[key], max_skew, int(each.skews[value_id])))
    return steps or None


def relax_spread(obstacles: Obstacles, position: int) -> Sequence[Step] | None:
    """Make the pod's own constraints that a node fails preferences. None if the node fails none of them.

    None, too, where the API server would refuse the pod: it has a preference of the same topology key already
    (k8s.io/kubernetes pkg/apis/core/validation/validation.go, ValidateSpreadConstraintNotRepeat).
    """
    spread = obstacles.decision.pod.spread
    failed = [(place, spread[place]) for place, *_ in _failed_constraints(obstacles, position)]
    preferred = {each.topology_key for each in spread if each.when_unsatisfiable != DO_NOT_SCHEDULE}
    if any(each.topology_key in preferred for _, each in failed):
        return None
    return [pod_steps.RelaxSpread(place, each.topology_key, each.min_domains > 1) for place, each in failed] or None


def spread_less(obstacles: Obstacles, position: int) -> Sequence[Step] | None:
    """Raise maxSkew where that can help. Otherwise make the constraint a preference."""
    return raise_max_skew(obstacles, position) or relax_spread(obstacles, position)


def _failed_constraints(obstacles: Obstacles, position: int) -> Iterator[tuple[int, MeasuredConstraint, int]]:
    """Yield the pod's own constraints that a node fails: their place in the pod, and the node's domain."""
    decision = obstacles.decision
    places = [place for place, each in enumerate(decision.pod.spread) if each.when_unsatisfiable == DO_NOT_SCHEDULE]
    measured = measured_constraints(decision, decision.batch.part(np.array([position])))
    for place, each in zip(places, measured, strict=False):  # default constraints have no index in the pod
        value_id = ABSENT if each.column is None else int(each.column.topology_ids()[0])
        if value_id == ABSENT or each.skews[value_id] > each.constraint.max_skew:
            yield place, each, value_id


def raise_skew(obstacles: Obstacles) -> Iterator[Proposal]:
    """Propose for each constraint to raise only its maxSkew, to the least skew of a node with no other failure."""
    decision = obstacles.decision
    positions = obstacles.only({NAME})
    if not len(positions):
        return
    skews: list[Int64Array] = []
    limits: list[int] = []
    has_keys = np.ones(len(positions), np.bool_)
    for each in measured_constraints(decision, decision.batch.part(positions)):
        if each.column is None:
            return
        ids = each.column.topology_ids()
        skews.append(each.skews.take(ids))
        limits.append(each.constraint.max_skew)
        has_keys &= ids != ABSENT
    failed = (np.array(skews) > np.array(limits)[:, None]) & has_keys
    number = failed.sum(axis=0)
    for place, of_nodes in enumerate(skews):
        alone = np.flatnonzero(failed[place] & (number == 1))
        if len(alone):
            yield from proposed(obstacles, raise_max_skew, int(positions[alone[of_nodes[alone].argmin()]]))
    for best in np.flatnonzero(number > 1)[:1].tolist():
        yield from proposed(obstacles, raise_max_skew, int(positions[best]))


def relax(obstacles: Obstacles) -> Iterator[Proposal]:
    """Propose to make the constraints that a node fails preferences, for nodes that no other plugin rejects."""
    for position in obstacles.some_of(obstacles.only({NAME}), _LOOKED_AT):
        yield from proposed(obstacles, relax_spread, position)


def _constraints(obstacles: Obstacles) -> Sequence[tuple[int, SpreadConstraint]]:
    """Return the pod's own hard constraints with their places, if PodTopologySpread alone rejects some node."""
    if not len(obstacles.only({NAME})):
        return ()
    spread = enumerate(obstacles.decision.pod.spread)
    return [(place, each) for place, each in spread if each.when_unsatisfiable == DO_NOT_SCHEDULE][:MAX_STEPS]


def honor(obstacles: Obstacles) -> Iterator[Proposal]:
    """Propose to leave tainted nodes, or those that the pod does not select, out of the constraints."""
    constraints = _constraints(obstacles)
    for policy in (pod_steps.TAINTS_POLICY, pod_steps.AFFINITY_POLICY):
        steps = [
            pod_steps.HonorPolicy(place, each.topology_key, policy)
            for place, each in constraints
            if (each.node_taints_policy if policy == pod_steps.TAINTS_POLICY else each.node_affinity_policy) != HONOR
        ]
        yield from _each_then_all(steps)


def match_revision(obstacles: Obstacles) -> Iterator[Proposal]:
    """Propose to count only pods of the same revision."""
    labels = obstacles.decision.pod.labels
    key = next((each for each in _REVISIONS if each in labels), None)
    if key is not None:
        yield from _each_then_all(
            [
                pod_steps.MatchRevision(place, each.topology_key, key)
                for place, each in _constraints(obstacles)
                if key not in each.match_label_keys
            ]
        )


def _each_then_all(steps: Sequence[Step]) -> Iterator[Proposal]:
    yield from (Proposal(None, [each]) for each in steps)
    if len(steps) > 1:
        yield Proposal(None, steps)


def _change_key(obstacles: Obstacles) -> Iterator[Proposal]:
    """Propose other topology keys for constraints over a label that no node has."""
    constraints = _constraints(obstacles)
    taken = {each.topology_key for _, each in constraints}  # the API server accepts each key only once
    for place, each in constraints:
        if each.topology_key not in obstacles.label_keys:
            yield from other_keys(obstacles, pod_steps.RequiredRule.SPREAD, place, each.topology_key, taken)


def _counted(obstacles: Obstacles, position: int) -> Candidates:
    """Return the pods of a node that are counted by any constraint that the node fails."""
    decision, candidates = obstacles.decision, pods_of(obstacles, position)
    selectors = [
        each.constraint.selector
        for each in measured_constraints(decision, decision.batch.part(np.array([position])))
        if each.column is not None and each.skews[int(each.column.topology_ids()[0])] > each.constraint.max_skew
    ]
    return {
        uid: each
        for uid, each in candidates.items()
        if each.pod.namespace == decision.pod.namespace
        and any(selector.matches(each.pod.labels) for selector in selectors)
    }


class ExplainedSpread(Explained):
    """What the plugin adds to explanations."""

    events = (
        Event("Pod", ("Add", "UpdatePodLabel", "Delete")),
        Event(
            "Pod",
            ("UpdatePodLabel", "UpdatePodToleration"),
            of_pod_itself=True,
            may_help=lambda decision, action: action != "UpdatePodToleration" or _honors_taints(decision),
        ),
        Event("Node", ("Add", "Delete", "UpdateNodeLabel", "UpdateNodeTaint")),
    )
    measured = Measured(
        on_node={"spread": lambda decision, position, _: spread_on_node(decision, position)},
        in_cluster={"spread": spread_in_cluster},
    )
    remedies = Remedies(
        searches=(
            Search(Turn.HONOR, honor, most=1),
            Search(Turn.MATCH_REVISION, match_revision, most=1),
            Search(Turn.CHANGE_KEY, _change_key, most=1),
            Search(Turn.RAISE_SKEW, raise_skew),
            Search(Turn.RELAX, relax),
        ),
        fix=spread_less,
        removable=_counted,
        counts_elsewhere=True,
    )

    def rules(self, decision: Decision) -> Iterator[DomainRule]:
        """Yield the constraints."""
        batch = decision.batch.part(decision.known)
        for each in measured_constraints(decision, batch):
            ids = np.full(len(batch), ABSENT) if each.column is None else each.column.topology_ids()
            uneven = (each.skews > each.constraint.max_skew).take(ids) if each.column is not None else ids == ABSENT
            yield DomainRule("its topology spread", each.constraint.topology_key, (ids == ABSENT) | uneven)

    def reads(self, _mirror: ClusterMirror, _pod: Pod, _missing: Collection[Kind]) -> Collection[Kind]:
        """Return none: default constraints, which read the owners of pods, are used only for scores."""
        return ()

    def reads_to_score(self, _mirror: ClusterMirror, pod: Pod, _missing: Collection[Kind]) -> Collection[Kind]:
        """Return the kinds that select the pod, if the default constraints are used."""
        owner = pod.controller
        if pod.spread or not (pod.labels or owner):  # no Service selects a pod without labels (helper.DefaultSelector)
            return ()
        of_owner = CONTROLLERS.get((owner.api_version, owner.kind)) if owner is not None else None
        return {Service} if of_owner is None else {Service, of_owner}

    def ending(self, mirror: ClusterMirror) -> Iterable[str]:
        """Return the pods that terminate, which the plugin does not count."""
        return mirror.derived(PodCounts).terminating()

    def topology_keys(self, decision: Decision) -> Collection[str]:
        """Return the keys of the constraints."""
        return {each.constraint.topology_key for each in measured_constraints(decision, decision.batch)}


def _honors_taints(decision: Decision) -> bool:
    """Return whether a constraint counts only nodes whose taints the pod tolerates. An error queues the pod, too.

    Source: isSchedulableAfterTargetPodChange in podtopologyspread/plugin.go.
    """
    state = decision.state_of(NAME)
    return not isinstance(state, PreFilterState) or state.honors_taints
