"""What may be proposed where a pod lacks devices. Nothing of it has been tried yet."""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from core.explaining import claim_steps
from core.explaining.decision import Decision
from core.explaining.obstacles import NEAREST, Candidates, Gone, Obstacles, Proposal, Search, Turn
from core.explaining.pod_names import ClaimName
from core.explaining.remedy import Step
from core.explaining.typos import mistaken
from core.mirror.topology import Int64Array, IntpArray
from core.objects.devices import ALL, Constraint, ResourceClaim
from core.objects.kinds import DeviceClass
from core.plugins.dynamicresources.allocator import UndecidedError
from core.plugins.dynamicresources.capacities import most_of
from core.plugins.dynamicresources.claims import named
from core.plugins.dynamicresources.outcomes import TO_JUDGE, CompileBudget
from core.plugins.dynamicresources.pools import PoolDevice
from core.plugins.dynamicresources.sentences import largest_group, nearest, survey_of
from core.plugins.dynamicresources.survey import NAME, Found, State, Survey, untolerated

_MAX_CLASSES: Final = 4
"""How many classes are tried."""
_MAX_DEVICES: Final = 1024
"""How many devices are looked at, at equal distances, for the classes that they are of."""


def _nearest(obstacles: Obstacles) -> Sequence[int]:
    """Return the nearest of the nodes that only devices keep the pod from."""
    survey, positions = survey_of(obstacles.decision), obstacles.only({NAME})
    return () if survey is None else nearest(survey, positions)[:NEAREST]


def _found_on(obstacles: Obstacles, position: int) -> Sequence[tuple[ResourceClaim, Found]]:
    """Return the devices of a node for the requests of claims that can be made again."""
    survey, claims = survey_of(obstacles.decision), obstacles.decision.mirror.objects(ResourceClaim)
    found = () if survey is None else survey.on(position)
    return [(claims[each.claim], each) for each in found if each.claim in claims]


def _claims(obstacles: Obstacles) -> Sequence[ResourceClaim]:
    """Return the claims of the pod that no pod has devices by."""
    decision = obstacles.decision
    stored = decision.mirror.objects(ResourceClaim)
    named = [stored.get(f"{decision.pod.namespace}/{each.claim}") for each in decision.pod.resource_claims]
    return [each for each in named if each is not None and each.allocation is None and not each.deleting]


def _place(obstacles: Obstacles, claim: ResourceClaim) -> tuple[ClaimName, bool]:
    return ClaimName(claim.full_name), claim_steps.is_made_for(claim, obstacles.decision.pod)


def _lower_counts(obstacles: Obstacles) -> Iterator[Proposal]:
    """Propose the most devices that the nearest nodes have for each request."""
    for position in _nearest(obstacles):
        found = _found_on(obstacles, position)
        short = [(claim, each) for claim, each in found if each.missing]
        if short and all(each.free and each.need.request.mode != ALL for _, each in short):
            steps = [_lowered(obstacles, claim, each, len(each.free)) for claim, each in short]
            yield Proposal(obstacles.decision.batch.names[position], steps)
        for claim, each in () if short else found:
            count = each.need.request.count
            if each.need.request.mode == ALL:
                continue
            groups = {largest_group([each], one) for one in claim.constraints}
            for to in sorted({to for to in (*groups, count - 1) if 0 < to < count}, reverse=True):
                step = _lowered(obstacles, claim, each, to)
                yield Proposal(obstacles.decision.batch.names[position], [step])


def _lower_capacities(obstacles: Obstacles) -> Iterator[Proposal]:
    """Propose to ask for the most of each capacity that a device of the nearest nodes has left."""
    survey = survey_of(obstacles.decision)
    if survey is None:
        return
    for position in _nearest(obstacles):
        for claim, found in _found_on(obstacles, position):
            for device in (*found.devices.get(State.FULL, ()), *found.devices.get(State.TOO_SMALL, ())):
                place = *_place(obstacles, claim), found.need.full_name
                left = {name: _most_left(survey, device, name) for name, _ in found.need.request.capacities or ()}
                less = [(name, of) for name, of in found.need.request.capacities or () if 0 < left[name] < of]
                steps = [claim_steps.LowerCapacity(*place, name, of - left[name], left[name]) for name, of in less]
                if steps:
                    yield Proposal(obstacles.decision.batch.names[position], steps)


def _most_left(survey: Survey, device: PoolDevice, capacity: str) -> int:
    left = survey.left(device, capacity)
    return 0 if left is None else most_of(device.device.capacity[capacity].policy, left)


def _lower(obstacles: Obstacles) -> Iterator[Proposal]:
    yield from _lower_counts(obstacles)
    yield from _lower_capacities(obstacles)


def _lowered(obstacles: Obstacles, claim: ResourceClaim, found: Found, to: int) -> Step:
    by = found.need.request.count - to
    return claim_steps.LowerCount(*_place(obstacles, claim), found.need.full_name, by, to)


def _tolerate(obstacles: Obstacles) -> Iterator[Proposal]:
    """Propose to tolerate the taints of as many devices as are missing, those with the fewest taints."""
    for position in _nearest(obstacles):
        steps: dict[Step, None] = {}
        for claim, found in _found_on(obstacles, position):
            tainted = [untolerated(each, found.need) for each in found.devices.get(State.TAINTED, ())]
            for taint in (taint for taints in sorted(tainted, key=len)[: found.missing] for taint in taints):
                place = *_place(obstacles, claim), found.need.full_name
                steps[claim_steps.TolerateDeviceTaint(*place, taint.key, taint.value, taint.effect)] = None
        if steps:
            yield Proposal(obstacles.decision.batch.names[position], [*steps])


def _change_classes(obstacles: Obstacles) -> Iterator[Proposal]:
    """Propose a class whose name is probably meant, or another class for devices of the same driver."""
    classes, survey = obstacles.decision.mirror.objects(DeviceClass), survey_of(obstacles.decision)
    drivers = {} if survey is None or len(classes) < 2 else _drivers(survey)  # noqa: PLR2004  # there is another class
    for claim in _claims(obstacles):
        for name, request in [each for of_claim in claim.requests for each in named(of_claim)]:
            present = request.device_class
            others = sorted(each for each in classes if each != present)
            if present in classes:
                alike = [each for each in others if drivers.get(each, set()) & drivers.get(present, set())]
            else:
                alike = [each for each in others if mistaken(present, each)] or (others if len(others) == 1 else [])
            for other in alike[:_MAX_CLASSES]:
                yield Proposal(None, [claim_steps.ChangeDeviceClass(*_place(obstacles, claim), name, present, other)])


def _drivers(survey: Survey) -> dict[str, set[str]]:
    """Return the drivers of the devices of each class."""
    selection, devices, found = survey.claims.inventory.selection, [*survey.devices()], {}
    some = [devices[at] for at in np.linspace(0, len(devices) - 1, min(len(devices), _MAX_DEVICES)).astype(int)]
    budget = CompileBudget(TO_JUDGE.compiled)
    for name, each in survey.classes.items():
        try:
            matchers = [
                selection.matcher(expression, budget) for expression in each.selectors if expression is not None
            ]
        except UndecidedError:
            continue  # all classes of a cluster could take minutes, and this one is only not proposed
        found[name] = {one.id.driver for one in some if all(of.of(one) is True for of in matchers)}
    return found


def _drop(obstacles: Obstacles) -> Iterator[Proposal]:
    """Propose to do without one selector of a request, or without one constraint."""
    for claim in _claims(obstacles):
        place = _place(obstacles, claim)
        for name, request in [each for of_claim in claim.requests for each in named(of_claim)]:
            for selector in dict.fromkeys(request.selectors):
                if selector is not None:
                    yield Proposal(None, [claim_steps.DropSelector(*place, name, selector)])
        for number, constraint in enumerate(claim.constraints):
            yield Proposal(None, [claim_steps.DropConstraint(*place, number, _attribute(constraint))])


def _attribute(constraint: Constraint) -> str:
    return constraint.match or constraint.distinct or ""


def holding(obstacles: Obstacles, position: int) -> Candidates:
    """Return the pods that alone use a claim with a device of a node, or with counters, that the pod could use."""
    survey = survey_of(obstacles.decision)
    if survey is None:
        return {}
    devices = {each.id for found in survey.on(position) for each in _in_the_way(survey, position, found)}
    claims = {claim.full_name: claim for device in devices for claim in survey.holders.get(device, ())}
    claims |= {each.full_name: each for each in survey.claims.all if each.allocation is not None}
    found = {}
    for claim in claims.values():
        users = [uid for uid in claim.reserved_for if uid != obstacles.decision.pod.uid]
        pod = obstacles.decision.mirror.get_pod(users[0]) if len(users) == 1 else None
        if pod is not None and pod.node_name:
            found[pod.uid] = Gone(pod, pod.node_name)
    return found


def _in_the_way(survey: Survey, position: int, found: Found) -> Sequence[PoolDevice]:
    """Return the devices in use that a request could have, and those with counters that its devices consume."""
    counted = {each.id[:2] for devices in found.devices.values() for each in devices if each.counters}
    wholes = [pool.whole for pool in survey.pools(position) if pool.id in counted and pool.whole is not None]
    of_wholes = [device for whole in wholes for devices in whole.devices for device in devices]
    return [*found.devices.get(State.IN_USE, ()), *found.devices.get(State.FULL, ()), *of_wholes]


def copies(decision: Decision) -> IntpArray | None:
    """Return the known nodes with devices that match, free or not, for each request. None if that is not known."""
    survey = survey_of(decision)
    if survey is None or not survey.claims.must_allocate:
        return None
    found = [at for at in decision.known.tolist() if all(each.matching for each in survey.on(at))]
    return None if survey.is_cut else np.array(found, np.intp)


def shortage(obstacles: Obstacles, positions: IntpArray) -> Int64Array | None:
    """Return how much the pod lacks on each node."""
    survey = survey_of(obstacles.decision)
    return None if survey is None else np.array([survey.missing(each) for each in positions.tolist()], np.int64)


SEARCHES: Final = (
    Search(Turn.LOWER_DEVICES, _lower, most=1),
    Search(Turn.TOLERATE, _tolerate),
    Search(Turn.CHANGE_DEVICE_CLASS, _change_classes),
    Search(Turn.DROP, _drop),
)
