"""JSON of a scheduling.k8s.io PodGroup, in any version, to the core's value."""

from typing import Final

import msgspec

from app.objects.decode import Int32, Metadata, Wire, checked_name, decoding
from core.objects.scheduling_group import GroupCondition, SchedulingGroup

_WHOLE: Final = "PodGroup"
"""The disruption mode of a whole group in v1alpha2. Later versions have the member `all`."""


class _Gang(Wire):
    min_count: Int32 | None = None


class _Policy(Wire):
    gang: _Gang | None = None


class _Constraints(Wire):
    topology: list[msgspec.Raw] | None = None


class _DisruptionMode(Wire):
    all: dict[str, msgspec.Raw] | None = None


class _Spec(Wire):
    scheduling_policy: _Policy | None = None
    scheduling_constraints: _Constraints | None = None
    parent_composite_pod_group_name: str | None = None
    disruption_mode: str | _DisruptionMode | None = None


class _Condition(Wire):
    type: str | None = None
    status: str | None = None
    reason: str | None = None
    message: str | None = None
    last_transition_time: str | None = None


class _Status(Wire):
    conditions: list[_Condition] | None = None


class _PodGroup(Wire):
    kind: str | None = None
    metadata: Metadata | None = None
    spec: _Spec | None = None
    status: _Status | None = None


_decoder: Final = msgspec.json.Decoder(_PodGroup)


def decode_scheduling_group(raw: bytes | msgspec.Raw) -> SchedulingGroup:
    """Decode a scheduling.k8s.io PodGroup of v1alpha2, v1alpha3, v1beta1 or v1. Raises DecodeError."""
    wire = decoding(_decoder.decode, raw)
    metadata = wire.metadata or Metadata()
    spec = wire.spec or _Spec()
    gang = (spec.scheduling_policy or _Policy()).gang
    return SchedulingGroup(
        namespace=metadata.namespace or "default",
        name=checked_name("PodGroup", wire.kind, metadata),
        minimum=max(1, gang.min_count or 1) if gang is not None else 1,
        disrupted_whole=_is_whole(spec.disruption_mode),
        unsupported=_unsupported(spec),
        conditions=tuple(map(_condition, (wire.status or _Status()).conditions or ())),
        uid=metadata.uid or "",
        resource_version=metadata.resource_version or "",
    )


def _is_whole(mode: str | _DisruptionMode | None) -> bool:
    if isinstance(mode, _DisruptionMode):
        return mode.all is not None
    return mode == _WHOLE


def _unsupported(spec: _Spec) -> str:
    if spec.parent_composite_pod_group_name:
        return "spec.parentCompositePodGroupName"
    constraints = spec.scheduling_constraints
    return "spec.schedulingConstraints" if constraints is not None and constraints.topology else ""


def _condition(wire: _Condition) -> GroupCondition:
    return GroupCondition(
        wire.type or "",
        wire.status or "",
        wire.reason or "",
        wire.message or "",
        wire.last_transition_time or "",
    )
