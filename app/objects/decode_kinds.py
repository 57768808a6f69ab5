"""JSON of the kinds with one or two members that Kindred reads, to the core's values. All raise DecodeError."""

from typing import Final

import msgspec

from app.objects.decode import (
    Int32,
    LabelSelector,
    Metadata,
    Wire,
    WireObject,
    controller_of,
    decoding,
    labels_of,
    names_in_namespace,
    names_of,
    selector_of_labels,
    selector_or_nothing,
)
from core.objects.kinds import (
    DeviceClass,
    Namespace,
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)


class _SelectorSpec(Wire):
    selector: LabelSelector | None = None


class _Owner(WireObject):
    """A ReplicaSet or a StatefulSet."""

    spec: _SelectorSpec | None = None


class _LabelsSpec(Wire):
    selector: dict[str, str] | None = None


class _Selecting(WireObject):
    """A Service or a ReplicationController."""

    spec: _LabelsSpec | None = None


class _BudgetStatus(Wire):
    disruptions_allowed: Int32 | None = None
    disrupted_pods: dict[str, msgspec.Raw] | None = None


class _PodDisruptionBudget(WireObject):
    spec: _SelectorSpec | None = None
    status: _BudgetStatus | None = None


class _DeviceClassSpec(Wire):
    extended_resource_name: str | None = None


class _DeviceClass(WireObject):
    spec: _DeviceClassSpec | None = None


_namespace_decoder: Final = msgspec.json.Decoder(WireObject)
_owner_decoder: Final = msgspec.json.Decoder(_Owner)
_selecting_decoder: Final = msgspec.json.Decoder(_Selecting)
_budget_decoder: Final = msgspec.json.Decoder(_PodDisruptionBudget)
_device_class_decoder: Final = msgspec.json.Decoder(_DeviceClass)


def decode_namespace(raw: bytes | msgspec.Raw) -> Namespace:
    """Decode a v1.Namespace."""
    wire = decoding(_namespace_decoder.decode, raw)
    return Namespace(**names_of("Namespace", wire), labels=labels_of((wire.metadata or Metadata()).labels))


def decode_service(raw: bytes | msgspec.Raw) -> Service:
    """Decode a v1.Service."""
    wire = decoding(_selecting_decoder.decode, raw)
    selector = selector_of_labels((wire.spec or _LabelsSpec()).selector)
    return Service(**names_in_namespace("Service", wire), selector=selector)


def decode_replication_controller(raw: bytes | msgspec.Raw) -> ReplicationController:
    """Decode a v1.ReplicationController."""
    wire = decoding(_selecting_decoder.decode, raw)
    selector = selector_of_labels((wire.spec or _LabelsSpec()).selector)
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


def decode_device_class(raw: bytes | msgspec.Raw) -> DeviceClass:
    """Decode a resource.k8s.io/v1 DeviceClass."""
    wire = decoding(_device_class_decoder.decode, raw)
    extended_resource = (wire.spec or _DeviceClassSpec()).extended_resource_name or ""
    return DeviceClass(**names_of("DeviceClass", wire), extended_resource=extended_resource)
