"""Pod groups: JSON of a scheduling.x-k8s.io/v1alpha1 PodGroup, and labels and annotations of a pod."""

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from app.objects.decode import NULL, Int32, Metadata, Wire, checked_name, decoding, decoding_field
from core.objects.pod_group import (
    GROUP_LABEL,
    MAX_MINIMUM,
    MAX_TIMEOUT,
    MINIMUM_ANNOTATION,
    POD_GROUP_LABEL,
    TIMEOUT_ANNOTATION,
    Membership,
    PodGroup,
)

_number: Final = re.compile(r"[0-9]{1,9}")


class _PodGroupSpec(Wire):
    min_member: Int32 | None = None
    schedule_timeout_seconds: Int32 | None = None


class _PodGroup(Wire):
    kind: str | None = None
    metadata: Metadata | None = None
    spec: _PodGroupSpec | None = None


_decoder: Final = msgspec.json.Decoder(_PodGroup)
_annotations_decoder: Final[msgspec.json.Decoder[dict[str, str] | None]] = msgspec.json.Decoder(dict[str, str] | None)


def decode_pod_group(raw: bytes | msgspec.Raw) -> PodGroup:
    """Decode a scheduling.x-k8s.io/v1alpha1 PodGroup. Raises DecodeError."""
    wire = decoding(_decoder.decode, raw)
    metadata = wire.metadata or Metadata()
    spec = wire.spec or _PodGroupSpec()
    return PodGroup(
        namespace=metadata.namespace or "default",
        name=checked_name("PodGroup", wire.kind, metadata),
        minimum=spec.min_member or 0,
        timeout=spec.schedule_timeout_seconds or 0,
        uid=metadata.uid or "",
        resource_version=metadata.resource_version or "",
    )


def membership_of(labels: Mapping[str, str], annotations: msgspec.Raw) -> Membership | None:
    """Return a pod's fields about its group; None for a pod without one. A wrong annotation is a `problem`.

    Annotations are decoded for pods of a `kindred.dev/group` alone. Raises DecodeError for invalid annotations.
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
    return Membership(name, minimum=minimum, timeout=float(timeout), problem=wrong_minimum or wrong_timeout)


def _checked(annotations: Mapping[str, str], key: str, most: int) -> tuple[int, str]:
    """Return the number of an annotation, 0 without one, and its error."""
    text = annotations.get(key)
    if text is None:
        return 0, ""
    if _number.fullmatch(text) and 1 <= int(text) <= most:
        return int(text), ""
    return 0, f"metadata.annotations[{key}]: expected a number 1..{most}, got {text[:64]!r}"
