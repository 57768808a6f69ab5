"""ExtenderArgs, the body of a request from kube-scheduler, from bytes.

The Go structs have no JSON tags, so Go writes `NodeNames` and reads keys in any case. So does Kindred. JSON in Go's
form has a faster path: the nodes of a long list are looked up without a str for each name.
"""

import codecs
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec
import numpy as np

from app.objects.decode import (
    EXTENDER_ARGS,
    MAX_NAME_BYTES,
    MAX_NODES,
    NULL,
    Body,
    DecodeError,
    Json,
    decoding,
    is_longer,
    members_of,
    refuse_too_many_elements,
    under,
)
from app.objects.decode_node import decode_node
from app.objects.decode_pod import decode_pod
from app.objects.resources import decode_identity
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch, NodeTable
from core.mirror.topology import Int32Array, IntpArray
from core.objects.pod import Pod

_MAX_POD_BYTES: Final = 4 * 1024 * 1024  # etcd takes objects of up to 1.5 MiB


def decode_incoming_pod(raw: Json) -> Pod:
    """Decode the pod of a request, or of a GET. Every affinity term must be valid. Raises DecodeError."""
    if raw == NULL:
        raise DecodeError("Pod", "required")
    if memoryview(raw).nbytes > _MAX_POD_BYTES:
        raise DecodeError("Pod", f"larger than {_MAX_POD_BYTES} bytes")
    with under("Pod"):
        pod = decode_pod(raw)
    for error in pod.affinity.errors:
        raise DecodeError(f"Pod.spec.affinity.{error.field}", error.message)
    return pod


# Lists of node names of recent requests, so that the same bytes need no second look-up.
#
# `prioritize` has the nodes that `filter` passed on, in the same order. For `filter`, kube-scheduler writes the names
# in the order of its snapshot, with another start for each sample (schedule_one.go, nextStartNodeIndex). So a list is
# known if it is a stored list, or a few pieces of stored lists, byte for byte. A comparison of 5,000 names takes 3
# us, a look-up 100 us.

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


class NameLists:
    """The lists of names that were looked up last. All are dropped when a node is added or deleted."""

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._lists: OrderedDict[int, _NameList] = OrderedDict()  # number -> list, the oldest first
        self._of_length: dict[int, _NameList] = {}  # bytes of the names -> the last list of that length
        self._list_of: Int32Array = np.empty(0, np.int32)  # slot -> number of the last list that has its node
        self._index_of: Int32Array = np.empty(0, np.int32)  # slot -> index of the node in that list
        self._epoch = -1  # NodeTable.lives when the lists were stored
        self._nbytes = 0
        self._next = 0
        self._misses = 0  # unknown lists since the last known one
        self._remembered = b"", np.empty(0, np.intp), -1  # names, slots, NodeTable.lives at that time

    def remember_passing(self, names: bytes, slots: IntpArray) -> None:
        """Store the names that `filter` passed on, until the next call. They have no brackets and no duplicates."""
        self._remembered = names, slots, self._nodes.epoch

    def find(self, body: Body, begin: int, end: int) -> Known | None:
        """Return the slots of the nodes that a body names between two offsets. None: they must be looked up."""
        names, slots, epoch = self._remembered
        if names and epoch == self._nodes.epoch and len(names) == end - begin and body.startswith(names, begin):
            return Known(slots, distinct=True)
        if self._epoch != self._nodes.epoch:
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
        if self._epoch != self._nodes.epoch:
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
        self._epoch = self._nodes.epoch
        self._lists.clear()
        self._of_length.clear()
        self._nbytes = 0
        self._list_of = np.full(self._nodes.capacity, _NO_LIST, np.int32)
        self._index_of = np.zeros(self._nodes.capacity, np.int32)


ABSENT: Final = msgspec.Raw(b"")

_POD_BEGINS: Final = b'{"Pod":{'
_POD_ENDS: Final = b'},"Nodes":null,'
_NAMES_BEGIN: Final = b'"NodeNames":['
_NAMES_END: Final = b"]}"
_MAX_TAIL_LENGTH: Final = 8  # bytes; Go's JSON ends with a line feed
_NODE_BEGINS: Final = b'{"metadata":{"name":"'


class NodeList(msgspec.Struct, rename="camel"):
    """A v1.NodeList whose parts stay raw JSON. Absent parts are empty."""

    kind: msgspec.Raw = ABSENT
    api_version: msgspec.Raw = ABSENT
    metadata: msgspec.Raw = ABSENT
    items: list[msgspec.Raw] | None = None


class _Args(msgspec.Struct, forbid_unknown_fields=True):
    """ExtenderArgs in Go's spelling. The pod and each node stay raw until a field of theirs is needed."""

    pod: msgspec.Raw = msgspec.field(default=NULL, name="Pod")
    nodes: NodeList | None = msgspec.field(default=None, name="Nodes")
    node_names: list[str] | None = msgspec.field(default=None, name="NodeNames")


class _NameOnly(msgspec.Struct):
    name: str | None = None


class _NodeName(msgspec.Struct):
    metadata: _NameOnly | None = None


_args_decoder: Final = msgspec.json.Decoder(_Args)
_names_decoder: Final = msgspec.json.Decoder(list[str] | None)
_node_list_decoder: Final = msgspec.json.Decoder(NodeList)
_node_name_decoder: Final = msgspec.json.Decoder(_NodeName)


class ExtenderArgs(NamedTuple):
    """The contents of one request: the undecoded pod, and the nodes in the order of the request."""

    pod: bytes | msgspec.Raw
    batch: NodeBatch
    node_list: NodeList | None = None
    """The node objects of the request, one item for each node of the batch. None for a request with names."""
    written: memoryview | None = None
    """The names as written in the body, without brackets, if the body has Go's form."""
    known: Known | None = None
    identity: tuple[str, str, str] | None = None
    """That of the pod by `decode_identity`, if the body has Go's form."""


def decode_args(body: Body, mirror: ClusterMirror, known_names: NameLists | None = None) -> ExtenderArgs:
    """Decode ExtenderArgs with keys in any case. Nodes are looked up by name unless a known list has them.

    Raises DecodeError that names the field.
    """
    refuse_too_many_elements(body)
    args = _args_by_known_names(body, mirror, known_names)
    if args is not None and args.known is not None and args.known.distinct:
        return args
    if args is None:
        args = _args(_spelled_as_in_go(body), body, mirror)
        _refuse_long_names(args)
    repeated = args.batch.repeated()
    if repeated >= 0:
        names = args.batch.names
        field = f"{_nodes_field(args.node_list)}[{repeated}]"
        raise DecodeError(field, f"{names[repeated]} is at position {names.index(names[repeated])} already")
    if known_names is not None and args.written is not None and args.known is None:
        known_names.remember(bytes(args.written), args.batch.slots)
    return args


def requested_names(body: Body) -> Sequence[str]:
    """Return the node names of a request. Its pod may be invalid. Raises DecodeError."""
    refuse_too_many_elements(body)
    with under("body"):
        fields = EXTENDER_ARGS.fields_of(members_of(body))
    names = _decoded_names(fields.get("NodeNames", NULL))
    if names is None:
        node_list = _decoded_node_list(fields.get("Nodes", NULL))
        if node_list is None or node_list.items is None:
            raise DecodeError("Nodes.items", "required")
        names = _node_names(node_list.items)
    if names:
        _refuse_none_or_too_many(len(names), None)
    return names


def _args_by_known_names(body: Body, mirror: ClusterMirror, known_names: NameLists | None) -> ExtenderArgs | None:
    """Read a body in Go's form whose node names are all known. None for any other body.

    The names are the last field and are known to be valid JSON. So the body is valid JSON if the part before them is.
    """
    begin = body.find(_NAMES_BEGIN)
    end = body.rfind(_NAMES_END, max(0, len(body) - _MAX_TAIL_LENGTH))
    is_whole = 0 <= begin < end and not body[end + len(_NAMES_END) :].strip()
    if not (is_whole and body.startswith(_POD_BEGINS) and body.endswith(_POD_ENDS, 0, begin)):
        return None
    names_begin = begin + len(_NAMES_BEGIN)
    known = known_names.find(body, names_begin, end) if known_names is not None else None
    nodes = mirror.nodes
    batch = NodeBatch.found(nodes, body, names_begin, end) if known is None else NodeBatch.of_slots(nodes, known.slots)
    if batch is None:
        return None
    pod = bytes(body[len(_POD_BEGINS) - 1 : begin - len(_POD_ENDS) + 1])
    try:
        identity = decode_identity(pod)
    except DecodeError:
        return None
    return ExtenderArgs(pod, batch, written=memoryview(body)[names_begin:end], known=known, identity=identity)


def _args(args: _Args, body: Body, mirror: ClusterMirror) -> ExtenderArgs:
    if args.nodes is None and args.node_names is None:
        raise DecodeError("NodeNames", "required (or Nodes, where nodeCacheCapable is false)")
    if args.nodes is None:
        names = args.node_names or []
        _refuse_none_or_too_many(len(names), None)
        return ExtenderArgs(args.pod, mirror.batch(names))
    if args.node_names is not None:
        raise DecodeError("Nodes, NodeNames", "both given; kube-scheduler sends one, by nodeCacheCapable")
    if args.nodes.items is None:
        raise DecodeError("Nodes.items", "required")
    _refuse_none_or_too_many(len(args.nodes.items), args.nodes)
    if not body.isascii():  # checks 30 GB/s, and nodes of an API server are mostly ASCII
        _refuse_other_than_utf_8(args.nodes.items)
    return ExtenderArgs(args.pod, _batch_of_objects(args.nodes.items, mirror), args.nodes)


def _batch_of_objects(items: Sequence[msgspec.Raw], mirror: ClusterMirror) -> NodeBatch:
    names_as_written = _names_as_written(items)
    batch = NodeBatch.found(mirror.nodes, names_as_written, 0, len(names_as_written))
    if batch is not None:
        return batch
    names = _node_names(items)
    objects = {}
    for position, item in enumerate(items):
        if names[position] not in mirror.nodes.slots:
            with under(f"Nodes.items[{position}]"):
                objects[position] = decode_node(item)
    return mirror.batch(names, objects)


def _names_as_written(items: Sequence[msgspec.Raw]) -> bytes:
    """Return the names of nodes as Go's JSON has them, `"a","b"`. Empty if a node does not begin in Go's form.

    A decoder of the name alone would still scan the whole node: 20 ms for 5,000 nodes. This function takes 3 ms.
    """
    names = []
    for item in items:
        beginning = bytes(memoryview(item)[: len(_NODE_BEGINS) + MAX_NAME_BYTES + 1])
        end = beginning.find(b'"', len(_NODE_BEGINS))
        if end < 0 or not beginning.startswith(_NODE_BEGINS):
            return b""
        names.append(beginning[len(_NODE_BEGINS) : end])
    return b'"%s"' % b'","'.join(names)


def _node_names(items: Sequence[msgspec.Raw]) -> list[str]:
    """Return the names of whole Node objects. Raises DecodeError."""
    names = []
    for position, item in enumerate(items):
        with under(f"Nodes.items[{position}]"):
            node = decoding(_node_name_decoder.decode, item)
            if node.metadata is None or not node.metadata.name:
                raise DecodeError("metadata.name", "required")
        names.append(node.metadata.name)
    return names


def _refuse_long_names(args: ExtenderArgs) -> None:
    """Reject a name that no node can have. Names of the mirror's nodes were checked before."""
    names = args.batch.names
    for position in args.batch.unmirrored:
        if is_longer(names[position], MAX_NAME_BYTES):
            raise DecodeError(f"{_nodes_field(args.node_list)}[{position}]", f"longer than {MAX_NAME_BYTES} bytes")


def _refuse_none_or_too_many(nodes: int, node_list: NodeList | None) -> None:
    if not nodes:
        raise DecodeError(_nodes_field(node_list), "is empty; there is no node to choose from")
    if nodes > MAX_NODES:
        raise DecodeError(_nodes_field(node_list), f"more than {MAX_NODES} nodes")


def _refuse_other_than_utf_8(items: Sequence[msgspec.Raw]) -> None:
    """Check that node objects are UTF-8. They are returned unchanged, and msgspec checks only the fields it decodes."""
    for position, item in enumerate(items):
        try:
            codecs.utf_8_decode(item, "strict", True)  # noqa: FBT003 - positional in C: these are all of its bytes
        except UnicodeDecodeError:
            raise DecodeError(f"Nodes.items[{position}]", "malformed JSON: not UTF-8") from None


def _spelled_as_in_go(body: Body) -> _Args:
    try:
        return _args_decoder.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        pass  # not in kube-scheduler's form: decode field by field instead
    fields = EXTENDER_ARGS.decode(body)
    return _Args(
        fields.get("Pod", NULL),
        _decoded_node_list(fields.get("Nodes", NULL)),
        _decoded_names(fields.get("NodeNames", NULL)),
    )


def _decoded_names(raw: msgspec.Raw) -> list[str] | None:
    with under("NodeNames"):
        names: list[str] | None = decoding(_names_decoder.decode, raw)
    return names


def _decoded_node_list(raw: msgspec.Raw) -> NodeList | None:
    if raw == NULL:
        return None
    with under("Nodes"):
        return decoding(_node_list_decoder.decode, raw)


def _nodes_field(node_list: NodeList | None) -> str:
    return "NodeNames" if node_list is None else "Nodes.items"
