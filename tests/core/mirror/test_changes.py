"""What listeners of the mirror are told: every change once, in an order from which nothing has to be guessed."""

from collections.abc import Callable, Sequence
from typing import Final

import pytest
from msgspec.structs import replace

from core.events import ClusterEvent, Object
from core.mirror.changes import EVERY_CHANGE, Change, NamespaceChange, NodeChange, ObjectChange, PodChange
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NO_SLOT
from core.objects.kinds import Namespace, ReplicaSet
from core.objects.pod import Waiting
from core.objects.volumes import CSINode, PersistentVolume
from tests.core.mirror.values import mirror_of, node, pod, replica_set, tell


class Heard:
    """Notes every change, and what the mirror said of itself meanwhile."""

    hears: Final = EVERY_CHANGE

    def __init__(self, mirror: ClusterMirror, look: Callable[[ClusterMirror], object] = lambda _: None) -> None:
        self.changes: list[Change] = []
        self.seen: list[object] = []
        self._mirror = mirror
        self._look = look
        mirror.listen(self)

    def changed(self, change: Change) -> None:
        """Note it."""
        self.changes.append(change)
        self.seen.append(self._look(self._mirror))


def in_any_order(changes: Sequence[Change], *expected: Change) -> bool:
    return len(changes) == len(expected) and all(each in changes for each in expected)


# Nodes.


def test_a_node_that_comes_changes_and_goes_is_told_with_its_slot() -> None:
    heard = Heard(mirror := mirror_of(node("other")))
    first, second = node("n", cpu=1), node("n", cpu=2)
    tell(mirror, "Add", first, second)
    tell(mirror, "Delete", second)

    assert heard.changes == [NodeChange(1, None, first), NodeChange(1, first, second), NodeChange(1, second, None)]


def test_pods_leave_a_node_before_it_goes_and_come_after_it() -> None:
    mirror = mirror_of(here := node("n"), one := pod("p", "n"), other := pod("q", "n"))
    heard = Heard(mirror)
    tell(mirror, "Delete", here)
    assert heard.changes[-1] == NodeChange(0, here, None)
    assert in_any_order(heard.changes[:-1], PodChange(0, one, None), PodChange(0, other, None))

    heard.changes.clear()
    tell(mirror, "Add", here)
    assert heard.changes[0] == NodeChange(0, None, here)
    assert in_any_order(heard.changes[1:], PodChange(0, None, one), PodChange(0, None, other))


# Pods.


def test_a_pod_that_comes_and_goes_is_told_with_the_slot_of_its_node() -> None:
    heard = Heard(mirror := mirror_of(node("a"), node("b")))
    tell(mirror, "Add", there := pod("p", "b"))
    tell(mirror, "Delete", there)

    assert heard.changes == [PodChange(1, None, there), PodChange(1, there, None)]


@pytest.mark.parametrize(
    "update",
    [
        pytest.param({"labels": {"app": "db"}}, id="relabelled"),
        pytest.param({"requests": {"cpu": 2}}, id="resized"),
        pytest.param({"best_effort": False}, id="quality"),
        pytest.param({"terminating": True}, id="terminating"),
        pytest.param({"resource_version": "2", "start_time": "2026-01-01T00:00:00Z"}, id="started"),
    ],
)
def test_an_update_of_a_pod_on_its_node_is_one_change(update: dict[str, object]) -> None:
    mirror = mirror_of(node("a"), before := pod("p", "a"))
    heard = Heard(mirror)
    tell(mirror, "Update", after := replace(before, **update))

    assert heard.changes == [PodChange(0, before, after)]


def test_a_pod_that_is_bound_where_it_was_assumed_is_no_change() -> None:
    waiting = replace(pod("p"), waiting=Waiting("2026-01-01T00:00:00Z", reason="Unschedulable"))
    mirror = mirror_of(node("n"), waiting)
    mirror.assume(waiting, "n", 0.0)
    heard = Heard(mirror)
    tell(mirror, "Update", bound := pod("p", "n", version="2"))
    assert (heard.changes, mirror.get_pod("p"), mirror.is_assumed("p")) == ([], bound, False)


@pytest.mark.parametrize("version", ["", "2"])
def test_a_pod_that_is_the_same_again_is_no_change(version: str) -> None:
    mirror = mirror_of(node("a"), there := pod("p", "a"))
    heard = Heard(mirror)
    tell(mirror, "Update", newer := replace(there, resource_version=version))

    assert heard.changes == []
    assert mirror.get_pod("p") == newer


def test_a_move_is_two_changes_the_leaving_first() -> None:
    mirror = mirror_of(node("a"), node("b"), before := pod("p", "a"))
    heard = Heard(mirror)
    tell(mirror, "Update", after := pod("p", "b"))

    assert heard.changes == [PodChange(0, before, None), PodChange(1, None, after)]


# Everything else.


def test_a_namespace_is_told_by_its_labels() -> None:
    heard = Heard(mirror := mirror_of())
    tell(mirror, "Add", Namespace("n", {"a": "b"}))
    tell(mirror, "Update", Namespace("n", {"a": "b"}), Namespace("n"))
    tell(mirror, "Delete", Namespace("n"), Namespace("n"))

    assert heard.changes == [
        NamespaceChange("n", None, {"a": "b"}),
        NamespaceChange("n", {"a": "b"}, {}),
        NamespaceChange("n", {}, None),
    ]


def test_other_objects_are_told_with_both_states() -> None:
    heard = Heard(mirror := mirror_of(node("v")))
    first, second = PersistentVolume(name="v"), PersistentVolume(name="v", capacity=1)
    tell(mirror, "Add", first, first, second)
    tell(mirror, "Delete", second, second)
    tell(mirror, "Add", owner := replica_set("default/v", app="web"))

    assert heard.changes == [
        ObjectChange(PersistentVolume, NO_SLOT, None, first),
        ObjectChange(PersistentVolume, NO_SLOT, first, second),
        ObjectChange(PersistentVolume, NO_SLOT, second, None),
        ObjectChange(ReplicaSet, NO_SLOT, None, owner),
    ]


@pytest.mark.parametrize(("name", "slot"), [("a", 0), ("b", 1), ("unknown", NO_SLOT)])
def test_a_csi_node_is_told_with_the_slot_of_its_node(name: str, slot: int) -> None:
    heard = Heard(mirror := mirror_of(node("a"), node("b")))
    tell(mirror, "Add", there := CSINode(name=name))

    assert heard.changes == [ObjectChange(CSINode, slot, None, there)]


# Listeners.


@pytest.mark.parametrize(
    ("before", "event", "look", "expected"),
    [
        pytest.param(
            (node("a"),),
            ClusterEvent("Add", pod("p", "a")),
            lambda mirror: [found.uid for _, found in mirror.placed_pods()],
            [["p"]],
            id="pod-comes",
        ),
        pytest.param(
            (node("a"), pod("p", "a")),
            ClusterEvent("Delete", node("a")),
            lambda mirror: (list(mirror.nodes.slots), [found.uid for _, found in mirror.placed_pods()]),
            [([], []), ([], [])],
            id="node-goes",
        ),
        pytest.param(
            (pod("p", "a"), pod("q", "a")),
            ClusterEvent("Add", node("a")),
            lambda mirror: (list(mirror.nodes.slots), sorted(found.uid for _, found in mirror.placed_pods())),
            [(["a"], ["p", "q"])] * 3,
            id="node-comes",
        ),
        pytest.param(
            (),
            ClusterEvent("Add", Namespace("n", {})),
            lambda mirror: dict(mirror.namespaces),
            [{"n": {}}],
            id="namespace",
        ),
        pytest.param(
            (),
            ClusterEvent("Add", PersistentVolume(name="v")),
            lambda mirror: list(mirror.objects(PersistentVolume)),
            [["v"]],
            id="object",
        ),
    ],
)
def test_the_mirror_has_a_change_before_anybody_is_told(
    before: tuple[Object, ...], event: ClusterEvent, look: Callable[[ClusterMirror], object], expected: list[object]
) -> None:
    mirror = mirror_of(*before)
    heard = Heard(mirror, look)
    mirror.apply(event)

    assert heard.seen == expected


def test_listeners_are_told_what_they_hear_in_the_order_in_which_they_came() -> None:
    order: list[tuple[str, type[Change]]] = []

    class Named:
        def __init__(self, name: str, *hears: type[Change]) -> None:
            self.name = name
            self.hears = hears

        def changed(self, change: Change) -> None:
            order.append((self.name, type(change)))

    mirror = mirror_of(node("n"))
    for listener in (Named("mirror's", NamespaceChange), Named("cache", PodChange, NamespaceChange)):
        mirror.listen(listener)
    mirror.listen(Named("plugin's", NodeChange))
    tell(mirror, "Add", Namespace("n", {}), CSINode(name="other"), pod("p", "n"))

    assert order == [("mirror's", NamespaceChange), ("cache", NamespaceChange), ("cache", PodChange)]


# Derived states.


class Counting:
    """A derived state: how many nodes there are, and how often one was made."""

    hears: Final = (NodeChange,)
    made = 0

    def __init__(self, mirror: ClusterMirror) -> None:
        type(self).made += 1
        self.nodes = len(mirror.nodes.slots)

    def changed(self, change: Change) -> None:
        """Count a node that comes or goes."""
        if isinstance(change, NodeChange):
            self.nodes += (change.after is not None) - (change.before is not None)


def test_a_derived_state_is_made_once_and_kept_by_every_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Counting, "made", 0)
    mirror = mirror_of(node("a"))
    state = mirror.derived(Counting)
    assert (state.nodes, Counting.made) == (1, 1)

    tell(mirror, "Add", node("b"), node("c"))
    tell(mirror, "Delete", node("a"))
    assert mirror.derived(Counting) is state
    assert (state.nodes, Counting.made) == (2, 1)
