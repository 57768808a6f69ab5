"""Decodes the claimed resources of a pod: the cpu, memory and huge pages of its node that its resource claims allocate.

DynamicResources writes them to status.nodeAllocatableResourceClaimStatuses before the pod is bound.

Source: k8s.io/component-helpers resource/helpers.go (AggregateContainerRequests in v1.36,
addDRANodeAllocatableClaimResources since v1.37).
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Final

import msgspec

from app.objects.decode import NULL, Unread, Wire, decoding_field
from app.objects.decode_resources import Quantity, WireAmounts, amounts_of, quantity_of
from core.objects.pod_requests import Amounts
from core.releases import ClaimedResources

_FIELD: Final = "status.nodeAllocatableResourceClaimStatuses"


class _Mapped(Wire):
    """A v1.NodeAllocatableMappedResources."""

    name: str | None = None
    quantity: Annotated[msgspec.Raw, Unread(Quantity)] = NULL


class _Overhead(Wire):
    """A v1.NodeAllocatableOverheadResources."""

    name: str | None = None
    per_pod: Annotated[msgspec.Raw, Unread(Quantity)] = NULL
    per_container: Annotated[msgspec.Raw, Unread(Quantity)] = NULL


class WireClaimStatus(Wire):
    """A v1.NodeAllocatableResourceClaimStatus: `resources` in 1.36, `mapping` and `overhead` since 1.37."""

    containers: list[str] | None = None
    resources: WireAmounts = NULL
    mapping: list[_Mapped] | None = None
    overhead: list[_Overhead] | None = None


_statuses_decoder: Final[msgspec.json.Decoder[list[WireClaimStatus] | None]] = msgspec.json.Decoder(
    list[WireClaimStatus] | None
)


def claimed_of(raw: msgspec.Raw) -> Mapping[ClaimedResources, Amounts]:
    """Return the sums over the claims, by the form of the status that has them. Raises DecodeError, with the field."""
    listed: dict[str, int] = {}
    mapped: dict[str, int] = {}
    statuses = decoding_field(_statuses_decoder.decode, raw, _FIELD)
    for index, status in enumerate(statuses or ()):
        field = f"{_FIELD}[{index}]"
        for name, amount in amounts_of(status.resources, f"{field}.resources").items():
            listed[name] = listed.get(name, 0) + amount
        for name, amount in (*_mapping(status, field), *_overhead(status, field)):
            mapped[name] = mapped.get(name, 0) + amount
    forms = ((ClaimedResources.LISTED, listed), (ClaimedResources.MAPPED, mapped))
    return {form: amounts for form, amounts in forms if amounts}


def _mapping(status: WireClaimStatus, field: str) -> Iterator[tuple[str, int]]:
    """Yield a claim's own amounts. All containers that use the claim share them."""
    for index, each in enumerate(status.mapping or ()):
        if each.quantity != NULL:
            yield each.name or "", quantity_of(each.quantity, f"{field}.mapping[{index}].quantity")


def _overhead(status: WireClaimStatus, field: str) -> Iterator[tuple[str, int]]:
    """Yield the overhead of a claim's devices: once for the pod, and once for each container with the claim."""
    containers = len(status.containers or ())
    for index, each in enumerate(status.overhead or ()):
        place = f"{field}.overhead[{index}]"
        of_containers = containers * quantity_of(each.per_container, f"{place}.perContainer")
        yield each.name or "", quantity_of(each.per_pod, f"{place}.perPod") + of_containers
