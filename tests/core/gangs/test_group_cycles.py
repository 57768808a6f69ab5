"""The cycles of kube-scheduler's groups: which requests end one, and which places are released then."""

from msgspec.structs import replace

from core.events import ClusterEvent
from core.gangs.scheduling_groups import GroupCycles, Released
from core.mirror.cluster import ClusterMirror
from core.objects.groups import SchedulingGroup
from core.objects.node import Node
from core.objects.pod import Pod
from core.releases.differences import rules_of
from core.releases.release import Release

CYCLES = rules_of(Release(1, 37), {"GenericWorkload": True})
OTHER = Pod("u-other", "ns", "other")
LONG_AGO = 31.0
"""Seconds after which a service knows all members that have just ended."""


def member(number: int, group: str = "ns/g") -> Pod:
    return Pod(f"u-{group}-{number}", "ns", f"m-{number}", scheduling_group=group)


class Scheduler:
    """A mirror with a group, and the requests of a kube-scheduler."""

    def __init__(self, minimum: int = 3, rules: object = CYCLES) -> None:
        assert isinstance(rules, type(CYCLES))
        self.mirror = ClusterMirror(rules=rules)
        self.mirror.apply(ClusterEvent("Add", Node("n1")))
        self.set_minimum(minimum)
        self.cycles = GroupCycles(self.mirror)
        self.cycles.requested(OTHER, 0.0)
        self.now = LONG_AGO

    def set_minimum(self, minimum: int) -> None:
        group = SchedulingGroup(namespace="ns", name="g", minimum=minimum)
        self.mirror.apply(ClusterEvent("Update", group))

    def shows(self, *pods: Pod) -> None:
        for pod in pods:
            self.mirror.apply(ClusterEvent("Update", pod))

    def asks(self, *pods: Pod) -> Released | None:
        """Ask about pods, each of which gets a node. Return what the first request released."""
        first: list[Released | None] = []
        for pod in pods:
            self.now += 0.01
            first.append(self.cycles.requested(pod, self.now))
            if self.mirror.is_assumed(pod.uid):
                self.mirror.forget(pod.uid)
            self.mirror.assume(pod, "n1", self.now)
            if pod.in_scheduling_group:
                self.cycles.responded(pod, self.now)
        return first[0]

    def assumed(self) -> set[str]:
        return {each.pod.name for each in self.mirror.assumed.values()}


def released(found: Released | None) -> list[str]:
    return [] if found is None else [pod.name for pod in found.pods]


def test_a_cycle_below_the_minimum_has_bound_nothing_and_its_places_are_released() -> None:
    scheduler = Scheduler(minimum=3)
    scheduler.asks(member(0), member(1))
    found = scheduler.asks(OTHER)
    assert released(found) == ["m-0", "m-1"]
    assert found is not None
    assert found.group == "ns/g"
    assert found.why == "fewer than its minimum of 3 had a node, so its cycle has bound nothing"
    assert scheduler.assumed() == {"other"}


def test_a_cycle_with_the_minimum_may_bind_and_its_places_stay() -> None:
    scheduler = Scheduler(minimum=3)
    scheduler.asks(member(0), member(1), member(2))
    assert scheduler.asks(OTHER) is None
    assert scheduler.assumed() == {"m-0", "m-1", "m-2", "other"}


def test_members_that_the_watch_has_not_shown_count_by_their_places() -> None:
    scheduler = Scheduler(minimum=3)
    scheduler.asks(member(0), member(1), member(2))
    scheduler.asks(OTHER)
    assert scheduler.asks(member(3)) is None
    assert scheduler.asks(replace(OTHER, uid="u-2", name="second")) is None
    assert "m-3" in scheduler.assumed()


def test_members_that_run_terminate_or_have_just_ended_count() -> None:
    for change in ({}, {"terminating": True}, {"terminal": True}):
        scheduler = Scheduler(minimum=2)
        runs = replace(member(0), node_name="n1")
        scheduler.shows(runs)
        scheduler.shows(replace(runs, **change))
        scheduler.asks(member(1))
        assert scheduler.asks(OTHER) is None, change
        assert "m-1" in scheduler.assumed()


def test_a_member_that_ended_long_ago_does_not_count() -> None:
    scheduler = Scheduler(minimum=2)
    runs = replace(member(0), node_name="n1")
    scheduler.shows(runs)
    scheduler.mirror.apply(ClusterEvent("Delete", runs))
    assert scheduler.cycles.review(scheduler.now) is None
    scheduler.now += 31.0
    scheduler.asks(member(1))
    assert released(scheduler.asks(OTHER)) == ["m-1"]


def test_the_smallest_minimum_counts_because_the_scheduler_may_have_seen_it() -> None:
    scheduler = Scheduler(minimum=2)
    scheduler.set_minimum(5)
    scheduler.asks(member(0), member(1))
    assert scheduler.asks(OTHER) is None


def test_a_basic_group_needs_one_member_so_nothing_is_released() -> None:
    scheduler = Scheduler(minimum=1)
    scheduler.asks(member(0))
    assert scheduler.asks(OTHER) is None


def test_a_request_for_another_group_ends_a_cycle_and_begins_its_own() -> None:
    scheduler = Scheduler(minimum=2)
    scheduler.mirror.apply(ClusterEvent("Add", SchedulingGroup(namespace="ns", name="h", minimum=2)))
    scheduler.asks(member(0))
    assert released(scheduler.asks(member(7, "ns/h"))) == ["m-0"]
    assert released(scheduler.asks(OTHER)) == ["m-7"]


def test_a_second_request_for_a_member_ends_the_cycle_before() -> None:
    scheduler = Scheduler(minimum=3)
    scheduler.asks(member(0), member(1))
    assert released(scheduler.asks(member(0))) == ["m-0", "m-1"]
    assert scheduler.assumed() == {"m-0"}


def test_a_member_is_asked_about_again_while_its_siblings_are_bound() -> None:
    """Its binding has failed. The others of the cycle have not."""
    scheduler = Scheduler(minimum=2)
    scheduler.asks(member(0), member(1), member(2))
    assert scheduler.asks(member(1)) is None
    assert scheduler.asks(OTHER) is None
    assert scheduler.assumed() == {"m-0", "m-1", "m-2", "other"}


def test_a_place_of_an_earlier_cycle_is_not_released_with_a_later_one() -> None:
    scheduler = Scheduler(minimum=2)
    scheduler.asks(member(0), member(1))
    scheduler.asks(OTHER)
    scheduler.shows(replace(member(0), node_name="n1"))
    scheduler.mirror.forget(member(1).uid)
    scheduler.mirror.apply(ClusterEvent("Delete", replace(member(0), node_name="n1")))
    scheduler.cycles.review(scheduler.now)
    scheduler.now += 40.0
    scheduler.asks(member(2))
    assert released(scheduler.asks(replace(OTHER, uid="u-2"))) == ["m-2"]


def test_silence_ends_a_cycle_later_for_a_larger_group() -> None:
    scheduler = Scheduler(minimum=60)
    scheduler.shows(*(member(number) for number in range(50)))
    scheduler.asks(member(0))
    assert scheduler.cycles.review(LONG_AGO + 19.9) is None
    assert released(scheduler.cycles.review(LONG_AGO + 20.1)) == ["m-0"]
    assert scheduler.cycles.review(LONG_AGO + 99.0) is None


def unproved(*members_: Pod) -> Scheduler:
    """Return a scheduler of which a cycle with these members has ended a second after the start."""
    scheduler = Scheduler(minimum=3)
    scheduler.now = 1.0
    scheduler.asks(*members_)
    assert scheduler.asks(OTHER) is None
    return scheduler


def test_shortly_after_a_start_nothing_is_proved_and_places_are_released_half_a_minute_later() -> None:
    """A member may have ended that the mirror has never had, and that kube-scheduler still counts."""
    scheduler = unproved(member(0), member(1))
    assert scheduler.assumed() == {"m-0", "m-1", "other"}
    assert not scheduler.cycles.has_unproved(31.0)
    assert scheduler.cycles.has_unproved(31.1)
    (found,) = scheduler.cycles.release_unproved(31.1)
    assert released(found) == ["m-0", "m-1"]
    assert (found.group, found.why) == ("ns/g", "its cycle shortly after the start has bound none of these members")
    assert scheduler.assumed() == {"other"}
    assert scheduler.cycles.release_unproved(99.0) == []


def test_an_unproved_place_stays_if_its_pod_is_bound_or_nominated_or_was_asked_about_again() -> None:
    scheduler = unproved(member(0), member(1))
    scheduler.shows(replace(member(0), node_name="n1"), replace(member(1), nominated_node_name="n1"))
    assert scheduler.cycles.release_unproved(40.0) == []
    assert scheduler.assumed() == {"m-1", "other"}
    scheduler = unproved(member(0), member(1))
    scheduler.now = 20.0
    scheduler.asks(member(0))
    assert released(*scheduler.cycles.release_unproved(40.0)) == ["m-1"]
    assert scheduler.assumed() == {"m-0", "other"}


def test_places_that_are_all_gone_are_no_reason_for_a_list() -> None:
    scheduler = unproved(member(0))
    scheduler.shows(replace(member(0), node_name="n1"))
    assert not scheduler.cycles.has_unproved(40.0)


def test_a_cycle_that_has_its_minimum_with_unproved_places_alone_is_unproved_too() -> None:
    scheduler = unproved(member(0), member(1))
    scheduler.now = LONG_AGO
    scheduler.asks(member(2))
    assert scheduler.asks(replace(OTHER, uid="u-2", name="second")) is None
    assert [released(each) for each in scheduler.cycles.release_unproved(LONG_AGO + 20.0)] == [["m-0", "m-1"]]
    assert [released(each) for each in scheduler.cycles.release_unproved(LONG_AGO + 40.0)] == [["m-2"]]


def test_a_cycle_below_the_minimum_is_proved_beside_unproved_places() -> None:
    scheduler = unproved(member(0))
    scheduler.now = LONG_AGO
    scheduler.asks(member(1))
    assert released(scheduler.asks(replace(OTHER, uid="u-2", name="second"))) == ["m-1"]
    assert scheduler.assumed() == {"m-0", "other", "second"}


def test_a_cycle_with_the_minimum_is_not_unproved_shortly_after_a_start() -> None:
    scheduler = unproved(member(0), member(1), member(2))
    assert not scheduler.cycles.has_unproved(99.0)
    assert scheduler.cycles.release_unproved(99.0) == []


def test_without_cycles_nothing_is_released() -> None:
    """1.35, or the feature gate is off: each member is bound by itself, or waits in Permit for minutes."""
    for rules in (rules_of(Release(1, 37)), rules_of(Release(1, 35), {"GenericWorkload": True})):
        scheduler = Scheduler(minimum=3, rules=rules)
        scheduler.asks(member(0))
        assert scheduler.asks(OTHER) is None
        assert scheduler.cycles.review(1000.0) is None
        assert scheduler.assumed() == {"m-0", "other"}


def test_a_place_that_was_made_anew_out_of_the_cycle_is_not_released() -> None:
    scheduler = Scheduler(minimum=9)
    scheduler.asks(member(0), member(1))
    scheduler.mirror.forget(member(0).uid)
    scheduler.mirror.assume(member(0), "n1", scheduler.now + 1.0)
    assert released(scheduler.asks(OTHER)) == ["m-1"]


def test_a_place_that_was_confirmed_is_not_released() -> None:
    scheduler = Scheduler(minimum=9)
    scheduler.asks(member(0), member(1))
    scheduler.shows(replace(member(0), node_name="n1"))
    assert released(scheduler.asks(OTHER)) == ["m-1"]
    assert scheduler.mirror.is_mirrored(member(0).uid)


def test_a_group_that_is_newer_than_the_start_has_no_members_that_ended_before() -> None:
    scheduler = Scheduler(minimum=3)
    scheduler.now = 100.0
    scheduler.cycles.begin(100.0)
    scheduler.mirror.apply(ClusterEvent("Add", SchedulingGroup(namespace="ns", name="new", minimum=3)))
    scheduler.asks(member(0), member(1))
    assert scheduler.asks(OTHER) is None
    scheduler.asks(member(0, "ns/new"))
    assert released(scheduler.asks(OTHER)) == ["m-0"]
    assert scheduler.assumed() == {"m-0", "m-1", "other"}
