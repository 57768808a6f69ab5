"""Which devices would do for each request of a pod, and what keeps the others from it, for explanations.

The allocator decides. This only counts: a device is judged by itself, without what else the pod asks for.
"""

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from core.explaining.decision import Decision
from core.objects.devices import ALL, DeviceID, NodeChoice, ResourceClaim
from core.objects.kinds import DeviceClass
from core.objects.node import Node
from core.objects.pod import KEEP_PODS_OFF, Taint
from core.plugins.dynamicresources.alike import Aspect
from core.plugins.dynamicresources.allocator import AllocationError, OnThisNodeError, Search, UndecidedError
from core.plugins.dynamicresources.capacities import NOTHING, Amounts, CapacityError, fits
from core.plugins.dynamicresources.constraints import ClaimNeeds, Need
from core.plugins.dynamicresources.extended import lacking_on
from core.plugins.dynamicresources.pools import Pool, PoolDevice, PoolError, Usage, is_chosen

if TYPE_CHECKING:
    from core.plugins.dynamicresources.plugin import Claims

NAME: Final = "DynamicResources"
_MAX_COUNTED: Final = 100_000
"""How many devices are counted, for all requests together. One takes about 4 us, and less if others are alike."""
_OF_ALIKE: Final = 8
_OF_POOL: Final = 3
_OF_CEL: Final = 20
"""An evaluation of a selector takes as long as to count so many devices, and so does a pool, however many it has."""
_NONE_MATCHES: Final = 500
"""What a request lacks, in thousandths, where not even a device that is in use would do."""


class State(Enum):
    """What keeps a device that the selectors match from a request."""

    FREE = "free"
    IN_USE = "held"
    TAINTED = "tainted"
    TOO_SMALL = "too small"
    FULL = "full"
    """It can be shared, but too much of it is in use."""
    COUNTED_OUT = "short of counters"


class Found(NamedTuple):
    """The matching devices for one request of a claim, on one node or in the cluster."""

    claim: str
    """NAMESPACE/NAME"""
    need: Need
    devices: Mapping[State, Sequence[PoolDevice]]

    @property
    def matching(self) -> int:
        """How many devices the selectors match."""
        return sum(map(len, self.devices.values()))

    @property
    def free(self) -> Sequence[PoolDevice]:
        """The devices that it could have."""
        return self.devices.get(State.FREE, ())

    @property
    def needed(self) -> int:
        """How many devices it needs: if it asks for all, as many as match and are large enough, and at least one."""
        large = self.matching - len(self.devices.get(State.TOO_SMALL, ()))
        return max(1, large) if self.need.request.mode == ALL else self.need.request.count

    @property
    def missing(self) -> int:
        """How many devices are missing."""
        return max(0, self.needed - len(self.free))


class Survey:
    """The devices of the known nodes of a decision, for the claims that are to be allocated."""

    def __init__(self, decision: Decision, claims: "Claims") -> None:
        self.claims: Final = claims
        self.classes: Final = decision.mirror.objects(DeviceClass)
        self._decision = decision
        self._seen: dict[tuple[int, str, str], tuple[Pool, Mapping[State, Sequence[PoolDevice]]]] = {}
        self._left = _MAX_COUNTED
        self._alike: dict[Hashable, Mapping[State, Sequence[int]]] = {}

    @property
    def is_cut(self) -> bool:
        """Whether there are too many requests and devices, so that what was counted is not all."""
        return self._left < 0

    def node(self, position: int) -> Node | None:
        """Return a node of the decision."""
        return self._decision.node(position)

    @cached_property
    def holders(self) -> Mapping[DeviceID, Sequence[ResourceClaim]]:
        """The claims that hold each device. Costs a pass over all claims."""
        found: dict[DeviceID, list[ResourceClaim]] = {}
        for claim in self._decision.mirror.objects(ResourceClaim).values():
            for each in () if claim.allocation is None else claim.allocation.devices:
                if not each.admin_access:
                    found.setdefault(each.device, []).append(claim)
        return found

    def demand(self, position: int) -> tuple[Sequence[ClaimNeeds], Sequence[Aspect]]:
        """Return what is to be allocated on a node, and what of the devices decides about an explanation."""
        node = self.node(position)
        if node is not None:
            with suppress(UndecidedError):
                demand = self.claims.needs_of(self.claims.provided(node))
                return demand.claims, demand.explained
        return (), ()

    def pools(self, position: int) -> Sequence[Pool]:
        """Return the pools of a node, none if they are not known."""
        node = self.node(position)
        if node is None:
            return ()
        with suppress(PoolError):
            return self.claims.pools_of(int(self._decision.batch.slots[position]), node)
        return ()

    def on(self, position: int) -> Sequence[Found]:
        """Return the devices of a node for each request. Of several alternatives, the one that lacks the fewest."""
        found, pools, (demand, aspects) = [], self.pools(position), self.demand(position)
        for claim in demand:
            for alternatives in claim.requests:
                each = [
                    Found(claim.name, need, self._in(position, pools, claim.name, need, aspects))
                    for need in alternatives
                ]
                found.append(min(each, key=lambda one: one.missing / max(one.needed, 1)))
        return found

    @cached_property
    def everywhere(self) -> Sequence[tuple[Found, int]]:
        """For each request and alternative the devices of all known nodes, and on how many nodes they are."""
        totals: dict[tuple[str, str], tuple[Need, dict[State, dict[DeviceID, PoolDevice]]]] = {}
        nodes: Counter[tuple[str, str]] = Counter()
        for position in self._decision.known.tolist():
            pools, (demand, aspects) = self.pools(position), self.demand(position)
            for claim in demand:
                for need in (need for alternatives in claim.requests for need in alternatives):
                    key = claim.name, need.full_name
                    _, total = totals.setdefault(key, (need, {}))
                    found = self._in(position, pools, claim.name, need, aspects)
                    nodes[key] += any(found.values())
                    for state, devices in found.items():
                        total.setdefault(state, {}).update((device.id, device) for device in devices)
        return [
            (Found(key[0], need, {state: [*each.values()] for state, each in total.items()}), nodes[key])
            for key, (need, total) in totals.items()
        ]

    def missing(self, position: int) -> int:
        """Return how many thousandths of its devices the pod lacks on a node, and more where no device would do."""
        short = [each for each in self.on(position) if each.missing]
        lacks = sum(1000 * each.missing // each.needed + _NONE_MATCHES * (not each.matching) for each in short)
        return lacks + _NONE_MATCHES * len(self.lacking(position))

    def lacking(self, position: int) -> Sequence[str]:
        """Return the extended resources that neither a node nor devices provide, so that nothing is allocated."""
        node = self.node(position)
        return [] if node is None else lacking_on(self.claims.inventory, self.claims.extended, node)

    @property
    def is_stale(self) -> bool:
        """Whether an earlier attempt has left a claim for extended resources. Then no device is looked for."""
        return self.claims.special is not None and bool(self.claims.special.requests)

    def devices(self) -> Iterator[PoolDevice]:
        """Yield all devices that some known node sees, each once."""
        seen: set[int] = set()
        for pool in (pool for position in self._decision.known.tolist() for pool in self.pools(position)):
            if id(pool) not in seen:
                seen.add(id(pool))
                yield from pool.devices

    def fits_without(self, position: int, left: Sequence[ClaimNeeds]) -> bool:
        """Return whether a node would have the devices for other claims than the pod's."""
        node, pools, inventory = self.node(position), self.pools(position), self.claims.inventory
        if node is None:
            return False
        search = Search(left, pools, [inventory.usage_of(pool) for pool in pools], node, self.claims.gates)
        with suppress(AllocationError, OnThisNodeError, PoolError, UndecidedError):
            return search.run()
        return False

    def _in(
        self, at: int, pools: Sequence[Pool], claim: str, need: Need, aspects: Sequence[Aspect]
    ) -> Mapping[State, Sequence[PoolDevice]]:
        found: dict[State, list[PoolDevice]] = {}
        for pool in pools:
            key = id(pool), claim, need.full_name
            known = self._seen.get(key)
            if known is None:
                self._left -= _OF_POOL + len(pool.devices) // _OF_ALIKE
                if self.is_cut:
                    break
                usage = self.claims.inventory.usage_of(pool)
                alike = self.claims.inventory.alike.key_of((pool,), aspects)
                places = None if alike is None else self._alike.get((alike, *key[1:]))
                if places is None:
                    places = self._of(pool, usage, need, self.node(at))
                    if alike is not None:
                        self._alike[alike, *key[1:]] = places
                known = pool, {state: [pool.devices[place] for place in each] for state, each in places.items()}
                if not pool.is_local:
                    self._seen[key] = known
            for state, devices in known[1].items():
                found.setdefault(state, []).extend(devices)
        return found

    def _of(self, pool: Pool, usage: Usage, need: Need, node: Node | None) -> Mapping[State, Sequence[int]]:
        """Return the positions of the matching devices, of the first ones only if there are too many to count."""
        shares, available = dict(usage.shares), dict(usage.available)
        is_overdrawn = any(of < 0 for of in available.values())  # then no device gets counters
        found: dict[State, list[int]] = {}
        for position, device in enumerate(pool.devices):
            if self.is_cut:
                break
            if not self._matches(device, need):
                continue
            if device.nodes is not None and (node is None or not _is_for(device.nodes, node)):
                continue
            in_use = dict(shares.get(position) or ())
            is_short = is_overdrawn or any(available.get(key, 0) < of for key, of in device.counters)
            is_counted_out = bool(device.counters) and position not in shares and is_short
            is_in_use = position in usage.taken and not need.request.admin_access
            state = self._state(device, need, in_use, is_in_use=is_in_use, is_counted_out=is_counted_out)
            found.setdefault(state, []).append(position)
        return found

    def _matches(self, device: PoolDevice, need: Need) -> bool:
        """Return whether the selectors match a device, and count what that takes. 1.35 leaves out what binds late."""
        self._left -= 1
        if device.device.binding_conditions and not self.claims.gates.binding_conditions:
            return False
        for _, _, matcher in need.matchers:
            evaluated = matcher.evaluated
            outcome = matcher.of(device)
            self._left -= _OF_CEL * (matcher.evaluated - evaluated)
            if outcome is not True:
                return False
        return True

    def _state(
        self, device: PoolDevice, need: Need, in_use: Amounts, *, is_in_use: bool, is_counted_out: bool
    ) -> State:
        if untolerated(device, need):
            return State.TAINTED
        if not self.has(device, need, NOTHING):
            return State.TOO_SMALL
        if is_in_use:
            return State.IN_USE
        if not self.has(device, need, in_use):
            return State.FULL
        return State.COUNTED_OUT if is_counted_out else State.FREE

    def left(self, device: PoolDevice, capacity: str, state: State = State.FULL) -> int | None:
        """Return how much of a capacity a device has, if FULL without what is in use. None: it has no such capacity."""
        shares, found = self.claims.inventory.shares, device.device.capacity.get(capacity)
        used = shares[device.id].amounts.get(capacity, 0) if state is State.FULL and device.id in shares else 0
        return None if found is None else found.value - used

    def has(self, device: PoolDevice, need: Need, in_use: Amounts) -> bool:
        """Return whether a device has the capacities that are requested, besides what is in use."""
        requested = dict(need.request.capacities or ())
        if not self.claims.gates.shares or not device.device.capacity:
            return not (requested and self.claims.gates.shares)
        try:
            return fits(requested, device.device.capacity, in_use, NOTHING, fixed=self.claims.gates.fixed)
        except CapacityError:
            return False


def untolerated(device: PoolDevice, need: Need) -> Sequence[Taint]:
    """Return the taints of a device that keep a request off it."""
    return [
        taint
        for taint in device.taints
        if taint.effect in KEEP_PODS_OFF and not any(each.tolerates(taint) for each in need.request.tolerations)
    ]


def _is_for(choice: NodeChoice, node: Node) -> bool:
    """Return whether a device is for a node. One whose nodes cannot be read is for none."""
    with suppress(PoolError):
        return is_chosen(choice, node)
    return False
