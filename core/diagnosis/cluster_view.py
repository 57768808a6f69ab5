"""All nodes by zone, rack and requests, as columns: only the data for a picture of the cluster."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal, TypeAlias

import msgspec

from core.diagnosis.summary import ZONE
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeInfo
from core.objects.node import Node

Unit: TypeAlias = Literal["millicores", "bytes", "count"]

_ALWAYS: Final = ("cpu", "memory", "pods")
_MAX_OTHERS: Final = 5
"""How many other resources are shown: those with the highest requested share. A cluster may have hundreds."""
_BYTES: Final = ("memory", "ephemeral-storage", "hugepages-")


class ResourceUse(msgspec.Struct, frozen=True):
    """Requests of placed pods for one resource, and the allocatable amount, by node."""

    resource: str
    unit: Unit
    requested: Sequence[int]
    """Requests of all pods on the node, including assumed ones, as NodeResourcesFit counts them."""
    allocatable: Sequence[int]
    """0 if the node does not offer the resource."""


class ClusterView(msgspec.Struct, frozen=True):
    """All known nodes. Numbers are indices in the lists of names."""

    generation: int
    """The mirror's generation when the first node was visited. Nodes may have changed since."""
    zone_key: str
    rack_key: str
    """Empty if no label is configured for racks."""
    names: Sequence[str]
    zones: Sequence[str]
    """The first one is empty: for nodes without the label."""
    zone: Sequence[int]
    racks: Sequence[str]
    """The first one is empty: for nodes without the label."""
    rack: Sequence[int]
    resources: Sequence[ResourceUse]
    """cpu, memory and pods, then up to five others, the highest requested share first."""


class _Labels:
    """The values of a label, node by node."""

    def __init__(self, key: str) -> None:
        self.key: Final = key
        self.of_node: list[int] = []
        self._places = {"": 0}

    @property
    def values(self) -> list[str]:
        return [*self._places]

    def add(self, labels: Mapping[str, str]) -> None:
        self.of_node.append(self._places.setdefault(labels.get(self.key, ""), len(self._places)))


class _Amounts:
    """The amounts of one resource, for the nodes that have any, in the order of visits."""

    def __init__(self) -> None:
        self.nodes: list[int] = []
        self.requested: list[int] = []
        self.allocatable: list[int] = []
        self.all_requested = 0
        self.all_allocatable = 0

    def add(self, node: int, requested: int, allocatable: int) -> None:
        self.nodes.append(node)
        self.requested.append(requested)
        self.allocatable.append(allocatable)
        self.all_requested += requested
        self.all_allocatable += allocatable

    def column(self, amounts: Sequence[int], size: int) -> list[int]:
        """Return the amounts of all nodes."""
        column = [0] * size
        for node, amount in zip(self.nodes, amounts, strict=True):
            column[node] = amount
        return column


class ClusterSurvey:
    """Visits all nodes in steps. The mirror may change in between: each node is shown as at its visit."""

    def __init__(self, mirror: ClusterMirror, rack_key: str) -> None:
        """`rack_key` is the label of the level between zones and nodes; empty: there is none."""
        self._known = mirror.nodes.known.values
        self._generation = mirror.generation
        self._names: list[str] = []
        self._zones = _Labels(ZONE)
        self._racks = _Labels(rack_key)
        self._amounts: dict[str, _Amounts] = {resource: _Amounts() for resource in _ALWAYS}
        self._resources: list[ResourceUse] = []

    def steps(self) -> Iterator[None]:
        """Visit the nodes, and make the columns. At 15,000 nodes, each step takes at most a few milliseconds."""
        for name in [*self._known]:
            info = self._known.get(name)
            if info is not None and info.node is not None:
                self._visit(info, info.node)
            yield
        for resource in self._shown():
            amounts, size = self._amounts[resource], len(self._names)
            requested = amounts.column(amounts.requested, size)
            yield
            allocatable = amounts.column(amounts.allocatable, size)
            self._resources.append(ResourceUse(resource, _unit(resource), requested, allocatable))
            yield

    def view(self) -> ClusterView:
        """Return the result of the steps."""
        return ClusterView(
            generation=self._generation,
            zone_key=self._zones.key,
            rack_key=self._racks.key,
            names=self._names,
            zones=self._zones.values,
            zone=self._zones.of_node,
            racks=self._racks.values,
            rack=self._racks.of_node,
            resources=self._resources,
        )

    def _visit(self, info: NodeInfo, node: Node) -> None:
        place = len(self._names)
        self._names.append(info.name)
        self._zones.add(node.labels)
        self._racks.add(node.labels)
        guaranteed, best_effort = info.requested.guaranteed, info.requested.best_effort
        for resource in {**node.allocatable, **guaranteed, **best_effort}:
            requested = guaranteed.get(resource, 0) + best_effort.get(resource, 0)
            allocatable = node.allocatable.get(resource, 0)
            if requested or allocatable:
                self._amounts.setdefault(resource, _Amounts()).add(place, requested, allocatable)

    def _shown(self) -> list[str]:
        """Return the resources to show, by requested share and then by name, so that the order is unique."""

        def rank(resource: str) -> tuple[float, str]:
            amounts = self._amounts[resource]
            return -amounts.all_requested / max(amounts.all_allocatable, 1), resource

        return [*_ALWAYS, *sorted(self._amounts.keys() - _ALWAYS, key=rank)[:_MAX_OTHERS]]


def _unit(resource: str) -> Unit:
    if resource == "cpu":
        return "millicores"
    return "bytes" if resource.startswith(_BYTES) else "count"
