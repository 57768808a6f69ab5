"""JSON of nodes, and of the kinds with a few fields each, to the core's values."""

from collections.abc import Mapping
from functools import lru_cache
from sys import intern
from typing import Annotated, Final

import msgspec

from app.objects.decode import (
    NULL,
    Int32,
    LabelSelector,
    Metadata,
    TextMap,
    Unread,
    Wire,
    WireAmounts,
    WireObject,
    amounts_decoder,
    amounts_of,
    checked_name,
    controller_of,
    decoding,
    decoding_field,
    labels_of,
    memoised,
    names_in_namespace,
    names_of,
    nullable,
    quantity_of,
    selector_of_labels,
    selector_or_nothing,
    texts,
)
from app.objects.decode_groups import Condition
from app.objects.decode_placement import WireTaint, taint_of
from core.objects.kinds import Namespace, PodDisruptionBudget, ReplicaSet, ReplicationController, Service, StatefulSet
from core.objects.node import CONDITION_TYPES, Node
from core.objects.pod import NO_FEATURES, Taint
from core.objects.pod_requests import rounded

_MEASURED: Final = ("cpu", "memory")
"""Resources whose usage is measured, as a share of the capacity."""


class _Image(Wire):
    names: list[str] | None = None
    size_bytes: Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)] | None = None


class _NodeSpec(Wire):
    taints: Annotated[msgspec.Raw, Unread(list[WireTaint])] = NULL
    unschedulable: bool | None = None


class _NodeStatus(Wire):
    allocatable: WireAmounts = NULL
    capacity: WireAmounts = NULL
    conditions: list[Condition] | None = None
    declared_features: list[str] | None = None
    images: list[_Image] | None = None


class WireNode(WireObject):
    """A v1.Node. Fields that many nodes have in common stay bytes."""

    spec: _NodeSpec | None = None
    status: _NodeStatus | None = None


_node_decoder: Final = msgspec.json.Decoder(WireNode)
_taints_decoder: Final = nullable(list[WireTaint])
_conditions_decoder: Final = msgspec.json.Decoder(list[Condition])
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
    return tuple([taint_of(each, f"spec.taints[{index}]") for index, each in enumerate(taints)])


def _parse_conditions(raw: bytes) -> Mapping[str, str]:
    # Of several conditions of one type the last counts, as in upstream's NodeInfo.SetNode of v1.12, which had them.
    return {
        condition.type: condition.status or ""
        for condition in _conditions_decoder.decode(raw)
        if condition.type in CONDITION_TYPES
    }


def _parse_capacity(raw: bytes) -> Mapping[str, int]:
    quantities = decoding_field(amounts_decoder.decode, raw, "status.capacity") or {}
    return rounded(
        {name: quantity_of(quantities[name], f"status.capacity.{name}") for name in _MEASURED if name in quantities}
    )


# Nodes with equal values share them.
_taints_of: Final = memoised(_parse_taints)
_conditions_of: Final = memoised(_parse_conditions)  # encoded again: the received bytes have heartbeat times
_allocatable_of: Final = memoised(lambda raw: rounded(amounts_of(raw, "status.allocatable")), longest=4 * 1024)
_capacity_of: Final = memoised(_parse_capacity, longest=4 * 1024)


def _images_of(images: list[_Image]) -> Mapping[str, int]:
    """Return image name -> size. Of several images with one name, the first counts, as in addNodeImageStates.

    Nodes rarely have equal sets of images, but most images are on many nodes. So names and sizes are shared, not the
    mapping.
    Source: k8s.io/kubernetes pkg/scheduler/backend/cache/cache.go.
    """
    sizes: dict[str, int] = {}
    for image in images:
        for name in image.names or ():
            sizes.setdefault(intern(name), _shared_size(image.size_bytes or 0))
    return sizes


@lru_cache(maxsize=8192)
def _shared_size(size: int) -> int:
    return size


class _SelectorSpec(Wire):
    selector: LabelSelector | None = None


class _Owner(WireObject):
    """A ReplicaSet or a StatefulSet."""

    spec: _SelectorSpec | None = None


class _LabelsSpec(Wire):
    selector: TextMap | None = None


class _Selecting(WireObject):
    """A Service or a ReplicationController."""

    spec: _LabelsSpec | None = None


class _BudgetStatus(Wire):
    disruptions_allowed: Int32 | None = None
    disrupted_pods: dict[str, msgspec.Raw] | None = None


class _PodDisruptionBudget(WireObject):
    spec: _SelectorSpec | None = None
    status: _BudgetStatus | None = None


_namespace_decoder: Final = msgspec.json.Decoder(WireObject)
_owner_decoder: Final = msgspec.json.Decoder(_Owner)
_selecting_decoder: Final = msgspec.json.Decoder(_Selecting)
_budget_decoder: Final = msgspec.json.Decoder(_PodDisruptionBudget)


def decode_namespace(raw: bytes | msgspec.Raw) -> Namespace:
    """Decode a v1.Namespace."""
    wire = decoding(_namespace_decoder.decode, raw)
    return Namespace(**names_of("Namespace", wire), labels=labels_of((wire.metadata or Metadata()).labels))


def decode_service(raw: bytes | msgspec.Raw) -> Service:
    """Decode a v1.Service."""
    wire = decoding(_selecting_decoder.decode, raw)
    selector = selector_of_labels(texts((wire.spec or _LabelsSpec()).selector))
    return Service(**names_in_namespace("Service", wire), selector=selector)


def decode_replication_controller(raw: bytes | msgspec.Raw) -> ReplicationController:
    """Decode a v1.ReplicationController."""
    wire = decoding(_selecting_decoder.decode, raw)
    selector = selector_of_labels(texts((wire.spec or _LabelsSpec()).selector))
    return ReplicationController(**names_in_namespace("ReplicationController", wire), selector=selector)


def decode_replica_set(raw: bytes | msgspec.Raw) -> ReplicaSet:
    """Decode an apps/v1 ReplicaSet."""
    wire = decoding(_owner_decoder.decode, raw)
    metadata = wire.metadata or Metadata()
    return ReplicaSet(
        **names_in_namespace("ReplicaSet", wire),
        labels=labels_of(metadata.labels),
        controller=controller_of(metadata.owner_references),
        selector=selector_or_nothing((wire.spec or _SelectorSpec()).selector),
    )


def decode_stateful_set(raw: bytes | msgspec.Raw) -> StatefulSet:
    """Decode an apps/v1 StatefulSet."""
    wire = decoding(_owner_decoder.decode, raw)
    selector = selector_or_nothing((wire.spec or _SelectorSpec()).selector)
    return StatefulSet(**names_in_namespace("StatefulSet", wire), selector=selector)


def decode_pod_disruption_budget(raw: bytes | msgspec.Raw) -> PodDisruptionBudget:
    """Decode a policy/v1 PodDisruptionBudget."""
    wire = decoding(_budget_decoder.decode, raw)
    status = wire.status or _BudgetStatus()
    return PodDisruptionBudget(
        **names_in_namespace("PodDisruptionBudget", wire),
        selector=selector_or_nothing((wire.spec or _SelectorSpec()).selector),  # as in upstream's preemption
        disruptions_allowed=status.disruptions_allowed or 0,
        disrupted_pods=frozenset(status.disrupted_pods or ()),
    )
