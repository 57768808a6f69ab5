"""The resource figures of the cluster: the sums of the known nodes', whatever happened between two looks."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.mirror import cluster_figures
from core.mirror.cluster import ClusterMirror
from core.mirror.cluster_figures import ClusterFigures, NodeFollower
from core.mirror.node_figures import Figures, PlacedRequests
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


MANY = 3 * cluster_figures.FEW


class Follower:
    """Keeps name -> generation."""

    def __init__(self, mirror: ClusterMirror) -> None:
        self.mirror = mirror
        self.stored: dict[str, int] = {}
        self.follower = NodeFollower(self.stored.keys())
        self.looked = 0

    def look(self, name: str) -> None:
        self.looked += 1
        info = self.mirror.nodes.known.values.get(name)
        if info is None:
            self.stored.pop(name, None)
        else:
            self.stored[name] = info.generation

    def finish(self) -> int:
        """Return how many were looked at without a pause."""
        rest = self.follower.rest(self.mirror.nodes.known)
        for name in rest:
            self.look(name)
        return len(rest)

    def is_up_to_date(self) -> bool:
        return self.stored == {info.name: info.generation for info in self.mirror.nodes.known.values.values()}


def large(count: int = MANY) -> ClusterMirror:
    return mirror_of(*(node(f"n{number}", cpu=1) for number in range(count)))


def test_few_are_left_where_changes_are_slower_than_the_steps() -> None:
    mirror = large()
    follower = Follower(mirror)
    for number, name in enumerate(follower.follower.steps(mirror.nodes.known)):
        follower.look(name)
        if number % 2 == 0:
            tell(mirror, "Update", node(f"n{number % MANY}", cpu=number + 2))
    assert follower.finish() <= cluster_figures.FEW
    assert follower.is_up_to_date()


def test_it_ends_where_all_nodes_change_in_each_step() -> None:
    mirror = large()
    follower = Follower(mirror)
    for number, name in enumerate(follower.follower.steps(mirror.nodes.known)):
        follower.look(name)
        if number % MANY == 0:
            tell(mirror, "Update", *(node(f"n{index}", cpu=number + 2) for index in range(MANY)))
    assert follower.finish() == MANY
    assert follower.is_up_to_date()


@given(st.lists(st.tuples(st.sampled_from(["Update", "Delete", "look", "step"]), st.integers(0, 2 * MANY - 1))))
def test_the_end_is_the_present_whatever_happens_between_the_steps(story: list[tuple[str, int]]) -> None:
    mirror = large()
    follower = Follower(mirror)
    steps = follower.follower.steps(mirror.nodes.known)
    for what, number in story:
        if what == "look":
            follower.finish()
        elif what == "step":
            name = next(steps, None)
            if name is None:
                steps = follower.follower.steps(mirror.nodes.known)
            else:
                follower.look(name)
        else:
            tell(mirror, what, node(f"n{number}", cpu=number))  # type: ignore[arg-type]  # one of two actions
    follower.finish()
    assert follower.is_up_to_date()
