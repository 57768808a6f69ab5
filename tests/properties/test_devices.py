"""Devices over random events: cached verdicts are fresh ones, and what events keep is what a list would give."""

from collections.abc import Iterator
from random import Random
from typing import Any, Final

import msgspec
import pytest
from msgspec.structs import replace

from app.objects.decode_node import decode_node
from app.objects.resources import RESOURCES
from core.equivalence.cache import CacheOptions, EquivalenceCache
from core.events import ClusterEvent, Kind, Object
from core.framework.evaluation import FreshEvaluation
from core.framework.interface import SUCCESS, Code, Status
from core.mirror.cluster import ClusterMirror
from core.mirror.waiting_claims import WaitingClaims
from core.objects.devices import ALL, DeviceTaintRule, ResourceClaim, ResourceSlice
from core.objects.kinds import DeviceClass
from core.objects.node import Node
from core.plugins.dynamicresources.plugin import CANNOT_ALLOCATE, DynamicResources
from core.plugins.dynamicresources.sentences import survey_of
from core.plugins.dynamicresources.survey import State, Survey
from core.releases.differences import rules_of
from core.releases.release import RELEASES
from tests.conformance.engine import decoded_pod
from tests.core.plugins.dynamicresources.pending import decided
from tests.depth import tries
from tests.parity.random_devices import device_case

STREAMS: Final = tries(default=40, full=400)
EVENTS: Final = 40
KINDS: Final[dict[str, Kind]] = {
    "nodes": Node,
    "deviceclasses": DeviceClass,
    "resourceslices": ResourceSlice,
    "resourceclaims": ResourceClaim,
    "devicetaintrules": DeviceTaintRule,
}


def objects_of(case: dict[str, Any]) -> Iterator[Object]:
    """Yield the objects of a case."""
    for member, kind in KINDS.items():
        for each in case.get(member, ()):
            text = msgspec.json.encode(each)
            yield decode_node(text) if kind is Node else RESOURCES[kind].decode(text)


def bound_in_time(random: Random, each: Object) -> Object:
    """Return a claim, some with devices that must be bound by some time of a stream, or any other object."""
    if not isinstance(each, ResourceClaim) or each.allocation is None or random.random() < 0.5:
        return each
    until = random.uniform(0, EVENTS)
    return replace(each, allocation=replace(each.allocation, unbindable=False, binds_until=until))


def at_time(mirror: ClusterMirror, now: float) -> ClusterMirror:
    """Return a mirror that got, at some time, all objects as in a list."""
    made = rebuilt(mirror)
    for each in [*made.objects(ResourceClaim).values()]:
        allocation = each.allocation
        if allocation is not None and allocation.binds_until is not None and allocation.binds_until < now:
            late = replace(each, allocation=replace(allocation, unbindable=True))
            made.apply(ClusterEvent("Update", late))
    return made


def results(evaluation: Any, plugin: DynamicResources, mirror: ClusterMirror) -> list[object]:  # noqa: ANN401 - cached or fresh
    """Return the verdicts on all nodes, and the scores of those that fit."""
    batch = mirror.batch(sorted(mirror.nodes.slots))
    verdicts = evaluation.verdicts(plugin, batch)
    statuses = [Status(Code.SUCCESS) if verdicts is None else verdicts.status(at) for at in range(len(batch))]
    fitting = mirror.batch(
        [name for name, each in zip(batch.names, statuses, strict=True) if each.code is Code.SUCCESS]
    )
    raw = evaluation.raw_scores(plugin, fitting) if len(fitting) else None
    return [*statuses, None if raw is None else raw.tolist()]


def rebuilt(mirror: ClusterMirror) -> ClusterMirror:
    """Return a mirror that got all objects as in a list."""
    made = ClusterMirror(rules=mirror.rules)
    for _, node in mirror.nodes:
        made.apply(ClusterEvent("Add", node))
    for kind in (DeviceClass, ResourceSlice, ResourceClaim, DeviceTaintRule):
        for each in mirror.objects(kind).values():
            made.apply(ClusterEvent("Add", each))
    return made


@pytest.mark.parametrize("seed", range(STREAMS))
def test_cached_verdicts_are_fresh_ones_after_every_event(seed: int) -> None:
    random = Random(seed)  # noqa: S311 - no secret; the same in every run
    cases = [device_case(random) for _ in range(3)]
    pool = [bound_in_time(random, each) for case in cases for each in objects_of(case)]
    pods = [decoded_pod(case["pod"]) for case in cases]
    plugin = DynamicResources()
    mirror = ClusterMirror(rules=rules_of(RELEASES[-1 - seed % 2]))
    cache = EquivalenceCache(mirror, [plugin], CacheOptions(mode="spec"))
    for each in pool[: len([*objects_of(cases[0])])]:
        mirror.apply(ClusterEvent("Add", each))
    for number in range(EVENTS):
        if random.random() < 0.7:  # else only time passes
            deleted = random.random() < 0.3
            mirror.apply(ClusterEvent("Delete" if deleted else "Update", random.choice(pool)))
        for late in mirror.derived(WaitingClaims).overdue(number):
            mirror.apply(ClusterEvent("Update", late))
        if random.random() < 0.02:
            mirror.change_rules(rules_of(random.choice(RELEASES)))
        afresh = at_time(mirror, number)
        for pod in pods:
            need = results(FreshEvaluation(afresh, pod), plugin, afresh)
            assert results(cache.evaluation(pod), plugin, mirror) == need, (seed, number)


def _is_counted_alone(survey: Survey, position: int) -> bool:
    """Return whether the devices of a node decide one by one: for one request, without constraints and counters.

    Until 1.35, the devices of a second alternative for all are looked up among the results of the first one.
    """
    demand, _ = survey.demand(position)
    requests = [alternatives for claim in demand for alternatives in claim.requests]
    counted = any(each.counters for pool in survey.pools(position) for each in pool.devices)
    is_one = len(requests) == 1 and all(each.request.mode != ALL and each.request.count == 1 for each in requests[0])
    alone = is_one or (len(requests) == 1 and not counted)
    gates, second_for_all = survey.claims.gates, any(each.request.mode == ALL for of in requests for each in of[1:])
    as_counted = (gates.fixed or not counted) and (gates.current or not second_for_all)
    return alone and as_counted and not any(claim.constraints for claim in demand)


@pytest.mark.parametrize("seed", range(STREAMS))
def test_a_pod_lacks_free_devices_where_it_is_rejected_and_nowhere_else(seed: int) -> None:
    random = Random(seed)  # noqa: S311 - no secret; the same in every run
    for release in RELEASES:
        decision = decided({**device_case(random), "kubernetes": str(release)})
        survey = survey_of(decision)
        for at in decision.known.tolist() if survey is not None else ():
            node = decision.node(at)
            if survey is None or node is None or not _is_counted_alone(survey, at):
                continue
            outcome = survey.claims.on(int(decision.batch.slots[at]), node)
            (found,) = survey.on(at)
            is_full = State.FULL in found.devices and found.need.request.mode == ALL  # until 1.36 none of all
            if not outcome.undecided and outcome.status in (SUCCESS, CANNOT_ALLOCATE) and not is_full:
                assert (found.missing > 0) is (outcome.status is CANNOT_ALLOCATE), (seed, release, node.name)
