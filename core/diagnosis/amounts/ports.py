"""Host ports of the pod that pods on nodes have taken, as NodePorts judges them."""

from collections.abc import Sequence
from itertools import islice
from typing import Final

import msgspec
import numpy as np

from core.diagnosis.diagnosis import Diagnosis
from core.diagnosis.pod_names import name_of
from core.mirror.node_info import NO_SLOT
from core.objects.pod import HostPort, Pod
from core.plugins.nodeports import HostPortsInUse, NodePorts

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
    mirror = decision.mirror
    conflicting = {*mirror.derived(HostPortsInUse).conflicting(decision.pod.host_ports)}
    info = mirror.nodes.infos[decision.batch.names[position]]
    pods = (mirror.pods.pods[row] for row in sorted(info.rows))
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
