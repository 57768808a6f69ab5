"""Proposals for one more node, like an existing one: each kind of node once, smallest first, in each of its zones."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final

import numpy as np

from core.diagnosis.diagnosis import Diagnosis
from core.diagnosis.remedies.proposal import Proposal
from core.diagnosis.remedies.remedy import ZONE, AddNode, Kind
from core.diagnosis.remedies.supposing import HOSTNAME, NO_LABELS, copy_of
from core.framework.claims import find_claim, named_claims
from core.objects.labels import Operator
from core.objects.node import Node
from core.objects.volumes import PersistentVolume
from core.plugins.volumezone import volume_topologies

MAX_LOOKED_AT: Final = 128
"""How many nodes are checked for their kind, at equal distances in the order of the decision."""
MAX_KINDS: Final = 4
MAX_ZONES: Final = 3
_MAX_CLAIMS: Final = 9
"""How many claims of the pod are read."""
_MAX_NAME: Final = 253
"""Maximum length of the name of a node."""


def more_nodes(decision: Diagnosis) -> Iterator[list[Proposal]]:
    """Yield for each kind of node the copies to try, one for each zone that has nodes of the kind.

    Nodes are of one kind if their copies differ only in name and zone. Kinds that offer all resources of the pod come
    first, then by cpu and memory, smallest first. If the pod's volumes or its nodeName require certain labels or a
    name, each kind has one copy with them.
    """
    wanted = _labels_of_volumes(decision)
    name = _name_in(wanted, decision)
    kinds: dict[object, dict[str, Node]] = {}  # kind -> zone -> the first node
    places = np.linspace(0, len(decision.known) - 1, min(len(decision.known), MAX_LOOKED_AT)).astype(np.intp)
    for position in decision.known[places].tolist():
        node = decision.node(position)
        if node is not None:
            kinds.setdefault(_kind(node), {}).setdefault(node.labels.get(ZONE, ""), node)
    requests = decision.mirror.counted(decision.pod).requests
    for zones in sorted(kinds.values(), key=lambda each: _size(next(iter(each.values())), requests))[:MAX_KINDS]:
        if wanted or name:
            like = zones.get(wanted.get(ZONE, ""), zones[min(zones)])
            yield [_proposal(decision, like, wanted, name)]
        else:
            yield [_proposal(decision, zones[zone]) for zone in sorted(zones)[:MAX_ZONES]]


def _labels_of_volumes(decision: Diagnosis) -> Mapping[str, str]:
    """Return the labels that a node needs to reach the volumes of the pod's bound claims, if they name values.

    For a volume with several terms, these are the labels of the first term.
    """
    found: dict[str, str] = {}
    volumes = decision.mirror.objects(PersistentVolume)
    for named in islice(named_claims(decision.pod), _MAX_CLAIMS):
        claim = find_claim(decision.mirror, decision.pod, named)
        volume = None if claim is None else volumes.get(claim.volume)
        if volume is None:
            continue
        terms = () if volume.node_affinity is None else volume.node_affinity.terms[:1]
        for asked in (each for term in terms for each in term.requirements):
            if asked.operator is Operator.IN and asked.values:
                found.setdefault(asked.key, asked.values[0])
        for key, values in volume_topologies(volume):
            found.setdefault(key, min(values))
    return found


def _name_in(labels: Mapping[str, str], decision: Diagnosis) -> str:
    """Return the name that the pod or the volumes' labels require of a new node, or the empty text for any name."""
    names = decision.pod.node_affinity.node_names
    name = decision.pod.node_name or labels.get(HOSTNAME, "") or (min(names) if names else "")
    return name if len(name) <= _MAX_NAME else ""


def _proposal(decision: Diagnosis, like: Node, wanted: Mapping[str, str] = NO_LABELS, named: str = "") -> Proposal:
    taken, name, number = decision.mirror.nodes.infos, named or f"{like.name}-copy", 1
    while name in taken:
        number += 1
        name = f"{like.name}-copy-{number}"
    other = {key: value for key, value in wanted.items() if key != HOSTNAME and like.labels.get(key) != value}
    zone = {**like.labels, **other}.get(ZONE, "")
    return Proposal(Kind.ADD_NODE, name, (AddNode(name, like.name, zone, labels=other),))


def _kind(node: Node) -> object:
    copy = copy_of(node, "")
    labels = frozenset((key, value) for key, value in copy.labels.items() if key not in (HOSTNAME, ZONE))
    return labels, frozenset(copy.allocatable.items()), copy.taints, copy.declared_features


def _size(node: Node, requests: Mapping[str, int]) -> tuple[int, int, int, str]:
    offered = node.allocatable
    lacking = sum(amount > offered.get(resource, 0) for resource, amount in requests.items())
    return lacking, offered.get("cpu", 0), offered.get("memory", 0), node.name
