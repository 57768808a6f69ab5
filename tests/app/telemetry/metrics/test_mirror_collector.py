"""What the mirror holds, as metrics."""

from app.telemetry.metrics.mirror_collector import MirrorCollector
from core.events import ClusterEvent
from core.mirror.cluster import ClusterMirror
from core.objects.namespace import Namespace
from core.objects.node import Node
from core.objects.pod import Pod
from tests.app.telemetry.metrics.scraped import collected


def small_cluster() -> ClusterMirror:
    """Two nodes, two namespaces, and five pods, of which two are on no known node, and one is assumed."""
    mirror = ClusterMirror()
    for thing in (
        Namespace("shop"),
        Namespace("bank"),
        Node("n1", allocatable={"cpu": 4000, "memory": 8 * 2**30, "pods": 10}),
        Node("n2", allocatable={"cpu": 1000, "pods": 10}),
        Pod("u1", "shop", "web", node_name="n1", requests={"cpu": 1500}, best_effort=False),
        Pod("u2", "shop", "batch", node_name="n1", requests={"example.com/gpu": 1}),
        Pod("u3", "shop", "early", node_name="n3", requests={"cpu": 100}, best_effort=False),
        Pod("u4", "shop", "early-too", node_name="n3"),
    ):
        mirror.apply(ClusterEvent("Add", thing))
    mirror.assume(Pod("u5", "shop", "big", requests={"cpu": 1200}, best_effort=False), "n2", 0.0)
    return mirror


def test_sizes_are_those_of_the_moment() -> None:
    mirror = small_cluster()
    collector = MirrorCollector(mirror)
    values = collected(collector)
    assert values["kindred_mirror_nodes"] == {(): 2}
    assert values["kindred_mirror_pods"] == {(): 5}
    assert values["kindred_mirror_namespaces"] == {(): 2}
    assert values["kindred_mirror_assumed_pods"] == {(): 1}
    assert values["kindred_mirror_pods_on_unknown_nodes"] == {(): 2}
    assert values["kindred_mirror_generation"] == {(): mirror.generation}
    mirror.apply(ClusterEvent("Add", Node("n3")))
    values = collected(collector)
    assert values["kindred_mirror_nodes"] == {(): 3}
    assert values["kindred_mirror_pods_on_unknown_nodes"] == {(): 0}
    assert values["kindred_mirror_generation"] == {(): mirror.generation}


def test_every_transition_has_its_count_from_the_start() -> None:
    mirror = ClusterMirror()
    counts = mirror.pod_states
    transitions = {
        "assumed": "assumed",
        "confirmed": "confirmed",
        "mismatches": "mismatched",
        "forgotten": "forgotten",
        "expired": "expired",
        "deleted_while_assumed": "deleted_while_assumed",
        "moves": "moved",
        "unknown_deletes": "deleted_while_unknown",
    }
    assert transitions.keys() == set(counts.__slots__)
    name = "kindred_mirror_pod_transitions_total"
    assert collected(MirrorCollector(mirror))[name] == {(transition,): 0 for transition in transitions.values()}
    for count, attribute in enumerate(transitions, 1):
        setattr(counts, attribute, count)
    assert collected(MirrorCollector(mirror))[name] == {
        (transition,): count for count, transition in enumerate(transitions.values(), 1)
    }
