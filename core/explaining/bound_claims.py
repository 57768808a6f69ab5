"""Bound claims of a pod whose volumes a node cannot reach, as the plugins that judge volumes report them."""

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple, TypeAlias

import msgspec
import numpy as np

from core.explaining.decision import Decision
from core.explaining.node_labels import values_text
from core.explaining.words import counted, which_have
from core.framework.claims import find_claim, named_claims
from core.mirror.node_info import NodeBatch
from core.mirror.topology import BoolArray
from core.objects.volumes import PersistentVolume, PersistentVolumeClaim

MAX_CLAIMS: Final = 16
"""How many claims and disks are reported. A pod may name hundreds."""


class BoundElsewhere(msgspec.Struct, frozen=True, gc=False):
    """A bound claim whose volume a node cannot reach."""

    plugin: str
    """VolumeBinding (the volume's node affinity) or VolumeZone (its zone and region labels)."""
    claim: str
    """NAMESPACE/NAME"""
    volume: str
    needs: str
    """The volume's requirements on the labels of a node."""
    has: str
    """What the node has of these labels, or all nodes together. Empty if some node can reach the volume."""

    @property
    def text(self) -> str:
        """The claim on the node in words."""
        return f"claim {self.claim}: volume {self.volume} needs {self.needs}; the node has {self.has}"


class BoundElsewhereInCluster(BoundElsewhere, frozen=True, gc=False):
    """A bound claim, with the number of nodes that cannot reach its volume."""

    nodes: int

    @property
    def text(self) -> str:
        """The claim and the nodes in words."""
        nodes, has = counted(self.nodes, "node"), which_have(self.nodes, self.has)
        return f"claim {self.claim}: volume {self.volume} needs {self.needs}; out of reach of {nodes}{has}"


class Reach(NamedTuple):
    """What a bound volume requires of nodes, and the nodes that cannot reach it."""

    needs: str
    keys: Collection[str]
    """The labels that its requirements are about."""
    rejected: BoolArray


Judge: TypeAlias = Callable[[PersistentVolume, NodeBatch], Reach | None]
"""Returns the reach of a volume by one plugin. None if the plugin requires nothing for it."""


def elsewhere_on_node(decision: Decision, position: int, plugin: str, judge: Judge) -> Sequence[BoundElsewhere]:
    """Return the claims whose volumes a node cannot reach by one plugin."""
    batch, node = decision.batch.part(np.array([position])), decision.node(position)
    labels = {} if node is None else node.labels
    return [
        BoundElsewhere(
            plugin,
            claim.full_name,
            volume.name,
            reach.needs,
            ", ".join(f"{key}={labels[key]}" if key in labels else f"no label {key}" for key in sorted(reach.keys)),
        )
        for claim, volume, reach in _bound(decision, batch, judge)
        if reach.rejected[0]
    ]


def elsewhere_in_cluster(decision: Decision, plugin: str, judge: Judge) -> Sequence[BoundElsewhereInCluster]:
    """Return the claims whose volumes some node cannot reach by one plugin."""
    if not len(decision.known):
        return ()
    found = []
    for claim, volume, reach in _bound(decision, decision.batch, judge):
        nodes = int(np.count_nonzero(reach.rejected))
        has = values_text(decision, reach.keys) if nodes == len(decision.batch) else ""
        if nodes:
            found.append(BoundElsewhereInCluster(plugin, claim.full_name, volume.name, reach.needs, has, nodes))
    return found


def _bound(
    decision: Decision, batch: NodeBatch, judge: Judge
) -> Iterator[tuple[PersistentVolumeClaim, PersistentVolume, Reach]]:
    volumes = decision.mirror.objects(PersistentVolume)
    for named in islice(named_claims(decision.pod), MAX_CLAIMS):
        claim = find_claim(decision.mirror, decision.pod, named)
        volume = None if claim is None else volumes.get(claim.volume)
        reach = None if volume is None else judge(volume, batch)
        if claim is not None and volume is not None and reach is not None:
            yield claim, volume, reach
