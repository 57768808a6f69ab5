"""Pods of a list that are added at once: the mirror is as after their events, one by one."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from core.events import ClusterEvent, Object
from core.mirror.changes import Listener, PodChange
from core.mirror.cluster import ClusterMirror
from core.objects.groups import Membership
from core.objects.pod import Pod
from tests.core.mirror.audit import audit
from tests.core.mirror.values import ATTRACTED, REPELLING, node, pod

RUNNING = [
    pod("a", "n1", cpu=100),
    pod("b", "n1", affinity=REPELLING, cpu=200, memory=5),
    pod("c", "n2", affinity=ATTRACTED),
    replace(pod("d", "n2", affinity=REPELLING), priority=-5),
    pod("e", "unknown", affinity=REPELLING, cpu=1),
]
OTHERS: list[Object] = [
    pod("pending"),
    pod("ended", "n1", ended=True),
    replace(pod("grouped", "n1"), group=Membership("g")),
    replace(pod("scheduled", "n1"), scheduling_group="default/g"),
    node("n3", cpu=7),
]


def cluster() -> ClusterMirror:
    """Make a mirror of two nodes with a zone."""
    mirror = ClusterMirror()
    for name in ("n1", "n2"):
        mirror.apply(ClusterEvent("Add", node(name, labels={"zone": name}, cpu=1000)))
    return mirror


def applied(objects: Sequence[Object]) -> ClusterMirror:
    """Make the same mirror, and tell it of objects one by one."""
    mirror = cluster()
    for each in objects:
        mirror.apply(ClusterEvent("Add", each))
    return mirror


def counts(mirror: ClusterMirror) -> list[object]:
    """Return what the audit does not recount."""
    pods = {name: sorted(each.uid for each in mirror.pods_on(name)) for name in mirror.nodes.infos}
    return [pods, mirror.figures, mirror.pods.least_priority, len(mirror.pending), mirror.pod_count()]


def test_pods_on_nodes_are_added_at_once_and_the_others_are_returned() -> None:
    mirror = cluster()
    assert mirror.add([*RUNNING, *OTHERS]) == OTHERS
    assert audit(mirror) == []
    assert counts(mirror) == counts(applied(RUNNING))
    assert [uid for uid, each in mirror.pods.rows.items() if mirror.pods.pods[each].uid != uid] == []


def test_the_node_of_a_pod_may_come_later() -> None:
    mirror = cluster()
    mirror.add(RUNNING)
    mirror.apply(ClusterEvent("Add", node("unknown", labels={"zone": "n1"}, cpu=5)))
    assert audit(mirror) == []
    mirror.apply(ClusterEvent("Delete", RUNNING[1]))
    assert audit(mirror) == []


@pytest.mark.parametrize("free", [0, 1, 3, 9])
def test_free_rows_are_used_first(free: int) -> None:
    gone = [pod(f"gone-{number}", "n1") for number in range(free)]
    mirror = applied(gone)
    for each in gone:
        mirror.apply(ClusterEvent("Delete", each))
    assert mirror.add(RUNNING) == []
    assert audit(mirror) == []
    assert len(mirror.pods.pods) == max(free, len(RUNNING))


def test_many_pods_are_added() -> None:
    mirror = cluster()
    many = [pod(f"p{number}", f"n{number % 3}", affinity=(REPELLING, ATTRACTED)[number % 2]) for number in range(100)]
    assert mirror.add(many[:30]) == []
    assert mirror.add(many[30:]) == []
    assert audit(mirror) == []
    assert counts(mirror) == counts(applied(many))


def test_each_changed_node_gets_a_later_generation() -> None:
    mirror = cluster()
    before = mirror.generation
    mirror.add(RUNNING[:2])
    assert mirror.nodes.infos["n1"].generation == mirror.generation > before
    assert mirror.nodes.infos["n2"].generation <= before


@pytest.mark.parametrize(
    "known",
    [
        pytest.param(pod("a"), id="pending"),
        pytest.param(pod("a", "n2"), id="on-a-node"),
        pytest.param(replace(pod("a"), group=Membership("g")), id="of-a-group"),
        pytest.param(replace(pod("a"), scheduling_group="default/g"), id="of-a-scheduling-group"),
    ],
)
def test_a_pod_of_which_more_is_known_is_left_to_its_event(known: Pod) -> None:
    mirror = applied([known])
    assert mirror.add([RUNNING[0], RUNNING[2]]) == [RUNNING[0]]
    assert audit(mirror) == []


def test_an_assumed_pod_is_left_to_its_event() -> None:
    mirror = cluster()
    mirror.assume(pod("a"), "n1", 0.0)
    assert mirror.add([RUNNING[0]]) == [RUNNING[0]]


def test_two_pods_of_one_uid_are_left_to_their_events() -> None:
    twice = [RUNNING[0], replace(RUNNING[0], name="other")]
    assert cluster().add(twice) == twice


def test_pods_that_somebody_hears_of_are_left_to_their_events() -> None:
    class Hearing(Listener):
        hears = (PodChange,)

        def changed(self, change: PodChange) -> None:
            """Hear of nothing."""

    mirror = cluster()
    mirror.listen(Hearing())
    assert mirror.add(RUNNING) == RUNNING
    assert mirror.pod_count() == 0
