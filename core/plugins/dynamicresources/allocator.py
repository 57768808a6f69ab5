"""Finds devices of a node for claims: the first combination, in the order of the pools, that meets all requests.

Source: k8s.io/dynamic-resource-allocation structured/internal/incubating/allocator_incubating.go and constraint.go. The
search is exponential. Upstream gives up after 10 seconds a node, this one after MAX_STEPS.
"""

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Final, NamedTuple

from core.objects.devices import ALL, EXACT_COUNT, MAX_RESULTS
from core.objects.node import Node
from core.plugins.dynamicresources.capacities import NOTHING, Amounts, CapacityError, consumption, fits, int64
from core.plugins.dynamicresources.constraints import (
    AnyConstraint,
    ClaimNeeds,
    Distinct,
    DistinctByRequest,
    Matching,
    Need,
    keeps_off,
)
from core.plugins.dynamicresources.counters import Counters
from core.plugins.dynamicresources.gates import Gates
from core.plugins.dynamicresources.pools import Pool, PoolDevice, Usage, is_chosen
from core.plugins.dynamicresources.selectors import SelectorError, SelectorErrorKind

MAX_STEPS: Final = 20_000
"""Devices that are tried and requests that are begun for one node. A step takes about 2 us."""


class AllocationError(Exception):
    """Upstream ends the attempt with this error. The message is upstream's."""


class OnThisNodeError(Exception):
    """No devices on this node, with upstream's reason. Other nodes are tried."""


class UndecidedError(Exception):
    """Kindred cannot decide: the search is too long, or a selector cannot be evaluated."""


class Result(NamedTuple):
    """One allocated device."""

    need: Need
    device: PoolDevice
    consumed: Amounts | None


class _Code(Enum):
    DONE = 0
    FAILED = 1
    TOO_MANY = 2


class _Demand:
    """A request in one search: how many devices, and which, if it asks for all."""

    __slots__ = ("all_devices", "capacities", "need", "number")

    def __init__(self, need: Need) -> None:
        self.need = need
        self.number = 0
        self.capacities: Amounts = dict(need.request.capacities or ())
        self.all_devices: list[tuple[int, int]] | None = None


class _At(NamedTuple):
    """A request of a claim, and which alternative of it."""

    claim: int
    number: int
    which: int


_START: Final = (0, 0)  # the first device of the first pool


class _Undo(NamedTuple):
    """What an allocated device changed."""

    claim: int
    need: Need
    pool: int
    device: PoolDevice
    constraints: int
    reserved: bool
    marked: bool
    shared: bool
    shared_before: Amounts | None


class Search:
    """One search on one node."""

    def __init__(
        self, claims: Sequence[ClaimNeeds], pools: Sequence[Pool], usages: Sequence[Usage], node: Node, gates: Gates
    ) -> None:
        self._claims = claims
        self._pools = pools
        self._node = node
        self._gates = gates
        self.steps = 0
        self._usages = usages
        self._taken = [usage.taken for usage in usages]
        self._shares = [dict(usage.shares) for usage in usages]
        self._counters = Counters(pools, usages, gates)
        self._all_after = _sums_after([len(pool.devices) for pool in pools])
        self._free_after = _sums_after([len(usage.free) for usage in usages])
        self._demands: list[list[list[_Demand]]] = []
        self._constraints: list[list[AnyConstraint]] = []
        self._selects: dict[tuple[_At, tuple[int, int]], bool] = {}
        self._taking: dict[PoolDevice, set[int]] = {}
        self._sharing: dict[PoolDevice, Amounts] = {}
        self.results: list[list[Result]] = [[] for _ in claims]

    def run(self) -> bool:
        """Return whether all claims can be allocated. Raises the errors of this module, and PoolError."""
        for at, claim in enumerate(self._claims):
            self._demands.append(self._demands_of(at, claim))
            self._constraints.append([self._constraint(claim, number) for number in range(len(claim.constraints))])
        if not self._gates.current:
            self._selects.clear()
        try:
            code = self._from(0, 0)
        except RecursionError:
            raise UndecidedError("too many devices to allocate at once") from None
        if code is _Code.TOO_MANY:
            raise AllocationError("allocation max size exceeded")
        if code is _Code.FAILED and self._gates.looks_further and any(pool.invalid_reason for pool in self._pools):
            raise OnThisNodeError("invalid resource pools were encountered")
        return code is _Code.DONE

    # What is asked for.

    def _demands_of(self, at: int, claim: ClaimNeeds) -> list[list[_Demand]]:
        """Validate the requests of a claim, and find the devices of those that ask for all."""
        least, found = 0, []
        for number, alternatives in enumerate(claim.requests):
            if not self._gates.looks_further and any(each.request.capacities is not None for each in alternatives):
                raise AllocationError(
                    f"claim {claim.name}, request {alternatives[0].base}: has capacity requests, but the "
                    "DRAConsumableCapacity feature is disabled"
                )
            demands = [self._demand(_At(at, number, which), each) for which, each in enumerate(alternatives)]
            fewest = min(each.number for each in demands)
            if self._gates.fixed and fewest > MAX_RESULTS - least:
                raise AllocationError(
                    f"claim {claim.name}, request {alternatives[0].base}: adding {fewest} devices exceeds the claim "
                    f"limit of {MAX_RESULTS}, with {least} already accounted for"
                )
            least = int64(least + fewest)
            found.append(demands)
        if least > MAX_RESULTS:
            raise AllocationError(
                f"claim {claim.name}: number of requested devices {least} exceeds the claim limit of {MAX_RESULTS}"
            )
        return found

    def _demand(self, at: _At, need: Need) -> _Demand:
        """Upstream validateDeviceRequest."""
        claim, request = self._claims[at.claim].name, need.request
        place = f"claim {claim}, request {request.name}"
        if self._gates.fixed and request.derives:
            raise AllocationError(f"{place}: cannot handle request with derived attributes, the feature is disabled")
        if None in request.selectors:
            raise AllocationError(
                f"{place}, selector #{request.selectors.index(None)}: CEL expression empty (unsupported selector type?)"
            )
        demand = _Demand(need)
        if request.mode == EXACT_COUNT:
            demand.number = request.count
        elif request.mode == ALL:
            demand.all_devices = [*self._every_device(place, at, demand)]
            demand.number = len(demand.all_devices)
        else:
            raise AllocationError(f"{place}: unsupported count mode {request.mode}")
        return demand

    def _every_device(self, place: str, at: _At, demand: _Demand) -> Iterator[tuple[int, int]]:
        # Until 1.35, the devices of a second alternative are looked up among the results of the first one.
        key = at if self._gates.current else at._replace(which=max(0, at.which - 1))
        for number, pool in enumerate(self._pools):
            if not pool.can_be_used:
                state = "being updated" if pool.is_incomplete else "invalid"
                raise AllocationError(f"{place}: asks for all devices, but resource pool {pool} is currently {state}")
            for position, device in enumerate(pool.devices):
                self._step()
                where = number, position
                if self._is_selected(key, demand.need, where) and self._has_for_all(place, demand, where, device):
                    yield where

    def _has_for_all(self, place: str, demand: _Demand, where: tuple[int, int], device: PoolDevice) -> bool:
        """Return whether the device has the capacities; until 1.36 besides those that are in use."""
        if not self._gates.shares:
            return True
        try:
            return self._fits(demand, device, NOTHING if self._gates.fixed else self._consumed_of(where), NOTHING)
        except CapacityError as error:
            raise AllocationError(f"{place}: checking capacity for device {device.id.device}: {error}") from None

    def _constraint(self, claim: ClaimNeeds, number: int) -> AnyConstraint:
        constraint = claim.constraints[number]
        if constraint.match is not None:
            return Matching(constraint, constraint.match)
        if constraint.distinct is not None and self._gates.distinct:
            if self._gates.fixed:
                return Distinct(constraint, constraint.distinct)
            return DistinctByRequest(constraint, constraint.distinct, by_value=self._gates.current)
        raise AllocationError(
            f"claim {claim.name}, constraint #{number}: empty constraint (unsupported constraint type?)"
        )

    # The search.

    def _step(self, cost: int = 1) -> None:
        self.steps += cost
        if self.steps > MAX_STEPS:
            raise UndecidedError("the search for devices takes too long")

    def _from(self, claim: int, number: int) -> _Code:
        """Allocate all requests from one on. Upstream allocateOne, as all that follows to `_any_device`."""
        self._step()
        if claim >= len(self._claims):
            return _Code.DONE
        if number >= len(self._demands[claim]):
            code = self._from(claim + 1, 0)
            return _Code.FAILED if code is _Code.TOO_MANY else code
        alternatives = range(len(self._demands[claim][number]))
        codes = []
        for which in alternatives:
            codes.append(self._next(_At(claim, number, which), 0, _START))
            if codes[-1] is _Code.DONE:
                return _Code.DONE
        return _Code.TOO_MANY if all(each is _Code.TOO_MANY for each in codes) else _Code.FAILED

    def _next(self, at: _At, index: int, start: tuple[int, int]) -> _Code:
        """Allocate the next device of a request, and then all that come after it."""
        self._step()
        demand = self._demands[at.claim][at.number][at.which]
        if demand.all_devices is not None and not demand.all_devices:
            return _Code.FAILED
        if index >= demand.number:
            return self._from(at.claim, at.number + 1)
        if demand.number - index > MAX_RESULTS - len(self.results[at.claim]):
            return _Code.TOO_MANY
        if demand.all_devices is None:
            return self._any_device(at, demand, index, start)
        undo = self._take(at.claim, demand, demand.all_devices[index], must=True)
        if undo is None:
            return _Code.FAILED
        # Until 1.35, the first alternative has the devices after the first one of any other alternative.
        code = self._next(at if self._gates.current else at._replace(which=0), index + 1, _START)
        if code is not _Code.DONE:
            self._release(undo)
        return code

    def _any_device(self, at: _At, demand: _Demand, index: int, start: tuple[int, int]) -> _Code:
        """Try the devices from one on. The order of those of one request makes no difference, so it is not tried."""
        admin = demand.need.request.admin_access or False
        first, begin = start
        for place in range(first, len(self._pools)):
            pool = self._pools[place]
            if pool.invalid_reason and not self._gates.looks_further:
                raise AllocationError(f"pool {pool.id[1]} is invalid: {pool.invalid_reason}")
            positions = range(len(pool.devices)) if admin else self._usages[place].free
            for number in range(begin if place == first else 0, len(positions)):
                left = len(positions) - number + (self._all_after if admin else self._free_after)[place]
                if index and left < demand.number - index and self._gates.looks_further:
                    return _Code.FAILED  # the first level has looked at all devices, for the errors of selectors
                where = place, positions[number]
                code = self._with(at, demand, index, where, (place, number + 1))
                if code is not _Code.FAILED:
                    return code
        return _Code.FAILED

    def _with(self, at: _At, demand: _Demand, index: int, where: tuple[int, int], after: tuple[int, int]) -> _Code:
        """Try one device for a request, and all that come after it."""
        self._step()
        claim, device = at.claim, self._pools[where[0]].devices[where[1]]
        holders = self._taking.get(device)
        if holders and (claim in holders or not demand.need.request.admin_access):
            return _Code.FAILED
        if not self._is_selected(at, demand.need, where):
            return _Code.FAILED
        if not self._has(claim, demand, where, "checking capacity for"):
            return _Code.FAILED
        left = len(self._usages[where[0]].free) - after[1] + self._free_after[where[0]]
        if not demand.need.request.admin_access and left < demand.number - index - 1 and self._gates.looks_further:
            return _Code.FAILED
        undo = self._take(claim, demand, where, must=False)
        if undo is None:
            return _Code.FAILED
        code = self._next(at, index + 1, after)
        if code is not _Code.DONE:
            self._release(undo)
        return code

    # One device.

    def _is_selected(self, at: _At, need: Need, where: tuple[int, int]) -> bool:
        """Upstream isSelectable. An error is not kept: it ends the search."""
        known = self._selects.get((at, where))
        if known is None:
            device = self._pools[where[0]].devices[where[1]]
            if not self._gates.binding_conditions and device.device.binding_conditions:
                return False
            known = self._match(at.claim, need, device)
            if known and device.nodes is not None:
                known = is_chosen(device.nodes, self._node)
            self._selects[at, where] = known
        return known

    def _match(self, at: int, need: Need, device: PoolDevice) -> bool:
        for of_class, number, matcher in need.matchers:
            evaluated = matcher.evaluated
            outcome = matcher.of(device)
            self._step(_STEPS_OF_CEL * (matcher.evaluated - evaluated))
            if isinstance(outcome, SelectorError):
                owner = f"class {of_class}" if of_class else f"claim {self._claims[at].name}"
                raise self._failure(f"{owner}: selector #{number}", outcome, device)
            if not outcome:
                return False
        return True

    def _failure(self, owner: str, error: SelectorError, device: PoolDevice) -> Exception:
        if error.kind in (SelectorErrorKind.NOT_EVALUATED, SelectorErrorKind.COST):
            return UndecidedError(f"{owner}: {error.message}")
        if error.kind is SelectorErrorKind.COMPILE:
            return AllocationError(f"{owner}: CEL compile error: {error.message}")
        on_device = f" on device {device.id}" if self._gates.fixed else ""
        return AllocationError(f"{owner}{on_device}: CEL runtime error: {error.message}")

    def _consumed_of(self, where: tuple[int, int]) -> Amounts:
        consumed = self._shares[where[0]].get(where[1])
        return dict(consumed) if consumed else NOTHING

    def _has(self, claim: int, demand: _Demand, where: tuple[int, int], doing: str) -> bool:
        if not self._gates.shares:
            return True
        device = self._pools[where[0]].devices[where[1]]
        taking = self._sharing.get(device, NOTHING)
        try:
            return self._fits(demand, device, self._consumed_of(where), taking)
        except CapacityError as error:
            place = f"claim {self._claims[claim].name}, request {demand.need.request.name}"
            raise AllocationError(f"{place}: {doing} device {device.id}: {error}") from None

    def _fits(self, demand: _Demand, device: PoolDevice, taken: Amounts, taking: Amounts) -> bool:
        if not device.device.capacity:
            return not demand.capacities
        return fits(demand.capacities, device.device.capacity, taken, taking, fixed=self._gates.fixed)

    def _take(self, at: int, demand: _Demand, where: tuple[int, int], *, must: bool) -> _Undo | None:
        """Allocate a device, or return None if that is impossible. Upstream allocateDevice."""
        self._step(3)  # it takes as long as three of the others
        place, position = where
        device, need = self._pools[place].devices[position], demand.need
        shared = self._gates.shares and device.device.shareable
        if self._is_in_use(at, where, need, shared=shared) or (device.device.consumes and not self._gates.partitions):
            return None
        reserves = bool(device.counters) and not (shared and self._is_shared(where, device))
        if reserves and not self._counters.reserve(place, device):
            return None
        undo = _Undo(at, need, place, device, 0, reserves, marked=False, shared=False, shared_before=None)
        if self._gates.taints and keeps_off(device, need.request):
            self._give_up(undo)
            return None
        added = self._constrain(at, need, device)
        undo = undo._replace(constraints=added)
        if added == len(self._constraints[at]):
            return self._commit(demand, undo, where, shared=shared)
        self._give_up(undo)
        if must:
            raise AllocationError(
                f"claim {self._claims[at].name}, request {need.request.name}: cannot add device {device.id} because "
                "a claim constraint would not be satisfied"
            )
        return None

    def _is_in_use(self, at: int, where: tuple[int, int], need: Need, *, shared: bool) -> bool:
        holders = self._taking.get(self._pools[where[0]].devices[where[1]], ())
        if need.request.admin_access:
            return not shared and at in holders
        return where[1] in self._taken[where[0]] or bool(holders)

    def _commit(self, demand: _Demand, undo: _Undo, where: tuple[int, int], *, shared: bool) -> _Undo | None:
        at, device = undo.claim, undo.device
        if not shared:
            self._taking.setdefault(device, set()).add(at)
            undo = undo._replace(marked=True)
        if not self._has(at, demand, where, "rechecking capacity for"):
            self._give_up(undo)
            return None
        consumed: Amounts = NOTHING
        if shared:
            consumed = consumption(demand.capacities, device.device.capacity, fixed=self._gates.fixed)
            before = self._sharing.get(device)
            undo = undo._replace(shared=True, shared_before=before)
            self._sharing[device] = {
                name: consumed.get(name, 0) + (before or NOTHING).get(name, 0) for name in {*consumed, *(before or ())}
            }
        self.results[at].append(Result(undo.need, device, consumed if shared else None))
        return undo

    def _constrain(self, at: int, need: Need, device: PoolDevice) -> int:
        """Return how many constraints of the claim the device was added to before one refused it."""
        for number, constraint in enumerate(self._constraints[at]):
            if not constraint.add(need, device):
                return number
        return len(self._constraints[at])

    def _give_up(self, undo: _Undo) -> None:
        """Undo what was done before the device was in the result."""
        if undo.marked:
            self._taking[undo.device].discard(undo.claim)
        for number in reversed(range(undo.constraints)):
            self._constraints[undo.claim][number].remove(undo.need)
        if undo.reserved:
            self._counters.release(undo.pool, undo.device)

    def _release(self, undo: _Undo) -> None:
        self.results[undo.claim].pop()
        if undo.shared:
            if undo.shared_before is None:
                del self._sharing[undo.device]
            else:
                self._sharing[undo.device] = undo.shared_before
        self._give_up(undo)

    def _is_shared(self, where: tuple[int, int], device: PoolDevice) -> bool:
        """Upstream deviceCapacityInUse. Until 1.36, a share that states no amount does not count."""
        shares, position = self._shares[where[0]], where[1]
        return device in self._sharing or (position in shares and (self._gates.fixed or shares[position] is not None))


_STEPS_OF_CEL: Final = 10


def _sums_after(numbers: Sequence[int]) -> list[int]:
    """Return for each number the sum of those that come after it."""
    sums = [0] * len(numbers)
    for at in range(len(numbers) - 2, -1, -1):
        sums[at] = sums[at + 1] + numbers[at + 1]
    return sums
