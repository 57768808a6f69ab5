"""Core values for tests of the mirror that say what no built v1 object says: requests, budgets, owners."""

from collections.abc import Iterator, Mapping
from typing import Final

import pytest

from core.events import Action, ClusterEvent, Object
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeTable
from core.mirror.placement import PodTransition
from core.objects.affinity import NO_AFFINITY, AffinityTerm, PodAffinity, PodMatcher, WeightedAffinityTerm
from core.objects.kinds import PodDisruptionBudget, ReplicaSet
from core.objects.labels import NOTHING, Selector, parse_selector
from core.objects.node import Node
from core.objects.pod import Pod

_TERM: Final = AffinityTerm(PodMatcher(frozenset({"default"}), NOTHING, parse_selector({"app": "web"}, ())), "zone")
REPELLING: Final = PodAffinity(required_anti_affinity=(_TERM,))
ATTRACTED: Final = PodAffinity(preferred_affinity=(WeightedAffinityTerm(_TERM, 1),))


def node(name: str, *, labels: Mapping[str, str] | None = None, version: str = "", **allocatable: int) -> Node:
    """Make a node that offers the given amounts."""
    return Node(name, labels or {}, allocatable, resource_version=version)


def pod(
    uid: str,
    on: str = "",
    *,
    affinity: PodAffinity = NO_AFFINITY,
    version: str = "",
    ended: bool = False,
    **requests: int,
) -> Pod:
    """Make a pod `default/UID` that asks for the given amounts; without any it is best-effort."""
    return Pod(
        uid,
        "default",
        uid,
        labels={"app": "web"},
        node_name=on,
        terminal=ended,
        affinity=affinity,
        requests=requests,
        best_effort=not requests,
        resource_version=version,
    )


def budget(full_name: str, selector: Selector, *, version: str = "") -> PodDisruptionBudget:
    """Make a PodDisruptionBudget."""
    namespace, name = full_name.split("/")
    return PodDisruptionBudget(namespace, name, selector, resource_version=version)


def replica_set(full_name: str, **labels: str) -> ReplicaSet:
    """Make a ReplicaSet."""
    namespace, name = full_name.split("/")
    return ReplicaSet(namespace, name, labels)


def selecting(**labels: str) -> Selector:
    """Make a selector of matchLabels; without any it is the empty one."""
    return parse_selector(labels, ())


def tell(mirror: ClusterMirror, action: Action, *things: Object) -> PodTransition | None:
    """Apply one event for each of the objects, in their order; return what the last one did."""
    transition = None
    for thing in things:
        transition = mirror.apply(ClusterEvent(action, thing))
    return transition


def mirror_of(*things: Object) -> ClusterMirror:
    """Return a mirror that was told of the objects, in their order."""
    mirror = ClusterMirror()
    tell(mirror, "Add", *things)
    return mirror


def passes_over_nodes(mirror: ClusterMirror, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count passes over all nodes from now on."""
    passes: list[int] = []
    whole = NodeTable.__iter__

    def counted(table: NodeTable) -> Iterator[tuple[int, Node]]:
        passes.append(len(mirror.nodes.slots))
        return whole(table)

    monkeypatch.setattr(NodeTable, "__iter__", counted)
    return passes
