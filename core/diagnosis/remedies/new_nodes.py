"""Copies of nodes that would let the pod fit if they were there."""

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import Final

import numpy as np
from msgspec.structs import replace

from core.diagnosis.diagnosis import Diagnosis
from core.explaining.remedy import NO_LABELS, AddNode, copy_of
from core.objects.node import HOSTNAME, ZONE, Node

MAX_LOOKED_AT: Final = 128
"""How many nodes are checked for their kind, at equal distances in the order of the decision."""
MAX_KINDS: Final = 4
MAX_ZONES: Final = 3
_MAX_NAME: Final = 253
"""Maximum length of the name of a node."""


def more_nodes(decision: Diagnosis) -> Iterator[Sequence[AddNode]]:
    """Yield for each kind of node the copies to try, one for each zone of the kind, then copies in new domains.

    Nodes are of one kind if their copies differ only in name and zone. Kinds that offer all resources of the pod come
    first, then by cpu and memory, smallest first. If the pod's volumes, the zone that it asks for or its nodeName
    require certain labels or a name, each kind has one copy with them. None for local volumes.
    """
    if decision.pod.of_daemon_set:
        return  # its controller makes another pod for a new node
    plugins = decision.profile.explained
    required: dict[str, str] = {}
    for plugin in plugins:
        required |= plugin.labels_needed(decision)
    if HOSTNAME in required:
        return  # another node of that name would not have the data of the local volume
    name = next(filter(None, (each.name_needed(decision) for each in plugins)), "")
    name = name if len(name) <= _MAX_NAME else ""
    kinds: dict[object, dict[str, Node]] = {}  # kind -> zone -> the first node
    positions = reduce(
        np.intersect1d, (found for each in plugins if (found := each.copies(decision)) is not None), decision.known
    )
    places = np.linspace(0, len(positions) - 1, min(len(positions), MAX_LOOKED_AT)).astype(np.intp)
    for position in positions[places].tolist():
        node = decision.node(position)
        if node is not None:
            kinds.setdefault(_kind(node), {}).setdefault(node.labels.get(ZONE, ""), node)
    requests = decision.mirror.counted(decision.pod).requests
    smallest = sorted(kinds.values(), key=lambda each: _size_of_node(next(iter(each.values())), requests))[:MAX_KINDS]
    for zones in smallest:
        if required or name:
            like = zones.get(required.get(ZONE, ""), zones[min(zones)])
            yield [_copy(decision, like, required, name)]
        else:
            yield [_copy(decision, zones[zone]) for zone in sorted(zones)[:MAX_ZONES]]
    full = {key for each in plugins for key in each.topology_keys(decision)} - {HOSTNAME}
    domains = () if required or name else tuple(sorted(full))[:MAX_ZONES]
    for like in (zones[min(zones)] for zones in smallest if domains):
        if all(key in like.labels for key in domains):  # else the pod asks for a key that is misspelt
            yield [replace(_copy(decision, like), zone="", new_domains=domains)]


def _copy(decision: Diagnosis, like: Node, required: Mapping[str, str] = NO_LABELS, named: str = "") -> AddNode:
    taken, name, number = decision.mirror.nodes.infos, named or f"{like.name}-copy", 1
    while name in taken:
        number += 1
        name = f"{like.name}-copy-{number}"
    other = {key: value for key, value in required.items() if like.labels.get(key) != value}
    zone = {**like.labels, **other}.get(ZONE, "")
    return AddNode(name, like.name, zone, labels=other)


def _kind(node: Node) -> object:
    copy = copy_of(node, "")
    labels = frozenset((key, value) for key, value in copy.labels.items() if key not in (HOSTNAME, ZONE))
    return labels, frozenset(copy.allocatable.items()), copy.taints, copy.declared_features


def _size_of_node(node: Node, requests: Mapping[str, int]) -> tuple[int, int, int, str]:
    offered = node.allocatable
    lacking = sum(amount > offered.get(resource, 0) for resource, amount in requests.items())
    return lacking, offered.get("cpu", 0), offered.get("memory", 0), node.name
