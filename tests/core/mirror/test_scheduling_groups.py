"""The members of kube-scheduler's groups in the mirror, and the minimums of a group."""

from msgspec.structs import replace

from core.events import Action, ClusterEvent
from core.mirror.cluster import ClusterMirror
from core.objects.groups import SchedulingGroup
from core.objects.pod import Pod

MEMBER = Pod("u", "ns", "m", scheduling_group="ns/g")


def told(mirror: ClusterMirror, *objects: Pod | SchedulingGroup, action: Action = "Update") -> None:
    for each in objects:
        mirror.apply(ClusterEvent(action, each))


def group(minimum: int) -> SchedulingGroup:
    return SchedulingGroup(namespace="ns", name="g", minimum=minimum)


def test_members_are_kept_with_and_without_a_node_until_they_end() -> None:
    mirror = ClusterMirror()
    told(mirror, MEMBER, replace(MEMBER, uid="u2", name="m2", node_name="n1"))
    assert list(mirror.scheduling_groups.members("ns/g")) == ["u", "u2"]
    told(mirror, replace(MEMBER, uid="u2", node_name="n1", terminal=True))
    assert mirror.scheduling_groups.take_left() == ["ns/g"]
    told(mirror, MEMBER, action="Delete")
    assert mirror.scheduling_groups.take_left() == []  # it had no node
    assert not [*mirror.scheduling_groups]


def test_a_member_that_was_assumed_counted() -> None:
    mirror = ClusterMirror()
    told(mirror, MEMBER)
    mirror.assume(MEMBER, "n1", 0.0)
    told(mirror, MEMBER, action="Delete")
    assert mirror.scheduling_groups.take_left() == ["ns/g"]


def test_the_smallest_minimum_is_kept_as_long_as_the_group_or_a_member_exists() -> None:
    mirror = ClusterMirror()
    groups = mirror.scheduling_groups
    assert groups.smallest_minimum("ns/g") == 1
    told(mirror, group(4), group(2), group(8), MEMBER)
    assert groups.smallest_minimum("ns/g") == 2
    told(mirror, group(8), action="Delete")
    told(mirror, group(8))
    assert groups.smallest_minimum("ns/g") == 2
    told(mirror, MEMBER, action="Delete")
    told(mirror, group(8), action="Delete")
    told(mirror, group(8))
    assert groups.smallest_minimum("ns/g") == 8
