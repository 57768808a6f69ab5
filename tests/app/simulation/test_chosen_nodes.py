"""Nodes are chosen by name, selector and zone. A name, a selector or a zone of no node is an error in one line."""

import pytest

from app.simulation.chosen_nodes import QuestionError, chosen_nodes, selector_of_text
from core.events import ClusterEvent
from core.mirror.cluster import ClusterMirror
from core.objects.node import ZONE, Node


def cluster() -> ClusterMirror:
    mirror = ClusterMirror()
    for name, zone, rack in (("a1", "a", "r1"), ("a2", "a", "r2"), ("b1", "b", "r1"), ("c1", "", "")):
        labels = {key: value for key, value in ((ZONE, zone), ("rack", rack)) if value}
        mirror.apply(ClusterEvent("Add", Node(name, labels)))
    return mirror


@pytest.mark.parametrize(
    ("names", "selector", "zone", "found"),
    [
        (["b1"], "", "", ["b1"]),
        (["node/b1", "a1", "b1"], "", "", ["b1", "a1"]),  # as kubectl takes them
        ([], "rack=r1", "", ["a1", "b1"]),
        ([], "", "a", ["a1", "a2"]),
        (["c1"], "rack=r2", "b", ["c1", "a2", "b1"]),
    ],
)
def test_nodes_by_name_selector_and_zone(names: list[str], selector: str, zone: str, found: list[str]) -> None:
    assert chosen_nodes(cluster(), names, selector, zone) == found


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("rack", ["a1", "a2", "b1"]),
        ("!rack", ["c1"]),
        ("rack == r1", ["a1", "b1"]),
        ("rack!=r1", ["a2", "c1"]),
        ("rack in (r2, r3)", ["a2"]),
        ("rack notin (r1,r2)", ["c1"]),
        (f"rack=r1,{ZONE}=b", ["b1"]),
        (f"rack in (r1), {ZONE} notin (a)", ["b1"]),
    ],
)
def test_selectors_are_those_of_kubectl(selector: str, found: list[str]) -> None:
    assert chosen_nodes(cluster(), [], selector) == found


@pytest.mark.parametrize(
    ("names", "selector", "zone", "error"),
    [
        (["x", "a1", "y"], "", "", "nodes: no such node: x, y"),
        ([str(each) for each in range(12)], "", "", "nodes: no such node: 0, 1, 10, 11, 2, 3, 4, 5, 6, 7 and 2 more"),
        ([], "rack=r9", "", "selector: rack=r9: no node matches"),
        ([], "", "z", "zone: z: no node is in it; there are a, b"),
        (["a1", "a2", "b1", "c1"], "", "", "nodes: all nodes are chosen, so that none is left for their pods"),
        ([], "rack!=r9", "", "nodes: all nodes are chosen, so that none is left for their pods"),
        ([], "a=b=c", "", "selector: a=b=c: expected a label selector, as for kubectl"),
        ([], "rack in r1", "", "selector: rack in r1: expected a label selector, as for kubectl"),
    ],
)
def test_what_there_is_not_is_said_in_a_line(names: list[str], selector: str, zone: str, error: str) -> None:
    with pytest.raises(QuestionError) as raised:
        chosen_nodes(cluster(), names, selector, zone)
    assert str(raised.value) == error


def test_a_zone_in_a_cluster_without_zones() -> None:
    mirror = ClusterMirror()
    for name in "xy":
        mirror.apply(ClusterEvent("Add", Node(name, {})))
    with pytest.raises(QuestionError, match=f"zone: z: no node is in it: no node has the label {ZONE}"):
        chosen_nodes(mirror, [], zone="z")


@pytest.mark.parametrize("text", ["", " ", ",", "a,,b", "a=b,", "a=b , ", "a=-x"])
def test_no_selector(text: str) -> None:
    with pytest.raises(QuestionError):
        selector_of_text(text)
