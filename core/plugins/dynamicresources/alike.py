"""Which nodes are alike to some claims, so that one search is enough for all of them, and what is known of each."""

from collections.abc import Hashable, Sequence
from typing import Any, Final

import numpy as np

from core.mirror.node_info import NO_SLOT
from core.mirror.topology import Int64Array, IntpArray
from core.plugins.dynamicresources.gates import Gates
from core.plugins.dynamicresources.matching import Reads
from core.plugins.dynamicresources.pools import Pool

_MAX_OUTCOMES: Final = 20_000
_MAX_SHAPES: Final = 8
_MAX_IDS: Final = 100_000


class Outcomes:
    """What came of a search for some claims: by what decides, and by node until anything there changes."""

    __slots__ = ("by_key", "listed", "of_slot", "seen_at")

    def __init__(self) -> None:
        self.listed: list[Any] = []
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

    def keep(self, outcome: Any, key: Hashable | None, slot: int, now: int) -> None:  # noqa: ANN401 - of the caller
        """Keep a new outcome, of the nodes with a key, and of one node. There may be too many: then begin anew."""
        if len(self.listed) >= _MAX_OUTCOMES:
            self.listed.clear()
            self.by_key.clear()
            self.seen_at[:] = 0
        place = len(self.listed)
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

    def key_of(self, pools: Sequence[Pool], reads: Reads | None) -> Hashable | None:
        """Return what decides about claims on a node. Nodes with equal keys differ only in names. None: no other one.

        `reads` are the attributes that decide. None: any may.
        """
        key = []
        for pool in pools:
            if pool.is_local:
                return None
            shape = pool.shapes.get(reads)
            if shape is None:
                if len(pool.shapes) >= _MAX_SHAPES:
                    pool.shapes.clear()
                shape = pool.shapes[reads] = self.id_of(self._shape(pool, reads))
            key.append(shape)
            key.append(pool.usage_id)
        return tuple(key)

    def id_of(self, value: Hashable) -> int:
        """Return a small number for a value. The memo is bounded: equal values may get another number later."""
        found = self._ids.get(value)
        if found is None:
            if len(self._ids) >= _MAX_IDS:
                self._ids.clear()
            self._last_id += 1
            found = self._ids[value] = self._last_id
        return found

    def _shape(self, pool: Pool, reads: Reads | None) -> Hashable:
        if reads is None or not pool.is_plain:
            return pool
        named = pool.id[1] if pool.whole is not None and pool.whole.counters and not self._gates.fixed else ""
        columns = [self._column(pool, name) for name in sorted(reads.attributes)]
        return (pool.id[0], named, pool.is_incomplete, pool.invalid_reason, self.content_of(pool), *columns)

    def content_of(self, pool: Pool) -> int:
        """Return a number for all that decides about the devices of a pool but their attributes."""
        if not pool.content:
            pool.content = self.id_of(tuple([each.content for each in pool.devices]))
        return pool.content

    def _column(self, pool: Pool, name: str) -> int:
        column = pool.columns.get(name)
        if column is None:
            values = tuple([each.device.attributes.get(name) for each in pool.devices])
            column = pool.columns[name] = self.id_of(values) if any(values) else 0
        return column
