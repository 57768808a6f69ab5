"""Decodes a pod's containers, and other fields about resources, to the pod's demands on its node."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Final

import msgspec

from app.objects.decode import NULL, Int32, Unread, Wire, decoding_field
from app.objects.decode_pod_claims import claimed_of
from app.objects.decode_resources import WireAmounts, amounts_of
from core.objects.host_port import ALL_ADDRESSES, NO_HOST_PORTS, HostPort
from core.objects.pod import normalized_image_name
from core.objects.pod_load import PodLoad, pod_load
from core.objects.pod_requests import (
    Amounts,
    Container,
    PodResources,
    Resources,
    is_best_effort,
    non_zero_requests,
    pod_requests,
    scored_requests,
)
from core.releases import RequestCounting

_COUNTING: Final = RequestCounting()
"""The default counting of requests. If a release counts a pod differently, the mirror counts again (`counted`)."""
_MEMO_ENTRIES: Final = 8192
_MEMO_BYTES: Final = 4 * 1024  # longer ones are parsed each time, so the memo has at most 32 MiB of keys


class WireResources(Wire):
    """A v1.ResourceRequirements."""

    requests: WireAmounts = NULL
    limits: WireAmounts = NULL


class _ContainerPort(Wire):
    host_port: Int32 | None = None
    protocol: str | None = None
    host_ip: str | None = msgspec.field(default=None, name="hostIP")


class _Condition(Wire):
    type: str | None = None
    reason: str | None = None


class WireRestartRule(Wire):
    """The action of a v1.ContainerRestartRule."""

    action: str | None = None


class WireVolumeMount(Wire):
    """The demands of a v1.VolumeMount on the container runtime of the node."""

    bind_mount_options: list[str] | None = None


class WireContainer(Wire, omit_defaults=True):
    """The fields of a v1.Container that concern its node.

    `needed_features` reads the last two. They are left out of the JSON that identifies equal pods.
    """

    name: str | None = None
    image: str | None = None
    restart_policy: str | None = None
    ports: Annotated[msgspec.Raw, Unread(list[_ContainerPort])] = NULL
    resources: Annotated[msgspec.Raw, Unread(WireResources)] = NULL
    restart_policy_rules: Annotated[msgspec.Raw, Unread(list[WireRestartRule])] = NULL
    volume_mounts: Annotated[msgspec.Raw, Unread(list[WireVolumeMount])] = NULL


class WireContainerStatus(Wire, omit_defaults=True):
    """The resources in a v1.ContainerStatus."""

    name: str | None = None
    allocated_resources: WireAmounts = NULL
    resources: Annotated[msgspec.Raw, Unread(WireResources)] = NULL


class WireContainers(Wire, array_like=True):
    """The fields of a v1.Pod that determine its demand, and no others. So equal JSON means equal demand."""

    containers: list[WireContainer] | None
    init_containers: list[WireContainer] | None
    pod_level: msgspec.Raw
    overhead: msgspec.Raw
    container_statuses: list[WireContainerStatus] | None
    init_container_statuses: list[WireContainerStatus] | None
    conditions: msgspec.Raw
    qos_class: str | None
    pod_level_status: msgspec.Raw
    pod_level_allocated: msgspec.Raw
    claim_statuses: msgspec.Raw


class Demand(msgspec.Struct, frozen=True, gc=False):
    """The demands of a pod's containers on its node. Pods with equal demands mostly share one value.

    `resources` is None if every release counts the requests alike.
    """

    requests: Mapping[str, int]
    non_zero_requests: tuple[int, int]
    scored_requests: tuple[int, int]
    load: PodLoad
    best_effort: bool
    host_ports: frozenset[HostPort]
    images: tuple[str, ...]
    resources: PodResources | None = None


_containers_decoder: Final = msgspec.json.Decoder(WireContainers)
_resources_decoder: Final[msgspec.json.Decoder[WireResources | None]] = msgspec.json.Decoder(WireResources | None)
_ports_decoder: Final[msgspec.json.Decoder[list[_ContainerPort] | None]] = msgspec.json.Decoder(
    list[_ContainerPort] | None
)
_conditions_decoder: Final[msgspec.json.Decoder[list[_Condition] | None]] = msgspec.json.Decoder(
    list[_Condition] | None
)
_encoder: Final = msgspec.json.Encoder()


def demand_of(wire: WireContainers) -> Demand:
    """Return the demands of a pod. Raises DecodeError, with the field, for an invalid quantity or port."""
    # Most conditions have only times. The condition that matters here is rare.
    if b"PodResizePending" not in bytes(wire.conditions):
        wire.conditions = NULL
    raw = _encoder.encode(wire)
    return _memoised_demand(raw) if len(raw) <= _MEMO_BYTES else _parse_demand(raw)


def _parse_demand(raw: bytes) -> Demand:
    wire = _containers_decoder.decode(raw)
    containers, init_containers = wire.containers or [], wire.init_containers or []
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
            _container(container, f"spec.containers[{index}]", statuses) for index, container in enumerate(containers)
        ],
        init_containers=[
            _container(container, f"spec.initContainers[{index}]", statuses)
            for index, container in enumerate(init_containers)
        ],
        pod_level=None if wire.pod_level == NULL else _resources(wire.pod_level, "spec.resources"),
        overhead=amounts_of(wire.overhead, "spec.overhead"),
        resize_infeasible=_is_resize_infeasible(wire.conditions),
        qos_class=wire.qos_class or "",
        pod_level_actual=_reported(wire.pod_level_status, "status.resources"),
        pod_level_allocated=_amounts(wire.pod_level_allocated, "status.allocatedResources"),
        pod_level_reported=wire.pod_level_status != NULL,
        claimed={} if wire.claim_statuses == NULL else claimed_of(wire.claim_statuses),
    )
    demand = _shared_demand if len(raw) <= _MEMO_BYTES else _new_demand
    found = demand(
        tuple(pod_requests(pod, _COUNTING).items()),
        (non_zero_requests(pod, _COUNTING), scored_requests(pod), pod_load(pod)),
        is_best_effort(pod),
        _host_ports(containers, init_containers),
        tuple(sorted(normalized_image_name(each.image or "") for each in (*containers, *init_containers))),
    )
    return found if pod.counts_alike else msgspec.structs.replace(found, resources=pod)


def _new_demand(
    requests: tuple[tuple[str, int], ...],
    scoring: tuple[tuple[int, int], tuple[int, int], PodLoad],
    best_effort: bool,  # noqa: FBT001 - a plain value
    host_ports: frozenset[HostPort],
    images: tuple[str, ...],
) -> Demand:
    return Demand(dict(requests), *scoring, best_effort, host_ports, images)


# JSON with different container names or statuses mostly gives the same result.
_shared_demand = lru_cache(maxsize=_MEMO_ENTRIES)(_new_demand)

_memoised_demand = lru_cache(maxsize=_MEMO_ENTRIES)(_parse_demand)


def _container(
    container: WireContainer, field: str, statuses: Mapping[str | None, tuple[WireContainerStatus, str]]
) -> Container:
    resources = _resources(container.resources, f"{field}.resources")
    sidecar = container.restart_policy == "Always"
    status, place = statuses.get(container.name, (WireContainerStatus(), ""))
    return Container(
        resources,
        sidecar,
        actual=_reported(status.resources, f"{place}.resources"),
        allocated=_amounts(status.allocated_resources, f"{place}.allocatedResources"),
        reported=status.resources != NULL,
    )


def _host_ports(containers: Sequence[WireContainer], init_containers: Sequence[WireContainer]) -> frozenset[HostPort]:
    """Upstream schedutil.GetHostPorts: the ports of containers that run as long as the pod."""
    taken = [port for index, each in enumerate(containers) for port in _ports(each, f"spec.containers[{index}].ports")]
    for index, each in enumerate(init_containers):
        ports = _ports(each, f"spec.initContainers[{index}].ports")
        taken += ports if each.restart_policy == "Always" else []
    return frozenset(taken) if taken else NO_HOST_PORTS


def _ports(container: WireContainer, field: str) -> list[HostPort]:
    return [
        HostPort(port.host_port, port.protocol or "TCP", port.host_ip or ALL_ADDRESSES)
        for port in decoding_field(_ports_decoder.decode, container.ports, field) or ()
        if port.host_port is not None and port.host_port > 0
    ]


def _resources(raw: msgspec.Raw, field: str) -> Resources:
    wire = decoding_field(_resources_decoder.decode, raw, field) or WireResources()
    return Resources(amounts_of(wire.requests, f"{field}.requests"), amounts_of(wire.limits, f"{field}.limits"))


def _reported(raw: msgspec.Raw, field: str) -> Amounts | None:
    """Return the requests in a status. None if the field is absent."""
    wire = decoding_field(_resources_decoder.decode, raw, field) or WireResources()
    amounts_of(wire.limits, f"{field}.limits")  # unused, but malformed limits are rejected
    return _amounts(wire.requests, f"{field}.requests")


def _amounts(raw: msgspec.Raw, field: str) -> Amounts | None:
    return None if raw == NULL else amounts_of(raw, field)


def _is_resize_infeasible(raw: msgspec.Raw) -> bool:
    """Upstream IsPodResizeInfeasible: the first condition of that type counts."""
    for condition in decoding_field(_conditions_decoder.decode, raw, "status.conditions") or ():
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False
