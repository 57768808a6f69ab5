"""Places are reserved for all members of a gang or for none, and end when their reason does."""

import pytest

from core.events import ClusterEvent
from core.gangs.unit import SchedulingStatus
from core.objects.groups import GroupKey, PodGroup
from tests.builders import PodBuilder, make_pod
from tests.core.decoded import pod_of
from tests.core.gangs.gang_setting import GangSetting, member, node
from tests.core.mirror.audit import audit

OLD_AND_YOUNG = (("old", "2026-01-01T00:00:00Z"), ("young", "2026-01-02T00:00:00Z"))
A, B, C, D = (member(name, 3) for name in "abcd")


def test_members_wait_until_the_minimum_is_there() -> None:
    setting = GangSetting(node("n0"), node("n1"))
    setting.see(A)
    assert setting.ask(A) == "group default/train: waits for 2 more members of 3"
    setting.see(B)
    assert setting.ask(B) == "group default/train: waits for 1 more member of 3"
    assert setting.status().status is SchedulingStatus.PENDING
    assert not setting.assumed()


def test_the_first_request_reserves_for_all_and_each_gets_its_own_place() -> None:
    setting = GangSetting(node("n0"), node("n1"))
    setting.see(A, B, C)
    assert setting.ask(B).startswith("on ")
    assert setting.assumed() == {"a", "b", "c"}
    status = setting.status()
    assert (status.status, status.reserved, status.assumed) == (SchedulingStatus.RESERVED, 2, 1)
    for pod in (A, C):
        reserved = setting.place_of(pod)
        assert setting.ask(pod) == f"on {reserved}"
    assert setting.status().status is SchedulingStatus.SCHEDULED
    assert audit(setting.mirror) == []


def test_a_reservation_does_not_expire_as_an_assumption_does() -> None:
    setting = GangSetting(node("n0"), node("n1"))
    setting.see(A, B, C)
    setting.ask(A)
    assert [pod.name for pod in setting.mirror.expire(50.0)] == ["a"]
    assert setting.assumed() == {"b", "c"}


def test_without_room_for_all_nothing_is_held() -> None:
    setting = GangSetting(node("n0"))
    setting.see(A, B, C)
    expected = "group default/train: 2 of 3 members fit; the next one, default/c, does not: Insufficient cpu"
    assert setting.ask(A) == expected
    assert not setting.assumed()
    status = setting.status()
    assert (status.status, f"group default/train: {status.reason}") == (SchedulingStatus.SCHEDULING, expected)


def test_a_gang_is_not_tried_again_until_something_can_help_or_some_time_has_gone_by() -> None:
    setting = GangSetting(node("n0"))
    setting.see(A, B, C, member("x", 9, "other"))
    for pod in (A, B, C):
        setting.ask(pod)
    setting.ask(member("x", 9, "other"))
    assert setting.status().attempts == 1
    setting.now = 6.0
    setting.ask(B)
    assert setting.status().attempts == 2
    small = make_pod("small").on("n0")
    setting.see(small)
    setting.delete(small)
    setting.ask(C)
    assert setting.status().attempts == 2
    setting.see_node("n1", cpu=1)
    assert setting.ask(C).startswith("on ")
    assert setting.status().attempts == 3


def test_room_that_comes_is_used() -> None:
    busy = make_pod("busy").requests(cpu=1).on("n0")
    setting = GangSetting(node("n0", 3), busy)
    setting.see(A, B, C)
    assert "2 of 3 members fit" in setting.ask(A)
    setting.delete(busy)
    assert setting.ask(A) == "on n0"


def test_members_beyond_the_minimum_are_ordinary_pods_once_it_has_places() -> None:
    setting = GangSetting(node("n0"), node("n1"))
    setting.see(A, B, C, D)
    assert setting.ask(D).startswith("on ")
    assert len(setting.assumed()) == 3
    left = ({"a", "b", "c"} - setting.assumed()).pop()
    assert setting.ask(member(left, 3)) == "ordinary"


def test_a_member_that_comes_again_gets_another_place_alone() -> None:
    setting = GangSetting(node("n0"), node("n1"))
    setting.see(A, B, C)
    for pod in (A, B, C, B):
        assert setting.ask(pod).startswith("on ")
    assert setting.assumed() == {"a", "b", "c"}
    assert audit(setting.mirror) == []


def test_nothing_is_held_where_the_only_member_that_was_decided_for_comes_again_in_vain() -> None:
    setting = GangSetting(node("n0", 1), node("n1", 2))
    setting.see(A, B, C)
    setting.ask(A)
    setting.lose_node(setting.place_of(A))
    assert "members fit" in setting.ask(A)
    assert not setting.assumed()


def test_a_place_that_no_longer_fits_has_the_gang_placed_anew() -> None:
    setting = GangSetting(node("n0", 1), node("n1", 1), node("n2", 1), node("n3", 1))
    setting.see(A, B, C)
    setting.ask(A)
    gone = setting.place_of(B)
    setting.lose_node(gone)
    response = setting.ask(B)
    assert response.startswith("on ")
    assert response != f"on {gone}"
    assert setting.ask(C).startswith("on ")
    assert audit(setting.mirror) == []


def test_a_place_that_no_longer_fits_is_released_with_the_others_where_there_is_no_other() -> None:
    setting = GangSetting(node("n0", 1), node("n1", 1), node("n2", 1))
    setting.see(A, B, C)
    setting.ask(A)
    setting.see_node(setting.place_of(B), cpu=0)
    assert "1 of 2 members fit" in setting.ask(B)
    assert setting.assumed() == {"a"}


def test_a_gang_that_has_started_keeps_its_other_places_when_the_node_of_a_member_goes() -> None:
    setting = GangSetting(node("n0", 1), node("n1", 1), node("n2", 1))
    setting.see(A, B, C)
    setting.ask(A)
    setting.lose_node(setting.place_of(B))
    assert "0 of 1 members fit" in setting.ask(B)
    assert setting.assumed() == {"a", "c"}


def test_reservations_end_with_the_timeout_of_the_group() -> None:
    first, *others = (make_pod(name).of_group("train", 3, 10).requests(cpu=1) for name in "abc")
    setting = GangSetting(node("n0"), node("n1"))
    setting.see(first, *others)
    setting.ask(first)
    setting.now = 9.9
    setting.gangs.begin(setting.now)
    assert setting.assumed() == {"a", "b", "c"}
    setting.now = 10.0
    setting.gangs.begin(setting.now)
    assert setting.assumed() == {"a"}
    status = setting.status()
    assert (status.status, status.reason) == (SchedulingStatus.TIMED_OUT, "2 members had no request in time")
    assert setting.ask(others[0]).startswith("on ")
    assert setting.assumed() == {"a", "b", "c"}


def test_nothing_is_held_for_a_gang_that_cannot_be_whole_any_more() -> None:
    setting = GangSetting(node("n0"), node("n1"), node("n2"))
    others = [member(name, 3, "other") for name in "xyz"]
    setting.see(A, B, C, *others)
    setting.ask(A)
    setting.delete(A)
    setting.gangs.begin(0.0)
    assert not setting.assumed()


def test_the_rest_of_a_gang_that_has_started_keeps_its_places_when_a_member_goes() -> None:
    setting = GangSetting(node("n0"), node("n1"))
    setting.see(A, B, C)
    setting.ask(A)
    setting.bind(A)
    setting.delete(B)
    setting.gangs.begin(0.0)
    assert setting.assumed() == {"c"}
    assert setting.ask(C).startswith("on ")


def test_a_minimum_that_shrinks_releases_what_it_does_not_need() -> None:
    setting = GangSetting(node("n0"), node("n1"))
    setting.see(A, B, C)
    setting.ask(A)
    setting.see(*(member(name, 2) for name in "abc"))
    setting.gangs.begin(0.0)
    assert len(setting.assumed()) == 2
    assert setting.status().minimum == 2
    setting.see(*(member(name, 1) for name in "abc"))
    setting.gangs.begin(0.0)
    assert setting.assumed() == {"a"}


def test_a_pod_group_that_goes_releases_everything() -> None:
    pods = [make_pod(name).label("scheduling.x-k8s.io/pod-group", "train") for name in "abc"]
    group = PodGroup(namespace="default", name="train", minimum=3)
    setting = GangSetting(node("n0"))
    setting.see(*pods)
    assert setting.ask(pods[0]) == "group default/train: PodGroup default/train does not exist"
    setting.mirror.apply(ClusterEvent("Add", group))
    assert setting.ask(pods[0]) == "on n0"
    setting.mirror.apply(ClusterEvent("Delete", group))
    setting.gangs.begin(0.0)
    assert setting.assumed() == {"a"}
    assert setting.status().reason == "PodGroup default/train does not exist"


def test_a_pod_group_and_a_labelled_group_of_one_name_are_two_groups() -> None:
    """Members of the one that runs would be taken for members of the other, which would run in part."""
    setting = GangSetting(node("n0"), node("n1"), *(member(name, 3, cpu=0).on("n0") for name in "xyz"))
    setting.mirror.apply(ClusterEvent("Add", PodGroup(namespace="default", name="train", minimum=3)))
    first, *others = (make_pod(name).label("scheduling.x-k8s.io/pod-group", "train") for name in "abc")
    setting.see(first, others[0])
    assert setting.ask(first) == "group default/train: waits for 1 more member of 3"
    setting.see(others[1])
    assert setting.ask(first).startswith("on ")
    assert setting.assumed() == {"a", "b", "c"}
    found = [(each.unit, each.members, each.status) for each in setting.gangs.unit_statuses(0.0)]
    scheduled, reserved = SchedulingStatus.SCHEDULED, SchedulingStatus.RESERVED
    assert found == [("default/train", 3, scheduled), ("default/train", 3, reserved)]


def test_who_decides_no_more_holds_nothing() -> None:
    setting = GangSetting(node("n0"), node("n1"))
    setting.see(A, B, C)
    setting.ask(A)
    setting.gangs.end()
    assert setting.assumed() == {"a"}
    setting.gangs.begin(1.0)  # and leads again: the rest comes first
    assert setting.assumed() == {"a", "b", "c"}


def test_the_rest_of_a_gang_that_has_started_is_placed_before_anything_else_after_a_restart() -> None:
    setting = GangSetting(node("n0"), node("n1", 1), A.on("n0"))
    setting.see(B, C, *(member(name, 2, "new").created("2026-01-01T00:00:00Z") for name in "xy"))
    setting.gangs = setting.fresh()
    assert "0 of 2 members fit" in setting.ask(member("x", 2, "new"))
    assert setting.assumed() == {"b", "c"}
    assert setting.status().status is SchedulingStatus.RESERVED


def test_a_gang_that_has_started_does_not_wait_for_members_that_are_not_there() -> None:
    setting = GangSetting(node("n0"), node("n1"), A.on("n0"))
    setting.see(B)
    assert setting.ask(B).startswith("on ")


def test_members_that_terminate_do_not_count() -> None:
    setting = GangSetting(node("n0"), node("n1"), A.on("n0").terminating())
    setting.see(B, C)
    assert (
        setting.ask(B) == "group default/train: waits for 1 more member of 3; 1 cannot be placed by this scheduler now"
    )
    status = setting.status()
    assert (status.members, status.pending, status.terminating) == (3, 2, 1)


@pytest.mark.parametrize(
    ("excluded", "third"), [pytest.param((), C.gated("later"), id="gated"), pytest.param(("c",), C, id="of another")]
)
def test_members_that_cannot_be_placed_now_are_waited_for(excluded: tuple[str, ...], third: PodBuilder) -> None:
    setting = GangSetting(node("n0"), node("n1"))
    setting.excluded.update(excluded)
    setting.see(A, B, third)
    assert setting.ask(A).endswith("waits for 1 more member of 3; 1 cannot be placed by this scheduler now")


def test_the_waiting_gang_of_the_older_member_comes_first() -> None:
    setting = GangSetting(node("n0", 1))
    old, young = ([member(f"{name}{at}", 2, name).created(time) for at in "12"] for name, time in OLD_AND_YOUNG)
    setting.see(*young, *old)
    assert "1 of 2" in setting.ask(young[0])
    assert "1 of 2" in setting.ask(old[0])
    setting.see_node("n1")
    assert "0 of 2 members fit" in setting.ask(young[0])
    assert setting.assumed() == {"old1", "old2"}


def test_a_waiting_gang_of_a_greater_priority_comes_first() -> None:
    setting = GangSetting(node("n0", 1))
    low, high = (
        [member(f"{name}{at}", 2, name).priority(much) for at in "12"] for name, much in (("low", 1), ("top", 9))
    )
    setting.see(*low, *high)
    assert "1 of 2" in setting.ask(low[0])
    assert "1 of 2" in setting.ask(high[0])
    setting.see_node("n1")
    assert "0 of 2 members fit" in setting.ask(low[0])
    assert setting.assumed() == {"top1", "top2"}


def test_a_gang_that_does_not_fit_holds_up_nobody() -> None:
    setting = GangSetting(node("n0"))
    large = [member(f"large{at}", 3, "large").created("2026-01-01T00:00:00Z") for at in range(3)]
    small = [member(f"small{at}", 2, "small").created("2026-01-02T00:00:00Z") for at in range(2)]
    setting.see(*large, *small)
    assert "2 of 3" in setting.ask(large[0])
    assert setting.ask(small[0]) == "on n0"


def test_a_member_that_the_watch_has_not_shown_belongs_to_its_group_all_the_same() -> None:
    setting = GangSetting(node("n0"), node("n1"))
    setting.see(A, B)
    assert setting.ask(C).startswith("on ")
    assert setting.assumed() == {"a", "b", "c"}


def test_another_life_of_a_group_knows_nothing_of_the_one_before() -> None:
    setting = GangSetting(node("n0"), node("n1"))
    setting.see(A, B, C)
    for pod in (A, B, C):
        setting.ask(pod)
    setting.now = 5.0
    setting.delete(A, B, C)
    assert setting.gangs.unit_status(GroupKey("default/train"), 5.0) is None
    setting.see(A)
    assert setting.ask(A) == "group default/train: waits for 2 more members of 3"
    assert setting.status().scheduled_since is None


def test_a_reserved_place_among_other_nodes_than_those_asked_about_is_released() -> None:
    setting = GangSetting(node("n0"), node("n1"))
    setting.see(A, B, C)
    setting.ask(A)
    other = "n1" if setting.place_of(B) == "n0" else "n0"
    assert setting.ask(B, setting.mirror.batch([other])) == f"on {other}"


def test_units_are_listed_by_name_with_pod_groups_that_have_no_member() -> None:
    setting = GangSetting(node("n0"))
    setting.see(A, member("x", 2, "other"))
    setting.mirror.apply(ClusterEvent("Add", PodGroup(namespace="default", name="empty", minimum=4)))
    found = [(each.unit, each.status, each.reason) for each in setting.gangs.unit_statuses(0.0)]
    assert found == [
        ("default/empty", SchedulingStatus.PENDING, "has no members"),
        ("default/other", SchedulingStatus.PENDING, "waits for 1 more member of 2"),
        ("default/train", SchedulingStatus.PENDING, "waits for 2 more members of 3"),
    ]
    assert setting.gangs.unit_status(GroupKey("default/none", by_object=True), 0.0) is None


def small_gang(number: int) -> list[PodBuilder]:
    return [member(f"s{number}-{at}", 2, f"s{number}").created("2026-01-02T00:00:00Z") for at in range(2)]


def test_a_gang_that_was_overtaken_twenty_times_holds_up_those_behind_it_for_its_timeout() -> None:
    setting = GangSetting(node("n0"))
    large = [member(f"large{at}", 3, "large").created("2026-01-01T00:00:00Z") for at in range(3)]
    setting.see(*large)
    assert "2 of 3" in setting.ask(large[0])
    for number in range(20):
        pods = small_gang(number)
        setting.see(*pods)
        assert [setting.ask(pod) for pod in pods] == ["on n0", "on n0"]
        setting.delete(*pods)
    late = small_gang(20)
    setting.see(*late)
    reported = "group default/s20: waits behind group default/large, which was overtaken too often"
    assert setting.ask(late[0]) == reported
    setting.now = 59.0
    assert setting.ask(late[0]) == reported
    setting.now = 60.0
    assert setting.ask(late[0]) == "on n0"


def test_a_gang_that_waits_behind_one_of_another_namespace_does_not_tell_its_name() -> None:
    """The reason is in an Event of the pod, which its namespace may read, and in explanations."""
    setting = GangSetting(node("n0", 1))
    large = [member(f"large{at}", 2, "large").in_namespace("theirs").created("2025-01-01T00:00:00Z") for at in range(2)]
    late = [each.created("2026-01-01T00:00:00Z") for each in (A, B, C)]
    setting.see(*late, *large)
    assert "1 of 2" in setting.ask(large[0])
    stored = setting.unit("theirs/large")  # as if it had been overtaken
    stored.holds_others_until = 1.0
    reported = "group default/train: waits behind a group of another namespace, which was overtaken too often"
    assert setting.ask(late[0]) == reported
    assert f"group default/train: {setting.status().reason}" == reported


def test_a_gang_that_was_refused_for_another_is_tried_anew_though_nothing_has_changed() -> None:
    setting = GangSetting(node("n0", 1))
    late = [each.created("2026-01-01T00:00:00Z") for each in (A, B, C)]
    setting.see(*late)
    large = [member(f"large{at}", 2, "large").created("2025-01-01T00:00:00Z") for at in range(2)]
    setting.see(*large)
    assert "1 of 2" in setting.ask(large[0])
    stored = setting.unit("default/large")  # as if it had been overtaken
    stored.holds_until = 1.0
    assert "waits behind group default/large" in setting.ask(late[0])
    setting.now = 1.0
    assert "1 of 3" in setting.ask(late[0])


def test_a_pod_without_a_group_is_an_ordinary_one_without_a_unit() -> None:
    setting = GangSetting(node("n0"))
    assert setting.ask(make_pod("p")) == "ordinary"
    assert setting.gangs.unit_status(pod_of(make_pod("p")).group_key, 0.0) is None
