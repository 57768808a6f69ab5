"""Pods and nodes that are supposed: plugins answer so, and afterwards the mirror is as before."""

from collections.abc import Callable
from itertools import pairwise
from typing import Final

import pytest
from msgspec.structs import replace

from core.events import ClusterEvent
from core.mirror.changes import EVERY_CHANGE, Change, NodeChange, ObjectChange, PodChange
from core.mirror.cluster import ClusterMirror
from core.mirror.fork import Fork, ForkError
from core.mirror.node_info import NO_SLOT
from core.objects.affinity import PodMatcher
from core.objects.labels import NOTHING
from core.objects.pod import Waiting
from core.objects.volumes import CSINode, PersistentVolumeClaim
from core.plugins.volumebinding.claims import MigratedPlugins
from tests.core.decoded import by_value, counter_of
from tests.core.mirror.audit import audit, node_generations, owner_counts
from tests.core.mirror.values import ATTRACTED, REPELLING, mirror_of, node, pod, selecting, tell

N1 = node("n1", labels={"zone": "a"}, cpu=4)
N2 = node("n2", labels={"zone": "b"}, cpu=4)
NEW = node("new", labels={"zone": "c"}, cpu=4)
WEB = PodMatcher(frozenset({"default"}), NOTHING, selecting(app="web"))
FIRST, SECOND, OTHER = pod("first", "n1", cpu=1, affinity=REPELLING), pod("second", "n1"), pod("other", "n2")
WAITING = pod("waiting", "new", affinity=REPELLING)
FOREIGN = pod("stranger", affinity=REPELLING)
LEFT, LOST = pod("left"), pod("stayed")
CLAIM = PersistentVolumeClaim(namespace="default", name="data")


class Reported:
    """Notes every change."""

    hears: Final = EVERY_CHANGE

    def __init__(self, _mirror: ClusterMirror) -> None:
        self.changes: list[Change] = []

    def changed(self, change: Change) -> None:
        """Note it."""
        self.changes.append(change)


def cluster() -> ClusterMirror:
    return mirror_of(N1, N2, FIRST, SECOND, OTHER, WAITING)


def matched(mirror: ClusterMirror) -> dict[str, int]:
    return by_value(counter_of(mirror, (WEB,), "zone"))


def seen(mirror: ClusterMirror) -> list[object]:
    """Give all that anybody can see of a mirror, in the order in which it is shown."""
    return [
        mirror.dump(),
        audit(mirror),
        list(mirror.placed_pods()),
        list(mirror.pods.rows.items()),
        list(mirror.nodes),
        list(mirror.nodes.infos),
        mirror.nodes.extent,
        node_generations(mirror.nodes),
        list(owner_counts(mirror).items()),
        matched(mirror),
        set(counter_of(mirror, (WEB,), "zone").column.ids),
        mirror.figures,
        mirror.generation,
        dict(mirror.objects(PersistentVolumeClaim)),
    ]


def fork_much(forked: Fork) -> None:
    """Take every kind of step, some upon others."""
    forked.remove(FIRST)
    forked.add_node(NEW)
    forked.add_node(node("newer", labels={"zone": "a"}))
    forked.place(FIRST, "new")
    forked.place(replace(FOREIGN, affinity=ATTRACTED), "n1")
    forked.remove(OTHER)
    forked.remove(WAITING)
    forked.place(replace(WAITING, labels={"app": "db"}, namespace="elsewhere"), "newer")
    forked.put_back("other")
    forked.remove_node("n2")
    forked.remove_node("new")
    forked.add_object(CLAIM)
    forked.change_object(replace(CLAIM, volume="v"))
    forked.remove_object(CLAIM)


def fork_and_raise(mirror: ClusterMirror) -> None:
    with mirror.fork() as forked:
        fork_much(forked)
        raise RuntimeError("a plugin")


def test_afterwards_the_mirror_is_exactly_as_before_when_somebody_raised() -> None:
    mirror = cluster()
    before = seen(mirror)
    with pytest.raises(RuntimeError, match="a plugin"):
        fork_and_raise(mirror)
    assert seen(mirror) == before


def test_states_that_plugins_derive_are_told_and_other_listeners_are_not() -> None:
    mirror = cluster()
    derived, other = mirror.derived(Reported), Reported(mirror)
    mirror.listen(other)
    slot = mirror.nodes.slots["n1"]
    with mirror.fork() as forked:
        forked.remove(FIRST)
        forked.add_object(CLAIM)
        assert mirror.objects(PersistentVolumeClaim) == {"default/data": CLAIM}
    assert derived.changes == [
        PodChange(slot, FIRST, None),
        ObjectChange(PersistentVolumeClaim, NO_SLOT, None, CLAIM),
        ObjectChange(PersistentVolumeClaim, NO_SLOT, CLAIM, None),
        PodChange(slot, None, FIRST),
    ]
    assert other.changes == []


def test_an_object_is_supposed_changed_or_gone() -> None:
    mirror, bound = cluster(), replace(CLAIM, volume="v")
    tell(mirror, "Add", CLAIM)
    derived, claims, before = mirror.derived(Reported), mirror.objects(PersistentVolumeClaim), seen(mirror)
    with mirror.fork() as forked:
        forked.change_object(bound)
        assert claims == {"default/data": bound}
        forked.remove_object(CLAIM)
        assert not claims
    assert seen(mirror) == before
    there = [CLAIM, bound, None, bound, CLAIM]
    assert derived.changes == [ObjectChange(PersistentVolumeClaim, NO_SLOT, *each) for each in pairwise(there)]


def test_an_object_that_describes_a_node_is_supposed_with_the_slot_of_the_node() -> None:
    mirror = cluster()
    derived, migrated = mirror.derived(Reported), mirror.derived(MigratedPlugins)
    copy = CSINode(name="new", migrated_plugins=frozenset({"kubernetes.io/aws-ebs"}))
    with mirror.fork() as forked:
        forked.add_node(NEW)
        forked.add_object(copy)
        slot = mirror.nodes.slots["new"]
        (place,), plugins = migrated.of(mirror.batch(["new"]))
        assert plugins[place] == copy.migrated_plugins
    changes = [each for each in derived.changes if isinstance(each, ObjectChange)]
    assert changes == [ObjectChange(CSINode, slot, None, copy), ObjectChange(CSINode, slot, copy, None)]


@pytest.mark.parametrize("as_running", [False, True])
def test_derived_states_are_told_of_a_pod_as_it_is_held_or_as_if_it_did_not_terminate(as_running: bool) -> None:  # noqa: FBT001 - a case
    mirror = cluster()
    stored = replace(FIRST, terminating=True)
    tell(mirror, "Update", stored)
    derived, slot = mirror.derived(Reported), mirror.nodes.slots["n1"]
    with mirror.fork() as forked:
        forked.remove(replace(FOREIGN, uid=stored.uid), as_running=as_running)
    reported = FIRST if as_running else stored
    assert derived.changes == [PodChange(slot, reported, None), PodChange(slot, None, reported)]
    assert mirror.get_pod("first") == stored


def test_a_state_that_is_first_asked_for_meanwhile_is_told_of_a_pod_as_it_is_held() -> None:
    mirror = cluster()
    stored = replace(FIRST, terminating=True)
    tell(mirror, "Update", stored)
    with mirror.fork() as forked:
        forked.remove(stored, as_running=True)
        late = mirror.derived(Reported)
    assert late.changes == [PodChange(mirror.nodes.slots["n1"], None, stored)]


def test_versions_of_counters_do_not_come_again() -> None:
    mirror = cluster()
    counter = counter_of(mirror, (WEB,), "zone")
    versions = [counter.version]
    with mirror.fork() as forked:
        forked.remove(FIRST)
        versions.append(counter.version)
    versions.append(counter.version)
    assert len(set(versions)) == 3


# The contract of upstream's Snapshot: assume and forget with victims.


def test_a_pod_that_was_gone_at_a_mark_is_not_put_back_as_long_as_the_mark_stands() -> None:
    mirror = cluster()
    with mirror.fork() as forked:
        forked.remove(FIRST)
        forked.savepoint()
        forked.remove(SECOND)
        forked.put_back("second")
        with pytest.raises(ForkError, match="pod first cannot be put back: it was gone at the last mark"):
            forked.put_back("first")
        forked.revert_to(0)
        forked.remove(FIRST)
        forked.put_back("first")
        assert matched(mirror) == {"a": 2, "b": 1}


def test_with_the_cache_following_every_listener_is_told_of_each_change_and_each_undo() -> None:
    mirror = cluster()
    derived, other = mirror.derived(Reported), Reported(mirror)
    mirror.listen(other)
    slot = mirror.nodes.slots["n2"]
    with mirror.fork(cache_follows=True) as forked:
        placed = forked.place(FOREIGN, "n2")
        forked.remove(OTHER)
        forked.revert_to(1)
    changes: list[Change] = [PodChange(slot, None, placed), PodChange(slot, OTHER, None)]
    changes += [PodChange(slot, None, OTHER), PodChange(slot, placed, None)]
    assert changes == other.changes == derived.changes


def test_pods_that_were_placed_are_assumed_as_if_one_by_one_and_nobody_is_told_again() -> None:
    mirror, twin = cluster(), cluster()
    reported = Reported(mirror)
    mirror.listen(reported)
    generation = mirror.generation
    waiting = Waiting("2026-01-01T00:00:00Z", reason="Unschedulable")
    pods = [pod("p", cpu=2), replace(FOREIGN, labels={"app": "db"}, waiting=waiting)]
    with mirror.fork(cache_follows=True) as forked:
        forked.place(pod("taken-back"), "n1")
        forked.revert_to(0)
        for each in pods:
            forked.place(each, "n2")
        assert (mirror.generation, dict(mirror.assumed)) == (generation, {})
        changes = len(reported.changes)
        retained = mirror.assume_placed(forked, 7.0)
    assert [twin.assume(each, "n2", 7.0) for each in pods] == retained
    assert seen(twin) == seen(mirror)
    assert dict(twin.assumed) == dict(mirror.assumed)
    assert changes == len(reported.changes) == 4
    assert list(mirror.nodes.known.changed_since(generation)) == [mirror.nodes.infos["n2"]]


def test_what_is_reserved_for_pods_is_undone_when_they_are_assumed() -> None:
    mirror, twin = cluster(), cluster()
    for each in (mirror, twin):
        each.apply(ClusterEvent("Add", CLAIM))
    with mirror.fork(cache_follows=True) as forked:
        forked.change_object(replace(CLAIM, selected_node="n1"))
        forked.place(FOREIGN, "n2")
        forked.change_object(replace(CLAIM, selected_node="n2"))
        mirror.assume_placed(forked, 7.0)
    twin.assume(FOREIGN, "n2", 7.0)
    assert seen(twin) == seen(mirror)


@pytest.mark.parametrize("cache_follows", [False, True])
def test_only_pods_that_were_placed_for_all_to_know_can_be_assumed(cache_follows: bool) -> None:  # noqa: FBT001 - a case
    mirror = cluster()
    before = seen(mirror)
    with mirror.fork(cache_follows=cache_follows) as forked:
        forked.place(FOREIGN, "n2")
        if cache_follows:
            forked.remove(FIRST)
        with pytest.raises(ForkError, match="cannot be kept"):
            mirror.assume_placed(forked, 0.0)
        assert not mirror.assumed
    assert seen(mirror) == before


MOVED = pod("moved", "n1")
TERMINATING = replace(pod("terminating", "n1"), terminating=True)

CONTRADICTIONS: Final[dict[str, tuple[Callable[[Fork], object], str]]] = {
    "remove-unknown": (
        lambda forked: forked.remove(FOREIGN),
        "pod default/stranger (stranger) cannot be removed: there is no such pod on any node",
    ),
    "remove-waiting": (
        lambda forked: forked.remove(WAITING),
        "pod default/waiting (waiting) cannot be removed: it is on new, which is not known",
    ),
    "remove-gone": (
        lambda forked: forked.remove(SECOND),
        "pod default/second (second) cannot be removed: it is gone already",
    ),
    "put-back-unknown": (lambda forked: forked.put_back("what"), "pod what cannot be put back: it is not gone"),
    "put-back-there": (lambda forked: forked.put_back("first"), "pod first cannot be put back: it is not gone"),
    "put-back-placed": (lambda forked: forked.put_back("moved"), "pod moved cannot be put back: it is not gone"),
    "place-there": (
        lambda forked: forked.place(FIRST, "n1"),
        "pod default/first (first) cannot be placed on n1: it is on n1 already",
    ),
    "place-elsewhere": (
        lambda forked: forked.place(FIRST, "n2"),
        "pod default/first (first) cannot be placed on n2: it is on n1 already",
    ),
    "place-placed": (
        lambda forked: forked.place(pod("moved"), "n1"),
        "pod default/moved (moved) cannot be placed on n1: it is on n2 already",
    ),
    "place-waiting": (
        lambda forked: forked.place(WAITING, "n1"),
        "pod default/waiting (waiting) cannot be placed on n1: it is on new, which is not known",
    ),
    "remove-unknown-node": (
        lambda forked: forked.remove_node("new"),
        "node new cannot be removed: there is no such node",
    ),
    "remove-node-twice": (
        lambda forked: forked.remove_node("lost"),
        "node lost cannot be removed: there is no such node",
    ),
    "add-removed": (
        lambda forked: forked.add_node(node("lost")),
        "node lost cannot be added: there was one of that name, which is supposed gone",
    ),
    "put-back-on-removed": (
        lambda forked: forked.put_back("left"),
        "pod left cannot be put back: its node is gone",
    ),
    "place-of-removed": (
        lambda forked: forked.place(LOST, "n1"),
        "pod default/stayed (stayed) cannot be placed on n1: it is on lost, which is not known",
    ),
    "place-ended": (
        lambda forked: forked.place(pod("job", ended=True), "n1"),
        "pod default/job (job) cannot be placed on n1: it has ended",
    ),
    "place-on-unknown": (
        lambda forked: forked.place(FOREIGN, "new"),
        "pod default/stranger (stranger) cannot be placed on new: there is no such node",
    ),
    "place-nowhere": (
        lambda forked: forked.place(FOREIGN, ""),
        "pod default/stranger (stranger) cannot be placed on no node: there is no such node",
    ),
    "place-other": (
        lambda forked: forked.place(pod("terminating"), "n1"),
        "pod default/terminating (terminating) cannot be placed on n1: it terminates, and is gone as if it did not",
    ),
    "add-known": (lambda forked: forked.add_node(N1), "node n1 cannot be added: there is one of that name"),
    "add-supposed": (
        lambda forked: forked.add_node(node("supposed", cpu=1)),
        "node supposed cannot be added: there is one of that name",
    ),
    "add-claim": (
        lambda forked: forked.add_object(CLAIM),
        "PersistentVolumeClaim default/data cannot be added: there is one of that name",
    ),
    "change-unknown-object": (
        lambda forked: forked.change_object(replace(CLAIM, name="other")),
        "PersistentVolumeClaim default/other cannot be changed: there is none of that name",
    ),
    "remove-unknown-object": (
        lambda forked: forked.remove_object(replace(CLAIM, name="other")),
        "PersistentVolumeClaim default/other cannot be changed: there is none of that name",
    ),
}


@pytest.mark.parametrize(("contradict", "message"), CONTRADICTIONS.values(), ids=CONTRADICTIONS.keys())
def test_what_contradicts_the_mirror_or_the_supposition_is_refused_and_changes_nothing(
    contradict: Callable[[Fork], object], message: str
) -> None:
    mirror = cluster()
    tell(mirror, "Add", MOVED, TERMINATING)
    before = seen(mirror)
    with mirror.fork() as forked:
        forked.remove(SECOND)
        forked.remove(MOVED)
        forked.place(MOVED, "n2")
        forked.remove(TERMINATING, as_running=True)
        forked.add_node(node("supposed"))
        forked.add_object(CLAIM)
        forked.add_node(node("lost"))
        forked.place(LEFT, "lost")
        forked.place(LOST, "lost")
        forked.remove(LEFT)
        forked.remove_node("lost")
        then = seen(mirror)
        with pytest.raises(ForkError) as raised:
            contradict(forked)
        assert str(raised.value) == message
        assert seen(mirror) == then
    assert seen(mirror) == before


def test_a_node_that_is_supposed_gone_is_unknown_and_comes_back_with_its_pods() -> None:
    mirror = cluster()
    derived, slot = mirror.derived(Reported), mirror.nodes.slots["n1"]
    assert matched(mirror) == {"a": 2, "b": 1}
    with mirror.fork() as forked:
        forked.remove_node("n1")
        assert "n1" not in mirror.nodes.slots
        assert matched(mirror) == {"b": 1}
        assert mirror.batch(["n1"]).unknown == [0]
    pods = [PodChange(slot, each, None) for each in (FIRST, SECOND)]
    back = [PodChange(slot, None, each) for each in (FIRST, SECOND)]
    assert derived.changes == [*pods, NodeChange(slot, N1, None), NodeChange(slot, None, N1), *back]
    assert matched(mirror) == {"a": 2, "b": 1}


def test_a_supposed_node_is_known_with_the_pods_that_wait_for_it() -> None:
    mirror = cluster()
    derived, other = mirror.derived(Reported), Reported(mirror)
    mirror.listen(other)
    assert matched(mirror) == {"a": 2, "b": 1}
    with mirror.fork() as forked:
        forked.add_node(NEW)
        batch = mirror.batch(["new", "n1"])
        slot = mirror.nodes.slots["new"]
        assert (batch.slots.tolist(), batch.unmirrored) == ([slot, mirror.nodes.slots["n1"]], {})
        assert mirror.nodes.name(slot) == "new"
        assert matched(mirror) == {"a": 2, "b": 1, "c": 1}
        forked.remove(WAITING)
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


def test_pods_that_are_supposed_to_be_gone_or_here_stay_so_when_their_node_changes() -> None:
    mirror = cluster()
    before = seen(mirror)
    with mirror.fork() as forked:
        forked.remove(FIRST)
        forked.place(FOREIGN, "n1")
        forked.change_node(replace(N1, labels={"zone": "c"}))
        assert matched(mirror) == {"b": 1, "c": 2}
        forked.put_back("first")
        assert matched(mirror) == {"b": 1, "c": 3}
    assert seen(mirror) == before


def test_so_many_supposed_nodes_that_every_column_grows_leave_nothing_behind() -> None:
    mirror = cluster()
    before, epoch = seen(mirror), mirror.nodes.epoch
    with mirror.fork() as forked:
        for number in range(100):
            forked.add_node(node(f"new-{number}", labels={"zone": f"new-{number}"}))
            forked.place(pod(f"new-{number}", affinity=REPELLING), f"new-{number}")
        assert (len(matched(mirror)), mirror.nodes.extent > 100) == (102, True)
    assert seen(mirror) == before
    assert mirror.nodes.epoch > epoch  # what was found out about slots in the block is of no use
