"""Resource figures as text, of which that of the nodes is kept."""

import tracemalloc

import pytest
from prometheus_client.parser import text_string_to_metric_families

from app.telemetry.metrics.figure_lines import FigureLines, cluster_text
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
    """Return the values of the nodes by (node, class, figure, resource, unit), parsed from the text."""
    return parsed(b"".join(lines.text()), "kindred_node_resource", ("node", "class", "figure", "resource", "unit"))


def cluster_figures(mirror: ClusterMirror) -> dict[tuple[str, ...], float]:
    """Return the values of the cluster by (class, figure, resource, unit), parsed from the text."""
    return parsed(cluster_text(mirror.figures), "kindred_cluster_resource", ("class", "figure", "resource", "unit"))


def parsed(text: bytes, name: str, order: tuple[str, ...]) -> dict[tuple[str, ...], float]:
    (family,) = text_string_to_metric_families(text.decode())
    assert family.name == name
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
    values = cluster_figures(mirror)
    assert {labels: value for labels, value in values.items() if labels[2] == "cpu"} == {
        ("guaranteed", "allocatable", "cpu", "core"): 5.0,
        ("guaranteed", "requested", "cpu", "core"): 2.7,
        ("best_effort", "allocatable", "cpu", "core"): 2.5,  # not 2.3: what n2 lacks takes nothing from n1
        ("best_effort", "requested", "cpu", "core"): 0.0,
    }
    assert values["guaranteed", "allocatable", "memory", "byte"] == 8 * 2**30
    assert values["best_effort", "requested", "pods", "integer"] == 1
    assert values["best_effort", "requested", "example.com/gpu", "integer"] == 1


def test_each_known_node_has_its_figures_in_their_units() -> None:
    mirror = mirror_of(N1, N2)
    mirror.apply(ClusterEvent("Add", Pod("u", "shop", "web", node_name="n1", requests={"cpu": 250}, best_effort=False)))
    mirror.apply(ClusterEvent("Add", Pod("v", "shop", "early", node_name="n3")))
    values = figures(FigureLines(mirror.nodes))
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
    lines = FigureLines(mirror.nodes)

    def of_node(name: str) -> bytes:
        (found,) = (piece for piece in lines.text() if f'node="{name}"'.encode() in piece)
        return found

    first, second = of_node("n1"), of_node("n2")
    mirror.apply(ClusterEvent("Add", Pod("u", "shop", "web", node_name="n2")))
    assert of_node("n1") is first
    changed = of_node("n2")
    assert changed != second
    mirror.apply(ClusterEvent("Update", Node("n1", {"zone": "a"}, allocatable=N1.allocatable)))
    assert of_node("n1") is first
    assert of_node("n2") is changed


def test_a_node_of_the_same_generation_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    mirror = mirror_of(N1, N2)
    lines = FigureLines(mirror.nodes)
    before = figures(lines)

    def looked_at(info: NodeInfo) -> None:
        raise AssertionError(info.name)

    monkeypatch.setattr(NodeInfo, "figures", property(looked_at))
    assert figures(lines) == before


def test_a_node_that_was_made_again_under_its_name_has_its_new_figures() -> None:
    mirror = mirror_of(N1)
    lines = FigureLines(mirror.nodes)
    assert figures(lines)["n1", "guaranteed", "allocatable", "cpu", "core"] == 4.0
    mirror.apply(ClusterEvent("Delete", N1))
    mirror.apply(ClusterEvent("Add", Node("n1", allocatable={"cpu": 1000})))
    assert figures(lines)["n1", "guaranteed", "allocatable", "cpu", "core"] == 1.0


def test_text_is_of_one_generation_however_nodes_change_between_the_steps() -> None:
    mirror = mirror_of(*(Node(f"n{number}", allocatable={"cpu": 1000}) for number in range(200)))
    lines = FigureLines(mirror.nodes)
    for number, _ in enumerate(lines.steps()):
        if number % 4 == 0:  # changes are slower than the steps
            cpu = {"cpu": 1000 + number}
            mirror.apply(ClusterEvent("Delete", Node(f"n{number}")))
            mirror.apply(ClusterEvent("Update", Node(f"n{number + 1}", allocatable=cpu)))
            mirror.apply(ClusterEvent("Add", Node(f"late-{number}", allocatable=cpu)))
    mirror.apply(ClusterEvent("Delete", Node("n199")))
    assert figures(lines) == figures(FigureLines(mirror.nodes))
    assert {labels[0] for labels in figures(lines)} == set(mirror.nodes.slots)


def test_a_scrape_keeps_its_text_when_nodes_change_after_it() -> None:
    mirror = mirror_of(N1, N2)
    lines = FigureLines(mirror.nodes)
    first = lines.text()
    before = b"".join(first)
    mirror.apply(ClusterEvent("Add", Pod("u", "shop", "web", node_name="n2")))
    lines.text()
    assert b"".join(first) == before


def test_nodes_that_are_gone_take_no_memory() -> None:
    mirror = mirror_of()
    lines = FigureLines(mirror.nodes)

    def churn(rounds: range) -> None:
        for number in rounds:
            nodes = [Node(f"n{number}-{index}", allocatable={"cpu": 1000, "memory": 1}) for index in range(20)]
            for node in nodes:
                mirror.apply(ClusterEvent("Add", node))
            assert sum(b'node="' in piece for piece in lines.text()) == len(nodes)
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
    values = figures(FigureLines(mirror.nodes))
    assert {labels[0] for labels in values} == set(names)
    assert {labels[3] for labels in values} == {'odd\\"\nresource'}
