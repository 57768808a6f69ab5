"""JSON of a v1.Node to the core's value."""

from typing import Final

import msgspec

from app.watch.decode import NULL, Metadata, Wire, checked_name, decoding, labels_of
from app.watch.decode_resources import allocatable_of
from core.objects.node import Node


class _NodeStatus(Wire):
    allocatable: msgspec.Raw = NULL


class _Node(Wire):
    kind: str | None = None
    metadata: Metadata | None = None
    status: _NodeStatus | None = None


_node_decoder: Final = msgspec.json.Decoder(_Node)


def decode_node(raw: bytes | msgspec.Raw) -> Node:
    """Decode a v1.Node. Raises DecodeError."""
    wire = decoding(_node_decoder.decode, raw)
    metadata = wire.metadata or Metadata()
    return Node(
        name=checked_name("Node", wire.kind, metadata),
        labels=labels_of(metadata),
        allocatable=allocatable_of(wire.status.allocatable) if wire.status else {},
        uid=metadata.uid or "",
        resource_version=metadata.resource_version or "",
    )
