"""Lists of node names of recent requests, so that the same bytes need no second look-up.

`prioritize` has the nodes that `filter` passed on, in the same order. For `filter`, kube-scheduler writes the names in
the order of its snapshot, with another start for each sample (schedule_one.go, nextStartNodeIndex). So a list is known
if it is a stored list, or a few pieces of stored lists, byte for byte. A comparison of 5,000 names takes 3 us, a
look-up 100 us.
"""

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from app.objects.limits import Body
from core.mirror.node_info import NodeBatch, NodeTable
from core.mirror.topology import Int32Array, IntpArray

_MAX_LISTS: Final = 16
_MAX_BYTES: Final = 4 * 1024 * 1024
_MAX_PIECES: Final = 4
_MISSES: Final = 16
"""After this number of unknown lists in a row, only one in so many is stored. kube-scheduler's own filters run in
parallel, and leave the names in another order each time. Storing such a list would waste a fifth of a look-up's time.
"""
_NO_LIST: Final = -1
_COMMA: Final = ord(",")
_INDEX_BYTES: Final = 40  # for one name in `begins`: an int and a pointer to it


class Known(NamedTuple):
    """The slots of the nodes of a known list."""

    slots: IntpArray
    distinct: bool
    """Whether no name is known to be there twice."""


class _NameList(NamedTuple):
    names: bytes
    """The names as a JSON array without its brackets."""
    slots: IntpArray
    begins: Sequence[int]
    """Offset of each name, and the offset that a further name would have."""

    @property
    def nbytes(self) -> int:
        return len(self.names) + self.slots.nbytes + _INDEX_BYTES * len(self.begins)


class _Piece(NamedTuple):
    """Names of a request that are consecutive in a list."""

    of: _NameList
    first: int
    """Index in the list of the first name."""
    slots: IntpArray
    end: int
    """Offset in the body at which the piece ends: at a comma, or at the end of the names."""


class KnownNames:
    """The lists of names that were looked up last. All are dropped when a node is added or deleted."""

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._lists: OrderedDict[int, _NameList] = OrderedDict()  # number -> list, the oldest first
        self._of_length: dict[int, _NameList] = {}  # bytes of the names -> the last list of that length
        self._list_of: Int32Array = np.empty(0, np.int32)  # slot -> number of the last list that has its node
        self._index_of: Int32Array = np.empty(0, np.int32)  # slot -> index of the node in that list
        self._lives = -1  # NodeTable.lives when the lists were stored
        self._nbytes = 0
        self._next = 0
        self._misses = 0  # unknown lists since the last known one
        self._passed_on = b"", np.empty(0, np.intp), -1  # names, slots, NodeTable.lives at that time

    def pass_on(self, names: bytes, slots: IntpArray) -> None:
        """Store the names that `filter` passed on, until the next call. They have no brackets and no duplicates."""
        self._passed_on = names, slots, self._nodes.lives

    def find(self, body: Body, begin: int, end: int) -> Known | None:
        """Return the slots of the nodes that a body names between two offsets. None: they must be looked up."""
        names, slots, lives = self._passed_on
        if names and lives == self._nodes.lives and len(names) == end - begin and body.startswith(names, begin):
            return Known(slots, distinct=True)
        if self._lives != self._nodes.lives:
            return None
        known = self._of_length.get(end - begin)
        if known is not None and body.startswith(known.names, begin):
            self._misses = 0
            return Known(known.slots, distinct=True)
        return self._pieced_together(body, begin, end)

    def remember(self, names: bytes, slots: IntpArray) -> None:
        """Store names, without duplicates, with the slots that NodeTable.name_index found."""
        self._misses += 1
        if self._misses > _MISSES and self._misses % _MISSES:
            return
        if self._lives != self._nodes.lives:
            self._forget()
        self._add(names, slots)

    def _pieced_together(self, body: Body, begin: int, end: int) -> Known | None:
        pieces: list[_Piece] = []
        while begin < end:
            piece = self._piece(body, begin, end) if len(pieces) < _MAX_PIECES else None
            if piece is None:
                return None
            pieces.append(piece)
            begin = piece.end + 1
        if begin == end or not pieces:  # the text ends with a comma, or is empty
            return None
        self._misses = 0
        if len(pieces) == 1:
            return Known(pieces[0].slots, distinct=True)
        self._join(pieces[0].of, pieces[1])
        return Known(np.concatenate([piece.slots for piece in pieces]), distinct=False)

    def _piece(self, body: Body, begin: int, end: int) -> _Piece | None:
        """Return the names from an offset on that one list has. None if the list differs after the first name."""
        comma = body.find(b",", begin, end)
        name = body[begin + 1 : (end if comma < 0 else comma) - 1].decode("ascii", "replace")
        slot = self._nodes.slots.get(name, _NO_LIST)
        known = self._lists.get(int(self._list_of[slot])) if slot != _NO_LIST else None
        if known is None:
            return None
        index = int(self._index_of[slot])
        offset = known.begins[index]
        size = min(end - begin, len(known.names) - offset)
        # No name has a comma (see NameIndex). So a comma behind the piece shows that its last name is complete.
        for text, behind in ((body, begin + size), (known.names, offset + size)):
            if behind < (end if text is body else len(text)) and text[behind] != _COMMA:
                return None
        if body[begin : begin + size] != known.names[offset : offset + size]:
            return None
        slots = known.slots[index : bisect_left(known.begins, offset + size + 1)]
        return _Piece(known, index, slots, begin + size)

    def _join(self, first: _NameList, second: _Piece) -> None:
        """Store two lists as one, if the second continues the first.

        So the windows of one order become one list of all its names, once each window was looked up.
        """
        if first is second.of:  # one list that is read around its end, as most are: to join it would repeat its names
            return
        slots = np.concatenate((first.slots, second.of.slots[second.first :]))
        if len(slots) <= len(self._nodes.slots) and NodeBatch.of_slots(self._nodes, slots).repeated() < 0:
            self._add(b"%b,%b" % (first.names, second.of.names[second.of.begins[second.first] :]), slots)

    def _add(self, names: bytes, slots: IntpArray) -> None:
        commas = np.flatnonzero(np.frombuffer(names, np.uint8) == _COMMA)
        added = _NameList(names, slots, [0, *(commas + 1).tolist(), len(names) + 1])
        number, self._next = self._next, self._next + 1
        self._lists[number] = self._of_length[len(names)] = added
        self._list_of[slots] = number
        self._index_of[slots] = np.arange(len(slots), dtype=np.int32)
        self._nbytes += added.nbytes
        while len(self._lists) > 1 and (len(self._lists) > _MAX_LISTS or self._nbytes > _MAX_BYTES):
            _, oldest = self._lists.popitem(last=False)
            self._nbytes -= oldest.nbytes
            if self._of_length.get(len(oldest.names)) is oldest:
                del self._of_length[len(oldest.names)]

    def _forget(self) -> None:
        self._lives = self._nodes.lives
        self._lists.clear()
        self._of_length.clear()
        self._nbytes = 0
        self._list_of = np.full(self._nodes.capacity, _NO_LIST, np.int32)
        self._index_of = np.zeros(self._nodes.capacity, np.int32)
