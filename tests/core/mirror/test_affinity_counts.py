"""Term counters: what they count after each kind of event, which terms share one, and that nothing is left behind."""

from typing import Final

import pytest

from core.mirror.affinity_counts import Role
from core.mirror.cluster import ClusterMirror
from tests.builders import Object, PodBuilder, expressed, labelled, make_node, make_pod, term
from tests.core.decoded import mirror_of, tell
from tests.core.mirror.affinity_terms import (
    EVERYWHERE,
    GUARD,
    N_A,
    NODES,
    NOT_BLUE,
    RED,
    WEB,
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


def test_pods_with_the_same_term_share_a_counter() -> None:
    same = make_pod("same").required_anti_affinity(term("zone", expressed("app", "In", "web"), namespaces=["default"]))
    mirror = mirror_of(*NODES, GUARD.on("na"), GUARD.uid("2").on("nb"), same.on("nb"))
    assert list(mirror.affinity.owner_counts().values()) == [{"a": 1, "b": 2}]


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


APPS: Final = ["x", "y", "z"]


def of_app(app: str, key: str = "zone") -> Object:
    return term(key, labelled(app=app))


@pytest.fixture
def two_counters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep no more than two match counters."""
    monkeypatch.setattr("core.mirror.affinity_counts.MAX_MATCH_COUNTERS", 2)


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
