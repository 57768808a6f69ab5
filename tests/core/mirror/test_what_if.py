"""Pods and nodes that are supposed: plugins answer so, and afterwards the mirror is as before."""

from typing import Final

import pytest
from msgspec.structs import replace

from core.mirror.changes import Change, PodChange
from core.mirror.cluster import ClusterMirror
from core.mirror.what_if import Supposition, WhatIfError
from tests.core.decoded import counter_of
from tests.core.mirror.supposed_cluster import (
    FIRST,
    NEW,
    OTHER,
    SECOND,
    STRANGER,
    WAITING,
    WEB,
    Told,
    cluster,
    matched,
    seen,
)
from tests.core.mirror.values import ATTRACTED, node, pod, tell


class SlotsAtFirst:
    """Notes where the pods are when it is made, and what it is told after that."""

    hears: Final = (PodChange,)

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


def suppose_much(supposed: Supposition) -> None:
    """Take every kind of step, some upon others."""
    supposed.remove(FIRST)
    supposed.add_node(NEW)
    supposed.add_node(node("newer", labels={"zone": "a"}))
    supposed.place(FIRST, "new")
    supposed.place(replace(STRANGER, affinity=ATTRACTED), "n1")
    supposed.remove(OTHER)
    supposed.remove(WAITING)
    supposed.place(replace(WAITING, labels={"app": "db"}, namespace="elsewhere"), "newer")
    supposed.put_back("other")


def suppose_and_raise(mirror: ClusterMirror) -> None:
    with mirror.suppose() as supposed:
        suppose_much(supposed)
        raise RuntimeError("a plugin")


def test_afterwards_the_mirror_is_exactly_as_before_when_somebody_raised() -> None:
    mirror = cluster()
    before = seen(mirror)
    with pytest.raises(RuntimeError, match="a plugin"):
        suppose_and_raise(mirror)
    assert seen(mirror) == before


def test_the_generation_stays_so_nobody_reads_a_node_again() -> None:
    mirror = cluster()
    generation = mirror.generation
    with mirror.suppose() as supposed:
        suppose_much(supposed)
        assert mirror.generation == generation
        assert list(mirror.nodes.known.changed_since(generation)) == []
    assert mirror.generation == generation
    assert list(mirror.nodes.known.changed_since(generation)) == []


def test_states_that_plugins_derive_are_told_and_other_listeners_are_not() -> None:
    mirror = cluster()
    derived, other = mirror.derived(Told), Told(mirror)
    mirror.listen(other)
    slot = mirror.nodes.slots["n1"]
    with mirror.suppose() as supposed:
        supposed.remove(FIRST)
    assert derived.changes == [PodChange(slot, FIRST, None), PodChange(slot, None, FIRST)]
    assert other.changes == []


@pytest.mark.parametrize("as_running", [False, True])
def test_derived_states_are_told_of_a_pod_as_it_is_held_or_as_if_it_did_not_terminate(as_running: bool) -> None:  # noqa: FBT001 - a case
    mirror = cluster()
    held = replace(FIRST, terminating=True)
    tell(mirror, "Update", held)
    derived, slot = mirror.derived(Told), mirror.nodes.slots["n1"]
    with mirror.suppose() as supposed:
        supposed.remove(replace(STRANGER, uid=held.uid), as_running=as_running)
    told = FIRST if as_running else held
    assert derived.changes == [PodChange(slot, told, None), PodChange(slot, None, told)]
    assert mirror.get_pod("first") is held


def test_a_state_that_is_first_asked_for_meanwhile_is_told_of_those_who_come_back() -> None:
    mirror = cluster()
    with mirror.suppose() as supposed:
        supposed.remove(FIRST)
        made = mirror.derived(SlotsAtFirst)
        counted = matched(mirror)
    assert counted == {"a": 1, "b": 1}
    assert made.pods == {"first", "second", "other"}
    assert matched(mirror) == {"a": 2, "b": 1}


def test_a_state_that_is_first_asked_for_meanwhile_is_told_of_a_pod_as_it_is_held() -> None:
    mirror = cluster()
    held = replace(FIRST, terminating=True)
    tell(mirror, "Update", held)
    with mirror.suppose() as supposed:
        supposed.remove(held, as_running=True)
        late = mirror.derived(Told)
    assert late.changes == [PodChange(mirror.nodes.slots["n1"], None, held)]


def test_versions_of_counters_do_not_come_again() -> None:
    mirror = cluster()
    counter = counter_of(mirror, (WEB,), "zone")
    versions = [counter.version]
    with mirror.suppose() as supposed:
        supposed.remove(FIRST)
        versions.append(counter.version)
    versions.append(counter.version)
    assert len(set(versions)) == 3


def test_a_supposition_may_begin_in_another_one() -> None:
    mirror = cluster()
    before = seen(mirror)
    with mirror.suppose() as outer:
        outer.remove(FIRST)
        outer.place(STRANGER, "n2")
        between = matched(mirror)
        with mirror.suppose() as inner:
            inner.remove(STRANGER)
            inner.add_node(NEW)
            inner.place(FIRST, "new")
            assert matched(mirror) == {"a": 1, "b": 1, "c": 2}
        assert matched(mirror) == between
    assert seen(mirror) == before


# The contract of upstream's Snapshot: assume and forget with victims.


def on_node(mirror: ClusterMirror, name: str) -> set[str]:
    return {each.uid for slot, each in mirror.placed_pods() if slot == mirror.nodes.slots[name]}


def test_a_pod_is_assumed_in_the_place_of_its_victims_and_forgotten_with_them_back() -> None:
    mirror = cluster()
    before = seen(mirror)
    with mirror.suppose() as assumed:
        assumed.remove(FIRST)
        placed = assumed.place(pod("p", cpu=2), "n1")
        assert on_node(mirror, "n1") == {"second", "p"}
        with mirror.suppose() as next_one:
            next_one.place(pod("q"), "n1")
            next_one.remove(SECOND)
            assert on_node(mirror, "n1") == {"p", "q"}
        assert on_node(mirror, "n1") == {"second", "p"}
        with pytest.raises(WhatIfError):
            assumed.place(placed, "n2")
        with pytest.raises(WhatIfError):
            assumed.remove(FIRST)
    assert on_node(mirror, "n1") == {"first", "second"}
    assert seen(mirror) == before


def test_a_pod_that_was_gone_at_a_mark_is_not_put_back_as_long_as_the_mark_stands() -> None:
    mirror = cluster()
    with mirror.suppose() as supposed:
        supposed.remove(FIRST)
        supposed.mark()
        supposed.remove(SECOND)
        supposed.put_back("second")
        with pytest.raises(WhatIfError, match="pod first cannot be put back: it was gone at the last mark"):
            supposed.put_back("first")
        supposed.undo_to(0)
        supposed.remove(FIRST)
        supposed.put_back("first")
        assert matched(mirror) == {"a": 2, "b": 1}


def test_with_the_cache_following_every_listener_is_told_of_each_change_and_each_undo() -> None:
    mirror = cluster()
    derived, other = mirror.derived(Told), Told(mirror)
    mirror.listen(other)
    slot = mirror.nodes.slots["n2"]
    with mirror.suppose(cache_follows=True) as supposed:
        placed = supposed.place(STRANGER, "n2")
        supposed.remove(OTHER)
        supposed.undo_to(1)
    changes: list[Change] = [PodChange(slot, None, placed), PodChange(slot, OTHER, None)]
    changes += [PodChange(slot, None, OTHER), PodChange(slot, placed, None)]
    assert changes == other.changes == derived.changes


def test_pods_that_were_placed_are_assumed_as_if_one_by_one_and_nobody_is_told_again() -> None:
    mirror, twin = cluster(), cluster()
    told = Told(mirror)
    mirror.listen(told)
    generation = mirror.generation
    pods = [pod("p", cpu=2), replace(STRANGER, labels={"app": "db"})]
    with mirror.suppose(cache_follows=True) as supposed:
        supposed.place(pod("taken-back"), "n1")
        supposed.undo_to(0)
        for each in pods:
            supposed.place(each, "n2")
        assert (mirror.generation, dict(mirror.assumed)) == (generation, {})
        changes = len(told.changes)
        kept = mirror.assume_placed(supposed, 7.0)
    assert [twin.assume(each, "n2", 7.0) for each in pods] == kept
    assert seen(twin) == seen(mirror)
    assert dict(twin.assumed) == dict(mirror.assumed)
    assert changes == len(told.changes) == 4
    assert list(mirror.nodes.known.changed_since(generation)) == [mirror.nodes.infos["n2"]]


@pytest.mark.parametrize("cache_follows", [False, True])
def test_only_pods_that_were_placed_for_all_to_know_can_be_assumed(cache_follows: bool) -> None:  # noqa: FBT001 - a case
    mirror = cluster()
    before = seen(mirror)
    with mirror.suppose(cache_follows=cache_follows) as supposed:
        supposed.place(STRANGER, "n2")
        if cache_follows:
            supposed.remove(FIRST)
        with pytest.raises(WhatIfError, match="cannot be kept"):
            mirror.assume_placed(supposed, 0.0)
        assert not mirror.assumed
    assert seen(mirror) == before
