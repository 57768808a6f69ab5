"""The resource figures of the cluster: the sums of the known nodes', whatever happened between two looks."""

from collections.abc import Mapping

import pytest

from core.mirror import generation_store
from core.mirror.cluster import ClusterMirror
from core.mirror.cluster_figures import ClusterFigures
from core.mirror.resource_figures import Figures, PlacedRequests
from tests.core.mirror.audit import audit
from tests.core.mirror.values import mirror_of, node, pod, tell

NA = node("na", cpu=100, memory=10, pods=5)
NB = node("nb", cpu=200, pods=5)


def look(figures: ClusterFigures, mirror: ClusterMirror) -> Figures:
    """Look at the figures as the mirror does; they must be what a first look gives."""
    found = figures.follow(mirror.nodes.known)
    assert found == ClusterFigures().follow(mirror.nodes.known) == mirror.figures
    assert audit(mirror) == []
    return found


def test_a_mirror_without_nodes_has_no_figures() -> None:
    assert ClusterMirror().figures == Figures({}, {}, {}, {})


def test_the_figures_of_known_nodes_are_added_up() -> None:
    mirror = mirror_of(NA, NB, pod("1", "na", cpu=30), pod("2", "nb", cpu=20, memory=1), pod("3", "nb"))
    assert mirror.figures == Figures(
        {"cpu": 300, "memory": 10, "pods": 10},
        {"cpu": 50, "memory": 1, "pods": 2},
        {"cpu": 250, "memory": 10, "pods": 8},
        {"pods": 1},
    )


def test_a_look_takes_in_all_that_happened_since_the_last_one() -> None:
    mirror = mirror_of(NA, NB, pod("1", "na", cpu=30))
    figures = ClusterFigures()
    look(figures, mirror)
    tell(mirror, "Update", pod("1", "nb", cpu=10), node("na", cpu=90))
    tell(mirror, "Add", pod("2", "na", cpu=1), pod("3", "na"), node("nc", cpu=7))
    tell(mirror, "Delete", NB)
    assert look(figures, mirror) == Figures({"cpu": 97}, {"cpu": 1, "pods": 1}, {"cpu": 96}, {"pods": 1})
    tell(mirror, "Delete", node("na"), node("nc"))
    assert look(figures, mirror) == Figures({}, {}, {}, {})


def test_more_removals_than_the_journal_holds_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generation_store, "JOURNAL_LENGTH", 2)
    mirror = mirror_of(NA, *(node(f"n{number}", cpu=1) for number in range(5)))
    figures = ClusterFigures()
    look(figures, mirror)
    tell(mirror, "Delete", *(node(f"n{number}") for number in range(5)))
    assert look(figures, mirror).guaranteed_allocatable == {"cpu": 100, "memory": 10, "pods": 5}


def test_a_look_costs_only_the_nodes_that_have_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    mirror = mirror_of(*(node(f"n{number}", cpu=1) for number in range(50)))
    figures = ClusterFigures()
    look(figures, mirror)
    tell(mirror, "Add", pod("1", "n7", cpu=1), pod("2", "n9", cpu=1))
    looked_at: list[PlacedRequests] = []
    figures_of = PlacedRequests.figures

    def counted(requests: PlacedRequests, allocatable: Mapping[str, int]) -> Figures:
        looked_at.append(requests)
        return figures_of(requests, allocatable)

    monkeypatch.setattr(PlacedRequests, "figures", counted)
    figures.follow(mirror.nodes.known)
    assert looked_at == [mirror.nodes.infos["n9"].requested, mirror.nodes.infos["n7"].requested]
    figures.follow(mirror.nodes.known)
    assert len(looked_at) == 2


def test_figures_that_were_given_out_do_not_change_any_more() -> None:
    mirror = mirror_of(node("na", cpu=100), pod("1", "na", cpu=1), pod("2", "na"))
    before = mirror.figures
    tell(mirror, "Add", node("nb", cpu=50), pod("3", "na", cpu=2), pod("4", "nb"))
    assert before == Figures({"cpu": 100}, {"cpu": 1, "pods": 1}, {"cpu": 99}, {"pods": 1})
    assert mirror.figures == Figures({"cpu": 150}, {"cpu": 3, "pods": 2}, {"cpu": 147}, {"pods": 2})
