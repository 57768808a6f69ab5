"""NodePorts: rejects nodes on which a host port of the pod is taken.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/nodeports/node_ports.go.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

import msgspec
import numpy as np

from core.explaining.decision import Decision
from core.explaining.explained import Event, Explained, Measured, Remedies
from core.explaining.obstacles import Candidates, Gone, Obstacles
from core.explaining.pod_names import name_of
from core.explaining.words import counted
from core.framework.interface import SKIP, SUCCESS, Code, FilterPlugin, Status, Verdicts
from core.framework.invalidation import InvalidationRule, Scope, differs
from core.mirror.changes import PodChange
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NO_SLOT, NodeBatch
from core.mirror.topology import BoolArray
from core.objects.node import Node
from core.objects.pod import ALL_ADDRESSES, NO_HOST_PORTS, HostPort, Pod

NAME: Final = "NodePorts"
PORTS_TAKEN: Final = Status(Code.UNSCHEDULABLE, ("node(s) didn't have free ports for the requested pod ports",))
_STATUSES: Final = (SUCCESS, PORTS_TAKEN)

_INVALIDATED_BY = (
    InvalidationRule(
        kind=Pod,
        scope=Scope.NODE,
        when="it takes a host port, or takes other ones than before",
        because="the design looks at pods that are assumed here; one that anybody else placed takes its ports as well",
        touches=differs(lambda pod: pod.demand.host_ports, NO_HOST_PORTS),
    ),
)


class HostPortsInUse:
    """The host ports that the pods of each known node have taken.

    Two pods of one node may have the same port, if no scheduler placed them. Then the port is free after both are
    removed. Upstream's HostPortInfo is a set, so there the port is free after the first is removed, until the next
    restart.
    """

    hears: Final = (PodChange,)
    __slots__ = ("_nodes", "in_use")

    def __init__(self, mirror: ClusterMirror) -> None:
        """Read all pods. From then on `changed` must receive their changes."""
        self._nodes = mirror.nodes
        # (port, protocol) -> port on an address -> slot -> number of pods with the port, never 0
        self.in_use: dict[tuple[int, str], dict[HostPort, dict[int, int]]] = {}
        for slot, pod in mirror.pods.placed_alike():
            for port in pod.demand.host_ports:
                self._take(port, slot)

    def changed(self, change: PodChange) -> None:
        """Update the ports for a pod that was added, changed or removed."""
        before = NO_HOST_PORTS if change.before is None else change.before.demand.host_ports
        after = NO_HOST_PORTS if change.after is None else change.after.demand.host_ports
        if before is after:
            return
        for port in before - after:
            self._release(port, change.slot)
        for port in after - before:
            self._take(port, change.slot)

    def conflicts(self, requested: Iterable[HostPort]) -> BoolArray:
        """Return by slot whether its node has a port in use that conflicts with any of the wanted ports."""
        taken = np.zeros(self._nodes.capacity, np.bool_)
        slots: set[int] = set()
        for port in self.conflicting(requested):
            slots.update(self.in_use[port.port, port.protocol][port])
            if len(slots) >= len(self._nodes.slots):  # all nodes conflict already
                break
        taken[list(slots)] = True
        return taken

    def conflicting(self, requested: Iterable[HostPort]) -> Iterator[HostPort]:
        """Yield the ports in use on any node that conflict with the wanted ports, each port once.

        A port conflicts with the same port on its own address and on all addresses. A port on all addresses conflicts
        with the same port on any address (HostPortInfo.CheckConflict).
        """
        addresses: defaultdict[tuple[int, str], set[str]] = defaultdict(set)
        for port in requested:
            addresses[port.port, port.protocol].add(port.ip)
        for (number, protocol), ips in addresses.items():
            in_use = self.in_use.get((number, protocol), {})
            if ALL_ADDRESSES in ips:
                yield from in_use
            else:
                ports = (HostPort(number, protocol, ip) for ip in (ALL_ADDRESSES, *ips))
                yield from (port for port in ports if port in in_use)

    def _take(self, port: HostPort, slot: int) -> None:
        slots = self.in_use.setdefault((port.port, port.protocol), {}).setdefault(port, {})
        slots[slot] = slots.get(slot, 0) + 1

    def _release(self, port: HostPort, slot: int) -> None:
        addresses = self.in_use[port.port, port.protocol]
        slots = addresses[port]
        slots[slot] -= 1
        if not slots[slot]:
            del slots[slot]
        if not slots:
            del addresses[port]
        if not addresses:
            del self.in_use[port.port, port.protocol]


# What the plugin adds to explanations: the ports that are taken, and the pods that have them.

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

    @property
    def text(self) -> str:
        """The port and its holders in words."""
        return f"host port {self.ip}:{self.port}/{self.protocol}: held by {', '.join(self.pods) or 'pods'}"


class PortInCluster(msgspec.Struct, frozen=True, gc=False):
    """A conflicting host port, with the number of nodes on which it is in use."""

    port: int
    protocol: str
    ip: str
    nodes: int

    @property
    def text(self) -> str:
        """The port and the nodes in words."""
        return f"host port {self.ip}:{self.port}/{self.protocol}: in use on {counted(self.nodes, 'node')}"


def ports_on_node(decision: Decision, position: int, limit: int) -> Sequence[PortOnNode]:
    """Return up to `limit` conflicting ports on one node, with up to `limit` pods each."""
    in_use: dict[HostPort, list[str]] = {}
    for pod, ports in port_holders(decision, position):
        for port in ports:
            in_use.setdefault(port, []).append(name_of(pod))
    return [PortOnNode(port.port, port.protocol, port.ip, by[:limit]) for port, by in sorted(in_use.items())[:limit]]


def port_holders(decision: Decision, position: int) -> Sequence[tuple[Pod, Sequence[HostPort]]]:
    """Return the pods of a node that hold conflicting ports, with these ports."""
    if decision.state_of(NAME) is None or position in decision.batch.unmirrored:
        return ()
    conflicting = {*decision.mirror.derived(HostPortsInUse).conflicting(decision.pod.demand.host_ports)}
    pods = decision.mirror.pods_on(decision.batch.names[position])
    return [(pod, sorted(conflicting & pod.demand.host_ports)) for pod in pods if conflicting & pod.demand.host_ports]


def ports_in_cluster(decision: Decision, limit: int) -> Sequence[PortInCluster]:
    """Return up to `limit` conflicting ports on any node of the request, ordered by number of nodes, most first."""
    if decision.state_of(NAME) is None:
        return ()
    in_use = decision.mirror.derived(HostPortsInUse)
    slots = decision.batch.slots[decision.batch.slots != NO_SLOT]
    found = []
    for port in islice(in_use.conflicting(decision.pod.demand.host_ports), MAX_PORTS):
        users = in_use.in_use[port.port, port.protocol][port]
        nodes = int(np.count_nonzero(np.isin(slots, [*users])))
        if nodes:
            found.append(PortInCluster(port.port, port.protocol, port.ip, nodes))
    return sorted(found, key=lambda each: (-each.nodes, each.port, each.protocol, each.ip))[:limit]


def _only_holder(obstacles: Obstacles, position: int) -> Candidates:
    """Return the pod that holds all conflicting ports, or none if several pods do."""
    name = obstacles.decision.batch.names[position]
    holders = [pod for pod, _ in port_holders(obstacles.decision, position)]
    return {pod.uid: Gone(pod, name) for pod in holders} if len(holders) == 1 else {}


class NodePorts(Explained, FilterPlugin[BoolArray]):
    """Filters by the host ports of the pod, and those that pods of the node have taken."""

    name = NAME
    former_filters = ("PodFitsHostPorts",)
    needs_pre = ("filter",)
    kinds = (Node, Pod)
    class_fields = ("demand.host_ports",)
    invalidated_by = _INVALIDATED_BY
    states = (HostPortsInUse,)
    keeps_off = "host ports"
    events = (Event("Pod", ("Delete",)), Event("Node", ("Add",)))
    measured = Measured(on_node={"ports": ports_on_node}, in_cluster={"ports": ports_in_cluster})
    remedies = Remedies(removable=_only_holder)

    def pre_filter(self, mirror: ClusterMirror, pod: Pod) -> tuple[Status, BoolArray | None]:
        """Look up by slot where the pod's ports are taken. SKIP for a pod without host ports."""
        if not pod.demand.host_ports:
            return SKIP, None
        return SUCCESS, mirror.derived(HostPortsInUse).conflicts(pod.demand.host_ports)

    def filter(self, state: BoolArray, batch: NodeBatch) -> Verdicts:
        """Judge every node of the batch. An unknown node has no pods, so all its ports are free."""
        codes = state[batch.slots].astype(np.uint8)  # NO_SLOT reads the last slot, corrected below
        codes[list(batch.unmirrored)] = 0
        return Verdicts(codes, _STATUSES)
