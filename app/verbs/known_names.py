"""Lists of node names that were written lately, so that the same bytes need no look-up.

`prioritize` comes with the nodes that `filter` passed on, in the same order. kube-scheduler writes the names for
`filter` in the order of its snapshot. It begins somewhere else in that order for each sample (schedule_one.go,
nextStartNodeIndex). So a list is known if it is a remembered list, or a few pieces of remembered lists, byte for byte.
To compare 5,000 names takes 3 us, to look them up 100.
"""

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from app.objects.limits import Body
from core.mirror.node_info import NodeTable
from core.mirror.topology import Int32Array, IntpArray

_MAX_LISTS: Final = 16
_MAX_BYTES: Final = 4 * 1024 * 1024
_MAX_PIECES: Final = 4
_MISSES: Final = 16
"""Unknown lists in a row after which one in so many is stored. kube-scheduler's own filters run in parallel and leave
the names in another order each time. Storing such lists takes a fifth of the time of a look-up, for nothing.
"""
_NO_LIST: Final = -1
_COMMA: Final = ord(",")
_INDEX_BYTES: Final = 40  # of one name in `begins`: an int and a pointer to it


class Known(NamedTuple):
    """The slots of the nodes of a known list."""

    slots: IntpArray
    distinct: bool
    """Whether it is certain that no name is there twice."""


class _NameList(NamedTuple):
    names: bytes
    """As in a JSON array, without its brackets."""
    slots: IntpArray
    begins: Sequence[int]
    """Where each name begins, and where a further one would."""

    @property
    def nbytes(self) -> int:
        return len(self.names) + self.slots.nbytes + _INDEX_BYTES * len(self.begins)


class _Piece(NamedTuple):
    """Names of a request that are in a list, one after the other."""

    of: _NameList
    first: int
    """Index in the list of the first of them."""
    slots: IntpArray
    end: int
    """Where the piece ends in the body: at a comma, or where the names end."""


class KnownNames:
    """The lists of names that were looked up last; all are forgotten when a node comes or goes."""

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._lists: OrderedDict[int, _NameList] = OrderedDict()  # number -> list, the oldest first
        self._of_length: dict[int, _NameList] = {}  # bytes of the names -> the last list of that length
        self._list_of: Int32Array = np.empty(0, np.int32)  # slot -> number of the last list that has its node
        self._index_of: Int32Array = np.empty(0, np.int32)  # slot -> index of the node in that list
        self._lives = -1  # NodeTable.lives of the lists
        self._nbytes = 0
        self._next = 0
        self._misses = 0  # since a list was known
        self._passed_on = b"", np.empty(0, np.intp), -1  # names, slots, NodeTable.lives of then

    def pass_on(self, names: bytes, slots: IntpArray) -> None:
        """Remember the names that `filter` passes on, without brackets, none of them twice, until the next ones."""
        self._passed_on = names, slots, self._nodes.lives

    def find(self, body: Body, begin: int, end: int) -> Known | None:
        """Return the slots of the nodes that a body names between two positions; None: they must be looked up."""
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
        """Remember names that NodeTable.name_index has found, none of them twice, with their slots."""
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
        """Return the names from a position on that one list has; None: after the first of them it goes on otherwise."""
        comma = body.find(b",", begin, end)
        name = body[begin + 1 : (end if comma < 0 else comma) - 1].decode("ascii", "replace")
        slot = self._nodes.slots.get(name, _NO_LIST)
        known = self._lists.get(int(self._list_of[slot])) if slot != _NO_LIST else None
        if known is None:
            return None
        index = int(self._index_of[slot])
        offset = known.begins[index]
        size = min(end - begin, len(known.names) - offset)
        # No name has a comma (see NameIndex), so that one behind the piece shows that its last name is whole.
        for text, behind in ((body, begin + size), (known.names, offset + size)):
            if behind < (end if text is body else len(text)) and text[behind] != _COMMA:
                return None
        if body[begin : begin + size] != known.names[offset : offset + size]:
            return None
        slots = known.slots[index : bisect_left(known.begins, offset + size + 1)]
        return _Piece(known, index, slots, begin + size)

    def _join(self, first: _NameList, second: _Piece) -> None:
        """Remember two lists as one, where the second goes on behind the end of the first.

        So windows of one order, once each was looked up, become one list of all its names.
        """
        slots = np.concatenate((first.slots, second.of.slots[second.first :]))
        if len(slots) <= len(self._nodes.slots) and len(np.unique(slots)) == len(slots):
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
