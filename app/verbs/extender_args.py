"""ExtenderArgs, the body of a request from kube-scheduler, from bytes.

The Go structs have no JSON tags, so Go writes `NodeNames` and reads keys in any case. So does Kindred. JSON in Go's
form has a faster path: the nodes of a long list are looked up without a str for each name.
"""

import codecs
from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from app.objects.decode import MAX_NAME_BYTES, NULL, DecodeError, decoding, is_longer, under
from app.objects.decode_node import decode_node
from app.objects.go_struct import EXTENDER_ARGS, members_of
from app.objects.limits import MAX_NODES, Body, refuse_too_many_elements
from app.verbs.known_names import Known, KnownNames
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch

ABSENT: Final = msgspec.Raw(b"")

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

    pod: msgspec.Raw
    batch: NodeBatch
    node_list: NodeList | None = None
    """The node objects of the request, one item for each node of the batch. None for a request with names."""
    written: memoryview | None = None
    """The names as written in the body, without brackets, if the body has Go's form."""
    known: Known | None = None
    """The known list with these names, if there is one."""


def decode_args(body: Body, mirror: ClusterMirror, known_names: KnownNames | None = None) -> ExtenderArgs:
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


def names_asked(body: Body) -> Sequence[str]:
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


def _args_by_known_names(body: Body, mirror: ClusterMirror, known_names: KnownNames | None) -> ExtenderArgs | None:
    """Read a body in Go's form whose node names are all known. None for any other body.

    The names are the last field and are known to be valid JSON. So the body is valid JSON if the part before them is.
    """
    begin = body.find(_NAMES_BEGIN)
    end = body.rfind(_NAMES_END, max(0, len(body) - _MAX_TAIL_LENGTH))
    if not 0 <= begin < end or body[end + len(_NAMES_END) :].strip():
        return None
    names_begin = begin + len(_NAMES_BEGIN)
    known = known_names.find(body, names_begin, end) if known_names is not None else None
    if known is not None:
        batch: NodeBatch | None = NodeBatch.of_slots(mirror.nodes, known.slots)
    else:
        batch = NodeBatch.found(mirror.nodes, body, names_begin, end)
    if batch is None:
        return None
    try:
        args = _args_decoder.decode(body[:begin] + b'"NodeNames":null}')
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    if args.nodes is not None:
        return None
    return ExtenderArgs(args.pod, batch, written=memoryview(body)[names_begin:end], known=known)


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
    for position in args.batch.strangers:
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
