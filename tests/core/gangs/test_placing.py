"""All members of a gang find a node, or none is assumed."""

from collections import Counter

import pytest

from core.gangs.attempts import Shortfall
from core.gangs.placing import steps_for
from core.mirror.cluster import ClusterMirror
from core.mirror.work import WorkLimitError
from tests.builders import NodeBuilder, PodBuilder, labelled, make_pod, term
from tests.core.decoded import mirror_of, pod_of
from tests.core.gangs.gang_setting import HOSTNAME, ZONE, member, node, placer
from tests.core.mirror.audit import audit

APP_A = labelled(app="a")


def place(mirror: ClusterMirror, *pods: PodBuilder, max_steps: int = 1000) -> dict[str, str] | Shortfall:
    found = placer(mirror).place([pod_of(pod) for pod in pods], 0.0, max_steps=max_steps)
    if isinstance(found, Shortfall):
        assert not mirror.assumed
    assert audit(mirror) == []
    return found if isinstance(found, Shortfall) else {uid.partition("/")[2]: name for uid, name in found.items()}


def shortfall(mirror: ClusterMirror, *pods: PodBuilder, max_steps: int = 1000) -> Shortfall:
    found = place(mirror, *pods, max_steps=max_steps)
    assert isinstance(found, Shortfall)
    return found


def nodes(*cpus: int) -> list[NodeBuilder]:
    return [node(f"n{number}", cpu) for number, cpu in enumerate(cpus)]


def test_each_member_is_judged_beside_those_before_it() -> None:
    mirror = mirror_of(*nodes(2, 2, 2))
    found = place(mirror, *(member(name) for name in "abcdef"))
    assert isinstance(found, dict)
    assert Counter(found.values()) == {"n0": 2, "n1": 2, "n2": 2}
    assert {each.pod.name for each in mirror.assumed.values()} == set("abcdef")
    assert {each.deadline for each in mirror.assumed.values()} == {None}


def test_one_member_too_many_leaves_nothing() -> None:
    found = shortfall(mirror_of(*nodes(2, 2)), *(member(name) for name in "abcde"))
    assert (found.placed, found.wanted, found.pod.name, found.is_proved) == (4, 5, "e", True)
    assert found.verdicts.status(0).reasons == ("Insufficient cpu",)


def test_an_attempt_that_fails_takes_no_generation_and_counts_as_no_assumption() -> None:
    mirror = mirror_of(*nodes(3, 3))
    generation = mirror.generation
    shortfall(mirror, *(member(name, cpu=2) for name in "abc"), member("d"))
    assert (generation, 0) == (mirror.generation, mirror.pod_states.assumed)
    assert isinstance(place(mirror, member("a"), member("b")), dict)
    assert (generation + 2, 2) == (mirror.generation, mirror.pod_states.assumed)


def test_the_most_constrained_member_goes_first() -> None:
    picky = member("picky").node_selector({HOSTNAME: "n0"})
    found = place(mirror_of(*nodes(1, 1)), member("any"), picky, max_steps=0)
    assert found == {"picky": "n0", "any": "n1"}


def test_a_search_back_finds_what_the_best_nodes_in_turn_do_not() -> None:
    mirror = mirror_of(*nodes(4, 3))  # the small ones spread over both at first, and leave no room for the large one
    gang = [member("s1", cpu=1), member("s2", cpu=1), member("m", cpu=2), member("l", cpu=3)]
    found = place(mirror, *gang)
    assert isinstance(found, dict)
    assert found["l"] != found["m"] or found["l"] == "n0"


def test_a_search_that_may_take_no_step_proves_nothing() -> None:
    mirror = mirror_of(*nodes(3, 3))
    gang = [member("a", cpu=2), member("b", cpu=2), member("c", cpu=1), member("d", cpu=2)]
    assert not shortfall(mirror, *gang, max_steps=0).is_proved
    assert not shortfall(mirror, *gang, max_steps=1).is_proved
    assert shortfall(mirror, *gang).is_proved


def test_members_that_want_each_other_are_placed_in_the_order_that_allows_it() -> None:
    wants = make_pod("wants").of_group("g", 2).required_affinity(term(ZONE, labelled(app="worker")))
    worker = make_pod("worker").of_group("g", 2).label("app", "worker")
    found = place(mirror_of(node("n0", zone="a"), node("n1", zone="b")), wants, worker, max_steps=0)
    assert isinstance(found, dict)
    assert found["wants"] == found["worker"]


def test_two_members_that_each_want_the_other_fit_nowhere() -> None:
    one = make_pod("one").label("app", "one").required_affinity(term(ZONE, labelled(app="two")))
    two = make_pod("two").label("app", "two").required_affinity(term(ZONE, labelled(app="one")))
    assert shortfall(mirror_of(node("n0")), one, two).is_proved


def test_members_that_repel_each_other_need_a_domain_each() -> None:
    loners = [make_pod(f"p{number}").label("app", "a").required_anti_affinity(term(ZONE, APP_A)) for number in range(3)]
    zones = [node("n0", zone="a"), node("n1", zone="a"), node("n2", zone="b")]
    found = shortfall(mirror_of(*zones), *loners)
    assert (found.placed, found.is_proved) == (2, True)
    assert len(place(mirror_of(*zones, node("n3", zone="c")), *loners)) == 3


def test_members_are_spread_as_they_ask() -> None:
    spread = [make_pod(f"p{number}").label("app", "a").spread(ZONE, APP_A) for number in range(4)]
    found = place(mirror_of(node("n0", zone="a"), node("n1", zone="a"), node("n2", zone="b")), *spread)
    assert isinstance(found, dict)
    assert sum(name == "n2" for name in found.values()) == 2


def test_host_ports_of_members_do_not_meet() -> None:
    ported = [make_pod(f"p{number}").image("i").host_port(80) for number in range(3)]
    assert shortfall(mirror_of(*nodes(2, 2)), *ported).placed == 2


def test_the_first_member_goes_where_it_was_asked_for() -> None:
    mirror = mirror_of(*nodes(4, 4))
    found = placer(mirror).place([pod_of(member("a")), pod_of(member("b"))], 0.0, of_first=mirror.batch(["n1"]))
    assert not isinstance(found, Shortfall)
    assert found["default/a"] == "n1"


def test_a_member_that_takes_too_much_work_leaves_nothing() -> None:
    mirror = mirror_of(*nodes(2, 2))
    heavy = make_pod("heavy").required_anti_affinity(*(term(ZONE, labelled(app=f"a{number}")) for number in range(50)))
    mirror.work.limit = 1
    with pytest.raises(WorkLimitError):
        place(mirror, member("a"), heavy)
    assert not mirror.assumed
    assert audit(mirror) == []


@pytest.mark.parametrize(
    ("known", "steps"), [(0, 2000), (6, 2000), (250, 2000), (1000, 500), (5000, 100), (20000, 100)]
)
def test_the_search_takes_fewer_steps_among_more_nodes(known: int, steps: int) -> None:
    assert steps == steps_for(known)
