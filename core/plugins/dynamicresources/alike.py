"""Which nodes are alike to some claims, so that one search is enough for all of them, and what is known of each."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from core.mirror.node_info import NO_SLOT
from core.mirror.topology import Int64Array, IntpArray
from core.plugins.dynamicresources.gates import Gates
from core.plugins.dynamicresources.matching import Reads
from core.plugins.dynamicresources.pools import Pool, PoolDevice

if TYPE_CHECKING:
    from core.objects.devices import Attribute

_MAX_OUTCOMES: Final = 20_000
_MAX_ASPECTS: Final = 64
"""Aspects whose numbers are kept for each node, 16 bytes a node."""
_MAX_IDS: Final = 100_000
_FEW_DEVICES: Final = 64


class What(Enum):
    """What of the devices of a node decides."""

    DEVICES = "devices"
    """All but names and attributes, with what is in use of them."""
    ATTRIBUTE = "attribute"
    PATTERN = "pattern"
    """Which devices have equal values of an attribute, whatever these are."""
    POOLS = "pools"
    """Anything."""


class Aspect(NamedTuple):
    """One of the things that decide about claims: of all devices of a node, or of those that nobody uses."""

    what: What
    names: tuple[str, ...] = ()
    """The names of an attribute, with and without a domain."""
    free: bool = False


def aspects_of(reads: Reads | None, compared: Iterable[str], *, free: bool) -> tuple[Aspect, ...]:
    """Return what decides about claims whose selectors read some attributes, and whose constraints compare others."""
    if reads is None:
        return (Aspect(What.POOLS),)
    by_identifier: dict[str, list[str]] = {}
    for name in sorted(reads.attributes):
        by_identifier.setdefault(name.rpartition("/")[2], []).append(name)
    attributes = [Aspect(What.ATTRIBUTE, tuple(names), free) for names in by_identifier.values()]
    patterns = [Aspect(What.PATTERN, (name,), free) for name in sorted({*compared})]
    return Aspect(What.DEVICES, free=free), *attributes, *patterns


class Outcomes:
    """What came of a search for some claims: by what decides, and by node until anything there changes."""

    __slots__ = ("_place_of", "_wasted", "by_key", "listed", "of_slot", "seen_at")

    def __init__(self) -> None:
        self.listed: list[Any] = []
        """Each differs from the others."""
        self._place_of: dict[Any, int] = {}
        self._wasted = (0, 0)
        self.by_key: dict[Hashable, int] = {}
        """Key of the pools -> place in `listed`."""
        self.of_slot: Int64Array = np.zeros(0, np.int64)
        self.seen_at: Int64Array = np.zeros(0, np.int64)

    def places(self, slots: IntpArray, changed_at: Int64Array) -> Int64Array:
        """Return where the outcomes of known nodes are in `listed`, -1 for those that are not known any more."""
        if len(self.seen_at) < len(changed_at):
            more = np.zeros(len(changed_at) - len(self.seen_at), np.int64)
            self.seen_at, self.of_slot = np.concatenate((self.seen_at, more)), np.concatenate((self.of_slot, more))
        return np.where(self.seen_at[slots] >= changed_at[slots], self.of_slot[slots], -1)

    def see(self, slot: int, place: int, now: int) -> None:
        """Take over that a node has a known outcome."""
        if slot < len(self.seen_at):
            self.of_slot[slot], self.seen_at[slot] = place, now

    def see_alike(self, slots: IntpArray, other: int, now: int) -> None:
        """Take over that nodes have the known outcome of another one. `places` was called for them before."""
        self.of_slot[slots], self.seen_at[slots] = self.of_slot[other], now

    def waste(self, steps: int, now: int) -> None:
        """Count steps of a search whose outcome is not kept."""
        self._wasted = now, self.wasted(now) + steps

    def wasted(self, now: int) -> int:
        """Return the steps of such searches since the last change. No request makes them again."""
        at, steps = self._wasted
        return steps if at == now else 0

    def keep(self, outcome: Any, key: Hashable | None, slot: int, now: int) -> None:  # noqa: ANN401 - of the caller
        """Keep a new outcome, of the nodes with a key, and of one node. There may be too many: then begin anew."""
        if max(len(self.listed), len(self.by_key)) >= _MAX_OUTCOMES:
            self.listed.clear()
            self._place_of.clear()
            self.by_key.clear()
            self.seen_at[:] = 0
        place = self._place_of.setdefault(outcome, len(self.listed))
        if place == len(self.listed):
            self.listed.append(outcome)
        if key is not None:
            self.by_key[key] = place
        if slot != NO_SLOT:
            self.see(slot, place, now)


class Likeness:
    """Small numbers for what pools have in common."""

    def __init__(self, gates: Gates) -> None:
        self._gates = gates
        self._ids: dict[Hashable, int] = {}
        self._last_id = 0

    def key_of(self, pools: Sequence[Pool], aspects: Sequence[Aspect]) -> Hashable | None:
        """Return what decides about claims on a node, whose usage must have been read. None: no other node is alike.

        Nodes with equal keys differ only in names.
        """
        key = tuple([self.number(aspect, pools) for aspect in aspects])
        return key if all(key) else None

    def number(self, aspect: Aspect, pools: Sequence[Pool]) -> int:
        """Return a number for an aspect of a node. 0: no other node is alike."""
        if len(pools) == 1:
            return self._of_pool(aspect, pools[0])
        if aspect.what is What.PATTERN:
            if sum([len(pool.devices) for pool in pools]) <= _FEW_DEVICES:
                return self.id_of(_pattern([each for pool in pools for each in _devices(pool, aspect)], *aspect.names))
            # Equal values have equal patterns, and the values of a pool are read once for all of its nodes.
            (name,) = aspect.names
            aspect = Aspect(What.ATTRIBUTE, (name, name.partition("/")[2]), aspect.free)
        numbers = tuple([self._of_pool(aspect, pool) for pool in pools])
        return self.id_of(numbers) if all(numbers) else 0

    def id_of(self, value: Hashable) -> int:
        """Return a small number for a value. The memo is bounded: equal values may get another number later."""
        found = self._ids.get(value)
        if found is None:
            if len(self._ids) >= _MAX_IDS:
                self._ids.clear()
            self._last_id += 1
            found = self._ids[value] = self._last_id
        return found

    def _of_pool(self, aspect: Aspect, pool: Pool) -> int:
        if pool.is_local:
            return 0
        number = pool.numbers.get(aspect)
        if number is None:
            number = pool.numbers[aspect] = self.id_of(self._content(aspect, pool))
        return number

    def _content(self, aspect: Aspect, pool: Pool) -> Hashable:
        if aspect.what is What.ATTRIBUTE:
            devices = _devices(pool, aspect)
            return tuple([each.device.attributes.get(name) for name in aspect.names for each in devices])
        if aspect.what is What.PATTERN:
            return _pattern(_devices(pool, aspect), *aspect.names)
        if aspect.what is What.POOLS or not pool.is_plain:
            return pool, pool.usage_id
        named = pool.id[1] if pool.whole is not None and pool.whole.counters and not self._gates.fixed else ""
        of_pool = pool.id[0], named, pool.is_incomplete, pool.invalid_reason
        if not aspect.free or pool.usage is None:
            return *of_pool, self._of_devices(pool.devices), pool.usage_id
        places = {position: place for place, position in enumerate(pool.usage.free)} if pool.usage.shares else {}
        shares = tuple([(places[at], consumed) for at, consumed in pool.usage.shares if at in places])
        return *of_pool, self._of_devices(_devices(pool, aspect)), shares, pool.usage.available

    def _of_devices(self, devices: Iterable[PoolDevice]) -> int:
        """Return a number for all that decides about devices but their attributes."""
        return self.id_of(tuple([each.content for each in devices]))


def _devices(pool: Pool, aspect: Aspect) -> Sequence[PoolDevice]:
    if not aspect.free or pool.usage is None:
        return pool.devices
    return [pool.devices[at] for at in pool.usage.free]


def _pattern(devices: Iterable[PoolDevice], name: str) -> Hashable:
    """Return for each device the place of its value among the different ones, 0 for none.

    Values of a kind that constraints do not compare make a pool unlike any other (`Pool.is_plain`).
    """
    places: dict[Attribute | None, int] = {None: 0}
    return tuple([places.setdefault(device.attribute(name), len(places)) for device in devices])


class NodeNumbers:
    """The numbers of each known node, by aspect, until anything of its devices changes."""

    def __init__(self, number: Callable[[Aspect, int], int]) -> None:
        """Take a function that returns the number of a slot."""
        self._number = number
        self._known: dict[Aspect, tuple[Int64Array, Int64Array]] = {}
        """Aspect -> for each slot the number, and when it was read."""

    def groups(
        self, slots: IntpArray, aspects: Sequence[Aspect], changed_at: Int64Array, now: int
    ) -> Mapping[Hashable | None, Sequence[int]]:
        """Return the nodes with each key, by their positions in `slots`. Those to which no other is alike have None."""
        found: dict[Hashable | None, list[int]] = {}
        numbers = [self._of(aspect, slots, changed_at, now).tolist() for aspect in aspects]
        for at, key in enumerate(zip(*numbers, strict=True)):
            found.setdefault(key if all(key) else None, []).append(at)
        return found

    def _of(self, aspect: Aspect, slots: IntpArray, changed_at: Int64Array, now: int) -> Int64Array:
        if aspect not in self._known and len(self._known) >= _MAX_ASPECTS:
            self._known.clear()
        numbers, read_at = self._known.get(aspect, (np.zeros(0, np.int64), np.zeros(0, np.int64)))
        if len(numbers) < len(changed_at):
            more = np.zeros(len(changed_at) - len(numbers), np.int64)
            numbers, read_at = np.concatenate((numbers, more)), np.concatenate((read_at, more))
            self._known[aspect] = numbers, read_at
        for slot in slots[read_at[slots] < changed_at[slots]].tolist():
            numbers[slot], read_at[slot] = self._number(aspect, slot), now
        found: Int64Array = numbers[slots]
        return found
