"""Supposed nodes, and other states of nodes: plugins see them in the block, and afterwards the mirror is as before."""

import pytest
from msgspec.structs import replace

from core.mirror.changes import NodeChange, PodChange
from tests.core.mirror.audit import audit
from tests.core.mirror.supposed_cluster import FIRST, N1, NEW, STRANGER, WAITING, Told, cluster, matched, seen
from tests.core.mirror.values import REPELLING, mirror_of, node, pod, selecting, tell


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
    assert not audit(mirror)


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
        assert not audit(mirror)
    assert seen(mirror) == before
    slot = mirror.nodes.slots["n1"]
    bare = replace(moved, labels={})
    states = [(N1, moved), (moved, bare), (bare, moved), (moved, N1)]
    assert [NodeChange(slot, was, then) for was, then in states] == told.changes


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
