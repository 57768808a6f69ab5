"""Pod groups: JSON of a scheduling.x-k8s.io/v1alpha1 PodGroup, and labels and annotations of a pod."""

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from app.objects.decode import NULL, AnnotatedMetadata, Int32, Wire, checked_name, decoding, decoding_field
from core.objects.label_validation import label_key_errors
from core.objects.pod_group import (
    GROUP_LABEL,
    MAX_MINIMUM,
    MAX_TIMEOUT,
    MINIMUM_ANNOTATION,
    PACKING_ANNOTATION,
    POD_GROUP_LABEL,
    SPREAD,
    TIMEOUT_ANNOTATION,
    TOPOLOGY_KEY_ANNOTATION,
    Membership,
    Packing,
    PackingWay,
    PodGroup,
)

_number: Final = re.compile(r"[0-9]{1,9}")
_WAYS: Final = {way.value: way for way in PackingWay}


class _PodGroupSpec(Wire):
    min_member: Int32 | None = None
    schedule_timeout_seconds: Int32 | None = None


class _PodGroup(Wire):
    kind: str | None = None
    metadata: AnnotatedMetadata | None = None
    spec: _PodGroupSpec | None = None


_decoder: Final = msgspec.json.Decoder(_PodGroup)
_annotations_decoder: Final[msgspec.json.Decoder[dict[str, str] | None]] = msgspec.json.Decoder(dict[str, str] | None)


def decode_pod_group(raw: bytes | msgspec.Raw) -> PodGroup:
    """Decode a scheduling.x-k8s.io/v1alpha1 PodGroup. Raises DecodeError."""
    wire = decoding(_decoder.decode, raw)
    metadata = wire.metadata or AnnotatedMetadata()
    spec = wire.spec or _PodGroupSpec()
    return PodGroup(
        namespace=metadata.namespace or "default",
        name=checked_name("PodGroup", wire.kind, metadata),
        minimum=spec.min_member or 0,
        timeout=spec.schedule_timeout_seconds or 0,
        packing=_packing_of(metadata.annotations or {}) or SPREAD,
        uid=metadata.uid or "",
        resource_version=metadata.resource_version or "",
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
    found = decoding_field(_annotations_decoder.decode, annotations, "metadata.annotations") or {}
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
