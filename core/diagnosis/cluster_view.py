"""All nodes by zone, rack and requests, as columns: only the data for a picture of the cluster."""

from collections.abc import Iterator, Sequence
from typing import Final, Literal, TypeAlias

import msgspec

from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeInfo
from core.objects.node import ZONE, Node
from core.objects.quantity import IN_BYTES

Unit: TypeAlias = Literal["millicores", "bytes", "count"]

_ALWAYS: Final = ("cpu", "memory", "pods")
_MAX_OTHERS: Final = 5
"""How many other resources are shown: those with the highest requested share. A cluster may have hundreds."""


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


class ClusterSurvey:
    """Visits all nodes in steps. The mirror may change in between: each node is shown as at its visit."""

    def __init__(self, mirror: ClusterMirror, rack_key: str) -> None:
        """`rack_key` is the label of the level between zones and nodes; empty: there is none."""
        self._known = mirror.nodes.known.values
        self._generation = mirror.generation
        self._rack_key = rack_key
        self._names: list[str] = []
        self._zones, self._racks = {"": 0}, {"": 0}  # value of the label -> its index
        self._zone: list[int] = []
        self._rack: list[int] = []
        self._amounts: dict[str, dict[int, tuple[int, int]]] = {resource: {} for resource in _ALWAYS}
        """Resource -> node -> what is requested and allocatable, of the nodes that have any."""
        self._resources: list[ResourceUse] = []

    def steps(self) -> Iterator[None]:
        """Visit the nodes, and make the columns. At 15,000 nodes, each step takes at most a few milliseconds."""
        for name in [*self._known]:
            info = self._known.get(name)
            if info is not None and info.node is not None:
                self._visit(info, info.node)
            yield
        ranks = {}  # by requested share and then by name, so that the order is unique
        for resource in self._amounts.keys() - _ALWAYS:
            requested, allocatable = map(sum, zip(*self._amounts[resource].values(), strict=True))
            ranks[resource] = (-requested / max(allocatable, 1), resource)
            yield
        for resource in (*_ALWAYS, *sorted(ranks, key=ranks.__getitem__)[:_MAX_OTHERS]):
            amounts = self._amounts[resource]
            pairs = [amounts.get(place, (0, 0)) for place in range(len(self._names))]
            yield
            columns = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
            self._resources.append(ResourceUse(resource, _unit(resource), *columns))
            yield

    def view(self) -> ClusterView:
        """Return the result of the steps."""
        return ClusterView(
            generation=self._generation,
            zone_key=ZONE,
            rack_key=self._rack_key,
            names=self._names,
            zones=[*self._zones],
            zone=self._zone,
            racks=[*self._racks],
            rack=self._rack,
            resources=self._resources,
        )

    def _visit(self, info: NodeInfo, node: Node) -> None:
        place = len(self._names)
        self._names.append(info.name)
        self._zone.append(self._zones.setdefault(node.labels.get(ZONE, ""), len(self._zones)))
        self._rack.append(self._racks.setdefault(node.labels.get(self._rack_key, ""), len(self._racks)))
        guaranteed, best_effort = info.requested.guaranteed, info.requested.best_effort
        for resource in {**node.allocatable, **guaranteed, **best_effort}:
            requested = guaranteed.get(resource, 0) + best_effort.get(resource, 0)
            allocatable = node.allocatable.get(resource, 0)
            if requested or allocatable:
                self._amounts.setdefault(resource, {})[place] = requested, allocatable


def _unit(resource: str) -> Unit:
    if resource == "cpu":
        return "millicores"
    return "bytes" if resource.startswith(IN_BYTES) else "count"
