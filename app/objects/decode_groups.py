"""Groups of pods: JSON of a PodGroup of scheduling.x-k8s.io or scheduling.k8s.io, and the group of a pod."""

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from app.objects.decode import (
    NULL,
    AnnotatedMetadata,
    AnnotatedObject,
    Int32,
    Wire,
    WireObject,
    decoding,
    decoding_field,
    names_in_namespace,
    nullable,
    text_map_of,
    texts,
)
from core.objects.groups import (
    GROUP_LABEL,
    MAX_MINIMUM,
    MAX_TIMEOUT,
    MINIMUM_ANNOTATION,
    PACKING_ANNOTATION,
    POD_GROUP_LABEL,
    SPREAD,
    TIMEOUT_ANNOTATION,
    TOPOLOGY_KEY_ANNOTATION,
    GroupCondition,
    Membership,
    Packing,
    PackingWay,
    PodGroup,
    SchedulingGroup,
)
from core.objects.labels import label_key_errors

_number: Final = re.compile(r"[0-9]{1,9}")
_WAYS: Final = {way.value: way for way in PackingWay}


class _PodGroupSpec(Wire):
    min_member: Int32 | None = None
    schedule_timeout_seconds: Int32 | None = None


class _PodGroup(AnnotatedObject):
    spec: _PodGroupSpec | None = None


_pod_group_decoder: Final = msgspec.json.Decoder(_PodGroup)


def decode_pod_group(raw: bytes | msgspec.Raw) -> PodGroup:
    """Decode a scheduling.x-k8s.io/v1alpha1 PodGroup. Raises DecodeError."""
    wire = decoding(_pod_group_decoder.decode, raw)
    metadata = wire.metadata or AnnotatedMetadata()
    spec = wire.spec or _PodGroupSpec()
    return PodGroup(
        **names_in_namespace("PodGroup", wire),
        minimum=spec.min_member or 0,
        timeout=spec.schedule_timeout_seconds or 0,
        packing=_packing_of(texts(metadata.annotations)) or SPREAD,
    )


def membership_of(labels: Mapping[str, str], annotations: msgspec.Raw) -> Membership | None:
    """Return a pod's group and its settings. None for a pod without a group. An invalid value is a `problem`.

    Annotations are decoded only for pods with the label `kindred.dev/group`. Raises DecodeError for invalid JSON.
    """
    name = labels.get(GROUP_LABEL)
    if not name:
        name = labels.get(POD_GROUP_LABEL)
        return Membership(name, by_object=True) if name else None
    if annotations is NULL:
        return Membership(name)
    found = text_map_of(annotations, "metadata.annotations")
    minimum, wrong_minimum = _checked(found, MINIMUM_ANNOTATION, MAX_MINIMUM)
    timeout, wrong_timeout = _checked(found, TIMEOUT_ANNOTATION, int(MAX_TIMEOUT))
    problem = wrong_minimum or wrong_timeout
    return Membership(name, minimum=minimum, timeout=float(timeout), problem=problem, packing=_packing_of(found))


def _packing_of(annotations: Mapping[str, str]) -> Packing | None:
    """Return the packing in the annotations. None without such annotations. An invalid value is a `problem`."""
    text, key = annotations.get(PACKING_ANNOTATION), annotations.get(TOPOLOGY_KEY_ANNOTATION)
    if text is None:
        return None if key is None else _no_packing(PACKING_ANNOTATION, f"missing beside {TOPOLOGY_KEY_ANNOTATION}")
    way = _WAYS.get(text)
    if way is None:
        return _no_packing(PACKING_ANNOTATION, f"expected spread, pack or near, got {text[:64]!r}")
    if way is not PackingWay.NEAR:
        unread = f"is read with near alone, not with {text}"
        return Packing(way) if key is None else _no_packing(TOPOLOGY_KEY_ANNOTATION, unread)
    if key is None:
        return _no_packing(TOPOLOGY_KEY_ANNOTATION, "missing, and near needs the key of a node label")
    wrong = label_key_errors(key)
    return _no_packing(TOPOLOGY_KEY_ANNOTATION, f"{wrong[0]}, got {key[:64]!r}") if wrong else Packing(way, key)


def _no_packing(annotation: str, problem: str) -> Packing:
    return Packing(problem=f"metadata.annotations[{annotation}]: {problem}")


def _checked(annotations: Mapping[str, str], key: str, most: int) -> tuple[int, str]:
    """Return the number in an annotation, and its error. The number is 0 without the annotation."""
    text = annotations.get(key)
    if text is None:
        return 0, ""
    if _number.fullmatch(text) and 1 <= int(text) <= most:
        return int(text), ""
    return 0, f"metadata.annotations[{key}]: expected a number 1..{most}, got {text[:64]!r}"


class _Gang(Wire):
    min_count: Int32 | None = None


class _Policy(Wire):
    gang: _Gang | None = None


class _Constraints(Wire):
    topology: list[msgspec.Raw] | None = None


class _DisruptionMode(Wire):
    all: dict[str, msgspec.Raw] | None = None


class _SchedulingGroupSpec(Wire):
    scheduling_policy: _Policy | None = None
    scheduling_constraints: _Constraints | None = None
    parent_composite_pod_group_name: str | None = None
    disruption_mode: str | _DisruptionMode | None = None


class Condition(Wire):
    """A condition of any object."""

    type: str | None = None
    status: str | None = None


class WireCondition(Condition):
    """A condition of a PodGroup or of a pod, with the fields that people read."""

    reason: str | None = None
    message: str | None = None
    last_transition_time: str | None = None


EMPTY_CONDITION: Final = WireCondition()
_conditions_decoder: Final = nullable(list[WireCondition])


def condition_of(raw: msgspec.Raw, kind: str) -> WireCondition:
    """Return the first condition of a type in the `status.conditions` of a pod, as upstream. Else an empty one."""
    for condition in decoding_field(_conditions_decoder.decode, raw, "status.conditions") or ():
        if condition.type == kind:
            return condition
    return EMPTY_CONDITION


class _SchedulingGroupStatus(Wire):
    conditions: list[WireCondition] | None = None


class _SchedulingGroup(WireObject):
    spec: _SchedulingGroupSpec | None = None
    status: _SchedulingGroupStatus | None = None


_scheduling_group_decoder: Final = msgspec.json.Decoder(_SchedulingGroup)


def decode_scheduling_group(raw: bytes | msgspec.Raw) -> SchedulingGroup:
    """Decode a scheduling.k8s.io PodGroup of v1alpha2, v1alpha3, v1beta1 or v1. Raises DecodeError."""
    wire = decoding(_scheduling_group_decoder.decode, raw)
    spec = wire.spec or _SchedulingGroupSpec()
    gang = (spec.scheduling_policy or _Policy()).gang
    return SchedulingGroup(
        **names_in_namespace("PodGroup", wire),
        minimum=max(1, gang.min_count or 1) if gang is not None else 1,
        disrupted_whole=_is_whole(spec.disruption_mode),
        unsupported=_unsupported(spec),
        conditions=tuple(map(_condition, (wire.status or _SchedulingGroupStatus()).conditions or ())),
    )


def _is_whole(mode: str | _DisruptionMode | None) -> bool:
    if isinstance(mode, _DisruptionMode):
        return mode.all is not None
    return mode == "PodGroup"  # in v1alpha2; later versions have the member `all`


def _unsupported(spec: _SchedulingGroupSpec) -> str:
    if spec.parent_composite_pod_group_name:
        return "spec.parentCompositePodGroupName"
    constraints = spec.scheduling_constraints
    return "spec.schedulingConstraints" if constraints is not None and constraints.topology else ""


def _condition(wire: WireCondition) -> GroupCondition:
    return GroupCondition(
        wire.type or "",
        wire.status or "",
        wire.reason or "",
        wire.message or "",
        wire.last_transition_time or "",
    )
