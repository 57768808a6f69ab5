"""Resource figures as text, of which that of the nodes is kept."""

import tracemalloc

import pytest
from prometheus_client.parser import text_string_to_metric_families

from app.metrics.figure_lines import FigureLines
from core.events import ClusterEvent
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeInfo
from core.objects.node import Node
from core.objects.pod import Pod

N1 = Node("n1", allocatable={"cpu": 4000, "memory": 8 * 2**30})
N2 = Node("n2", allocatable={"cpu": 2000})


def mirror_of(*nodes: Node) -> ClusterMirror:
    mirror = ClusterMirror()
    for node in nodes:
        mirror.apply(ClusterEvent("Add", node))
    return mirror


def figures(lines: FigureLines) -> dict[tuple[str, ...], float]:
    """Give the values of the nodes by (node, class, figure, resource, unit), parsed from the text."""
    return parsed(lines, "kindred_node_resource", ("node", "class", "figure", "resource", "unit"))


def cluster_figures(lines: FigureLines) -> dict[tuple[str, ...], float]:
    """Give the values of the cluster by (class, figure, resource, unit), parsed from the text."""
    return parsed(lines, "kindred_cluster_resource", ("class", "figure", "resource", "unit"))


def parsed(lines: FigureLines, name: str, order: tuple[str, ...]) -> dict[tuple[str, ...], float]:
    text = b"".join(lines.pieces()).decode()
    (family,) = (family for family in text_string_to_metric_families(text) if family.name == name)
    assert family.type == "gauge"
    assert family.documentation
    assert all(sample.labels.keys() == set(order) for sample in family.samples)
    values = {tuple(sample.labels[label] for label in order): sample.value for sample in family.samples}
    assert len(values) == len(family.samples)
    return values


def test_the_cluster_has_the_sums_of_its_known_nodes() -> None:
    mirror = mirror_of(N1, Node("n2", allocatable={"cpu": 1000, "pods": 10}))
    for pod in (
        Pod("u1", "shop", "web", node_name="n1", requests={"cpu": 1500}, best_effort=False),
        Pod("u2", "shop", "batch", node_name="n1", requests={"example.com/gpu": 1}),
        Pod("u3", "shop", "early", node_name="n3", requests={"cpu": 100}, best_effort=False),
        Pod("u4", "shop", "too-big", node_name="n2", requests={"cpu": 1200}, best_effort=False),
    ):
        mirror.apply(ClusterEvent("Add", pod))
    for of_nodes in (True, False):
        values = cluster_figures(FigureLines(mirror.nodes, of_nodes=of_nodes))
        assert {labels: value for labels, value in values.items() if labels[2] == "cpu"} == {
            ("guaranteed", "allocatable", "cpu", "core"): 5.0,
            ("guaranteed", "requested", "cpu", "core"): 2.7,
            ("best_effort", "allocatable", "cpu", "core"): 2.5,  # not 2.3: what n2 lacks takes nothing from n1
            ("best_effort", "requested", "cpu", "core"): 0.0,
        }
        assert values["guaranteed", "allocatable", "memory", "byte"] == 8 * 2**30
        assert values["best_effort", "requested", "pods", "integer"] == 1
        assert values["best_effort", "requested", "example.com/gpu", "integer"] == 1


def test_the_cluster_follows_its_nodes_from_scrape_to_scrape() -> None:
    mirror = mirror_of(N1, N2)
    lines = FigureLines(mirror.nodes, of_nodes=False)
    cpu = ("guaranteed", "allocatable", "cpu", "core")
    assert cluster_figures(lines)[cpu] == 6.0
    mirror.apply(ClusterEvent("Delete", N1))
    assert cluster_figures(lines)[cpu] == 2.0
    mirror.apply(ClusterEvent("Update", Node("n2", allocatable={"cpu": 3000})))
    assert cluster_figures(lines)[cpu] == 3.0
    mirror.apply(ClusterEvent("Delete", N2))
    assert cluster_figures(lines) == {}


def test_without_the_nodes_the_cluster_is_still_told_step_by_step() -> None:
    pieces = list(FigureLines(mirror_of(N1, N2).nodes, of_nodes=False).pieces())
    assert pieces[:2] == [b"", b""]
    assert b"kindred_node_resource" not in b"".join(pieces)


def test_each_known_node_has_its_figures_in_their_units() -> None:
    mirror = mirror_of(N1, N2)
    mirror.apply(ClusterEvent("Add", Pod("u", "shop", "web", node_name="n1", requests={"cpu": 250}, best_effort=False)))
    mirror.apply(ClusterEvent("Add", Pod("v", "shop", "early", node_name="n3")))
    values = figures(FigureLines(mirror.nodes, of_nodes=True))
    assert {labels: value for labels, value in values.items() if labels[3] == "cpu"} == {
        ("n1", "guaranteed", "allocatable", "cpu", "core"): 4.0,
        ("n1", "guaranteed", "requested", "cpu", "core"): 0.25,
        ("n1", "best_effort", "allocatable", "cpu", "core"): 3.75,
        ("n1", "best_effort", "requested", "cpu", "core"): 0.0,
        ("n2", "guaranteed", "allocatable", "cpu", "core"): 2.0,
        ("n2", "guaranteed", "requested", "cpu", "core"): 0.0,
        ("n2", "best_effort", "allocatable", "cpu", "core"): 2.0,
        ("n2", "best_effort", "requested", "cpu", "core"): 0.0,
    }
    assert values["n1", "guaranteed", "allocatable", "memory", "byte"] == 8 * 2**30
    assert {labels[0] for labels in values} == {"n1", "n2"}


def test_text_is_made_again_only_for_nodes_whose_figures_have_changed() -> None:
    mirror = mirror_of(N1, N2)
    lines = FigureLines(mirror.nodes, of_nodes=True)
    before = list(lines.pieces())
    mirror.apply(ClusterEvent("Add", Pod("u", "shop", "web", node_name="n2")))
    after = list(lines.pieces())
    assert after[1] is before[1]
    assert after[2] != before[2]
    mirror.apply(ClusterEvent("Update", Node("n1", {"zone": "a"}, allocatable=N1.allocatable)))
    again = list(lines.pieces())
    assert again[1] is after[1]
    assert again[2] is after[2]


def test_a_node_of_the_same_generation_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    mirror = mirror_of(N1, N2)
    lines = FigureLines(mirror.nodes, of_nodes=True)
    before = figures(lines)

    def looked_at(info: NodeInfo) -> None:
        raise AssertionError(info.name)

    monkeypatch.setattr(NodeInfo, "figures", property(looked_at))
    assert figures(lines) == before


def test_a_node_that_was_made_again_under_its_name_has_its_new_figures() -> None:
    mirror = mirror_of(N1)
    lines = FigureLines(mirror.nodes, of_nodes=True)
    assert figures(lines)["n1", "guaranteed", "allocatable", "cpu", "core"] == 4.0
    mirror.apply(ClusterEvent("Delete", N1))
    mirror.apply(ClusterEvent("Add", Node("n1", allocatable={"cpu": 1000})))
    assert figures(lines)["n1", "guaranteed", "allocatable", "cpu", "core"] == 1.0


def test_nodes_may_come_and_go_during_a_scrape() -> None:
    mirror = mirror_of(N1, N2)
    pieces = FigureLines(mirror.nodes, of_nodes=True).pieces()
    next(pieces)
    assert b'node="n1"' in next(pieces)
    mirror.apply(ClusterEvent("Delete", N2))
    mirror.apply(ClusterEvent("Add", Node("n3", allocatable={"cpu": 1000})))
    rest = b"".join(pieces).decode()
    assert 'node="' not in rest
    assert 'kindred_cluster_resource{class="guaranteed",figure="allocatable",resource="cpu",unit="core"} 4.0' in rest


def test_two_scrapes_at_the_same_time_both_tell_everything() -> None:
    mirror = mirror_of(N1, N2)
    lines = FigureLines(mirror.nodes, of_nodes=True)
    first, second = lines.pieces(), lines.pieces()
    next(first)
    mirror.apply(ClusterEvent("Add", Pod("u", "shop", "web", node_name="n2")))
    assert list(second)[1:3] == list(first)[:2]


def test_nodes_that_are_gone_take_no_memory() -> None:
    mirror = mirror_of()
    lines = FigureLines(mirror.nodes, of_nodes=True)

    def churn(rounds: range) -> None:
        for number in rounds:
            nodes = [Node(f"n{number}-{index}", allocatable={"cpu": 1000, "memory": 1}) for index in range(20)]
            for node in nodes:
                mirror.apply(ClusterEvent("Add", node))
            assert sum(b'node="' in piece for piece in lines.pieces()) == len(nodes)
            for node in nodes:
                mirror.apply(ClusterEvent("Delete", node))

    churn(range(100))  # the mirror's own journal of removals is full after that
    tracemalloc.start()
    try:
        churn(range(100, 200))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 500_000  # 2,000 nodes have 1.5 MB of lines


def test_label_values_are_escaped() -> None:
    names = ('quo"te', "back\\slash", "line\nfeed", "\\n", "snö-雪")
    mirror = mirror_of(*(Node(name, allocatable={'odd\\"\nresource': 1}) for name in names))
    values = figures(FigureLines(mirror.nodes, of_nodes=True))
    assert {labels[0] for labels in values} == set(names)
    assert {labels[3] for labels in values} == {'odd\\"\nresource'}
