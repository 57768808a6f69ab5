"""JSON of a v1.Node to the core's value."""

from collections.abc import Mapping
from functools import lru_cache
from sys import intern
from typing import Annotated, Final

import msgspec

from app.objects.decode import (
    NULL,
    Metadata,
    Unread,
    Wire,
    checked_name,
    decoding,
    decoding_field,
    labels_of,
    refuse_long_key,
    refuse_longer,
)
from app.objects.decode_resources import WireAmounts, allocatable_of, capacity_of
from app.objects.sizes import MAX_LABEL_VALUE_BYTES
from core.objects.node import CONDITION_TYPES, NO_FEATURES, Node
from core.objects.toleration import Taint

_MEMO_ENTRIES: Final = 8192
_MEMO_BYTES: Final = 2 * 1024  # longer taints or conditions are parsed each time, so a memo has at most 16 MiB of keys


class _Taint(Wire):
    key: str | None = None
    value: str | None = None
    effect: str | None = None


class _NodeCondition(Wire):
    type: str | None = None
    status: str | None = None


class _Image(Wire):
    names: list[str] | None = None
    size_bytes: Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)] | None = None


class _NodeSpec(Wire):
    taints: Annotated[msgspec.Raw, Unread(list[_Taint])] = NULL
    unschedulable: bool | None = None


class _NodeStatus(Wire):
    allocatable: WireAmounts = NULL
    capacity: WireAmounts = NULL
    conditions: list[_NodeCondition] | None = None
    declared_features: list[str] | None = None
    images: list[_Image] | None = None


class WireNode(Wire):
    """A v1.Node. Fields that many nodes have in common stay bytes."""

    kind: str | None = None
    metadata: Metadata | None = None
    spec: _NodeSpec | None = None
    status: _NodeStatus | None = None


_node_decoder: Final = msgspec.json.Decoder(WireNode)
_taints_decoder: Final[msgspec.json.Decoder[list[_Taint] | None]] = msgspec.json.Decoder(list[_Taint] | None)
_conditions_decoder: Final = msgspec.json.Decoder(list[_NodeCondition])
_encoder: Final = msgspec.json.Encoder()
_EMPTY_SPEC: Final = _NodeSpec()
_EMPTY_STATUS: Final = _NodeStatus()


def decode_node(raw: bytes | msgspec.Raw) -> Node:
    """Decode a v1.Node. Raises DecodeError."""
    wire = decoding(_node_decoder.decode, raw)
    metadata = wire.metadata or Metadata()
    spec = wire.spec or _EMPTY_SPEC
    status = wire.status or _EMPTY_STATUS
    return Node(
        name=checked_name("Node", wire.kind, metadata),
        labels=labels_of(metadata),
        allocatable=allocatable_of(status.allocatable),
        taints=_taints_of(spec.taints) if spec.taints is not NULL else (),
        unschedulable=spec.unschedulable or False,
        images=_images_of(status.images) if status.images else {},
        conditions=_conditions_of(status.conditions) if status.conditions else {},
        uid=metadata.uid or "",
        resource_version=metadata.resource_version or "",
        declared_features=_shared_features(frozenset(status.declared_features))
        if status.declared_features
        else NO_FEATURES,
        capacity=capacity_of(status.capacity) if status.capacity is not NULL else {},
    )


@lru_cache(maxsize=_MEMO_ENTRIES)
def _shared_features(features: frozenset[str]) -> frozenset[str]:
    """Return the features. Nodes of one version declare the same features and share the set."""
    return features


def _taints_of(raw: msgspec.Raw) -> tuple[Taint, ...]:
    """Return the taints in their order. Nodes with equal taints share them."""
    text = bytes(raw)
    return _memoised_taints(text) if len(text) <= _MEMO_BYTES else _parse_taints(text)


def _parse_taints(raw: bytes) -> tuple[Taint, ...]:
    taints = decoding_field(_taints_decoder.decode, raw, "spec.taints") or ()
    for index, taint in enumerate(taints):
        refuse_long_key(taint.key, f"spec.taints[{index}].key")
        refuse_longer(taint.value, MAX_LABEL_VALUE_BYTES, f"spec.taints[{index}].value")
    return tuple(Taint(taint.key or "", taint.value or "", taint.effect or "") for taint in taints)


_memoised_taints = lru_cache(maxsize=_MEMO_ENTRIES)(_parse_taints)


def _conditions_of(conditions: list[_NodeCondition]) -> Mapping[str, str]:
    """Return the status of the relevant conditions. Nodes with equal conditions share the mapping."""
    # Encoded again, because the received bytes have heartbeat times, which differ for each node.
    raw = _encoder.encode(conditions)
    return _memoised_conditions(raw) if len(raw) <= _MEMO_BYTES else _parse_conditions(raw)


def _parse_conditions(raw: bytes) -> Mapping[str, str]:
    # Of several conditions of one type the last counts, as in upstream's NodeInfo.SetNode of v1.12, which had them.
    return {
        condition.type: condition.status or ""
        for condition in _conditions_decoder.decode(raw)
        if condition.type in CONDITION_TYPES
    }


_memoised_conditions = lru_cache(maxsize=_MEMO_ENTRIES)(_parse_conditions)


def _images_of(images: list[_Image]) -> Mapping[str, int]:
    """Return image name -> size. Of several images with one name, the first counts, as in addNodeImageStates.

    Nodes rarely have equal sets of images, but most images are on many nodes. So the names are shared, not the mapping.
    Source: k8s.io/kubernetes pkg/scheduler/backend/cache/cache.go.
    """
    sizes: dict[str, int] = {}
    for image in images:
        for name in image.names or ():
            sizes.setdefault(intern(name), image.size_bytes or 0)
    return sizes
