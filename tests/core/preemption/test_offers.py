"""What becomes of the candidates that the scheduler offers."""

from collections.abc import Mapping, Sequence
from typing import Final

import pytest

from core.events import ClusterEvent
from core.framework.interface import AnyFilter
from core.mirror.cluster import ClusterMirror
from core.objects.kinds import PodDisruptionBudget
from core.objects.labels import parse_selector
from core.preemption import Offer, accepted
from core.profile import full_profile
from tests.builders import PodBuilder, labelled, make_node, make_pod, term
from tests.core.decoded import mirror_of, pod_of, tell
from tests.core.profile_parts import affinity_profile

AFFINITY: Final = affinity_profile().filters
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
NODES: Final = [make_node(name).label(HOST, name).label(ZONE, "z").allocatable(cpu=4, pods=10) for name in ("n1", "n2")]
REPELLED: Final = make_pod("p").priority(10).required_anti_affinity(term(HOST, labelled(app="web")))


def web(name: str, priority: int = 0) -> PodBuilder:
    return make_pod(name).on("n1").uid(name).priority(priority).label("app", "web")


def other(name: str, priority: int = 0) -> PodBuilder:
    return make_pod(name).on("n1").uid(name).priority(priority)


def answer(
    mirror: ClusterMirror,
    offers: Mapping[str, Offer],
    pod: PodBuilder = REPELLED,
    filters: tuple[AnyFilter, ...] = AFFINITY,
    more: Sequence[str] = (),
) -> dict[str, Offer]:
    return accepted(mirror, filters, pod_of(pod), offers, more)


@pytest.mark.parametrize(
    ("pods", "offered", "expected"),
    [
        pytest.param([web("a")], (), ("a",), id="nobody-offered-victims-found"),
        pytest.param([web("a")], ("a",), ("a",), id="offer-is-enough"),
        pytest.param([web("a"), other("b")], ("b",), ("a", "b"), id="offer-is-completed"),
        pytest.param([web("a", 3), other("b", 5), other("c", 5)], ("b",), ("b", "a"), id="most-important-first"),
        pytest.param([web("a")], ("unknown",), ("a", "unknown"), id="a-victim-unknown-to-us-stays-one"),
        pytest.param([other("b")], ("unknown",), ("unknown",), id="as-it-is-offered"),
        pytest.param([other("b"), other("a")], ("b", "a"), ("b", "a"), id="in-the-order-of-the-offer"),
        pytest.param([other("b")], (), None, id="nobody-has-to-go"),
        pytest.param([], (), None, id="nobody-is-there"),
        pytest.param([web("a", 10)], (), None, id="blocker-of-equal-priority"),
        pytest.param([web("a", 10), other("b")], ("b",), None, id="offer-does-not-help"),
        pytest.param([web("a", 10)], ("a",), ("a",), id="whoever-is-offered-goes"),
        pytest.param([web("a", 10), web("b")], ("a",), ("a", "b"), id="also-where-more-must"),
    ],
)
def test_an_offer_is_taken_completed_or_dropped(
    pods: list[PodBuilder], offered: tuple[str, ...], expected: tuple[str, ...] | None
) -> None:
    found = answer(mirror_of(*NODES, *pods), {"n1": Offer(offered)})
    assert found == ({} if expected is None else {"n1": Offer(expected)})


def test_every_node_is_judged_for_itself_in_the_order_of_the_offers() -> None:
    mirror = mirror_of(*NODES, web("a"), make_pod("b").uid("b").on("n2").label("app", "web").priority(10))
    assert answer(mirror, {"n2": Offer(), "n1": Offer()}) == {"n1": Offer(("a",))}
    assert answer(mirror, {"n2": Offer(("b",)), "n1": Offer(("a",))}) == {"n2": Offer(("b",)), "n1": Offer(("a",))}


def test_a_blocker_on_another_node_of_the_domain_drops_the_node() -> None:
    zonal = make_pod("p").priority(10).required_anti_affinity(term(ZONE, labelled(app="web")))
    mirror = mirror_of(*NODES, web("a"))
    assert answer(mirror, {"n1": Offer(), "n2": Offer()}, zonal) == {"n1": Offer(("a",))}


def test_a_pod_that_never_preempts_gets_no_node() -> None:
    assert answer(mirror_of(*NODES, web("a")), {"n1": Offer(("a",))}, REPELLED.preemption_policy("Never")) == {}


def test_an_unknown_node_and_one_of_another_scheduler_are_dropped() -> None:
    mirror = mirror_of(*NODES, web("a"), make_pod("b").uid("b").on("n2").label("app", "web"))
    offers = {"unknown": Offer(("x",)), "n1": Offer(("a",)), "n2": Offer()}
    assert answer(mirror, offers) == {"n1": Offer(("a",)), "n2": Offer(("b",))}
    mirror.set_node_out_of_partition("n1")
    assert answer(mirror, offers) == {"n2": Offer(("b",))}


def test_no_offers_are_no_candidates() -> None:
    assert answer(mirror_of(*NODES, web("a")), {}) == {}


@pytest.mark.parametrize(
    ("offered", "expected"),
    [
        pytest.param(Offer(), Offer(("a",), 1), id="counted-here"),
        pytest.param(Offer(("b",), 4), Offer(("a", "b"), 4), id="the-scheduler-knows-of-more"),
        pytest.param(Offer(("a",), 0), Offer(("a",), 0), id="not-counted-where-the-offer-is-taken"),
    ],
)
def test_violations_of_budgets_are_counted_anew_where_an_offer_is_completed(offered: Offer, expected: Offer) -> None:
    mirror = mirror_of(*NODES, web("a"), other("b"))
    mirror.apply(ClusterEvent("Add", PodDisruptionBudget("default", "w", parse_selector({"app": "web"}, ()))))
    assert answer(mirror, {"n1": offered}) == {"n1": expected}


def test_with_all_predicates_of_the_scheduler_its_victims_are_enough() -> None:
    full = full_profile().filters
    mirror = mirror_of(*NODES, *(other(name).image("i").requests(cpu=2) for name in ("a", "b")))
    pod = make_pod("p").priority(10).image("i").requests(cpu=2)
    assert answer(mirror, {"n1": Offer(("a",))}, pod, full) == {"n1": Offer(("a",))}
    assert answer(mirror, {"n1": Offer()}, pod, full) == {"n1": Offer(("b",))}


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        pytest.param(["n2"], {"n1": ("a",), "n2": ("b",)}, id="victims-are-found"),
        pytest.param(["n3", "n2"], {"n1": ("a",), "n2": ("b",)}, id="unknown"),
        pytest.param(["n1", "n2", "n2"], {"n1": ("a",), "n2": ("b",)}, id="offered-too-or-twice"),
    ],
)
def test_nodes_that_are_not_offered_are_looked_at_behind_the_offers(
    more: list[str], expected: Mapping[str, tuple[str, ...]]
) -> None:
    mirror = mirror_of(*NODES, web("a"), make_pod("b").uid("b").on("n2").label("app", "web"))
    found = answer(mirror, {"n1": Offer(("a",))}, more=more)
    assert [*found.items()] == [(name, Offer(uids)) for name, uids in expected.items()]


@pytest.mark.parametrize(
    "blocker",
    [
        pytest.param(make_pod("b").uid("b").on("n2").label("app", "web").priority(10), id="of-equal-priority"),
        pytest.param(make_pod("b").uid("b").on("n2"), id="nobody-in-the-way"),
    ],
)
def test_a_node_that_is_not_offered_is_left_out_where_nobody_has_to_go_or_nothing_helps(blocker: PodBuilder) -> None:
    assert answer(mirror_of(*NODES, blocker), {}, more=["n2"]) == {}


def test_a_node_of_another_scheduler_is_not_added() -> None:
    mirror = mirror_of(*NODES, web("a"))
    mirror.set_node_out_of_partition("n1")
    assert answer(mirror, {}, more=["n1", "n2"]) == {}


def many(blocker_priority: int = 0) -> ClusterMirror:
    """Make a mirror of 120 nodes, m0 and so on, with a web pod on each."""
    names = [f"m{number}" for number in range(120)]
    nodes = [make_node(name).label(HOST, name) for name in names]
    return mirror_of(
        *nodes, *(make_pod(name).uid(name).on(name).label("app", "web").priority(blocker_priority) for name in names)
    )


@pytest.mark.parametrize(
    ("offered", "expected"),
    [
        pytest.param(0, range(100), id="no-offers"),
        pytest.param(30, range(100), id="offers-count"),
        pytest.param(110, range(110), id="enough-offers-all-of-which-are-answered"),
    ],
)
def test_others_are_looked_at_until_there_are_as_many_candidates_as_are_wanted(offered: int, expected: range) -> None:
    mirror = many()
    offers = {f"m{number}": Offer() for number in range(offered)}
    found = answer(mirror, offers, more=[f"m{number}" for number in range(120)])
    assert [*found] == [f"m{number}" for number in expected]


def test_where_nothing_helps_no_more_others_are_looked_at_than_candidates_are_wanted() -> None:
    mirror = many(blocker_priority=10)
    tell(mirror, "Update", make_pod("m100").uid("m100").on("m100").label("app", "web"))
    names = [f"m{number}" for number in range(120)]
    assert answer(mirror, {}, more=names) == {}
    assert answer(mirror, {}, more=names[1:]) == {"m100": Offer(("m100",))}
