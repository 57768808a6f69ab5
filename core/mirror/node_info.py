"""Nodes and their slots. A slot is an int that a known node keeps until its removal, and that indexes every column."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias, overload

import msgspec
import numpy as np
from numpy.typing import NDArray

from core.mirror.generation_store import GenerationCounter, GenerationStore
from core.mirror.name_index import NameIndex
from core.mirror.node_figures import Figures, PlacedRequests
from core.mirror.topology import ABSENT, MIN_SLOTS, BoolArray, IntpArray, TopologyColumn
from core.objects.labels import EVERYTHING, Selector
from core.objects.node import Node


class Partition:
    """A rule on node names and labels, so that several schedulers own disjoint nodes. Initially all nodes are in.

    A name that was set explicitly takes precedence over the selector, and need not exist yet. Nodes out of the
    partition get an unresolvable status, but their pods count wherever pods of the whole cluster count.
    """

    def __init__(self) -> None:
        self.whole = True
        """Whether the rule includes every node, so that no node needs a check."""
        self._selector = EVERYTHING
        self._names: dict[str, bool] = {}  # node name -> whether it is in, for explicitly set names
        self._outside = 0  # how many of them are out: a rule may name hundreds of thousands

    def includes(self, name: str, labels: Mapping[str, str]) -> bool:
        """Return whether a node with this name and these labels is in."""
        inside = self._names.get(name)
        return self._selector.matches(labels) if inside is None else inside

    def set_selector(self, selector: Selector) -> None:
        """Include the nodes whose labels match, except for explicitly set names."""
        self._selector = selector
        self._weigh()

    def set_name(self, name: str, *, inside: bool) -> None:
        """Include or exclude one node regardless of its labels."""
        self._outside += (not inside) - (self._names.get(name) is False)
        self._names[name] = inside
        self._weigh()

    def _weigh(self) -> None:
        self.whole = self._selector.everything and not self._outside


NameTexts: TypeAlias = NDArray[np.bytes_ | np.object_]
"""Names as JSON: as wide as the longest and padded with NUL, or bytes objects if most of that would be padding."""

NO_SLOT: Final = -1
_WIDEST_COLUMN: Final = 128  # bytes a node: NameIndex has no longer names either
_PADDING_ALLOWED: Final = 4  # times the bytes of the names
_SMALL: Final = 1024 * 1024  # bytes of names: below this, padding costs less than a check for another form


class NodeInfo:
    """A node name with the rows of its pods. Without `node`, it only holds the pods that name an unknown node."""

    __slots__ = ("generation", "is_withdrawn", "name", "node", "requested", "rows", "slot")

    def __init__(self, name: str) -> None:
        self.name = name
        self.node: Node | None = None
        self.slot = NO_SLOT
        self.rows: list[int] = []  # a set would take 70 bytes a pod
        self.requested = PlacedRequests()
        self.generation = 0
        self.is_withdrawn = False

    @property
    def figures(self) -> Figures:
        """Resources of the node (none while it is unknown) and requests of its pods. Summed at every call."""
        return self.requested.figures(self.node.allocatable if self.node is not None else {})


class NodeTable:
    """NodeInfos by name. For known nodes also their slots, their generations and whether they are in the partition."""

    def __init__(self, generations: GenerationCounter) -> None:
        self.known: GenerationStore[NodeInfo] = GenerationStore(generations)  # NodeInfos of known nodes by name
        self.partition = Partition()
        self.in_partition: BoolArray = np.ones(MIN_SLOTS, np.bool_)  # slot -> whether in, stale where free
        self._generations = generations
        self.infos: dict[str, NodeInfo] = {}  # node name -> NodeInfo, including unknown nodes that pods name
        self.slots: dict[str, int] = {}  # name of a known node -> slot
        self.name_json: NameTexts = np.zeros(MIN_SLOTS, "S1")
        """Slot -> b'"name"', ready for a response. Stale if the slot is free."""
        self.name_index = NameIndex()
        self.label_keys: Counter[str] = Counter()
        """Label key -> number of known nodes with the key. No key has 0."""
        self.epoch = 0
        """The number of additions and removals of nodes.

        Facts about slots that were read at another number may be about other nodes.
        """
        self.all_positions: IntpArray = np.empty(0, np.intp)
        """Slot -> position in the last result of `all_slots`, or NO_SLOT."""
        self._free: list[int] = []
        self._used = 0
        self.every_slot: IntpArray | None = None
        """The last result of `all_slots` if it has every slot below its length, so that a column needs no look-up."""
        self._all = (-1, np.empty(0, np.intp))  # `epoch` at the last call, and the slots of all known nodes then

    def all_slots(self) -> IntpArray:
        """Return the slots of all known nodes, in order. The caller must not change the array."""
        epoch, slots = self._all
        if epoch != self.epoch:
            slots = np.sort(np.fromiter(self.slots.values(), np.intp, len(self.slots)))
            self._all = (self.epoch, slots)
            self.every_slot = slots if len(slots) == self._used else None
            self.all_positions = np.full(self.capacity, NO_SLOT, np.intp)
            self.all_positions[slots] = np.arange(len(slots))
        return slots

    @property
    def capacity(self) -> int:
        """Number of existing slots, including free ones."""
        return len(self.name_json)

    @property
    def extent(self) -> int:
        """Upper bound of the slots that were ever in use. It is rounded up, so that it seldom changes.

        Never 0, because NO_SLOT must not index an empty array.
        """
        return -(-max(self._used, 1) // MIN_SLOTS) * MIN_SLOTS

    def __iter__(self) -> Iterator[tuple[int, Node]]:
        """Yield (slot, node) of the known nodes."""
        for name, slot in self.slots.items():
            node = self.infos[name].node
            if node is not None:
                yield slot, node

    def info(self, name: str) -> NodeInfo:
        """Return the NodeInfo of a name. It is created for a new name."""
        info = self.infos.get(name)
        if info is None:
            info = self.infos[name] = NodeInfo(name)
        return info

    def occupy(self, info: NodeInfo, node: Node) -> None:
        """Assign a slot to a node that has become known."""
        self._enter(info, node, self._free.pop() if self._free else self._new_slot())
        info.generation = self.known.set(node.name, info)

    def vacate(self, info: NodeInfo) -> None:
        """Free the slot of a removed node."""
        self._free.append(info.slot)
        self._leave(info)
        info.generation = self.known.remove(info.name)
        self.drop_if_empty(info)

    def add_tentative(self, info: NodeInfo, node: Node) -> None:
        """Assign a slot, but no generation, to a supposed node. So readers that follow generations do not see it."""
        # Always a new slot: so `withdraw` has to restore only the number of slots in use.
        self._enter(info, node, self._new_slot())

    def take_out_tentatively(self, info: NodeInfo) -> None:
        """Make a node unknown, but keep its slot, its NodeInfo and its generation for `bring_back`."""
        self._leave(info)
        info.is_withdrawn = True

    def bring_back(self, info: NodeInfo, node: Node, slot: int, order: Sequence[str]) -> None:
        """Undo `take_out_tentatively`. `order` are the names of the known nodes before it, in order."""
        self._enter(info, node, slot)
        info.is_withdrawn = False
        slots = {name: self.slots[name] for name in order}
        self.slots.clear()
        self.slots.update(slots)

    def withdraw(self, info: NodeInfo) -> None:
        """Free the slot of a supposed node. Supposed nodes must be withdrawn in reverse order."""
        self._used = info.slot
        self._leave(info)
        self.drop_if_empty(info)

    def replace(self, info: NodeInfo, node: Node) -> Node | None:
        """Replace the state of a known node without a generation, and return the state before."""
        before = info.node
        if before is not None and before.labels.keys() != node.labels.keys():
            self._count_labels(before, -1)
            self._count_labels(node, 1)
        info.node = node
        self.in_partition[info.slot] = self.partition.includes(node.name, node.labels)
        return before

    def touch(self, info: NodeInfo) -> None:
        """Give a changed NodeInfo a new generation."""
        info.generation = self._generations.advance() if info.node is None else self.known.touch(info.name)

    def partition_changed(self, names: Iterable[str]) -> None:
        """Determine again whether these nodes are in the partition. Unknown names are ignored."""
        for name in names:
            info = self.infos.get(name)
            if info is None or info.node is None:
                continue
            inside = self.partition.includes(name, info.node.labels)
            if inside != self.in_partition[info.slot]:
                self.in_partition[info.slot] = inside
                self.touch(info)

    def drop_if_empty(self, info: NodeInfo) -> None:
        """Remove a name that is not a known node and that no pod names."""
        if info.node is None and not info.rows:
            del self.infos[info.name]

    def name(self, slot: int) -> str:
        """Return the name of the node with a slot."""
        return msgspec.json.decode(self.name_json[slot], type=str)

    def _new_slot(self) -> int:
        slot, self._used = self._used, self._used + 1
        if slot >= self.capacity:
            self._grow()
        return slot

    def _enter(self, info: NodeInfo, node: Node, slot: int) -> None:
        info.node, info.slot = node, slot
        self.epoch += 1
        self.slots[node.name] = slot
        self._write_name(slot, node.name)
        self._count_labels(node, 1)
        self.in_partition[slot] = self.partition.includes(node.name, node.labels)

    def _leave(self, info: NodeInfo) -> None:
        del self.slots[info.name]
        self.epoch += 1
        self.name_index.remove(info.slot)
        if info.node is not None:
            self._count_labels(info.node, -1)
        info.node, info.slot = None, NO_SLOT

    def _count_labels(self, node: Node, delta: int) -> None:
        for key in node.labels:
            self.label_keys[key] += delta
            if not self.label_keys[key]:
                del self.label_keys[key]

    def _write_name(self, slot: int, name: str) -> None:
        text = msgspec.json.encode(name)
        if self.name_json.dtype != np.object_ and len(text) > self.name_json.itemsize:
            self.name_json = self.name_json.astype(f"S{len(text)}" if len(text) <= _WIDEST_COLUMN else np.object_)
        self.name_json[slot] = text
        self.name_index.add(name, slot)

    def _grow(self) -> None:
        inside = np.ones(2 * self.capacity, np.bool_)
        inside[: self.capacity] = self.in_partition
        self.name_json, self.in_partition = np.tile(self.name_json, 2), inside  # the new half is stale, too


_NONE_UNMIRRORED: Final[Mapping[int, Node | None]] = {}


class _LazyNames(Sequence[str]):
    """Names that are rarely read, so they are created at the first read: to list 200 of them takes 10 us."""

    def __init__(self, name_of: Callable[[int], str], places: IntpArray) -> None:
        """`name_of` returns the name for an element of `places`, such as a slot or a position in other names."""
        self._name_of = name_of
        self._places = places

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...

    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        if isinstance(index, slice):
            return _LazyNames(self._name_of, self._places[index])
        return self._name_of(int(self._places[index]))


class NodeBatch:
    """The nodes of one request, in its order: slots of known nodes, whole objects of others, and unknown names.

    `slots` has NO_SLOT for nodes that are not in the mirror. For these, `unmirrored` has the object by position, or
    None. Valid until the next event, because slots are reused.
    """

    def __init__(
        self, table: NodeTable, names: Sequence[str], slots: IntpArray, unmirrored: Mapping[int, Node | None]
    ) -> None:
        self.names = names
        self.slots = slots
        self.unmirrored = unmirrored
        self._table = table

    @classmethod
    def of(cls, table: NodeTable, names: Sequence[str], objects: Mapping[int, Node]) -> "NodeBatch":
        """Look up nodes by name. `objects` are whole nodes by position, for names that the mirror does not have."""
        try:
            # Without a default for unknown names: 0.23 ms for 5,000 names, against 0.27 ms with one.
            return cls(table, names, np.fromiter(map(table.slots.__getitem__, names), np.intp, len(names)), {})
        except KeyError:
            found = [table.slots.get(name, NO_SLOT) for name in names]
            unmirrored = {position: objects.get(position) for position, slot in enumerate(found) if slot == NO_SLOT}
            return cls(table, names, np.array(found, np.intp), unmirrored)

    @classmethod
    def found(cls, table: NodeTable, body: bytes | bytearray, begin: int, end: int) -> "NodeBatch | None":
        """Look up the nodes whose names are in a JSON array, without its brackets. None: see NameIndex.find."""
        slots = table.name_index.find(body, begin, end)
        return None if slots is None else cls.of_slots(table, slots)

    @classmethod
    def of_slots(cls, table: NodeTable, slots: IntpArray) -> "NodeBatch":
        """Return the nodes with these slots."""
        return cls(table, _LazyNames(table.name, slots), slots, _NONE_UNMIRRORED)

    def __len__(self) -> int:
        return len(self.slots)

    def position(self, name: str) -> int:
        """Return the position of a name in the batch, or -1."""
        slot = self._table.slots.get(name, NO_SLOT)
        found = [*self.unmirrored] if slot == NO_SLOT else np.flatnonzero(self.slots == slot).tolist()
        return next((position for position in found if self.names[position] == name), -1)

    def positions_of(self, slots: Collection[int]) -> list[int]:
        """Return the positions of the nodes with these slots, in order."""
        if self.slots is not self._table.all_slots():
            return np.isin(self.slots, [*slots]).nonzero()[0].tolist()
        found = {*map(self._table.all_positions.item, slots)}
        found.discard(NO_SLOT)
        return sorted(found)

    def part(self, positions: IntpArray) -> "NodeBatch":
        """Return a batch of some of the nodes."""
        unmirrored: Mapping[int, Node | None] = _NONE_UNMIRRORED
        if self.unmirrored:
            old = positions.tolist()
            unmirrored = {new: self.unmirrored[at] for new, at in enumerate(old) if at in self.unmirrored}
        return NodeBatch(self._table, _LazyNames(self.names.__getitem__, positions), self.slots[positions], unmirrored)

    @property
    def unknown(self) -> list[int]:
        """Positions of the unknown names: neither in the mirror nor given as an object."""
        return [position for position, node in self.unmirrored.items() if node is None]

    @property
    def out_of_partition(self) -> BoolArray | None:
        """Whether each node is out of the partition, or None if all are in. Computed at every call.

        A whole object is judged by its labels. An unknown node is never out.
        """
        partition = self._table.partition
        if partition.whole:
            return None
        outside: BoolArray = ~self._table.in_partition[self.slots]  # NO_SLOT reads the last slot, corrected below
        for position, node in self.unmirrored.items():
            outside[position] = node is not None and not partition.includes(self.names[position], node.labels)
        return outside

    def value_ids(self, column: TopologyColumn) -> IntpArray:
        """Return the value id of a topology key for each node, ABSENT for an unknown node."""
        if self.slots is self._table.every_slot:
            return column.of_slot[: len(self.slots)].astype(np.intp)
        ids = column.of_slot.take(self.slots).astype(np.intp)  # NO_SLOT reads the last slot, corrected below
        for position, node in self.unmirrored.items():
            ids[position] = ABSENT if node is None else column.id_of(node.labels)
        return ids

    def name_json(self) -> NameTexts:
        """Return each name as JSON. Known nodes take it from their slots."""
        texts = self._table.name_json.take(self.slots)  # NO_SLOT reads the last slot, corrected below
        if self.unmirrored:
            of_unmirrored = {position: msgspec.json.encode(self.names[position]) for position in self.unmirrored}
            texts = _wide_enough(texts, [*of_unmirrored.values()])
            texts[list(of_unmirrored)] = list(of_unmirrored.values())
        return texts

    def name_json_at(self, position: int) -> bytes:
        """Return one name as JSON."""
        if position in self.unmirrored:
            return msgspec.json.encode(self.names[position])
        text: bytes = self._table.name_json[self.slots.item(position)]
        return text

    def repeated(self) -> int:
        """Return the position of the first name that occurs earlier in the batch, or -1."""
        if self.unmirrored:
            seen: set[str] = set()
            for position, name in enumerate(self.names):
                if name in seen:
                    return position
                seen.add(name)
            return -1
        present: BoolArray = np.zeros(self._table.capacity, np.bool_)
        present[self.slots] = True
        if np.count_nonzero(present) == len(self):
            return -1
        order = np.arange(len(self), dtype=np.intp)
        # The first writer of a slot must win, so write backwards: numpy keeps the last of repeated indices.
        first = np.empty(self._table.capacity, np.intp)
        first[self.slots[::-1]] = order[::-1]
        later: BoolArray = first[self.slots] != order
        return int(later.argmax())


def _wide_enough(texts: NameTexts, more: Sequence[bytes]) -> NameTexts:
    """Return the names in a form that can hold the further names in place of others."""
    widest = max(map(len, more))
    if texts.dtype == np.object_ or widest <= texts.itemsize:
        return texts
    padded = len(texts) * widest
    size = sum(map(len, more)) + (len(texts) - len(more)) * texts.itemsize
    uniform = padded <= max(_SMALL, _PADDING_ALLOWED * size)
    return texts.astype(f"S{widest}" if uniform else np.object_)
