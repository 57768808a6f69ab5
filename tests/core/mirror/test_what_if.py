"""Pods and nodes that are supposed: plugins answer so, and afterwards the mirror is as if nobody had asked."""

import pytest
from msgspec.structs import replace

from core.events import ClusterEvent
from core.mirror.changes import Change, NodeChange, ObjectChange, PodChange
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NO_SLOT
from core.mirror.pod_states import PodStateCounts
from core.mirror.what_if import Supposition, WhatIfError
from core.objects.affinity import PodMatcher
from core.objects.labels import NOTHING
from core.objects.volumes import CSINode, PersistentVolume
from tests.core.decoded import counter_of
from tests.core.mirror.values import ATTRACTED, REPELLING, mirror_of, node, pod, selecting, tell

N1 = node("n1", labels={"zone": "a"}, cpu=4)
N2 = node("n2", labels={"zone": "b"}, cpu=4)
NEW = node("new", labels={"zone": "c"}, cpu=4)
WEB = PodMatcher(frozenset({"default"}), NOTHING, selecting(app="web"))
FIRST, SECOND, OTHER = pod("first", "n1", cpu=1, affinity=REPELLING), pod("second", "n1"), pod("other", "n2")
WAITING = pod("waiting", "new", affinity=REPELLING)
STRANGER = pod("stranger", affinity=REPELLING)


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
    return mirror_of(N1, N2, FIRST, SECOND, OTHER, WAITING)


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


def matched(mirror: ClusterMirror) -> dict[str, int]:
    return counter_of(mirror, (WEB,), "zone").by_value()


def seen(mirror: ClusterMirror) -> list[object]:
    """Give all that anybody can see of a mirror, in the order in which it is shown."""
    return [
        mirror.dump(),
        mirror.audit(),
        list(mirror.placed_pods()),
        list(mirror.pods.rows.items()),
        list(mirror.nodes),
        list(mirror.nodes.infos),
        mirror.nodes.extent,
        list(mirror.nodes.known.generations()),
        list(mirror.affinity.owner_counts().items()),
        matched(mirror),
        set(counter_of(mirror, (WEB,), "zone").column.ids),
        {each: getattr(mirror.pod_states, each) for each in PodStateCounts.__slots__},
        mirror.figures,
    ]


def test_what_plugins_count_follows_the_supposition() -> None:
    mirror = cluster()
    assert matched(mirror) == {"a": 2, "b": 1}
    with mirror.suppose() as supposed:
        supposed.remove(FIRST)
        supposed.remove(SECOND)
        assert matched(mirror) == {"b": 1}
        assert [list(counts.values()) for counts in mirror.affinity.owner_counts().values()] == [[]]
        assert [each.uid for _, each in mirror.placed_pods()] == ["other"]
        supposed.put_back("first")
        assert matched(mirror) == {"a": 1, "b": 1}
        assert {each.uid for _, each in mirror.placed_pods()} == {"first", "other"}


def test_afterwards_the_mirror_is_exactly_as_before_whatever_was_put_back_and_in_which_order() -> None:
    mirror = cluster()
    before = seen(mirror)
    with mirror.suppose() as supposed:
        for each in (SECOND, OTHER, FIRST):
            supposed.remove(each)
        supposed.put_back("other")
        supposed.put_back("second")
        supposed.remove(OTHER)
    assert seen(mirror) == before
    assert not mirror.audit()


def test_objects_are_supposed_as_changes_that_are_taken_back() -> None:
    mirror = cluster()
    held, limits = PersistentVolume(name="pv", capacity=1), CSINode(name="n2", volume_limits={"d": 1})
    mirror.apply(ClusterEvent("Add", held))
    told, before = mirror.derived(Told), (dict(mirror.objects(PersistentVolume)), mirror.generation)
    slot, other = mirror.nodes.slots["n2"], replace(held, capacity=2)
    with mirror.suppose() as supposed:
        supposed.put_object(other)
        supposed.put_object(limits)
        assert dict(mirror.objects(PersistentVolume)) == {"pv": other}
        assert dict(mirror.objects(CSINode)) == {"n2": limits}
    assert told.changes == [
        ObjectChange(PersistentVolume, NO_SLOT, held, other),
        ObjectChange(CSINode, slot, None, limits),
        ObjectChange(CSINode, slot, limits, None),
        ObjectChange(PersistentVolume, NO_SLOT, other, held),
    ]
    assert before == (dict(mirror.objects(PersistentVolume)), mirror.generation)
    assert not mirror.objects(CSINode)


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


def test_events_are_followed_afterwards() -> None:
    mirror = cluster()
    with mirror.suppose() as supposed:
        supposed.remove(FIRST)
    tell(mirror, "Delete", FIRST)
    assert matched(mirror) == {"a": 1, "b": 1}
    assert not mirror.audit()


def test_a_pod_that_is_placed_counts_where_it_is_supposed_to_be() -> None:
    mirror = cluster()
    derived, other = mirror.derived(Told), Told(mirror)
    mirror.listen(other)
    slot = mirror.nodes.slots["n2"]
    assert matched(mirror) == {"a": 2, "b": 1}
    with mirror.suppose() as supposed:
        placed = supposed.place(replace(STRANGER, node_name="whatever it says"), "n2")
        assert placed == replace(STRANGER, node_name="n2")
        assert matched(mirror) == {"a": 2, "b": 2}
        assert list(mirror.affinity.owner_counts().values()) == [{"a": 1, "b": 1}]
    assert derived.changes == [PodChange(slot, None, placed), PodChange(slot, placed, None)]
    assert other.changes == []
    assert not mirror.is_mirrored("stranger")


def test_a_pod_that_is_gone_may_be_placed_elsewhere_and_as_another_one() -> None:
    mirror = cluster()
    before = seen(mirror)
    with mirror.suppose() as supposed:
        supposed.remove(FIRST)
        supposed.place(FIRST, "n2")
        assert matched(mirror) == {"a": 1, "b": 2}
        supposed.remove(SECOND)
        supposed.place(replace(SECOND, labels={}), "n2")
        assert matched(mirror) == {"b": 2}
        assert {each.uid: mirror.nodes.name(slot) for slot, each in mirror.placed_pods()} == dict.fromkeys(
            ("first", "second", "other"), "n2"
        )
    assert seen(mirror) == before


def test_a_pod_that_was_placed_may_be_removed_and_placed_again() -> None:
    mirror = cluster()
    before = seen(mirror)
    with mirror.suppose() as supposed:
        for name in ("n1", "n2"):
            supposed.remove(supposed.place(STRANGER, name))
            assert matched(mirror) == {"a": 2, "b": 1}
        supposed.place(STRANGER, "n2")
        assert matched(mirror) == {"a": 2, "b": 2}
    assert seen(mirror) == before


def test_a_supposed_node_is_known_with_the_pods_that_wait_for_it() -> None:
    mirror = cluster()
    derived, other = mirror.derived(Told), Told(mirror)
    mirror.listen(other)
    assert matched(mirror) == {"a": 2, "b": 1}
    with mirror.suppose() as supposed:
        supposed.add_node(NEW)
        batch = mirror.batch(["new", "n1"])
        slot = mirror.nodes.slots["new"]
        assert (batch.slots.tolist(), batch.strangers) == ([slot, mirror.nodes.slots["n1"]], {})
        assert mirror.nodes.name(slot) == "new"
        assert matched(mirror) == {"a": 2, "b": 1, "c": 1}
        supposed.remove(WAITING)
        assert matched(mirror) == {"a": 2, "b": 1}
    assert derived.changes == [
        NodeChange(slot, None, NEW),
        PodChange(slot, None, WAITING),
        PodChange(slot, WAITING, None),
        PodChange(slot, None, WAITING),
        PodChange(slot, WAITING, None),
        NodeChange(slot, NEW, None),
    ]
    assert other.changes == []
    assert mirror.batch(["new"]).unknown == [0]


def test_a_supposed_node_is_on_its_side_of_the_partition() -> None:
    mirror = cluster()
    mirror.set_partition_selector(selecting(zone="a"))
    mirror.set_node_out_of_partition("newer")
    with mirror.suppose() as supposed:
        for each in (NEW, node("newest", labels={"zone": "a"}), node("newer", labels={"zone": "a"})):
            supposed.add_node(each)
        outside = mirror.batch(["new", "newest", "newer", "n1", "n2"]).out_of_partition
        assert outside is not None
        assert outside.tolist() == [True, False, True, False, True]


def test_so_many_supposed_nodes_that_every_column_grows_leave_nothing_behind() -> None:
    mirror = cluster()
    before, lives = seen(mirror), mirror.nodes.lives
    with mirror.suppose() as supposed:
        for number in range(100):
            supposed.add_node(node(f"new-{number}", labels={"zone": f"new-{number}"}))
            supposed.place(pod(f"new-{number}", affinity=REPELLING), f"new-{number}")
        assert len(matched(mirror)) == 102
        assert mirror.nodes.extent > 100
    assert seen(mirror) == before
    assert mirror.nodes.lives > lives  # what was found out about slots in the block is of no use


def test_nodes_that_come_afterwards_get_the_slots_that_supposed_ones_had() -> None:
    mirror = cluster()
    with mirror.suppose() as supposed:
        supposed.add_node(node("newer", labels={"zone": "a"}))
        slot = mirror.nodes.slots["newer"]
    tell(mirror, "Add", NEW)
    assert mirror.nodes.slots["new"] == slot
    assert matched(mirror) == {"a": 2, "b": 1, "c": 1}
    assert not mirror.audit()


def test_a_slot_that_was_free_before_is_free_afterwards() -> None:
    mirror = cluster()
    slot = mirror.nodes.slots["n2"]
    tell(mirror, "Delete", N2)
    before = seen(mirror)
    with mirror.suppose() as supposed:
        supposed.add_node(NEW)
        supposed.add_node(N2)
        assert matched(mirror) == {"a": 2, "b": 1, "c": 1}
    assert seen(mirror) == before
    tell(mirror, "Add", N2)
    assert mirror.nodes.slots["n2"] == slot


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


def test_another_state_of_a_node_is_followed_and_taken_back() -> None:
    mirror = cluster()
    told = mirror.derived(Told)
    before = seen(mirror)
    moved = replace(N1, labels={"zone": "b", "new": "yes"})
    with mirror.suppose() as supposed:
        supposed.change_node(moved)
        assert matched(mirror) == {"b": 3}
        assert mirror.nodes.label_keys["new"] == 1
        supposed.change_node(replace(moved, labels={}))
        assert matched(mirror) == {"b": 1}
        assert not mirror.audit()
    assert seen(mirror) == before
    slot = mirror.nodes.slots["n1"]
    bare = replace(moved, labels={})
    states = [(N1, moved), (moved, bare), (bare, moved), (moved, N1)]
    assert [NodeChange(slot, was, then) for was, then in states] == told.changes


def test_a_supposed_node_may_have_another_state_and_an_unknown_one_may_not() -> None:
    mirror = cluster()
    before = seen(mirror)
    with mirror.suppose() as supposed:
        supposed.add_node(NEW)
        supposed.change_node(replace(NEW, labels={"zone": "a"}))
        assert matched(mirror) == {"a": 3, "b": 1}
        with pytest.raises(WhatIfError, match="node gone cannot be changed: there is no such node"):
            supposed.change_node(node("gone"))
    assert seen(mirror) == before


def test_pods_that_are_supposed_to_be_gone_or_here_stay_so_when_their_node_changes() -> None:
    mirror = cluster()
    before = seen(mirror)
    with mirror.suppose() as supposed:
        supposed.remove(FIRST)
        supposed.place(STRANGER, "n1")
        supposed.change_node(replace(N1, labels={"zone": "c"}))
        assert matched(mirror) == {"b": 1, "c": 2}
        supposed.put_back("first")
        assert matched(mirror) == {"b": 1, "c": 3}
    assert seen(mirror) == before


def test_a_name_that_only_pods_have_has_no_state_to_change() -> None:
    mirror = mirror_of(WAITING)
    with pytest.raises(ValueError, match="node new is not known"):
        mirror.nodes.suppose_state(mirror.nodes.infos["new"], NEW)


# The contract of upstream's Snapshot: assume and forget with victims, and the two sides of the partition.


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


def test_supposed_nodes_are_on_their_side_of_the_partition() -> None:
    mirror = cluster()
    mirror.set_partition_selector(selecting(zone="a"))
    with mirror.suppose() as supposed:
        supposed.add_node(node("in", labels={"zone": "a"}))
        supposed.add_node(NEW)
        batch = mirror.batch(["n1", "n2", "in", "new"])
        assert batch.out_of_partition is not None
        assert batch.out_of_partition.tolist() == [False, True, False, True]
    batch = mirror.all_nodes()
    assert batch.out_of_partition is not None
    assert dict(zip(batch.names, batch.out_of_partition.tolist(), strict=True)) == {"n1": False, "n2": True}
