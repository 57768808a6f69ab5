"""The counters that partitions of devices share, in one search on one node.

Source: k8s.io/dynamic-resource-allocation structured/internal/incubating/allocator_incubating.go
(checkAvailableCounters, deallocateCountersForDevice).
"""

from collections.abc import Sequence

from core.plugins.dynamicresources.gates import Gates
from core.plugins.dynamicresources.pools import CounterAmounts, Pool, PoolDevice, Usage


class Counters:
    """What the devices of the search consume, beside what is available."""

    def __init__(self, pools: Sequence[Pool], usages: Sequence[Usage], gates: Gates) -> None:
        self._pools = pools
        self._gates = gates
        self._available = [usage.available for usage in usages]
        self._consumed: dict[object, dict[tuple[str, str], int]] = {}
        self._first: dict[str, int] = {}

    def reserve(self, place: int, device: PoolDevice) -> bool:
        """Consume a device's counters. All counters of the pool must suffice, also those of other devices."""
        self._change(place, device, 1)
        available, consumed = self._of(place)
        if all(amount >= consumed.get(counter, 0) for counter, amount in available):
            return True
        self.release(place, device)
        return False

    def release(self, place: int, device: PoolDevice) -> None:
        """Give a device's counters back."""
        self._change(place, device, -1)

    def _of(self, place: int) -> tuple[CounterAmounts, dict[tuple[str, str], int]]:
        """Return the available and the consumed counters of a pool. Until 1.36, pools of one name share them."""
        pool = self._pools[place]
        if self._gates.fixed:
            return self._available[place], self._consumed.setdefault(pool.id, {})
        name = pool.id[1]
        return self._available[self._first.setdefault(name, place)], self._consumed.setdefault(name, {})

    def _change(self, place: int, device: PoolDevice, sign: int) -> None:
        _, consumed = self._of(place)
        for counter, amount in device.counters:
            consumed[counter] = consumed.get(counter, 0) + sign * amount
