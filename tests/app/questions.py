"""A small cluster to ask about, ExtenderArgs in both forms, and the state that no question may change."""

import json
from collections.abc import Sequence
from typing import Any

from app.objects.decode_node import decode_namespace, decode_node
from app.objects.decode_pod import decode_pod
from app.verbs.filter import Extender
from app.verbs.request import Request
from core.events import ClusterEvent
from core.mirror.cluster import ClusterMirror
from tests.builders import NamespaceBuilder, NodeBuilder, Object, PodBuilder, labelled, make_node, make_pod, term
from tests.core.mirror.audit import audit_counters, owner_counts

ZONE = "topology.kubernetes.io/zone"

NEAR_WEB = term(ZONE, labelled(app="web"))

AFFINITY_RULES = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY_RULES = "node(s) didn't match pod anti-affinity rules"
EXISTING_ANTI_AFFINITY_RULES = "node(s) didn't satisfy existing pods anti-affinity rules"
UNKNOWN = "node(s) unknown to the extender"


def mirror_of(*objects: NodeBuilder | PodBuilder | NamespaceBuilder) -> ClusterMirror:
    """Load a mirror with objects."""
    mirror = ClusterMirror()
    for built in objects:
        match built:
            case NodeBuilder():
                mirror.apply(ClusterEvent("Add", decode_node(built.json())))
            case PodBuilder():
                mirror.apply(ClusterEvent("Add", decode_pod(built.json())))
            case NamespaceBuilder():
                mirror.apply(ClusterEvent("Add", decode_namespace(built.json())))
    return mirror


def shop() -> ClusterMirror:
    """Load three zones: a (a1, a2; three web pods), b (b1, one web pod, a hermit), c (c1); and `bare`, in no zone.

    The hermit keeps pods labelled app=intruder out of its zone.
    """
    web = [make_pod(f"web-{n}").label("app", "web").on(node) for n, node in enumerate(("a1", "a1", "a2", "b1"))]
    hermit = make_pod("hermit").on("b1").required_anti_affinity(term(ZONE, labelled(app="intruder")))
    nodes = [make_node(name).label(ZONE, name[0]) for name in ("a1", "a2", "b1", "c1")]
    return mirror_of(*nodes, make_node("bare"), *web, hermit)


def by_name(pod: PodBuilder, *names: str) -> bytes:
    """Make ExtenderArgs as kube-scheduler writes them with nodeCacheCapable: true."""
    return json.dumps({"Pod": pod.obj(), "Nodes": None, "NodeNames": names}).encode()


def by_object(pod: PodBuilder, *nodes: NodeBuilder) -> bytes:
    """Make ExtenderArgs as kube-scheduler writes them with nodeCacheCapable: false."""
    items = [node.obj() for node in nodes]
    return json.dumps({"Pod": pod.obj(), "Nodes": {"metadata": {}, "items": items}, "NodeNames": None}).encode()


def zeros(names: Sequence[str]) -> bytes:
    """Make the neutral HostPriorityList."""
    return json.dumps([{"Host": name, "Score": 0} for name in names], separators=(",", ":")).encode()


def decoded(response: bytes) -> Any:  # noqa: ANN401 - whatever stands in the JSON
    """Decode an answer."""
    return json.loads(response)


def reasons(response: bytes) -> Object:
    """Return node name -> why it failed, of an ExtenderFilterResult, resolvable or not."""
    result = decoded(response)
    return {**result["FailedNodes"], **result["FailedAndUnresolvableNodes"]}


def scores(response: bytes) -> dict[str, int]:
    """Return node name -> score, in the order of a HostPriorityList."""
    return {entry["Host"]: entry["Score"] for entry in decoded(response)}


def state(mirror: ClusterMirror) -> dict[str, object]:
    """Return what a mirror knows of its cluster, as values to compare before and after a question."""
    node_of_slot = dict(mirror.nodes)
    return {
        "nodes": {node.name: node for node in node_of_slot.values()},
        "names": set(mirror.nodes.infos),
        "pods": {uid: mirror.pods.pods[row] for uid, row in mirror.pods.rows.items()},
        "placed": {uid: node_of_slot.get(int(mirror.pods.slot_of_row[row])) for uid, row in mirror.pods.rows.items()},
        "namespaces": {name: dict(labels) for name, labels in mirror.namespaces.items()},
        "owners": owner_counts(mirror),
        "audit": audit_counters(mirror),
    }


class Bodies:
    """The bodies that an extender's verbs answer with."""

    def __init__(self, extender: Extender) -> None:
        self._extender = extender

    def filter(self, body: bytes) -> bytes:
        """Return an ExtenderFilterResult."""
        return self._extender.filter(Request(body)).body

    def prioritize(self, body: bytes) -> bytes:
        """Return a HostPriorityList."""
        return self._extender.prioritize(Request(body)).body
