"""Following all nodes in steps, to one generation in the end."""

from hypothesis import given
from hypothesis import strategies as st

from core.mirror import cluster_figures
from core.mirror.cluster import ClusterMirror
from core.mirror.cluster_figures import NodeFollower
from tests.core.mirror.values import mirror_of, node, tell

MANY = 3 * cluster_figures.FEW


class Follower:
    """Keeps name -> generation."""

    def __init__(self, mirror: ClusterMirror) -> None:
        self.mirror = mirror
        self.held: dict[str, int] = {}
        self.follower = NodeFollower(self.held.keys())
        self.looked = 0

    def look(self, name: str) -> None:
        self.looked += 1
        info = self.mirror.nodes.known.values.get(name)
        if info is None:
            self.held.pop(name, None)
        else:
            self.held[name] = info.generation

    def finish(self) -> int:
        """Return how many were looked at without a pause."""
        rest = self.follower.rest(self.mirror.nodes.known)
        for name in rest:
            self.look(name)
        return len(rest)

    def is_up_to_date(self) -> bool:
        return self.held == {info.name: info.generation for info in self.mirror.nodes.known.values.values()}


def large(count: int = MANY) -> ClusterMirror:
    return mirror_of(*(node(f"n{number}", cpu=1) for number in range(count)))


def test_nothing_is_left_to_be_looked_at_without_a_pause_where_nothing_changes() -> None:
    follower = Follower(large())
    for name in follower.follower.steps(follower.mirror.nodes.known):
        follower.look(name)
    assert follower.finish() == 0
    assert follower.looked == MANY
    assert follower.is_up_to_date()


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


def test_nothing_is_lost_where_steps_are_left_early() -> None:
    mirror = large()
    follower = Follower(mirror)
    steps = follower.follower.steps(mirror.nodes.known)
    for _ in range(10):
        follower.look(next(steps))
    del steps
    tell(mirror, "Delete", node("n0"))
    follower.finish()
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
