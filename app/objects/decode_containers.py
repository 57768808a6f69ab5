"""Decodes a pod's containers, resource claims and other fields about resources, to the pod's demands on its node.

DynamicResources writes the cpu, memory and huge pages that claims allocate to the status of a pod, before the pod is
bound. Source: k8s.io/component-helpers resource/helpers.go (AggregateContainerRequests in v1.36,
addDRANodeAllocatableClaimResources since v1.37), and nodedeclaredfeatures/features (InferForScheduling of each) for the
features that a node must declare. The table of releases lists the features of each release.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from app.objects.decode import (
    NULL,
    Int32,
    Quantity,
    Unread,
    Wire,
    WireAmounts,
    amounts_of,
    decoding_field,
    nullable,
    quantity_of,
)
from app.objects.decode_groups import condition_of
from core.objects.pod import ALL_ADDRESSES, NO_FEATURES, NO_HOST_PORTS, Demand, HostPort, normalized_image_name
from core.objects.pod_requests import (
    Amounts,
    Container,
    PodResources,
    Resources,
    extended_requests,
    is_best_effort,
    non_zero_requests,
    origins,
    pod_load,
    pod_requests,
    rounded,
    scored_requests,
)
from core.releases.release import MOUNT_OPTIONS, RESTART_ALL, USERS_OF_HOST, ClaimedResources, RequestCounting

_MEMO_ENTRIES: Final = 8192
_COUNTING: Final = RequestCounting()
"""The default counting of requests. If a release counts a pod differently, the mirror counts again (`counted`)."""
_CLAIMS: Final = "status.nodeAllocatableResourceClaimStatuses"


class _Mapped(Wire):
    """A v1.NodeAllocatableMappedResources."""

    name: str | None = None
    quantity: Annotated[msgspec.Raw, Unread(Quantity)] = NULL


class _ClaimOverhead(Wire):
    """A v1.NodeAllocatableOverheadResources."""

    name: str | None = None
    per_pod: Annotated[msgspec.Raw, Unread(Quantity)] = NULL
    per_container: Annotated[msgspec.Raw, Unread(Quantity)] = NULL


class WireClaimStatus(Wire):
    """A v1.NodeAllocatableResourceClaimStatus: `resources` in 1.36, `mapping` and `overhead` since 1.37."""

    containers: list[str] | None = None
    resources: WireAmounts = NULL
    mapping: list[_Mapped] | None = None
    overhead: list[_ClaimOverhead] | None = None


_statuses_decoder: Final = nullable(list[WireClaimStatus])


def claimed_of(raw: msgspec.Raw) -> Mapping[ClaimedResources, Amounts]:
    """Return the sums over the claims, by the form of the status that has them. Raises DecodeError, with the field."""
    listed: dict[str, int] = {}
    mapped: dict[str, int] = {}
    statuses = decoding_field(_statuses_decoder.decode, raw, _CLAIMS)
    for index, status in enumerate(statuses or ()):
        field = f"{_CLAIMS}[{index}]"
        for name, amount in amounts_of(status.resources, f"{field}.resources").items():
            listed[name] = listed.get(name, 0) + amount
        for name, amount in (*_mapping(status, field), *_claim_overhead(status, field)):
            mapped[name] = mapped.get(name, 0) + amount
    forms = ((ClaimedResources.LISTED, listed), (ClaimedResources.MAPPED, mapped))
    return {form: amounts for form, amounts in forms if amounts}


def _mapping(status: WireClaimStatus, field: str) -> Iterator[tuple[str, int]]:
    """Yield a claim's own amounts. All containers that use the claim share them."""
    for index, each in enumerate(status.mapping or ()):
        if each.quantity != NULL:
            yield each.name or "", quantity_of(each.quantity, f"{field}.mapping[{index}].quantity")


def _claim_overhead(status: WireClaimStatus, field: str) -> Iterator[tuple[str, int]]:
    """Yield the overhead of a claim's devices: once for the pod, and once for each container with the claim."""
    containers = len(status.containers or ())
    for index, each in enumerate(status.overhead or ()):
        place = f"{field}.overhead[{index}]"
        of_containers = containers * quantity_of(each.per_container, f"{place}.perContainer")
        yield each.name or "", quantity_of(each.per_pod, f"{place}.perPod") + of_containers


class WireResources(Wire):
    """A v1.ResourceRequirements."""

    requests: WireAmounts = NULL
    limits: WireAmounts = NULL


class _ContainerPort(Wire):
    host_port: Int32 | None = None
    protocol: str | None = None
    host_ip: str | None = msgspec.field(default=None, name="hostIP")


class _RestartRule(Wire):
    """The action of a v1.ContainerRestartRule."""

    action: str | None = None


class _VolumeMount(Wire, omit_defaults=True):
    """The demands of a v1.VolumeMount on the container runtime of the node."""

    bind_mount_options: list[str] | None = None


class WireContainer(Wire, omit_defaults=True):
    """The fields of a v1.Container that concern its node.

    `needed_features` reads the last two.
    """

    name: str | None = None
    image: str | None = None
    restart_policy: str | None = None
    ports: Annotated[msgspec.Raw, Unread(list[_ContainerPort])] = NULL
    resources: Annotated[msgspec.Raw, Unread(WireResources)] = NULL
    restart_policy_rules: list[_RestartRule] | None = None
    volume_mounts: list[_VolumeMount] | None = None


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


class Demands(NamedTuple):
    """What a pod's containers ask of its node, as fields of Pod. Pods that ask alike mostly share one value."""

    requests: Mapping[str, int]
    best_effort: bool
    demand: Demand


_resources_decoder: Final = nullable(WireResources)
_ports_decoder: Final = nullable(list[_ContainerPort])


def demands_of(wire: WireContainers, features: frozenset[str], *, shared: bool) -> Demands:
    """Return what a pod asks of its node, which has to declare the features.

    `shared`: pods that ask alike get one value. Raises DecodeError, with the field, for an invalid quantity or port.
    """
    containers, init_containers = wire.containers or [], wire.init_containers or []
    pod = _resources_of(wire, containers, init_containers)
    demand = Demand(
        non_zero_requests=non_zero_requests(pod, _COUNTING),
        scored_requests=scored_requests(pod),
        load=pod_load(pod),
        origins=origins(pod, [each.name or "" for each in init_containers]),
        overhead=tuple(rounded(pod.overhead).items()),
        extended_requests=extended_requests(pod),
        host_ports=_host_ports(containers, init_containers),
        images=tuple(sorted(normalized_image_name(each.image or "") for each in (*containers, *init_containers))),
        needed_features=features,
    )
    make = _shared_demands if shared else _demands
    found = make(tuple(pod_requests(pod, _COUNTING).items()), is_best_effort(pod), demand)
    return found if pod.counts_alike else found._replace(demand=replace(found.demand, resources=pod))


def _demands(
    requests: tuple[tuple[str, int], ...],
    best_effort: bool,  # noqa: FBT001 - a plain value
    demand: Demand,
) -> Demands:
    return Demands(dict(requests), best_effort, demand)


# JSON with different container names or statuses mostly gives the same result.
_shared_demands = lru_cache(maxsize=_MEMO_ENTRIES)(_demands)


def _resources_of(
    wire: WireContainers, containers: Sequence[WireContainer], init_containers: Sequence[WireContainer]
) -> PodResources:
    statuses = {
        status.name: (status, f"status.{member}[{index}]")
        for member, listed in (
            ("containerStatuses", wire.container_statuses),
            ("initContainerStatuses", wire.init_container_statuses),
        )
        for index, status in enumerate(listed or ())
    }
    return PodResources(
        containers=[
            _container(container, f"spec.containers[{index}]", statuses) for index, container in enumerate(containers)
        ],
        init_containers=[
            _container(container, f"spec.initContainers[{index}]", statuses)
            for index, container in enumerate(init_containers)
        ],
        pod_level=None if wire.pod_level == NULL else _resources(wire.pod_level, "spec.resources"),
        overhead=amounts_of(wire.overhead, "spec.overhead"),
        resize_infeasible=condition_of(wire.conditions, "PodResizePending").reason == "Infeasible",
        qos_class=wire.qos_class or "",
        pod_level_actual=_reported(wire.pod_level_status, "status.resources"),
        pod_level_allocated=_amounts(wire.pod_level_allocated, "status.allocatedResources"),
        pod_level_reported=wire.pod_level_status != NULL,
        claimed={} if wire.claim_statuses == NULL else claimed_of(wire.claim_statuses),
    )


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


def needed_features(
    wire: WireContainers, ephemeral_containers: list[WireContainer] | None, *, users_of_host: bool
) -> frozenset[str]:
    """Return the features that a pod needs.

    `users_of_host`: the pod has the host's network and its own user namespace.
    """
    long_lived = (*(wire.containers or ()), *(wire.init_containers or ()))
    every = (*long_lived, *(ephemeral_containers or ()))
    needed = {
        RESTART_ALL: any(
            rule.action == "RestartAllContainers" for each in long_lived for rule in each.restart_policy_rules or ()
        ),
        USERS_OF_HOST: users_of_host,
        MOUNT_OPTIONS: any(mount.bind_mount_options for each in every for mount in each.volume_mounts or ()),
    }
    return frozenset(feature for feature, is_needed in needed.items() if is_needed) or NO_FEATURES
