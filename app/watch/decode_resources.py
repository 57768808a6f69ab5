"""JSON of quantities, and of all that the resources of a pod or node follow from."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import msgspec

from app.watch.decode import NULL, DecodeError, Wire, decoding_field
from core.objects.pod_requests import (
    Amounts,
    Container,
    PodResources,
    Resources,
    is_best_effort,
    pod_requests,
    rounded,
)
from core.objects.quantity import QuantityError, nanos

_MEMO_ENTRIES: Final = 8192
_MEMO_BYTES: Final = 4 * 1024  # longer ones are parsed each time: a memo is bounded to 32 MiB of keys


class WireContainer(Wire, omit_defaults=True):
    """What a v1.Container says of its resources."""

    name: str | None = None
    restart_policy: str | None = None
    resources: msgspec.Raw = NULL


class WireContainerStatus(Wire, omit_defaults=True):
    """What a v1.ContainerStatus says of the container's resources."""

    name: str | None = None
    resources: msgspec.Raw = NULL
    allocated_resources: msgspec.Raw = NULL


class WirePodResources(Wire, array_like=True):
    """All of a v1.Pod that its resources follow from, and nothing else, so that its JSON tells pods alike."""

    containers: list[WireContainer] | None
    init_containers: list[WireContainer] | None
    pod_level: msgspec.Raw
    overhead: msgspec.Raw
    container_statuses: list[WireContainerStatus] | None
    init_container_statuses: list[WireContainerStatus] | None
    conditions: msgspec.Raw
    qos_class: str | None


class Demand(msgspec.Struct, frozen=True, gc=False):
    """What a pod asks of its node's resources; pods that say the same mostly share one value."""

    requests: Mapping[str, int]
    best_effort: bool


class _Resources(Wire):
    requests: msgspec.Raw = NULL
    limits: msgspec.Raw = NULL


class _Condition(Wire):
    type: str | None = None
    reason: str | None = None


_pod_resources_decoder: Final = msgspec.json.Decoder(WirePodResources)
_resources_decoder: Final[msgspec.json.Decoder[_Resources | None]] = msgspec.json.Decoder(_Resources | None)
_amounts_decoder: Final[msgspec.json.Decoder[dict[str, msgspec.Raw] | None]] = msgspec.json.Decoder(
    dict[str, msgspec.Raw] | None
)
_conditions_decoder: Final[msgspec.json.Decoder[list[_Condition] | None]] = msgspec.json.Decoder(
    list[_Condition] | None
)
_text_decoder: Final = msgspec.json.Decoder(str)
_encoder: Final = msgspec.json.Encoder()


def demand_of(wire: WirePodResources) -> Demand:
    """Return what a pod asks for. Raises DecodeError for a quantity that is none, with its field."""
    # Most conditions say when something happened; the one that matters here is rare.
    if b"PodResizePending" not in bytes(wire.conditions):
        wire.conditions = NULL
    raw = _encoder.encode(wire)
    return _memoised_demand(raw) if len(raw) <= _MEMO_BYTES else _parse_demand(raw)


def allocatable_of(raw: msgspec.Raw) -> Mapping[str, int]:
    """Return a node's status.allocatable; nodes with the same one share it. Raises DecodeError."""
    text = bytes(raw)
    return _memoised_allocatable(text) if len(text) <= _MEMO_BYTES else _parse_allocatable(text)


def quantity_of(raw: msgspec.Raw, field: str) -> int:
    """Return a quantity exactly, as `nanos` does; null is 0, as in Go. Raises DecodeError."""
    text = bytes(raw)
    if text == b"null":
        return 0
    try:
        # A number is taken as it is written, so that nothing is lost on the way through a float.
        return nanos(decoding_field(_text_decoder.decode, raw, field).strip() if text[:1] == b'"' else text.decode())
    except QuantityError as error:
        raise DecodeError(field, str(error)) from None


def amounts_of(raw: msgspec.Raw | bytes, field: str) -> Amounts:
    """Return a v1.ResourceList exactly. Raises DecodeError."""
    quantities = decoding_field(_amounts_decoder.decode, raw, field) or {}
    return {name: quantity_of(quantity, f"{field}.{name}") for name, quantity in quantities.items()}


def _parse_allocatable(raw: bytes) -> Mapping[str, int]:
    return rounded(amounts_of(raw, "status.allocatable"))


_memoised_allocatable = lru_cache(maxsize=_MEMO_ENTRIES)(_parse_allocatable)


def _parse_demand(raw: bytes) -> Demand:
    wire = _pod_resources_decoder.decode(raw)
    statuses = {
        status.name: (status, f"status.{member}[{index}]")
        for member, listed in (
            ("containerStatuses", wire.container_statuses),
            ("initContainerStatuses", wire.init_container_statuses),
        )
        for index, status in enumerate(listed or ())
    }
    pod = PodResources(
        containers=[
            _container(container, f"spec.containers[{index}]", statuses)
            for index, container in enumerate(wire.containers or ())
        ],
        init_containers=[
            _container(container, f"spec.initContainers[{index}]", statuses)
            for index, container in enumerate(wire.init_containers or ())
        ],
        pod_level=None if wire.pod_level == NULL else _resources(wire.pod_level, "spec.resources"),
        overhead=amounts_of(wire.overhead, "spec.overhead"),
        resize_infeasible=_is_resize_infeasible(wire.conditions),
        qos_class=wire.qos_class or "",
    )
    return _shared_demand(tuple(pod_requests(pod).items()), is_best_effort(pod))


@lru_cache(maxsize=_MEMO_ENTRIES)
def _shared_demand(requests: tuple[tuple[str, int], ...], best_effort: bool) -> Demand:  # noqa: FBT001 - a plain value
    # What is said differs by container names and by status, what comes of it mostly does not.
    return Demand(dict(requests), best_effort)


_memoised_demand = lru_cache(maxsize=_MEMO_ENTRIES)(_parse_demand)


def _container(
    container: WireContainer, field: str, statuses: Mapping[str | None, tuple[WireContainerStatus, str]]
) -> Container:
    resources = _resources(container.resources, f"{field}.resources")
    sidecar = container.restart_policy == "Always"
    status, place = statuses.get(container.name, (WireContainerStatus(), ""))
    if status.resources == NULL:
        return Container(resources, sidecar)
    return Container(
        resources,
        sidecar,
        actual=_resources(status.resources, f"{place}.resources").requests,
        allocated=amounts_of(status.allocated_resources, f"{place}.allocatedResources"),
    )


def _resources(raw: msgspec.Raw, field: str) -> Resources:
    wire = decoding_field(_resources_decoder.decode, raw, field) or _Resources()
    return Resources(amounts_of(wire.requests, f"{field}.requests"), amounts_of(wire.limits, f"{field}.limits"))


def _is_resize_infeasible(raw: msgspec.Raw) -> bool:
    """Upstream IsPodResizeInfeasible: the first such condition tells."""
    for condition in decoding_field(_conditions_decoder.decode, raw, "status.conditions") or ():
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False
