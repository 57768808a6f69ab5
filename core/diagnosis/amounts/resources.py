"""What pods take of nodes: resources, as NodeResourcesFit measures them, and host ports, as NodePorts judges them."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

import msgspec
import numpy as np

from core.diagnosis.diagnosis import Diagnosis
from core.diagnosis.pod_names import name_of
from core.mirror.node_info import NO_SLOT, NodeBatch
from core.objects.pod import HostPort, Pod
from core.objects.pod_requests import OVERFLOW, resizes
from core.plugins.nodeports import HostPortsInUse, NodePorts
from core.plugins.noderesources.fit import MeasuredResource, NodeResourcesFit, PreFilterState

MAX_RESOURCES: Final = 32
"""How many resources are reported. Each costs a pass over the nodes, and a pod may name hundreds."""


class ResourceOnNode(msgspec.Struct, frozen=True, gc=False):
    """A resource on one node: cpu in millicores, all others in their own unit (bytes, pieces)."""

    resource: str
    requested: int
    """Requested by the pod, 1 for `pods`."""
    allocatable: int
    in_use: int
    """Requested by the pods on the node."""
    free: int
    """Negative if the pods on the node request more than is allocatable."""
    missing: int
    """The amount that the pod lacks. 0 if the node has enough of this resource for NodeResourcesFit."""


class ResourceInCluster(msgspec.Struct, frozen=True, gc=False):
    """A resource on all known nodes of the request, in the unit of ResourceOnNode."""

    resource: str
    requested: int
    """Requested by the pod."""
    origin: str
    """What decides this amount, such as an init container. Empty: the sum over the containers."""
    free: int
    """Free on all nodes together."""
    most_free: int
    most_free_node: str
    """The first node with the greatest free amount. Empty if no node offers the resource."""
    nodes: int
    """How many nodes have enough of this resource for the pod."""


def measured_resources(decision: Diagnosis, batch: NodeBatch) -> Iterator[MeasuredResource]:
    """Yield the pod's resources on nodes: `pods`, then at most 32 others. None if NodeResourcesFit is not enabled."""
    state = decision.state_of(NodeResourcesFit.name)
    if isinstance(state, PreFilterState):
        yield from state.measured(batch, MAX_RESOURCES)


def resources_on_node(decision: Diagnosis, position: int) -> Sequence[ResourceOnNode]:
    """Return the pod's resources on one node."""
    found = []
    for each in measured_resources(decision, decision.batch.part(np.array([position]))):
        allocatable, in_use = int(each.allocatable[0]), int(each.in_use[0])
        missing = each.asked - (allocatable - in_use) if each.short[0] else 0
        found.append(ResourceOnNode(each.resource, each.asked, allocatable, in_use, allocatable - in_use, missing))
    return found


def resources_in_cluster(decision: Diagnosis) -> Sequence[ResourceInCluster]:
    """Return the pod's resources on all nodes. Empty without a known node."""
    if not len(decision.known):
        return ()
    batch, origins = decision.batch.part(decision.known), dict(decision.pod.origins)
    found = []
    for each in measured_resources(decision, batch):
        free = each.allocatable - each.in_use
        most = int(free.argmax())
        found.append(
            ResourceInCluster(
                resource=each.resource,
                requested=each.asked,
                origin=origins.get(each.resource, ""),
                free=int(free.sum()),
                most_free=int(free[most]),
                most_free_node=batch.names[most] if each.allocatable.any() else "",
                nodes=int(np.count_nonzero(~each.short)),
            )
        )
    return found


def overflows(decision: Diagnosis) -> Sequence[str]:
    """Return the requests of the pod that no int64 holds, with what kube-scheduler counts instead."""
    return [f"{name} is {origin}" for name, origin in decision.pod.origins if origin.startswith(OVERFLOW)]


class WaitingResize(msgspec.Struct, frozen=True, gc=False):
    """A pod on a node whose resize in place is not done. kube-scheduler counts the larger amount."""

    pod: str
    """NAMESPACE/NAME"""
    node: str
    resource: str
    holds: int
    actual: int
    asked: int


def waiting_resizes(decision: Diagnosis, limit: int) -> Sequence[WaitingResize]:
    """Return the resizes that hold most of what the pod requests, if NodeResourcesFit rejects a node.

    None if the search has taken too long, see PodSearch. Source: k8s.io/component-helpers resource/helpers.go
    (AggregateContainerRequests).
    """
    held, pods = decision.mirror.pods.rows.values(), decision.mirror.pods.pods
    if NodeResourcesFit.name not in decision.refusing or not decision.search.may_look_at(len(pods)):
        return ()
    known = {decision.batch.names[position] for position in decision.known.tolist()}
    found = []
    # One short pass over all pods: by mirror.placed_pods() it took 30 ms for 150,000.
    for pod, resources in [(pods[row], resources) for row in held if (resources := pods[row].resources) is not None]:
        for resource, (actual, asked) in resizes(resources).items() if pod.node_name in known else ():
            holds = pod.requests.get(resource, 0)
            if decision.pod.requests.get(resource) and holds > min(actual, asked):
                found.append(WaitingResize(name_of(pod), pod.node_name, resource, holds, actual, asked))
    return sorted(found, key=lambda each: (min(each.actual, each.asked) - each.holds, each.pod))[:limit]


_BINARY: Final = {"Ei": 2**60, "Pi": 2**50, "Ti": 2**40, "Gi": 2**30, "Mi": 2**20, "Ki": 2**10}
IN_BYTES: Final = ("memory", "ephemeral-storage", "hugepages-")
"""Resources in bytes, by the beginnings of their names."""
_MILLIS: Final = 1000
_SHORT: Final = 10_000
"""Numbers below this value are written in full."""
_PLACES: Final = 100


def quantity_text(resource: str, amount: int, *, round_up: bool = False) -> str:
    """Return an amount (cpu in millicores, all others in their own unit) in the notation of Kubernetes.

    Bytes have at most two decimals. They are rounded down, or up with `round_up`.
    """
    if amount < 0:
        return f"-{quantity_text(resource, -amount, round_up=not round_up)}"
    if resource == "cpu":
        whole, millis = divmod(amount, _MILLIS)
        return f"{amount}m" if millis else f"{whole}"
    return _bytes_text(amount, round_up=round_up) if resource.startswith(IN_BYTES) else f"{amount}"


def _bytes_text(amount: int, *, round_up: bool) -> str:
    for suffix, unit in _BINARY.items():
        if amount >= unit and not amount % unit and amount // unit < _SHORT:
            return f"{amount // unit}{suffix}"
    for suffix, unit in _BINARY.items():
        if amount >= unit:
            hundredths = -(-amount * _PLACES // unit) if round_up else amount * _PLACES // unit
            whole, rest = divmod(hundredths, _PLACES)
            return f"{whole}.{rest:02d}".rstrip("0").rstrip(".") + suffix
    return f"{amount}"


MAX_PORTS: Final = 64
"""How many conflicting ports are counted. A pod may request thousands."""


class PortOnNode(msgspec.Struct, frozen=True, gc=False):
    """A host port in use on a node that conflicts with one of the pod's."""

    port: int
    protocol: str
    ip: str
    """0.0.0.0 if the port is taken on all addresses."""
    pods: Sequence[str]
    """NAMESPACE/NAME of the pods that hold the port."""


class PortInCluster(msgspec.Struct, frozen=True, gc=False):
    """A conflicting host port, with the number of nodes on which it is in use."""

    port: int
    protocol: str
    ip: str
    nodes: int


def ports_on_node(decision: Diagnosis, position: int, limit: int) -> Sequence[PortOnNode]:
    """Return up to `limit` conflicting ports on one node, with up to `limit` pods each."""
    held: dict[HostPort, list[str]] = {}
    for pod, ports in port_holders(decision, position):
        for port in ports:
            held.setdefault(port, []).append(name_of(pod))
    return [PortOnNode(port.port, port.protocol, port.ip, pods[:limit]) for port, pods in sorted(held.items())[:limit]]


def port_holders(decision: Diagnosis, position: int) -> Sequence[tuple[Pod, Sequence[HostPort]]]:
    """Return the pods of a node that hold conflicting ports, with these ports."""
    if decision.state_of(NodePorts.name) is None or position in decision.batch.strangers:
        return ()
    conflicting = {*decision.mirror.derived(HostPortsInUse).conflicting(decision.pod.host_ports)}
    pods = decision.mirror.pods_on(decision.batch.names[position])
    return [(pod, sorted(conflicting & pod.host_ports)) for pod in pods if conflicting & pod.host_ports]


def ports_in_cluster(decision: Diagnosis, limit: int) -> Sequence[PortInCluster]:
    """Return up to `limit` conflicting ports on any node of the request, ordered by number of nodes, most first."""
    if decision.state_of(NodePorts.name) is None:
        return ()
    in_use = decision.mirror.derived(HostPortsInUse)
    slots = decision.batch.slots[decision.batch.slots != NO_SLOT]
    found = []
    for port in islice(in_use.conflicting(decision.pod.host_ports), MAX_PORTS):
        users = in_use.in_use[port.port, port.protocol][port]
        nodes = int(np.count_nonzero(np.isin(slots, [*users])))
        if nodes:
            found.append(PortInCluster(port.port, port.protocol, port.ip, nodes))
    return sorted(found, key=lambda each: (-each.nodes, each.port, each.protocol, each.ip))[:limit]
