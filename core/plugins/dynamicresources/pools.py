"""The pools of devices that a node can use: complete or not, valid or not, in the order in which they are tried.

Source: k8s.io/dynamic-resource-allocation structured/internal/incubating/pools_incubating.go (GatherPools).
"""

import re
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias, TypeVar

import msgspec

from core.objects.devices import Attribute, CounterUse, Device, DeviceID, NodeChoice, ResourceSlice
from core.objects.node import Node
from core.objects.pod import Taint
from core.plugins.dynamicresources.gates import Gates

PoolID: TypeAlias = tuple[str, str]
"""The driver, and the name of the pool."""
CounterAmounts: TypeAlias = tuple[tuple[tuple[str, str], int], ...]
"""(Counter set, counter) with an amount in billionths."""
Shareable = TypeVar("Shareable", bound=Hashable)


_SIMPLE: Final = ("int", "bool", "string")
_PRERELEASE = r"(?:0|[1-9][0-9]{0,17}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_NUMBER = r"(?:0|[1-9][0-9]{0,17})"
_semantic_version: Final = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-{_PRERELEASE}(?:\.{_PRERELEASE})*)?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
)


class PoolError(Exception):
    """The pools of a node are not known. The message is upstream's, but for the text of a node selector."""


@lru_cache(maxsize=8192)
def _is_version(text: str) -> bool:
    return _semantic_version.fullmatch(text) is not None


def is_plain(attributes: Mapping[str, Attribute]) -> bool:
    """Return whether all attributes can be read. If one cannot, every selector fails, whatever it reads."""
    return all(
        each.kind in _SIMPLE or (each.kind == "version" and _is_version(str(each.value)))
        for each in attributes.values()
    )


_same: Final = lru_cache(maxsize=8192)(lambda content: content)


def shared(content: Shareable) -> Shareable:
    """Return an equal value. Devices of one model share it, and so do pools that are used alike."""
    found: Shareable = _same(content)
    return found


class PoolDevice:
    """A device of a pool. `nodes` is None if every node of the pool can use it."""

    __slots__ = ("content", "counters", "device", "id", "is_plain", "nodes", "taints")

    def __init__(self, device: Device, of_slice: ResourceSlice, taints: tuple[Taint, ...]) -> None:
        self.id = DeviceID(of_slice.driver, of_slice.pool, device.name)
        self.device = device
        self.nodes = device.nodes if of_slice.per_device else None
        self.taints = taints
        self.counters: CounterAmounts = _amounts(device.consumes)
        self.content = shared(
            (
                tuple(device.capacity.items()),
                self.counters,
                taints,
                device.shareable,
                bool(device.binding_conditions),
            )
        )
        """All that decides about the device but its names and attributes."""
        self.is_plain = is_plain(device.attributes)

    def attribute(self, name: str) -> Attribute | None:
        """Return an attribute by its full name. Upstream lookupAttribute."""
        found = self.device.attributes.get(name)
        if found is None:
            domain, slash, identifier = name.partition("/")
            if slash and domain == self.id.driver:
                found = self.device.attributes.get(identifier)
        return found


class Usage(NamedTuple):
    """What is allocated of a pool. Pools of which as much is allocated have equal values.

    `taken` and `free` are positions of devices. `shares` has the consumed amounts of each shared device, by its
    position, and `available` what is left of the counters, which may be negative.
    """

    taken: frozenset[int]
    free: tuple[int, ...]
    shares: tuple[tuple[int, tuple[tuple[str, int], ...] | None], ...]
    available: CounterAmounts


class Whole:
    """All slices of one generation of a pool, whichever nodes see them: what is the same for all nodes."""

    __slots__ = ("available", "counters", "devices", "invalid_reason", "number")

    def __init__(self, slices: Sequence[ResourceSlice], gates: Gates, devices_of: "DevicesOf") -> None:
        self.number = len(slices)
        self.counters: dict[tuple[str, str], int] = {}
        self.available: CounterAmounts | None = None
        """What is left of the counters. None: to be counted again."""
        self.invalid_reason = self._read(slices, gates)
        self.devices: list[Sequence[PoolDevice]] = []
        if self.counters:
            self.devices = [devices_of(each) for each in slices if not _has_counters(each, gates)]

    def _read(self, slices: Sequence[ResourceSlice], gates: Gates) -> str:
        """Add up the counters, and return why the pool is invalid. Upstream getAndValidateCounterSets."""
        sets: set[str] = set()
        for of_set in (each for found in slices if _has_counters(found, gates) for each in found.shared_counters):
            if of_set.counter_set in sets:
                return f"duplicate counter set name {of_set.counter_set}"
            sets.add(of_set.counter_set)
            self.counters.update(_amounts((of_set,)))
        checked = [each for each in slices if not (gates.fixed and _has_counters(each, gates))]
        if gates.partitions and not _are_counted(checked, sets, self.counters):
            return "a counter set or counter not found"
        return ""


class Pool(msgspec.Struct, eq=False):
    """A pool as one node sees it, or several nodes that see the same slices of it."""

    id: PoolID
    is_incomplete: bool = False
    invalid_reason: str = ""
    """Empty for a valid pool."""
    devices: list[PoolDevice] = []
    """In the order in which they are tried. Empty unless the pool can be used."""
    whole: Whole | None = None
    """All slices of its generation, for the counters that devices of other nodes consume."""
    binds_late: bool = False
    is_local: bool = False
    """Whether some of its devices are for some nodes only."""
    usage: Usage | None = None
    """None: to be read again."""
    usage_id: int = 0
    numbers: dict[Hashable, int] = {}
    """What decides about claims -> a number for it, until the usage changes."""
    is_plain: bool = True
    """Whether all attributes of its devices can be read."""

    def __str__(self) -> str:
        """DRIVER/POOL."""
        return "/".join(self.id)

    @property
    def can_be_used(self) -> bool:
        """Whether devices of it can be allocated."""
        return not (self.is_incomplete or self.invalid_reason)


class Slices:
    """All ResourceSlices, by the nodes that can see them and by pool."""

    def __init__(self, slices: Iterable[ResourceSlice], gates: Gates) -> None:
        self.gates = gates
        self._of_node: dict[str, dict[str, ResourceSlice]] = {}
        self._chosen: dict[NodeChoice, dict[str, ResourceSlice]] = {}
        self._per_device: dict[str, tuple[ResourceSlice, frozenset[str] | None]] = {}
        """Slices that choose nodes for each device, with the nodes that these name. None: some choose otherwise."""
        self.counted: dict[PoolID, dict[str, ResourceSlice]] = {}
        """Slices with counters that every node sees, as in 1.36."""
        self.of_pool: dict[PoolID, dict[str, ResourceSlice]] = {}
        self._merged: dict[tuple[NodeChoice, ...], dict[PoolID, list[ResourceSlice]]] = {}
        for each in slices:
            self.put(each)

    def put(self, each: ResourceSlice) -> None:
        """Add a slice. The nodes of one that is left out are not read."""
        self._merged.clear()
        self.of_pool.setdefault((each.driver, each.pool), {})[each.name] = each
        if not self._is_used(each):
            return
        if self._is_per_device(each):
            names = [device.nodes.node_name for device in each.devices]
            self._per_device[each.name] = each, frozenset(names) if all(names) else None
        else:
            self._with_others(each)[each.name] = each

    def remove(self, each: ResourceSlice) -> None:
        """Remove a slice."""
        self._merged.clear()
        pool = self.of_pool[each.driver, each.pool]
        pool.pop(each.name, None)
        if not pool:
            del self.of_pool[each.driver, each.pool]
        if self._is_per_device(each):
            self._per_device.pop(each.name, None)
            return
        others = self._with_others(each)
        others.pop(each.name, None)
        if others:
            return
        if self.is_counted(each):
            del self.counted[each.driver, each.pool]
        elif each.nodes.node_name:
            del self._of_node[each.nodes.node_name]
        else:
            del self._chosen[each.nodes]

    def has_own(self, node_name: str) -> bool:
        """Return whether there are slices for a node alone."""
        return node_name in self._of_node

    def is_shared(self, each: ResourceSlice) -> bool:
        """Return whether a slice chooses its nodes otherwise than by the name of one."""
        return not each.nodes.node_name

    def is_counted(self, each: ResourceSlice) -> bool:
        """Return whether a slice is seen by every node for its counters, as in 1.36."""
        return self.gates.partitions and not self.gates.fixed and bool(each.shared_counters)

    def _is_per_device(self, each: ResourceSlice) -> bool:
        return each.nodes.says_nothing and not self.is_counted(each)

    def _with_others(self, each: ResourceSlice) -> dict[str, ResourceSlice]:
        """Return the slices that the same nodes see."""
        if self.is_counted(each):
            return self.counted.setdefault((each.driver, each.pool), {})
        if each.nodes.node_name:
            return self._of_node.setdefault(each.nodes.node_name, {})
        return self._chosen.setdefault(each.nodes, {})

    def seen_by(self, node: Node) -> tuple[dict[PoolID, list[ResourceSlice]], Hashable | None]:
        """Return the newest slices of each pool that a node can see. Raises PoolError.

        The second value is equal for nodes that see the same slices. It is None if no other node is like this one.
        """
        matcher = _Matcher(node)
        chosen = tuple([each for each in self._chosen if matcher.matches(each, "a slice")])
        found = self._merged.get(chosen)
        if found is None:
            slices = (each for choice in chosen for each in self._chosen[choice].values())
            found = self._merged[chosen] = self._newest(slices, {})
        own = [*self._of_node.get(node.name, {}).values()]
        own += [
            each
            for each, names in self._per_device.values()
            if each.per_device and (node.name in names if names is not None else _has_device_for(each, matcher))
        ]
        if not own:
            return found, chosen
        return self._newest(own, {pool_id: [*slices] for pool_id, slices in found.items()}), None

    def _newest(
        self, slices: Iterable[ResourceSlice], found: dict[PoolID, list[ResourceSlice]]
    ) -> dict[PoolID, list[ResourceSlice]]:
        """Add slices to those of their pools, and the counters of these pools."""
        for each in slices:
            _add(found, each)
            for counted in self.counted.get((each.driver, each.pool), {}).values():
                if counted not in found[each.driver, each.pool]:
                    _add(found, counted)
        return found

    def only_counted(self, pool_id: PoolID) -> list[ResourceSlice]:
        """Return what nodes see of a pool that has no devices for them."""
        found: dict[PoolID, list[ResourceSlice]] = {}
        for each in self.counted[pool_id].values():
            _add(found, each)
        return found[pool_id]

    def _is_used(self, each: ResourceSlice) -> bool:
        if not self.gates.partitions:
            return each.per_device is None and not (self.gates.looks_further and each.shared_counters)
        return not (self.gates.fixed and each.has_groups)

    def all_of(self, pool_id: PoolID, generation: int) -> list[ResourceSlice] | None:
        """Return all slices of a generation, or None if there is a newer one. Upstream checkSlicesInPool."""
        slices = self.of_pool[pool_id].values()
        if any(each.generation > generation for each in slices):
            return None
        return [each for each in slices if each.generation == generation and not (self.gates.fixed and each.has_groups)]


class _Matcher:
    """Whether choices of nodes include one node. A selector is evaluated once: most slices of a pool share it."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._known: dict[object, bool] = {}

    def matches(self, choice: NodeChoice, what: str = "") -> bool:
        """Return whether the node is chosen. Raises PoolError for an invalid selector, of what."""
        if choice.node_name:
            return choice.node_name == self._node.name
        if choice.all_nodes or choice.selector is None:
            return choice.all_nodes
        known = self._known.get(choice.selector)
        if known is None:
            if error := choice.selector.parse_error:
                of = f"failed to perform node selection for {what}: " if what else ""
                raise PoolError(f"{of}failed to parse node selector: {error}")
            known = self._known[choice.selector] = choice.selector.matches(self._node.labels, self._node.name)
        return known


def _has_device_for(each: ResourceSlice, matcher: _Matcher) -> bool:
    return any(matcher.matches(device.nodes, f"device {device.name}") for device in each.devices)


def is_chosen(choice: NodeChoice, node: Node) -> bool:
    """Return whether a device is for a node. Raises PoolError for an invalid selector."""
    return _Matcher(node).matches(choice)


def _add(pools: dict[PoolID, list[ResourceSlice]], each: ResourceSlice) -> None:
    pool = pools.setdefault((each.driver, each.pool), [])
    if pool and each.generation > pool[0].generation:
        pool.clear()
    if not pool or each.generation == pool[0].generation:
        pool.append(each)


DevicesOf: TypeAlias = Callable[[ResourceSlice], Sequence[PoolDevice]]
"""Returns the devices of a slice, which all pools with the slice share."""


def built(pool_id: PoolID, seen: Sequence[ResourceSlice], whole: Whole, gates: Gates, devices_of: DevicesOf) -> Pool:
    """Return a pool of the slices that a node sees of it."""
    is_incomplete = whole.number != seen[0].slice_count
    if is_incomplete and gates.looks_further:
        return Pool(pool_id, is_incomplete=True)
    targeting = sorted((each for each in seen if not _has_counters(each, gates)), key=lambda each: _place(each, gates))
    name = _repeated_name(targeting)
    reason = f"duplicate device name {name}" if name else whole.invalid_reason
    pool = Pool(pool_id, is_incomplete=is_incomplete, invalid_reason=reason)
    pool.binds_late = (not reason or not gates.looks_further) and any(map(_binds_late, targeting))
    if not reason:
        pool.whole = whole
        pool.devices = [device for each in targeting for device in devices_of(each)]
        pool.is_plain = all(each.is_plain for each in pool.devices)
        pool.is_local = any(each.nodes is not None for each in pool.devices)
    return pool


def _binds_late(each: ResourceSlice) -> bool:
    return any(device.binding_conditions is not None for device in each.devices)


def _place(each: ResourceSlice, gates: Gates) -> tuple[bool, str]:
    """Return what slices of a pool are sorted by. 1.34 has those with binding conditions last, and no other order."""
    return not gates.looks_further and _binds_late(each), each.name


def _has_counters(each: ResourceSlice, gates: Gates) -> bool:
    return gates.partitions and bool(each.shared_counters)


def _repeated_name(slices: Iterable[ResourceSlice]) -> str | None:
    """Return the first name that two devices have, which may be empty as none of an API server is."""
    names: set[str] = set()
    for device in (device for each in slices for device in each.devices):
        if device.name in names:
            return device.name or "-"
        names.add(device.name)
    return None


def _are_counted(
    slices: Iterable[ResourceSlice], sets: Collection[str], counters: Mapping[tuple[str, str], int]
) -> bool:
    uses = {device.consumes for each in slices for device in each.devices}
    return all(use.counter_set in sets for each in uses for use in each) and all(
        counter in counters for each in uses for counter, _ in _amounts(each)
    )


@lru_cache(maxsize=8192)
def _amounts(uses: tuple[CounterUse, ...]) -> CounterAmounts:
    return tuple([((use.counter_set, counter), amount) for use in uses for counter, amount in use.counters])


def in_order(pools: Iterable[Pool]) -> tuple[Pool, ...]:
    """Return pools in the order in which they are tried: by driver and name, with binding conditions last."""
    return tuple(sorted(pools, key=lambda pool: (pool.binds_late, pool.id)))
