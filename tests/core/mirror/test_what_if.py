"""Pods that are supposed to be gone: plugins answer so, and afterwards the mirror is as if nobody had asked."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from core.mirror.changes import Change, PodChange
from core.mirror.cluster import ClusterMirror
from core.mirror.snapshot import Snapshot
from core.objects.affinity import PodMatcher
from core.objects.labels import NOTHING
from tests.core.mirror.values import REPELLING, mirror_of, node, pod, selecting, tell

N1 = node("n1", labels={"zone": "a"}, cpu=4)
N2 = node("n2", labels={"zone": "b"}, cpu=4)
WEB = PodMatcher(frozenset({"default"}), NOTHING, selecting(app="web"))
FIRST, SECOND, OTHER = pod("first", "n1", cpu=1, affinity=REPELLING), pod("second", "n1"), pod("other", "n2")


class Told:
    """Notes every change."""

    def __init__(self, _mirror: ClusterMirror) -> None:
        self.changes: list[Change] = []

    def changed(self, change: Change) -> None:
        """Note it."""
        self.changes.append(change)


class SlotsAtFirst:
    """Notes where the pods are when it is made, and what it is told after that."""

    def __init__(self, mirror: ClusterMirror) -> None:
        self.pods = {each.uid for _, each in mirror.placed_pods()}

    def changed(self, change: Change) -> None:
        """Follow."""
        assert isinstance(change, PodChange)
        if change.after is not None:
            assert change.after.uid not in self.pods
            self.pods.add(change.after.uid)
        elif change.before is not None:
            self.pods.remove(change.before.uid)


def cluster() -> ClusterMirror:
    return mirror_of(N1, N2, FIRST, SECOND, OTHER)


def matched(mirror: ClusterMirror) -> dict[str, int]:
    return mirror.affinity.matched((WEB,), "zone").by_value()


def seen(mirror: ClusterMirror) -> list[object]:
    """Give all that anybody can see of a mirror, in the order in which it is shown."""
    return [
        mirror.dump(),
        mirror.audit(),
        list(mirror.placed_pods()),
        dict(mirror.pods.rows),
        list(mirror.nodes.known.generations()),
        mirror.affinity.owner_counts(),
        matched(mirror),
        mirror.pod_states.assumed,
        mirror.figures,
    ]


def test_what_plugins_count_follows_the_supposition() -> None:
    mirror = cluster()
    assert matched(mirror) == {"a": 2, "b": 1}
    with mirror.without_pods() as gone:
        gone.remove(FIRST)
        gone.remove(SECOND)
        assert matched(mirror) == {"b": 1}
        assert [list(counts.values()) for counts in mirror.affinity.owner_counts().values()] == [[]]
        assert [each.uid for _, each in mirror.placed_pods()] == ["other"]
        gone.put_back("first")
        assert matched(mirror) == {"a": 1, "b": 1}
        assert {each.uid for _, each in mirror.placed_pods()} == {"first", "other"}


def test_afterwards_the_mirror_is_exactly_as_before_whatever_was_put_back_and_in_which_order() -> None:
    mirror = cluster()
    before = seen(mirror)
    with mirror.without_pods() as gone:
        for each in (SECOND, OTHER, FIRST):
            gone.remove(each)
        gone.put_back("other")
        gone.put_back("second")
        gone.remove(OTHER)
    assert seen(mirror) == before
    assert not mirror.audit()


def suppose_and_raise(mirror: ClusterMirror) -> None:
    with mirror.without_pods() as gone:
        gone.remove(FIRST)
        gone.remove(OTHER)
        raise RuntimeError("a plugin")


def test_afterwards_the_mirror_is_exactly_as_before_when_somebody_raised() -> None:
    mirror = cluster()
    before = seen(mirror)
    with pytest.raises(RuntimeError, match="a plugin"):
        suppose_and_raise(mirror)
    assert seen(mirror) == before


def test_snapshots_keep_the_very_same_values_and_the_generation_stays() -> None:
    mirror, snapshot = cluster(), Snapshot()
    mirror.update_snapshot(snapshot)
    values, generation = snapshot.list(), mirror.generation
    with mirror.without_pods() as gone:
        gone.remove(FIRST)
        assert mirror.generation == generation
    mirror.update_snapshot(snapshot)
    assert all(after is before for after, before in zip(snapshot.list(), values, strict=True))
    assert mirror.generation == generation


def test_states_that_plugins_derive_are_told_and_other_listeners_are_not() -> None:
    mirror = cluster()
    derived, other = mirror.derived(Told), Told(mirror)
    mirror.listen(other)
    slot = mirror.nodes.slots["n1"]
    with mirror.without_pods() as gone:
        gone.remove(FIRST)
    assert derived.changes == [PodChange(slot, FIRST, None), PodChange(slot, None, FIRST)]
    assert other.changes == []


def test_derived_states_are_told_of_a_pod_as_it_is_given() -> None:
    mirror = cluster()
    derived, slot = mirror.derived(Told), mirror.nodes.slots["n1"]
    told = replace(FIRST, terminating=True)
    with mirror.without_pods() as gone:
        gone.remove(told)
    assert derived.changes == [PodChange(slot, told, None), PodChange(slot, None, told)]
    assert mirror.get_pod("first") is FIRST


def test_a_state_that_is_first_asked_for_meanwhile_is_told_of_those_who_come_back() -> None:
    mirror = cluster()
    with mirror.without_pods() as gone:
        gone.remove(FIRST)
        made = mirror.derived(SlotsAtFirst)
        counted = matched(mirror)
    assert counted == {"a": 1, "b": 1}
    assert made.pods == {"first", "second", "other"}
    assert matched(mirror) == {"a": 2, "b": 1}


def test_a_state_that_is_first_asked_for_meanwhile_is_told_of_a_pod_as_it_is_held() -> None:
    mirror = cluster()
    given = replace(FIRST, terminating=True)
    with mirror.without_pods() as supposed:
        supposed.remove(given)
        late = mirror.derived(Told)
    assert late.changes == [PodChange(mirror.nodes.slots["n1"], None, FIRST)]


def test_versions_of_counters_do_not_come_again() -> None:
    mirror = cluster()
    counter = mirror.affinity.matched((WEB,), "zone")
    versions = [counter.version]
    with mirror.without_pods() as gone:
        gone.remove(FIRST)
        versions.append(counter.version)
    versions.append(counter.version)
    assert len(set(versions)) == 3


def test_events_are_followed_afterwards() -> None:
    mirror = cluster()
    with mirror.without_pods() as gone:
        gone.remove(FIRST)
    tell(mirror, "Delete", FIRST)
    assert matched(mirror) == {"a": 1, "b": 1}
    assert not mirror.audit()


def on_unknown_node(mirror: ClusterMirror) -> None:
    tell(mirror, "Delete", N1)


def unknown_pod(mirror: ClusterMirror) -> None:
    tell(mirror, "Delete", FIRST)


@pytest.mark.parametrize("prepare", [on_unknown_node, unknown_pod], ids=["node-unknown", "pod-unknown"])
def test_a_pod_on_no_known_node_cannot_be_gone(prepare: Callable[[ClusterMirror], None]) -> None:
    mirror = cluster()
    prepare(mirror)
    with mirror.without_pods() as gone, pytest.raises(ValueError, match="on no node from which it could be gone"):
        gone.remove(FIRST)


def test_a_pod_cannot_be_gone_twice_nor_come_back_without_being_gone() -> None:
    mirror = cluster()
    with mirror.without_pods() as gone:
        gone.remove(FIRST)
        with pytest.raises(ValueError, match="on no node"):
            gone.remove(FIRST)
        with pytest.raises(KeyError):
            gone.put_back("second")
    assert not mirror.audit()
