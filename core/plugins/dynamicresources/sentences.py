"""What is said of the devices for a pod: for each request in the cluster, and what a node lacks."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from core.explaining.claim_steps import amount_text, constraint_text
from core.explaining.decision import Decision
from core.explaining.pod_names import ClaimName, PodText, name_of
from core.explaining.pod_steps import taint_text
from core.explaining.typos import mistaken
from core.explaining.words import counted, such_as
from core.mirror.topology import IntpArray
from core.objects.devices import ALL, Constraint, DeviceTaintRule, ResourceClaim, ResourceSlice
from core.objects.kinds import DeviceClass
from core.objects.pod import PodResourceClaim, Taint
from core.plugins.dynamicresources.constraints import ClaimNeeds, Need, concerns
from core.plugins.dynamicresources.extended import NAME as EXTENDED
from core.plugins.dynamicresources.matching import Matcher, Reads
from core.plugins.dynamicresources.pools import PoolDevice
from core.plugins.dynamicresources.selectors import SelectorError
from core.plugins.dynamicresources.shortages import capacities_text, counters_text
from core.plugins.dynamicresources.survey import NAME, Found, State, Survey, untolerated

if TYPE_CHECKING:
    from core.plugins.dynamicresources.plugin import Claims

_MAX_LISTED: Final = 5
_MAX_CONSTRAINTS: Final = 4
"""How many constraints are left out by way of trial. A search may take 40 ms."""
_TOO_MANY: Final = "the claims have too many requests to count the devices for each"


def survey_of(decision: Decision) -> Survey | None:
    """Return the devices for the pod's claims, counted once. None if no node is judged by them."""
    claims: Claims | None = decision.state_of(NAME)
    if claims is not None and claims.survey is None:
        claims.survey = Survey(decision, claims)
    return None if claims is None else claims.survey


def rejected(decision: Decision) -> IntpArray:
    """Return the known nodes that the plugin rejects."""
    rejected = decision.refusing.get(NAME)
    found: IntpArray = decision.known[:0] if rejected is None else decision.known[rejected[decision.known]]
    return found


def _alone(decision: Decision, positions: IntpArray) -> IntpArray:
    """Return those of some nodes that no other plugin rejects, or all if there are none."""
    others = [codes[positions] for plugin, codes in decision.refusing.items() if plugin != NAME]
    left: IntpArray = positions[~np.any(others, axis=0)] if others else positions
    return left if len(left) else positions


def nearest(survey: Survey, positions: IntpArray) -> Sequence[int]:
    """Return these nodes, those with most of what the pod needs first."""
    return sorted(positions.tolist(), key=survey.missing)


def in_cluster(decision: Decision, limit: int) -> Sequence[str]:
    """Return what is to be said of all nodes, if the plugin rejects some node."""
    positions, survey = rejected(decision), survey_of(decision)
    if NAME not in decision.refusing:
        return ()
    if survey is None:
        return [*_of_names(decision)][:limit]
    found = [*_of_allocated(decision, survey)]
    if survey.is_stale and survey.claims.special is not None:
        left = " is left of an earlier attempt; kube-scheduler deletes it, and tries the pod again"
        found.append(PodText("claim ", ClaimName(survey.claims.special.full_name), left))
    elif survey.claims.must_allocate and len(positions):
        found += _of_requests(decision, survey, positions, limit)
    return found


def _of_requests(decision: Decision, survey: Survey, positions: IntpArray, limit: int) -> Sequence[str]:
    """Return the devices for each request, and what the nearest of the nodes lacks if the pod fits nowhere."""
    speaker, everywhere = _Speaker(decision, survey), survey.everywhere
    first = None if len(decision.fitting) else nearest(survey, _alone(decision, positions))[0]
    if survey.is_cut:
        return [_TOO_MANY]
    found = [speaker.in_cluster(*each) for each in everywhere[:limit]]
    if first is None or (len(positions) < len(decision.known) and not all(each.matching for each in survey.on(first))):
        return found  # it fits nowhere because of other rules, where there are devices
    there = {each.need.full_name: each.matching for each in survey.on(first)}
    is_all = {each.need.full_name for each, _ in everywhere if each.matching == there.get(each.need.full_name, 0)}
    lines = speaker.on_node(first, is_all)
    return [*found, *(PodText(f"{decision.batch.names[first]}: ", each) for each in lines)]


def on_node(decision: Decision, position: int) -> Sequence[str]:
    """Return what a node lacks, if the plugin rejects it."""
    rejected, survey = decision.refusing.get(NAME), survey_of(decision)
    if rejected is None or not rejected[position] or survey is None or survey.is_stale:
        return ()
    found = [*_Speaker(decision, survey).on_node(position)]
    return [_TOO_MANY] if survey.is_cut else found


# Claims that are not there, or have devices already.


def _of_names(decision: Decision) -> Iterator[str]:
    """Yield why the claims of the pod cannot be used at all."""
    claims = decision.mirror.objects(ResourceClaim)
    for each in decision.pod.resource_claims:
        claim = claims.get(f"{decision.pod.namespace}/{each.claim}")
        if claim is None:
            yield _absent(decision, each)
        elif claim.deleting:
            users = _separated(_users(decision, claim)) or ["no known pod"]
            goes = " is being deleted, and goes when no pod uses it (in use by ", *users, "): make it again then"
            yield PodText("claim ", ClaimName(claim.full_name), *goes)
        elif each.of_template and (claim.controller is None or claim.controller.uid != decision.pod.uid):
            yield PodText("claim ", ClaimName(claim.full_name), " was not made for this pod: delete it, so that it is")
        else:
            yield from _of_classes(decision, claim)


def _absent(decision: Decision, each: PodResourceClaim) -> str:
    if each.claim is None:
        missing = "if it stays so, its ResourceClaimTemplate is missing: see the events of the pod"
        return f"claim {each.name}: not made from its template yet; {missing}"
    namespace, claims = decision.pod.namespace, decision.mirror.objects(ResourceClaim)
    there = [one.name for one in claims.values() if one.namespace == namespace]
    first = sorted(there, key=lambda name: (not mistaken(each.claim or "", name), name))[:_MAX_LISTED]
    names = [piece for name in first for piece in (", ", ClaimName(f"{namespace}/{name}"))][1:]
    absent = "claim ", ClaimName(f"{namespace}/{each.claim}"), " does not exist; claims of the namespace: "
    return PodText(*absent, *(names or ["none"]))


def _of_classes(decision: Decision, claim: ResourceClaim) -> Iterator[str]:
    classes = decision.mirror.objects(DeviceClass)
    for request in claim.requests if claim.allocation is None else ():
        for each in request.first_available if request.exactly is None else (request.exactly,):
            if each.device_class not in classes:
                name = each.device_class
                there = sorted(classes, key=lambda one: (not mistaken(name, one), one))[:_MAX_LISTED]
                listed = f"DeviceClass {name} does not exist; DeviceClasses: {', '.join(there) or 'none'}"
                yield PodText("claim ", ClaimName(claim.full_name), f", request {request.name}: {listed}")


def _of_allocated(decision: Decision, survey: Survey) -> Iterator[str]:
    """Yield where the devices of claims are that are allocated already."""
    for claim in survey.claims.all:
        allocation = claim.allocation
        if allocation is None:
            continue
        nodes = [
            node.name
            for node in map(decision.node, decision.known.tolist())
            if node is not None and (allocation.nodes is None or allocation.nodes.matches(node.labels, node.name))
        ]
        names = f", {such_as(nodes[:_MAX_LISTED], len(nodes))}" if nodes else " that there is"
        where = f"{counted(len(nodes), 'node') if nodes else 'no node'}{names}"
        devices = ", ".join(str(each.device) for each in allocation.devices[:_MAX_LISTED]) or "no device"
        has = f" has {devices} already, for {where}"
        bad = ""
        if allocation.unbindable and survey.claims.gates.binding_conditions:
            bad = "; binding failed" if allocation.binds_until is None else "; not bound in time"
        users = _users(decision, claim)
        for_whom = ["; in use by ", *_separated(users)] if users else ["; no other known pod uses it"]
        freed = "; kube-scheduler frees it, and tries the pod again" if _is_freed(decision, survey, claim) else ""
        yield PodText("claim ", ClaimName(claim.full_name), has, bad, *for_whom, freed)


def _is_freed(decision: Decision, survey: Survey, claim: ResourceClaim) -> bool:
    """Return whether kube-scheduler frees a claim because it keeps the pod off nodes, and no other pod has it.

    Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go (PostFilter).
    """
    if len(decision.fitting) or not {*claim.reserved_for} <= {decision.pod.uid} or claim is survey.claims.special:
        return False
    others = [codes for plugin, codes in decision.refusing.items() if plugin != NAME]
    reached = (decision.node(at) for at in rejected(decision).tolist() if not any(codes[at] for codes in others))
    return any(node is not None and survey.claims.is_unavailable(claim, node) for node in reached)


def _users(decision: Decision, claim: ResourceClaim) -> Sequence[str]:
    pods = [decision.mirror.get_pod(uid) for uid in claim.reserved_for if uid != decision.pod.uid]
    return [name_of(each) for each in pods if each is not None][:_MAX_LISTED]


def _separated(pieces: Sequence[str]) -> list[str]:
    return [each for piece in pieces for each in (", ", piece)][1:]


class _Speaker:
    """Says what keeps devices from requests, with the claims that hold them."""

    def __init__(self, decision: Decision, survey: Survey) -> None:
        self._decision = decision
        self._survey = survey

    def in_cluster(self, found: Found, nodes: int) -> str:
        """Return the devices of all nodes for one request."""
        request = found.need.request
        number = "all devices" if request.mode == ALL else counted(request.count, "device")
        needs = f"{self._name(found)}: needs {number} of DeviceClass {request.device_class}"
        claim = [] if self._is_extended(found) else ["claim ", ClaimName(found.claim), ", "]
        if not found.matching:
            return PodText(*claim, needs, "; ", self._none_matches(found.need))
        verb = "matches" if found.matching == 1 else "match"
        match = f"; {counted(found.matching, 'device')} of {counted(nodes, 'node')} {verb}: "
        return PodText(*claim, needs, match, self._states(found))

    def _is_extended(self, found: Found) -> bool:
        return found.claim.endswith(f"/{EXTENDED}")

    def _name(self, found: Found) -> str:
        """Return the name of a request. Those for extended resources have names that no person has given."""
        if self._is_extended(found):
            for container in self._decision.pod.demand.extended_requests:
                for resource, _, at in container.amounts:
                    if found.need.full_name == f"container-{container.position}-request-{at}":
                        return f"extended resource {resource}"
        return f"request {found.need.full_name}"

    def on_node(self, position: int, stated: Collection[str] = ()) -> Iterator[str]:
        """Yield what a node lacks. Of the requests in `stated`, all is said already."""
        if lacking := self._survey.lacking(position):
            yield f"no {' and no '.join(lacking)} there, and no DeviceClass provides it"
            return
        found, is_short = self._survey.on(position), False
        for each in found:
            is_short = is_short or each.missing > 0
            if each.missing and each.need.full_name not in stated:
                states = (": ", self._states(each)) if each.matching else ()
                match = "matches" if each.matching == 1 else "match"
                request = f"{self._name(each)} needs {each.needed}"
                yield PodText(f"{request}, {each.matching or 'none'} {match}", *states)
        for pool in self._survey.pools(position):
            if pool.is_incomplete:
                yield f"pool {pool} is incomplete: its driver has not published all ResourceSlices yet"
            elif pool.invalid_reason:
                yield f"pool {pool} is invalid: {pool.invalid_reason}"
        if found and not is_short:
            yield self._together(position, found)

    def _states(self, found: Found) -> PodText:
        texts: list[str] = []
        for state in State:
            devices = found.devices.get(state, ())
            if devices:
                texts.append(PodText(f"{len(devices):,} {state.value}", *self._detail(state, found)))
        return PodText(*_separated(texts if found.free else [*texts, "none free"]))

    def _detail(self, state: State, found: Found) -> Sequence[str]:
        devices, need = found.devices[state], found.need
        match state:
            case State.IN_USE:
                return self._used_by(devices)
            case State.FULL:
                use = self._used_by(devices, "; in use ")
                return [f" ({capacities_text(self._survey, devices, need, state)}", *use, ")"]
            case State.TAINTED:
                taints = ({self._taint(device, each) for each in untolerated(device, need)} for device in devices)
                return [f" ({_most(Counter(text for of_device in taints for text in of_device))})"]
            case State.TOO_SMALL:
                return [f" ({capacities_text(self._survey, devices, need, state)})"]
            case State.COUNTED_OUT:
                use = () if State.IN_USE in found.devices else self._used_with(devices)
                pools = (pool for at in self._decision.known.tolist() for pool in self._survey.pools(at))
                return [f" ({counters_text(self._survey, pools, devices[0])}", *use, ")"]
            case State.FREE:
                return ()

    def _taint(self, device: PoolDevice, taint: Taint) -> str:
        text = taint_text(taint.key, taint.value, taint.effect)
        if taint in device.device.taints:
            return text
        every, (driver, pool, name) = self._decision.mirror.objects(DeviceTaintRule).values(), device.id
        of = [rule for rule in every if rule.taint == taint and rule.is_for(driver, pool)]
        names = sorted(rule.name for rule in of if rule.device in (None, name))
        return f"{text} of DeviceTaintRule {' and '.join(names[:_MAX_LISTED])}" if names else text

    def _used_by(self, devices: Sequence[PoolDevice], before: str = " ") -> Sequence[str]:
        numbers = Counter(
            claim.full_name
            for device in {each.id for each in devices}
            for claim in self._survey.holders.get(device, ())
        )
        claims, number_of, unused = self._decision.mirror.objects(ResourceClaim), Counter[str](), set[str]()
        listed = sorted(numbers.items(), key=lambda each: (-each[1], each[0]))[:_MAX_LISTED]
        for name, number in listed:
            users = _users(self._decision, claims[name])
            holder = users[0] if len(users) == 1 else PodText("claim ", ClaimName(name))
            number_of[holder] += number  # a pod may have several claims
            unused |= set() if users else {holder}
        texts = []
        for holder, number in number_of.items():
            notes = [
                *([f"{number:,}"] if len(number_of) > 1 or len(numbers) > len(listed) else []),
                *(["no known pod uses it"] if holder in unused else []),
            ]
            texts.append(PodText(holder, f" ({', '.join(notes)})" if notes else ""))
        more = [f" and {len(numbers) - len(listed):,} more"] if len(numbers) > len(listed) else []
        return [f"{before}by ", *_separated(texts), *more] if texts else []

    def _used_with(self, devices: Sequence[PoolDevice]) -> Sequence[str]:
        """Return who holds devices of the same pools, which consume the same counters."""
        pools = {each.id[:2] for each in devices}
        sharing = [each for each in self._survey.devices() if each.id[:2] in pools and each.counters]
        return self._used_by(sharing, "; held ")

    def _none_matches(self, need: Need) -> str:
        """Return which selector matches no device, and what devices have of that which it reads."""
        left = [*self._survey.devices()]
        if not left:
            return self._no_devices()
        for of_class, _, matcher in need.matchers:
            outcomes = [matcher.of(each) for each in left]
            matching = [each for each, outcome in zip(left, outcomes, strict=True) if outcome is True]
            if not matching:
                selector = f"the selector {f'of DeviceClass {of_class} ' if of_class else ''}{matcher.expression}"
                if errors := [each for each in outcomes if isinstance(each, SelectorError)]:
                    why = f"{errors[0].message}{_names(left)}"
                    return f"{selector} has no result for {counted(len(errors), 'device')}: {why}"
                none = f"{selector} matches none of {counted(len(left), 'device')}{_has(left, matcher)}"
                lost = self._lost()
                return f"{none}{self._unusable_pools()}{f'; {lost}' if lost else ''}"
            left = matching
        return "no node can use the devices that match"

    def _no_devices(self) -> str:
        if not self._decision.mirror.objects(ResourceSlice):
            return "there is no ResourceSlice: no driver has published a device"
        if lost := self._lost():
            return f"no node has a device; {lost}"
        if not any(self._survey.pools(at) for at in self._decision.known.tolist()):
            return "no node has a device: the ResourceSlices are for other nodes"
        return "no pool that can be used has a device"

    def _lost(self) -> str:
        """Return which slices are for nodes that do not exist. Empty if none are."""
        slots = self._decision.mirror.nodes.slots
        names = [each.nodes.node_name for each in self._decision.mirror.objects(ResourceSlice).values()]
        lost = [each for each in names if each and each not in slots]
        some = sorted({*lost})
        if not lost:
            return ""
        slices = f"{counted(len(lost), 'ResourceSlice')} {'is' if len(lost) == 1 else 'are'}"
        nodes = f"{counted(len(some), 'node')} that {'does' if len(some) == 1 else 'do'} not exist"
        return f"{slices} for {nodes}, {such_as(some[:_MAX_LISTED], len(some))}"

    def _unusable_pools(self) -> str:
        """Return the pools whose devices are not counted."""
        pools = (pool for at in self._decision.known.tolist() for pool in self._survey.pools(at))
        names = dict.fromkeys(str(each) for each in pools if each.is_incomplete or each.invalid_reason)
        if not names:
            return ""
        verb = "does" if len(names) == 1 else "do"
        listed = ", ".join([*names][:_MAX_LISTED])
        return f"; {counted(len(names), 'incomplete or invalid pool')} {verb} not count: {listed}"

    # Devices that would do one by one, but not together.

    def _together(self, position: int, found: Sequence[Found]) -> str:
        need, _ = self._survey.demand(position)
        for at, claim in enumerate(need):
            for number, constraint in enumerate(claim.constraints[:_MAX_CONSTRAINTS]):
                others = claim.constraints[:number] + claim.constraints[number + 1 :]
                left = [*need[:at], claim._replace(constraints=others), *need[at + 1 :]]
                if self._survey.fits_without(position, left):
                    return self._constraint(claim, constraint, found)
        free = [each for one in found for each in one.free]
        needed = sum(each.needed for each in found)
        counters = {key: 0 for each in free for key, _ in each.counters}
        for each in free[:needed]:
            for key, amount in each.counters:
                counters[key] += amount
        text = f"needs {needed} together, and {len({each.id for each in free})} free one by one"
        if counters:
            taken = (f"{amount_text(of)} of {'/'.join(key)}" for key, of in counters.items())
            text += f", which take {', '.join(taken)}"
        return f"{text}: not enough for all at once"

    def _constraint(self, claim: ClaimNeeds, constraint: Constraint, found: Sequence[Found]) -> str:
        concerned = [each for each in found if each.claim == claim.name and concerns(constraint.requests, each.need)]
        name = constraint.match or constraint.distinct or ""
        values = [
            (f"free {f'for {one.need.full_name} ' if len(concerned) > 1 else ''}are ", one.free) for one in concerned
        ]
        texts = [f"{text}{_most(Counter(_value(each, name) for each in free)) or 'none'}" for text, free in values]
        needed = sum(each.needed for each in concerned)
        same = "the same value" if constraint.match else "different values"
        return f"{constraint_text(constraint)}: needs {counted(needed, 'device')} with {same}; {'; '.join(texts)}"


def largest_group(found: Sequence[Found], constraint: Constraint) -> int:
    """Return how many free devices can be chosen under a constraint, if it were the only one."""
    name = constraint.match or constraint.distinct or ""
    values = Counter(_value(each, name) for one in found for each in one.free if each.attribute(name) is not None)
    return max(values.values(), default=0) if constraint.match else len(values)


def _value(device: PoolDevice, name: str) -> str:
    found = device.attribute(name)
    return "unset" if found is None else str(found.value)


def _has(devices: Sequence[PoolDevice], matcher: Matcher) -> str:
    """Return the values of what a selector reads, most first. Names are in `reads` with and without their domain."""
    reads = matcher.reads or Reads()
    texts = [
        f"{name.partition('/')[2]} {_most(Counter(_value(each, name) for each in devices))}"
        for name in sorted(each for each in reads.attributes if "/" in each)
    ]
    for name in sorted(each.partition("/")[2] for each in reads.capacities if "/" in each):
        amounts = Counter(each.device.capacity.get(name) for each in devices)
        texts.append(f"{name} {_most(Counter({amount_text(k.value) if k else 'none': n for k, n in amounts.items()}))}")
    if not texts and "device.driver" in matcher.expression:
        texts.append(f"driver {_most(Counter(each.id.driver for each in devices))}")
    return f"; they have {' and '.join(texts)}" if texts else ""


def _names(devices: Sequence[PoolDevice]) -> str:
    """Return which attributes and capacities some devices have."""
    kinds = {
        "attributes": {name for each in devices for name in each.device.attributes},
        "capacities": {name for each in devices for name in each.device.capacity},
    }
    short = {kind: sorted({name.partition("/")[2] or name for name in names}) for kind, names in kinds.items()}
    texts = [f"{kind} {such_as(names[:_MAX_LISTED], len(names))}" for kind, names in short.items() if names]
    return f"; they have the {' and the '.join(texts)}" if texts else ""


def _most(numbers: Mapping[str, int]) -> str:
    listed = sorted(numbers.items(), key=lambda each: (-each[1], each[0]))[:_MAX_LISTED]
    more = f" and {len(numbers) - len(listed):,} other values" if len(numbers) > len(listed) else ""
    if len(numbers) == 1:
        return listed[0][0]
    return ", ".join(f"{value} ({number:,})" for value, number in listed) + more
