"""The status of kube-scheduler's groups: members by state, and why a group waits, by release."""

from collections.abc import Sequence
from typing import Final

import pytest
from msgspec.structs import replace

from core.events import ClusterEvent
from core.gangs.scheduling_groups import scheduling_group_status, scheduling_group_statuses
from core.gangs.unit import PlacedBy, SchedulingStatus, UnitStatus
from core.mirror.cluster import ClusterMirror
from core.objects.groups import GroupCondition, SchedulingGroup
from core.objects.node import Node
from core.objects.pod import Pod, Waiting
from core.releases.differences import rules_of
from core.releases.release import Release

PENDING, SCHEDULING, SCHEDULED = (
    SchedulingStatus.PENDING,
    SchedulingStatus.SCHEDULING,
    SchedulingStatus.SCHEDULED,
)
V1_36: Final = Release(1, 36)
V1_37: Final = Release(1, 37)
REJECTED: Final = GroupCondition(
    "PodGroupInitiallyScheduled", "False", "Unschedulable", "0/3 nodes are available", "2026-01-01T00:00:02Z"
)
STATED: Final = "PodGroupInitiallyScheduled=False (Unschedulable): 0/3 nodes are available"


def mirror_of(group: SchedulingGroup | None, *pods: Pod, release: Release = V1_37) -> ClusterMirror:
    mirror = ClusterMirror(rules=rules_of(release))
    for each in (Node("n1"), *(() if group is None else (group,)), *pods):
        mirror.apply(ClusterEvent("Add", each))
    return mirror


def gang(minimum: int = 2, *conditions: GroupCondition, unsupported: str = "") -> SchedulingGroup:
    return SchedulingGroup(namespace="ns", name="g", minimum=minimum, conditions=conditions, unsupported=unsupported)


def member(  # noqa: PLR0913  # what differs between members
    number: int,
    *,
    node: str = "",
    group: str = "ns/g",
    scheduler: str = "a",
    priority: int = 0,
    terminating: bool = False,
    gates: tuple[str, ...] = (),
) -> Pod:
    return Pod(
        f"u{number}",
        "ns",
        f"m{number}",
        node_name=node,
        scheduling_group=group,
        scheduler_name=scheduler,
        priority=priority,
        terminating=terminating,
        waiting=Waiting(gates=gates),
    )


def members(number: int) -> list[Pod]:
    return [member(each) for each in range(number)]


def status(mirror: ClusterMirror, key: str = "ns/g") -> UnitStatus:
    return scheduling_group_status(mirror, key)


def bound(number: int, *, terminating: bool = False) -> Pod:
    return member(number, node="n1", terminating=terminating)


def gated(number: int) -> Pod:
    return member(number, gates=("example.com/g",))


def test_members_are_counted_by_state() -> None:
    assumed = member(1)
    mirror = mirror_of(
        gang(3, REJECTED),
        member(0, node="n1", priority=7),
        assumed,
        member(2),
        member(3),
        bound(4, terminating=True),
        replace(bound(5), terminal=True),
    )
    mirror.assume(assumed, "n1", 0.0)
    assert status(mirror) == UnitStatus(
        unit="ns/g",
        status=SCHEDULING,
        placed_by=PlacedBy.KUBE_SCHEDULER,
        reason="its members have the priorities 0 and 7: kube-scheduler places no such group",
        minimum=3,
        members=5,
        pending=2,
        assumed=1,
        bound=1,
        terminating=1,
        priority=7,
        packing=None,
        conditions=(REJECTED,),
    )


def test_every_group_is_listed_by_name_with_and_without_members() -> None:
    mirror = mirror_of(gang(), *members(2), member(2, group="ns/a"))
    mirror.apply(ClusterEvent("Add", replace(gang(), name="z")))
    found = [(each.unit, each.reason) for each in scheduling_group_statuses(mirror)]
    assert found == [
        ("ns/a", "no PodGroup ns/a is known, and kube-scheduler waits for it"),
        ("ns/g", "kube-scheduler has reported no attempt yet"),
        ("ns/z", "has no members"),
    ]


@pytest.mark.parametrize(
    ("group", "pods", "expected", "reason"),
    [
        pytest.param(gang(), [], PENDING, "has no members", id="no-members"),
        pytest.param(gang(8), members(3), PENDING, "waits for 5 more members of 8", id="five-are-missing"),
        pytest.param(
            gang(3),
            [bound(0), bound(1, terminating=True)],
            PENDING,
            "waits for 1 more member of 3",
            id="any-state-counts",
        ),
        pytest.param(
            None, members(1), PENDING, "no PodGroup ns/g is known, and kube-scheduler waits for it", id="no-pod-group"
        ),
        pytest.param(None, [bound(0)], SCHEDULED, "", id="no-pod-group-and-all-members-run"),
        pytest.param(gang(), [bound(0), bound(1)], SCHEDULED, "", id="the-minimum-runs"),
        pytest.param(gang(), [bound(0), bound(1), member(2)], SCHEDULED, "", id="a-member-beyond-the-minimum"),
        pytest.param(gang(), members(2), SCHEDULING, "kube-scheduler has reported no attempt yet", id="no-condition"),
        pytest.param(
            gang(),
            [bound(0), bound(1, terminating=True)],
            SCHEDULING,
            "kube-scheduler has reported no attempt yet",
            id="a-terminating-member-is-not-scheduled",
        ),
        pytest.param(
            gang(2, REJECTED),
            members(8),
            SCHEDULING,
            f"{STATED}; kube-scheduler tries it again, with a backoff of at most 28 s",
            id="the-backoff-grows-with-the-root-of-the-pending-members",
        ),
        pytest.param(
            gang(2, REJECTED),
            [bound(0), member(1, terminating=True)],
            SCHEDULING,
            STATED,
            id="no-backoff-without-a-pending-member",
        ),
        pytest.param(
            gang(
                2,
                REJECTED,
                GroupCondition("Other", "False", since="2026-01-01T00:00:01Z"),
                GroupCondition("DisruptionTarget", "True", since="2026-01-01T00:00:03Z"),
            ),
            members(4),
            SCHEDULING,
            f"{STATED}; kube-scheduler tries it again, with a backoff of at most 20 s",
            id="the-newest-condition-that-is-false",
        ),
        pytest.param(
            gang(2, GroupCondition("A", "False"), unsupported="spec.schedulingConstraints"),
            members(2),
            SCHEDULING,
            "its spec.schedulingConstraints makes kube-scheduler try several placements: Kindred returns an Error for "
            "members that it would decide for; A=False; kube-scheduler tries it again, with a backoff of at most 14 s",
            id="unsupported",
        ),
        pytest.param(
            gang(1, unsupported="spec.schedulingConstraints"),
            [bound(0), member(1)],
            SCHEDULED,
            "its spec.schedulingConstraints makes kube-scheduler try several placements: Kindred returns an Error for "
            "members that it would decide for",
            id="unsupported-beyond-the-minimum",
        ),
    ],
)
def test_why_a_group_waits(
    group: SchedulingGroup | None, pods: Sequence[Pod], expected: SchedulingStatus, reason: str
) -> None:
    found = status(mirror_of(group, *pods))
    assert (found.status, found.reason) == (expected, reason)


TWO_SCHEDULERS: Final = "its members name the schedulers a and b: kube-scheduler places no such group"
TWO_PRIORITIES: Final = "its members have the priorities 0 and 9: kube-scheduler places no such group"
GATED: Final = "waits until the scheduling gates of 1 member are removed"


@pytest.mark.parametrize(
    ("pods", "in_1_36", "in_1_37"),
    [
        pytest.param(
            [member(0), member(1, scheduler="b")],
            (SCHEDULING, TWO_SCHEDULERS),
            (SCHEDULING, TWO_SCHEDULERS),
            id="pending-members-of-two-schedulers",
        ),
        pytest.param(
            [bound(0), bound(1), member(2, scheduler="b")],
            (SCHEDULED, ""),
            (SCHEDULED, TWO_SCHEDULERS),
            id="another-scheduler-than-running-members",
        ),
        pytest.param(
            [member(0), member(1, priority=9)],
            (SCHEDULING, STATED),
            (SCHEDULING, TWO_PRIORITIES),
            id="two-priorities",
        ),
        pytest.param([member(0), gated(1)], (PENDING, GATED), (PENDING, GATED), id="a-needed-member-is-gated"),
        pytest.param(
            [member(0), member(1), gated(2)], (SCHEDULING, STATED), (PENDING, GATED), id="a-further-member-is-gated"
        ),
        pytest.param(
            [bound(0), bound(1), gated(2)], (SCHEDULED, ""), (SCHEDULED, GATED), id="gated-beyond-the-minimum"
        ),
    ],
)
def test_members_are_held_against_each_other_by_release(
    pods: Sequence[Pod], in_1_36: tuple[SchedulingStatus, str], in_1_37: tuple[SchedulingStatus, str]
) -> None:
    for release, expected in ((V1_36, in_1_36), (V1_37, in_1_37)):
        found = status(mirror_of(gang(2, REJECTED), *pods, release=release))
        assert (found.status, found.reason) == expected


def test_the_minimum_of_a_workload_is_unknown() -> None:
    key = "ns/w/p/k"
    pods = [member(0, group=key), member(1, node="n1", group=key)]
    mirror = mirror_of(None, *pods, release=Release(1, 35))
    found = status(mirror, key)
    assert (found.unit, found.status, found.minimum, found.pending, found.bound) == (key, PENDING, 0, 1, 1)
    assert found.reason == "its minimum is unknown: its Workload has it, which Kindred does not read"
    mirror.apply(ClusterEvent("Delete", pods[0]))
    assert (status(mirror, key).status, status(mirror, key).reason) == (SCHEDULED, "")


def test_groups_that_cannot_be_read_are_not_said_to_be_missing() -> None:
    mirror = mirror_of(None, member(0))
    reason = "its minimum is unknown: podgroups: forbidden"
    assert scheduling_group_status(mirror, "ns/g", "podgroups: forbidden").reason == reason
    assert [each.reason for each in scheduling_group_statuses(mirror, "podgroups: forbidden")] == [reason]
