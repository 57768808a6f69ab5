"""How many devices of a class nodes have, and how many of them are allocated, for the scores by resources.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/noderesources/resource_allocation.go
(calculateDRAResourceTotals). Unlike the search, it counts the devices of all slices: also of old generations, and of
incomplete and invalid pools.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NO_SLOT, NodeBatch
from core.mirror.topology import Int64Array
from core.objects.devices import NO_NODES, DeviceID, NodeChoice, ResourceSlice
from core.objects.kinds import DeviceClass
from core.objects.node import Node
from core.plugins.dynamicresources.allocator import UndecidedError
from core.plugins.dynamicresources.inventory import Inventory
from core.plugins.dynamicresources.outcomes import TO_SCORE, CompileBudget
from core.plugins.dynamicresources.pools import PoolError, is_chosen
from core.plugins.dynamicresources.selectors import SelectorErrorKind

_MAX_LOOKS: Final = 10_000
"""Slices, devices and nodes that one request looks at, in about 10 ms. What devices match and are allocated is kept."""
_LOOKS_OF_A_MATCH: Final = 4
"""What a device counts of which it is not known whether the class selects it."""
_MAX_EVALUATIONS: Final = 500
"""Selectors that one request evaluates. Outcomes are kept, so the next request continues."""
_ALWAYS_UNSET: Final = "allowMultipleAllocations"
"""What upstream does not tell selectors here, unlike in the search."""


Amounts: TypeAlias = tuple[Int64Array, Int64Array]
"""How many devices each node of a batch has, and how many of them are allocated."""


class _UnknownError(Exception):
    """The devices cannot be counted now."""


class _Match(NamedTuple):
    """A device of a slice that a class selects. Without `is_known`, its selectors have an error for that device."""

    device: DeviceID
    nodes: NodeChoice | None
    """None: all nodes of the slice."""
    is_known: bool


class Matching:
    """The devices of a slice that a class selects, and how many were allocated at the last look."""

    __slots__ = ("allocated", "found", "is_known", "selectors", "use")

    def __init__(self, selectors: Sequence[str | None], found: Sequence[_Match]) -> None:
        self.selectors = selectors
        self.found = found
        self.is_known = all(each.is_known for each in found)
        self.allocated = 0
        self.use = -1


class _Totals:
    """The devices of each node of a batch. A node with an error has none."""

    def __init__(self, batch: NodeBatch) -> None:
        self._devices, self._allocated = [0] * len(batch), [0] * len(batch)
        self._failed: set[int] = set()

    def fail(self, position: int) -> None:
        self._failed.add(position)

    def add(self, positions: Collection[int], devices: int, allocated: int, *, is_known: bool) -> None:
        if not is_known:
            self._failed.update(positions)
            return
        for at in positions if devices else ():
            self._devices[at] += devices
            self._allocated[at] += allocated

    def arrays(self) -> Amounts:
        devices, allocated = np.array(self._devices, np.int64), np.array(self._allocated, np.int64)
        failed = [*self._failed]
        devices[failed] = allocated[failed] = 0
        return devices, allocated


class DeviceTotals:
    """Counts devices for one request. Stale after the next event."""

    def __init__(self, mirror: ClusterMirror) -> None:
        self._inventory = mirror.derived(Inventory)
        self._looks = 0
        self._evaluations = 0
        self._budget = CompileBudget(TO_SCORE.compiled)
        self._found: dict[str, tuple[NodeBatch, Amounts | None]] = {}
        """What was counted of a resource, and in which batch: each of several scores asks for it."""
        self._of: NodeBatch | None = None
        self._by_name: Mapping[str, int] = {}

    def backs(self, resource: str) -> bool:
        """Return whether devices of a class provide an extended resource."""
        return self._inventory.gates.extended_resources and self._inventory.class_for(resource) is not None

    def of(self, resource: str, batch: NodeBatch) -> Amounts | None:
        """Return how many devices each node has for a resource, and how many are allocated. None: it is not known."""
        of_batch, found = self._found.get(resource, (None, None))
        if of_batch is not batch:
            found = self._afresh(resource, batch)
            self._found[resource] = batch, found
        return found

    def _afresh(self, resource: str, batch: NodeBatch) -> Amounts | None:
        of_class = self._inventory.class_for(resource) if self.backs(resource) else None
        try:
            return None if of_class is None else self._counted(of_class, batch)
        except (_UnknownError, UndecidedError):
            return None

    def _counted(self, of_class: DeviceClass, batch: NodeBatch) -> Amounts:
        written = [selector for selector in of_class.selectors if selector is not None]
        if sum(map(len, written)) > TO_SCORE.compiled or any(_ALWAYS_UNSET in each for each in written):
            raise _UnknownError
        totals = _Totals(batch)
        self._look(len(self._inventory.slices))  # if these are too many, it will never be known
        for each in self._inventory.slices:
            if each.per_device:
                for found in self._matching(each, of_class).found:
                    seen = self._positions(found.nodes or NO_NODES, batch, totals)
                    totals.add(seen, 1, int(self._inventory.is_allocated(found.device)), is_known=found.is_known)
                continue
            seen = range(len(batch)) if each.nodes.says_nothing else self._positions(each.nodes, batch, totals)
            if seen:
                matching = self._matching(each, of_class)
                totals.add(seen, len(matching.found), self._allocated(each, matching), is_known=matching.is_known)
        return totals.arrays()

    def _allocated(self, each: ResourceSlice, matching: "Matching") -> int:
        use = self._inventory.uses[each.driver, each.pool]
        if matching.use != use:
            self._look(len(matching.found))
            matching.allocated = sum(self._inventory.is_allocated(found.device) for found in matching.found)
            matching.use = use
        return matching.allocated

    def _look(self, number: int) -> None:
        self._looks += number
        if self._looks > _MAX_LOOKS:
            raise _UnknownError

    def _positions(self, choice: NodeChoice, batch: NodeBatch, totals: _Totals) -> Collection[int]:
        """Return the nodes that a slice or a device is for. Those for which that cannot be said have no devices."""
        if choice.node_name:
            at = self._places(batch).get(choice.node_name)
            return () if at is None else (at,)
        if choice.all_nodes or choice.selector is None:
            self._look(len(batch) if choice.all_nodes else 0)
            return range(len(batch)) if choice.all_nodes else ()
        self._look(len(batch))
        found = []
        for at, node in _nodes(self._inventory, batch):
            try:
                if is_chosen(choice, node):
                    found.append(at)
            except PoolError:
                totals.fail(at)
        return found

    def _places(self, batch: NodeBatch) -> Mapping[str, int]:
        if self._of is not batch:
            self._of, self._by_name = batch, {name: at for at, name in enumerate(batch.names)}
        return self._by_name

    def _matching(self, each: ResourceSlice, of_class: DeviceClass) -> Matching:
        known = self._inventory.matching.get(each.name)
        if known is None or known.selectors != of_class.selectors:
            known = Matching(of_class.selectors, tuple(self._matched(each, of_class)))
            self._inventory.matching[each.name] = known
        return known

    def _matched(self, each: ResourceSlice, of_class: DeviceClass) -> Iterator[_Match]:
        matcher_of = self._inventory.selection.matcher
        matchers = [matcher_of(selector, self._budget) for selector in of_class.selectors if selector is not None]
        self._look(_LOOKS_OF_A_MATCH * len(each.devices))
        for device in self._inventory.devices_of(each):
            matches, is_known = True, True
            for matcher in matchers:
                before = matcher.evaluated
                outcome = matcher.of(device)
                self._evaluations += matcher.evaluated - before
                if self._evaluations > _MAX_EVALUATIONS:
                    raise _UnknownError
                if not isinstance(outcome, bool):
                    if outcome.kind in (SelectorErrorKind.NOT_EVALUATED, SelectorErrorKind.COST):
                        raise _UnknownError
                    is_known = False
                    break
                if not outcome:
                    matches = False
                    break
            if matches:
                yield _Match(device.id, device.nodes, is_known)


def _nodes(inventory: Inventory, batch: NodeBatch) -> Iterator[tuple[int, Node]]:
    for at, slot in enumerate(batch.slots.tolist()):
        node = batch.unmirrored.get(at) if slot == NO_SLOT else inventory.nodes[slot]
        if node is not None:
            yield at, node
