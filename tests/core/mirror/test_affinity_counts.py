"""Term counters: what they count after each kind of event, which terms share one, and that nothing is left behind."""

from collections.abc import Mapping, Sequence
from typing import Final

import pytest

from core.events import Action
from core.mirror.affinity_counts import Role
from core.mirror.cluster import ClusterMirror
from tests.builders import Object, PodBuilder, expressed, labelled, make_node, make_pod, term
from tests.core.decoded import Builder, mirror_of, tell
from tests.core.mirror.affinity_terms import (
    EVERYWHERE,
    GUARD,
    N_A,
    N_B,
    NODES,
    NOT_BLUE,
    NOT_WEB,
    RED,
    WEB,
    WEB_FRONT,
    WEB_POD,
    X,
    match_counter,
    owners,
)


def owned(mirror: ClusterMirror) -> dict[str, int]:
    """Return the counts of the one term that selects WEB_POD, empty where no pod has it."""
    counters = owners(mirror, app="web")
    assert len(counters) <= 1
    return counters[0].by_value() if counters else {}


def keys_in_use(mirror: ClusterMirror, *keys: str) -> list[str]:
    """Return which of the keys have a topology column with a user."""
    columns = [mirror.affinity.columns.acquire(key, mirror.nodes) for key in keys]
    for column in columns:
        mirror.affinity.columns.release(column)
    return sorted(column.key for column in columns if column.users)


EVENTS: Final = [
    pytest.param([], {"a": 1}, id="nothing-more"),
    pytest.param([("Add", "pod")], {"a": 1}, id="added-again"),
    pytest.param([("Add", "second-pod")], {"a": 1, "b": 1}, id="another-pod-elsewhere"),
    pytest.param([("Add", "neighbour")], {"a": 2}, id="another-pod-there"),
    pytest.param([("Update", "moved")], {"b": 1}, id="pod-moves"),
    pytest.param([("Update", "moved"), ("Update", "pod")], {"a": 1}, id="pod-moves-and-comes-back"),
    pytest.param([("Update", "astray")], {}, id="pod-moves-to-an-unknown-node"),
    pytest.param([("Update", "terminating")], {"a": 1}, id="pod-is-terminating"),
    pytest.param([("Update", "ended")], {}, id="pod-ends"),
    pytest.param([("Delete", "pod")], {}, id="pod-is-deleted"),
    pytest.param([("Delete", "pod"), ("Delete", "pod")], {}, id="pod-is-deleted-twice"),
    pytest.param([("Delete", "pod"), ("Add", "pod")], {"a": 1}, id="pod-is-created-again"),
    pytest.param([("Update", "other")], {}, id="pod-becomes-another"),
    pytest.param([("Update", "other"), ("Update", "pod")], {"a": 1}, id="pod-becomes-another-and-itself-again"),
    pytest.param([("Update", "rezoned")], {"c": 1}, id="node-gets-a-new-value"),
    pytest.param([("Update", "joined")], {"b": 1}, id="node-gets-the-value-of-another"),
    pytest.param([("Update", "zoneless")], {}, id="node-loses-the-key"),
    pytest.param([("Update", "zoneless"), ("Update", "node")], {"a": 1}, id="node-loses-the-key-and-gets-it-again"),
    pytest.param([("Update", "labelled-node")], {"a": 1}, id="node-gets-another-label"),
    pytest.param([("Delete", "node")], {}, id="node-is-deleted"),
    pytest.param([("Delete", "node"), ("Add", "node")], {"a": 1}, id="node-is-created-again"),
    pytest.param([("Delete", "node"), ("Add", "rezoned")], {"c": 1}, id="node-is-created-again-elsewhere"),
    pytest.param([("Delete", "node"), ("Delete", "pod"), ("Add", "node")], {}, id="pod-goes-while-its-node-is-gone"),
    pytest.param(
        [("Delete", "node"), ("Add", "neighbour"), ("Add", "node")], {"a": 2}, id="pod-comes-without-its-node"
    ),
    pytest.param([("Delete", "other-node"), ("Add", "third-node")], {"a": 1}, id="slot-of-another-node-is-reused"),
]


def objects_for(pod: PodBuilder, without: PodBuilder) -> Mapping[str, Builder]:
    """Name the objects of EVENTS, for a pod that counts on its own and for what it is when it does not."""
    return {
        "pod": pod.on("na"),
        "second-pod": pod.uid("2").on("nb"),
        "neighbour": pod.uid("3").on("na"),
        "moved": pod.on("nb"),
        "astray": pod.on("unknown"),
        "terminating": pod.on("na").terminating(),
        "ended": pod.on("na").phase("Failed"),
        "other": without.on("na"),
        "node": N_A,
        "rezoned": N_A.label("zone", "c"),
        "joined": N_A.label("zone", "b"),
        "zoneless": N_A.without_label("zone"),
        "labelled-node": N_A.label("disk", "ssd"),
        "other-node": N_B,
        "third-node": make_node("nc").label("zone", "c"),
    }


@pytest.mark.parametrize(("events", "expected"), EVENTS)
def test_an_owner_counter_follows_every_event(
    events: Sequence[tuple[Action, str]], expected: Mapping[str, int]
) -> None:
    objects = objects_for(GUARD, make_pod("guard"))
    mirror = mirror_of(*NODES, objects["pod"])
    for action, name in events:
        tell(mirror, action, objects[name])
    assert (expected, []) == (owned(mirror), mirror.affinity.audit())


@pytest.mark.parametrize("asked", [0, 1], ids=["asked-after-the-events", "asked-before-the-events"])
@pytest.mark.parametrize(("events", "expected"), EVENTS)
def test_a_match_counter_follows_every_event(
    events: Sequence[tuple[Action, str]], expected: Mapping[str, int], asked: int
) -> None:
    objects = objects_for(WEB_POD, WEB_POD.label("app", "db"))
    mirror = mirror_of(*NODES, objects["pod"])
    assert [{"a": 1}] * asked == [match_counter(mirror, WEB).by_value() for _ in range(asked)]
    for action, name in events:
        tell(mirror, action, objects[name])
    assert (expected, []) == (match_counter(mirror, WEB).by_value(), mirror.affinity.audit())


def test_pods_with_the_same_term_share_a_counter() -> None:
    same = make_pod("same").required_anti_affinity(term("zone", expressed("app", "In", "web"), namespaces=["default"]))
    mirror = mirror_of(*NODES, GUARD.on("na"), GUARD.uid("2").on("nb"), same.on("nb"))
    assert list(mirror.affinity.owner_counts().values()) == [{"a": 1, "b": 2}]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(make_pod("other").preferred_affinity(2, WEB), id="weight"),
        pytest.param(make_pod("other").preferred_anti_affinity(1, WEB), id="sign"),
        pytest.param(make_pod("other").required_affinity(WEB), id="required-affinity"),
        pytest.param(make_pod("other").required_anti_affinity(WEB), id="required-anti-affinity"),
        pytest.param(make_pod("other").preferred_affinity(1, term("host", labelled(app="web"))), id="topology-key"),
        pytest.param(make_pod("other").in_namespace("x").preferred_affinity(1, WEB), id="own-namespace"),
        pytest.param(make_pod("other").preferred_affinity(1, term("zone", labelled(app="db"))), id="selector"),
    ],
)
def test_terms_that_differ_have_counters_of_their_own(other: PodBuilder) -> None:
    mirror = mirror_of(*NODES, make_pod("one").preferred_affinity(1, WEB).on("na"), other.on("na"))
    assert len(mirror.affinity.owner_counts()) == 2


def test_owner_terms_tell_their_role_and_signed_weight() -> None:
    pod = make_pod("p").required_affinity(WEB).required_anti_affinity(WEB)
    pod = pod.preferred_affinity(5, WEB).preferred_anti_affinity(7, WEB)
    counters = owners(mirror_of(*NODES, pod.on("na")), app="web")
    assert {(counter.owner_term.role, counter.owner_term.weight) for counter in counters} == {
        (Role.REQUIRED_AFFINITY, 0),
        (Role.REQUIRED_ANTI_AFFINITY, 0),
        (Role.PREFERRED, 5),
        (Role.PREFERRED, -7),
    }


def test_a_term_that_a_pod_has_twice_counts_twice() -> None:
    mirror = mirror_of(*NODES, make_pod("p").required_anti_affinity(WEB, WEB).on("na"))
    assert (owned(mirror), mirror.affinity.audit()) == ({"a": 2}, [])
    tell(mirror, "Delete", make_pod("p"))
    assert mirror.affinity.owner_counts() == {}


def test_a_counter_lives_while_any_pod_has_its_term_among_whatever_others() -> None:
    both = make_pod("both").required_anti_affinity(WEB, term("host", labelled(app="db")))
    mirror = mirror_of(*NODES, GUARD.on("na"), GUARD.uid("2").on("na"), both.on("nb"))
    tell(mirror, "Delete", GUARD)
    assert owned(mirror) == {"a": 1, "b": 1}
    tell(mirror, "Delete", GUARD.uid("2"))
    assert owned(mirror) == {"b": 1}
    tell(mirror, "Delete", both)
    assert mirror.affinity.owner_counts() == {}


def test_a_term_of_a_pod_on_an_unknown_node_has_a_counter_without_domains() -> None:
    mirror = mirror_of(*NODES, GUARD.on("unknown"))
    assert [counter.by_value() for counter in owners(mirror, app="web")] == [{}]


def test_a_broken_list_of_terms_leaves_the_other_lists_of_an_existing_pod_counting() -> None:
    broken = GUARD.required_affinity(term("zone", expressed("app", "In")))
    assert owned(mirror_of(*NODES, broken.on("na"))) == {"a": 1}


def test_the_matchers_of_one_counter_are_met_by_one_and_the_same_pod() -> None:
    front = term("zone", labelled(tier="front"))
    pods = [
        WEB_POD.on("na"),
        make_pod("front").label("tier", "front").on("na"),
        WEB_POD.uid("2").label("tier", "front"),
    ]
    mirror = mirror_of(*NODES, *pods)
    counters = [match_counter(mirror, WEB, front), match_counter(mirror, front, WEB), match_counter(mirror, front)]
    assert [counter.by_value() for counter in counters] == [{}, {}, {"a": 1}]
    tell(mirror, "Update", pods[2].on("nb"))
    assert [counter.by_value() for counter in counters] == [{"b": 1}, {"b": 1}, {"a": 1, "b": 1}]


def test_a_match_counter_takes_in_only_pods_that_meet_the_whole_selector() -> None:
    mirror = mirror_of(*NODES)
    assert [match_counter(mirror, each).by_value() for each in (WEB_FRONT, NOT_WEB)] == [{}, {}]
    front = make_pod("front").label("tier", "front").on("nb")
    tell(mirror, "Add", WEB_POD.on("na"), front, front.uid("2").label("app", "web"))
    assert [match_counter(mirror, each).by_value() for each in (WEB_FRONT, NOT_WEB)] == [{"b": 1}, {"b": 1}]


def test_the_same_matchers_are_counted_for_each_topology_key() -> None:
    mirror = mirror_of(*NODES, WEB_POD.on("na"), make_node("nc").label("zone", "a"), WEB_POD.uid("2").on("nc"))
    assert match_counter(mirror, WEB).by_value() == {"a": 2}
    assert match_counter(mirror, WEB, key="host").by_value() == {"na": 1}
    assert match_counter(mirror, WEB, key="rack").by_value() == {}


APPS: Final = ["x", "y", "z"]


def of_app(app: str, key: str = "zone") -> Object:
    return term(key, labelled(app=app))


@pytest.fixture
def two_counters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep no more than two match counters."""
    monkeypatch.setattr("core.mirror.match_counters.MAX_MATCH_COUNTERS", 2)


@pytest.mark.usefixtures("two_counters")
def test_the_match_counter_unused_for_longest_goes_first() -> None:
    mirror = mirror_of(*NODES)
    x, y = match_counter(mirror, of_app("x")), match_counter(mirror, of_app("y"))
    assert x is match_counter(mirror, of_app("x"))
    match_counter(mirror, of_app("z"))
    assert len(mirror.affinity.match_counts()) == 2
    assert x is match_counter(mirror, of_app("x"))
    assert y is not match_counter(mirror, of_app("y"))


@pytest.mark.usefixtures("two_counters")
def test_an_evicted_match_counter_releases_its_column_and_a_kept_one_does_not() -> None:
    mirror = mirror_of(*NODES)
    for key in ("zone", "host", "rack"):
        match_counter(mirror, WEB, key=key)
    assert keys_in_use(mirror, "zone", "host", "rack") == ["host", "rack"]
    match_counter(mirror, of_app("x"), key="host")
    match_counter(mirror, of_app("y"), key="host")
    assert keys_in_use(mirror, "zone", "host", "rack") == ["host"]


@pytest.mark.usefixtures("two_counters")
def test_events_while_a_match_counter_was_evicted_are_counted_when_it_is_asked_again() -> None:
    mirror = mirror_of(*NODES, WEB_POD.on("na"))
    assert match_counter(mirror, WEB).by_value() == {"a": 1}
    for app in APPS:
        match_counter(mirror, of_app(app), key="host")
    tell(mirror, "Add", WEB_POD.uid("2").on("nb"), make_node("nc").label("zone", "c"), WEB_POD.uid("3").on("nc"))
    tell(mirror, "Update", N_A.label("zone", "d"))
    assert match_counter(mirror, WEB).by_value() == {"b": 1, "c": 1, "d": 1}
    tell(mirror, "Delete", WEB_POD)
    assert match_counter(mirror, WEB).by_value() == {"b": 1, "c": 1}
    assert mirror.affinity.audit() == []


@pytest.mark.parametrize("delta", [1, -1])
def test_the_audit_names_a_counter_that_is_wrong(delta: int) -> None:
    mirror = mirror_of(*NODES, WEB_POD.on("na"), GUARD.on("na"))
    slot = mirror.nodes.slots["na"]
    for counter in (match_counter(mirror, WEB), owners(mirror, app="web")[0]):
        counter.add(slot, delta)
        expected = {2: "counted {'a': 2}, recounted {'a': 1}", 0: "counted {}, recounted {'a': 1}"}[1 + delta]
        assert [expected in difference for difference in mirror.affinity.audit()] == [True]
        counter.add(slot, -delta)
        assert mirror.affinity.audit() == []


def test_the_audit_sees_a_count_where_there_is_no_pod() -> None:
    mirror = mirror_of(*NODES)
    match_counter(mirror, WEB).add(mirror.nodes.slots["nb"], 1)
    assert ["counted {'b': 1}, recounted {}" in difference for difference in mirror.affinity.audit()] == [True]


@pytest.mark.usefixtures("two_counters")
def test_nothing_is_left_when_all_pods_are_gone_and_the_match_counters_evicted() -> None:
    picky = (
        GUARD.required_affinity(RED).preferred_affinity(5, EVERYWHERE).preferred_anti_affinity(5, of_app("x", "host"))
    )
    pods: list[PodBuilder] = [picky.on("na"), picky.uid("2").on("nb"), picky.uid("3").on("unknown"), WEB_POD.on("na")]
    mirror, fresh = mirror_of(*NODES, X, *pods), mirror_of(*NODES, X)
    for v1_term in (WEB, RED, NOT_BLUE, EVERYWHERE, of_app("x")):
        match_counter(mirror, v1_term)
    tell(mirror, "Delete", *pods)
    for app in ("y", "z"):
        assert match_counter(mirror, of_app(app), key="rack") is not match_counter(fresh, of_app(app), key="rack")
    assert keys_in_use(mirror, "zone", "host", "rack") == ["rack"]
    assert (mirror.affinity.owner_counts(), mirror.affinity.match_counts()) == ({}, fresh.affinity.match_counts())
    # What is still held by an index or a memo shows nowhere else.
    held, held_fresh = (
        [each._term_sets, vars(each._owner_index), vars(each.matches._index)]  # noqa: SLF001
        for each in (mirror.affinity, fresh.affinity)
    )
    assert held_fresh == held
