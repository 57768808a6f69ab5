"""Proposals of one kind, smallest first. None of them has been tried yet."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import msgspec
import numpy as np

from core.diagnosis.amounts.requirements import unmet_counts, untolerated_taints
from core.diagnosis.amounts.spread import measured_constraints
from core.diagnosis.diagnosis import Diagnosis
from core.diagnosis.remedies.fixes import (
    FIXES,
    Fix,
    Obstacles,
    Room,
    drop_requirements,
    label_node,
    lower_requests,
    lowered,
    raise_max_skew,
    relax_spread,
    run_pod,
    tolerate_taints,
    uncordon,
)
from core.diagnosis.remedies.owners import Way
from core.diagnosis.remedies.pod_steps import Kind, LowerRequest
from core.diagnosis.remedies.remedy import RemovePod, RunPod, Step, is_trouble
from core.mirror.topology import ABSENT, Int64Array, IntpArray
from core.objects.pod import Taint
from core.plugins.interpodaffinity.plugin import InterPodAffinity
from core.plugins.nodeaffinity import NodeAffinity
from core.plugins.noderesources.fit import NodeResourcesFit
from core.plugins.nodeunschedulable import UNSCHEDULABLE, NodeUnschedulable
from core.plugins.podtopologyspread.plugin import PodTopologySpread
from core.plugins.tainttoleration import TaintsAndTolerations, TaintToleration

NEAREST: Final = 8
"""How many nodes are checked individually for a kind."""
_MAX_DISTINCT: Final = 256
"""How many distinct lists of taints are checked."""
_LOOKED_AT: Final = 4
"""How many nodes are checked for constraints to relax."""
MAX_STEPS: Final = 8
"""How many steps a remedy may have. More steps would make it another pod, or another cluster."""

_OF_KIND: Final[Mapping[Kind, int]] = {
    Kind.LOWER_REQUESTS: 0,
    Kind.REPAIR_NODE: 15,
    Kind.UNCORDON_NODE: 20,
    Kind.CORRECT_REQUIREMENTS: 5,
    Kind.SELECT_NAMESPACE: 22,
    Kind.HONOR_POLICY: 22,
    Kind.MATCH_REVISION: 26,
    Kind.TOLERATE_TAINTS: 30,
    Kind.RAISE_MAX_SKEW: 30,
    Kind.CHANGE_TOPOLOGY_KEY: 34,
    Kind.PREFER_TERMS: 40,
    Kind.RELAX_SPREAD: 40,
    Kind.RUN_POD: 50,
    Kind.DROP_REQUIREMENTS: 50,
    Kind.LABEL_NODE: 58,
    Kind.COMBINED: 50,
    Kind.REMOVE_POD: 60,
    Kind.REMAKE_POD: 60,
    Kind.ADD_NODE: 80,
}
_OF_MORE_STEPS: Final = 20
_OF_WHOLE_REQUEST: Final = 100
_OF_FORBIDDEN_EVICTION: Final = 30
_OF_WAY: Final = MappingProxyType({Way.DELETED: 0, Way.SCALED_DOWN: 5, Way.OWNER_ENDS: 5, Way.ROLLED_OVER: -25})
"""Cost of the way in which a pod leaves, beyond that of a pod without an owner. A rolling update loses no pod."""
_TERMINATING: Final = 5
"""Cost of waiting for a pod that terminates."""


class Proposal(msgspec.Struct, frozen=True):
    """Steps that should make the pod fit on a node."""

    node: str | None
    """None if any node may be one on which the pod then fits."""
    steps: Sequence[Step]


def cost(decision: Diagnosis, kind: Kind, steps: Sequence[Step]) -> int:
    """Return the cost of the steps: of the kind, of each step after the first, and of the reduced share of requests."""
    found = _OF_KIND[kind] + _OF_MORE_STEPS * (len(steps) - 1)
    requests = decision.mirror.counted(decision.pod).requests
    for step in steps:
        if isinstance(step, LowerRequest):
            found += _OF_WHOLE_REQUEST * step.by // max(requests.get(step.resource, 0), 1)
        elif isinstance(step, RemovePod) and step.way is Way.TERMINATES:
            return _TERMINATING
        elif isinstance(step, RemovePod):
            harder = _OF_MORE_STEPS * bool(step.max_unavailable)
            found += _OF_FORBIDDEN_EVICTION * bool(step.budgets) + _OF_WAY[step.way] + harder
    return found


def lower_one_request(obstacles: Obstacles) -> Iterator[Proposal]:
    """Propose for each resource to lower only its request, to the most that is free on a node without other shortages.

    If no single request suffices, propose to lower several on the node with the smallest sum of their shares.
    """
    positions = obstacles.only({NodeResourcesFit.name})
    rooms = obstacles.rooms(positions)
    if not rooms:
        return
    pods, *others = rooms
    number = sum((each.short.astype(np.int64) for each in others), np.zeros(len(positions), np.int64))
    found = False
    for each in others:
        alone = np.flatnonzero(each.short & ~pods.short & (number == 1))
        if len(alone):
            found = True
            best = int(alone[each.free[alone].argmax()])
            node = obstacles.decision.batch.names[int(positions[best])]
            yield Proposal(node, (lowered(each.resource, each.asked, int(each.free[best])),))
    several = np.flatnonzero(~pods.short & (number > 1))
    if not found and len(several):
        best = int(several[missing_shares(others)[several].argmin()])
        yield from _proposed(obstacles, lower_requests, int(positions[best]))


def tolerate(obstacles: Obstacles) -> Iterator[Proposal]:
    """Propose the sets of taints of nodes that no other plugin rejects, without supersets of other sets.

    The smallest sets come first. Nodes that something is wrong with are left to `repair`.
    """
    decision = obstacles.decision
    positions = obstacles.only({TaintToleration.name})
    first: dict[frozenset[Taint], int] = {}
    for position in _one_of_each(obstacles, positions):
        first.setdefault(frozenset(untolerated_taints(decision, position)), position)
    minimal = [each for each in first if not any(other < each for other in first) and not any(map(is_trouble, each))]
    for taints in sorted(minimal, key=_fewest_first):
        yield from _proposed(obstacles, tolerate_taints, first[taints])


def repair(obstacles: Obstacles) -> Iterator[Proposal]:
    """Propose to repair nodes that are refused only for taints of their trouble, uncordoned where they are cordoned."""
    positions = obstacles.only({NodeUnschedulable.name, TaintToleration.name})
    for position in _one_of_each(obstacles, positions)[:NEAREST]:
        taints = [each for each in untolerated_taints(obstacles.decision, position) if each != UNSCHEDULABLE]
        if taints and all(map(is_trouble, taints)):
            parts = [FIXES[plugin](obstacles, position) or () for plugin in obstacles.of(position)]
            yield Proposal(obstacles.decision.batch.names[position], [step for part in parts for step in part])


def uncordon_node(obstacles: Obstacles) -> Iterator[Proposal]:
    """Propose to uncordon nodes that no other plugin rejects, except for the taint of a cordoned node."""
    for position in obstacles.only({NodeUnschedulable.name, TaintToleration.name})[:NEAREST].tolist():
        left = set(untolerated_taints(obstacles.decision, position)) - {UNSCHEDULABLE}
        if not left and NodeUnschedulable.name in obstacles.of(position):
            yield from _proposed(obstacles, uncordon, position)


def drop(obstacles: Obstacles) -> Iterator[Proposal]:
    """Propose to remove unmet requirements, for the nearest of the nodes that no other plugin rejects."""
    for position in _nearest_by_labels(obstacles):
        yield from _proposed(obstacles, drop_requirements, position)


def label(obstacles: Obstacles) -> Iterator[Proposal]:
    """Propose to set the missing labels on these nodes."""
    for position in _nearest_by_labels(obstacles):
        yield from _proposed(obstacles, label_node, position)


def raise_skew(obstacles: Obstacles) -> Iterator[Proposal]:
    """Propose for each constraint to raise only its maxSkew, to the least skew of a node with no other failure."""
    decision = obstacles.decision
    positions = obstacles.only({PodTopologySpread.name})
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
            yield from _proposed(obstacles, raise_max_skew, int(positions[alone[of_nodes[alone].argmin()]]))
    for best in np.flatnonzero(number > 1)[:1].tolist():
        yield from _proposed(obstacles, raise_max_skew, int(positions[best]))


def relax(obstacles: Obstacles) -> Iterator[Proposal]:
    """Propose to make the constraints that a node fails preferences, for nodes that no other plugin rejects."""
    for position in obstacles.some_of(obstacles.only({PodTopologySpread.name}), _LOOKED_AT):
        yield from _proposed(obstacles, relax_spread, position)


def run_beside(obstacles: Obstacles) -> Iterator[Proposal]:
    """Propose a pod that all required affinity terms select, in domains of nodes that no other plugin rejects."""
    decision = obstacles.decision
    seen: list[Mapping[str, str]] = []
    for position in obstacles.some_of(obstacles.only({InterPodAffinity.name}), NEAREST):
        for step in run_pod(obstacles, position) or ():
            if isinstance(step, RunPod) and step.domains not in seen:
                seen.append(step.domains)
                yield Proposal(decision.batch.names[position], [step])


def combine(obstacles: Obstacles) -> Iterator[Proposal]:
    """Propose all necessary steps on the nodes that the fewest plugins reject, if a step exists for each plugin."""
    positions = obstacles.only(FIXES)
    nearest = positions[np.argsort(obstacles.number[positions], kind="stable")][:NEAREST]
    proposals = []
    for position in nearest.tolist():
        parts = [FIXES[plugin](obstacles, position) for plugin in obstacles.of(position)]
        steps = [step for part in parts for step in part or ()]
        if all(part is not None for part in parts) and 0 < len(steps) <= MAX_STEPS:
            proposals.append(Proposal(obstacles.decision.batch.names[position], steps))
    yield from sorted(proposals, key=lambda each: cost(obstacles.decision, Kind.COMBINED, each.steps))


def _proposed(obstacles: Obstacles, fix: Fix, position: int) -> Iterator[Proposal]:
    steps = fix(obstacles, position)
    if steps and len(steps) <= MAX_STEPS:
        yield Proposal(obstacles.decision.batch.names[position], steps)


def missing_shares(rooms: Sequence[Room]) -> Int64Array:
    """Return for each node the sum of the shares of requests that do not fit, in thousandths."""
    return sum(
        ((each.asked - each.free).clip(0, each.asked) * 1000 // each.asked for each in rooms),
        np.zeros(len(rooms[0].free), np.int64),
    )


def _one_of_each(obstacles: Obstacles, positions: IntpArray) -> Sequence[int]:
    """Return the first of these nodes for each distinct list of taints, up to _MAX_DISTINCT."""
    state = obstacles.decision.state_of(TaintToleration.name)
    if not isinstance(state, TaintsAndTolerations) or not len(positions):
        return ()
    _, places = state.taints.places(obstacles.decision.batch.part(positions))
    _, first = np.unique(places, return_index=True)
    chosen: list[int] = positions[np.sort(first)][:_MAX_DISTINCT].tolist()
    return chosen


def _nearest_by_labels(obstacles: Obstacles) -> Sequence[int]:
    """Return some nodes with the fewest unmet requirements, among those that only NodeAffinity rejects."""
    positions = obstacles.only({NodeAffinity.name})
    if not len(positions):
        return ()
    lacking = unmet_counts(obstacles.decision)[positions]
    nearest: list[int] = positions[lacking == lacking.min()][:NEAREST].tolist()
    return nearest


def _fewest_first(taints: frozenset[Taint]) -> tuple[int, list[Taint]]:
    return len(taints), sorted(taints)
