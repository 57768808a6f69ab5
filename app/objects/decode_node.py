"""JSON of a v1.Node to the core's value."""

from collections.abc import Mapping
from functools import lru_cache
from sys import intern
from typing import Annotated, Final

import msgspec

from app.objects.decode import (
    MAX_LABEL_VALUE_BYTES,
    NULL,
    Metadata,
    Unread,
    Wire,
    WireAmounts,
    WireObject,
    amounts_decoder,
    amounts_of,
    checked_name,
    decoding,
    decoding_field,
    labels_of,
    memoised,
    quantity_of,
    refuse_long_key,
    refuse_longer,
)
from core.objects.node import CONDITION_TYPES, NO_FEATURES, Node
from core.objects.pod import Taint
from core.objects.pod_requests import rounded

_MEASURED: Final = ("cpu", "memory")
"""Resources whose usage is measured, as a share of the capacity."""


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


class WireNode(WireObject):
    """A v1.Node. Fields that many nodes have in common stay bytes."""

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
        labels=labels_of(metadata.labels),
        allocatable=_allocatable_of(status.allocatable),
        taints=_taints_of(spec.taints) if spec.taints is not NULL else (),
        unschedulable=spec.unschedulable or False,
        images=_images_of(status.images) if status.images else {},
        conditions=_conditions_of(_encoder.encode(status.conditions)) if status.conditions else {},
        uid=metadata.uid or "",
        resource_version=metadata.resource_version or "",
        declared_features=_shared_features(frozenset(status.declared_features))
        if status.declared_features
        else NO_FEATURES,
        capacity=_capacity_of(status.capacity) if status.capacity is not NULL else {},
    )


@lru_cache(maxsize=8192)
def _shared_features(features: frozenset[str]) -> frozenset[str]:
    """Return the features. Nodes of one version declare the same features and share the set."""
    return features


def _parse_taints(raw: bytes) -> tuple[Taint, ...]:
    taints = decoding_field(_taints_decoder.decode, raw, "spec.taints") or ()
    for index, taint in enumerate(taints):
        refuse_long_key(taint.key, f"spec.taints[{index}].key")
        refuse_longer(taint.value, MAX_LABEL_VALUE_BYTES, f"spec.taints[{index}].value")
    return tuple(Taint(taint.key or "", taint.value or "", taint.effect or "") for taint in taints)


def _parse_conditions(raw: bytes) -> Mapping[str, str]:
    # Of several conditions of one type the last counts, as in upstream's NodeInfo.SetNode of v1.12, which had them.
    return {
        condition.type: condition.status or ""
        for condition in _conditions_decoder.decode(raw)
        if condition.type in CONDITION_TYPES
    }


def _parse_allocatable(raw: bytes) -> Mapping[str, int]:
    return rounded(amounts_of(raw, "status.allocatable"))


def _parse_capacity(raw: bytes) -> Mapping[str, int]:
    quantities = decoding_field(amounts_decoder.decode, raw, "status.capacity") or {}
    return rounded(
        {name: quantity_of(quantities[name], f"status.capacity.{name}") for name in _MEASURED if name in quantities}
    )


# Nodes with equal values share them.
_taints_of: Final = memoised(_parse_taints)
_conditions_of: Final = memoised(_parse_conditions)  # encoded again: the received bytes have heartbeat times
_allocatable_of: Final = memoised(_parse_allocatable, longest=4 * 1024)
_capacity_of: Final = memoised(_parse_capacity, longest=4 * 1024)


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
