"""JSON of a policy/v1 PodDisruptionBudget to the core's value."""

from typing import Final

import msgspec

from app.objects.decode import Int32, LabelSelector, Metadata, Wire, checked_name, decoding, selector_or_nothing
from core.objects.disruption import PodDisruptionBudget


class _Spec(Wire):
    selector: LabelSelector | None = None


class _Status(Wire):
    disruptions_allowed: Int32 | None = None
    disrupted_pods: dict[str, msgspec.Raw] | None = None


class _PodDisruptionBudget(Wire):
    kind: str | None = None
    metadata: Metadata | None = None
    spec: _Spec | None = None
    status: _Status | None = None


_decoder: Final = msgspec.json.Decoder(_PodDisruptionBudget)


def decode_pod_disruption_budget(raw: bytes | msgspec.Raw) -> PodDisruptionBudget:
    """Decode a policy/v1 PodDisruptionBudget. Raises DecodeError."""
    wire = decoding(_decoder.decode, raw)
    metadata = wire.metadata or Metadata()
    status = wire.status or _Status()
    return PodDisruptionBudget(
        namespace=metadata.namespace or "default",
        name=checked_name("PodDisruptionBudget", wire.kind, metadata),
        selector=selector_or_nothing((wire.spec or _Spec()).selector),  # as in upstream's preemption
        disruptions_allowed=status.disruptions_allowed or 0,
        disrupted_pods=frozenset(status.disrupted_pods or ()),
        uid=metadata.uid or "",
        resource_version=metadata.resource_version or "",
    )
