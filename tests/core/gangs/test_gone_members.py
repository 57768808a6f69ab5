"""Members that terminate, come again and again, or that only a request has shown."""

from typing import NoReturn

import pytest

from core.gangs.placing import Attempt, Placer
from core.gangs.unit import SchedulingStatus
from core.mirror.work import WorkLimitError
from tests.builders import make_pod
from tests.core.decoded import pod_of
from tests.core.gangs.gang_setting import GangSetting, member, node

A, B, C, D = (member(name, 3) for name in "abcd")


def setting_of_two() -> GangSetting:
    setting = GangSetting(node("n0"), node("n1"))
    setting.see(A, B, C)
    return setting


def all_reserved_without_a_request(**cpus: int) -> GangSetting:
    """Return a gang of three that had no room when it was asked for, and whose places were found since."""
    setting = GangSetting(node("n0", 1))
    setting.see(A, B, C)
    setting.ask(A)
    for name, cpu in cpus.items():
        setting.see_node(name, cpu)
    setting.work(0.3)
    assert setting.assumed() == {"a", "b", "c"}
    return setting


def test_a_reserved_place_ends_when_its_member_terminates() -> None:
    """A pod of a Job terminates until the Job controller has removed its finalizer, also without a node."""
    setting = setting_of_two()
    setting.ask(A)
    setting.see(B.terminating())
    setting.gangs.begin(0.0)
    assert setting.assumed() == {"a", "c"}


def test_nothing_is_held_when_a_member_of_a_gang_without_a_request_terminates() -> None:
    setting = all_reserved_without_a_request(n1=2)
    setting.see(B.terminating())
    setting.gangs.begin(setting.now)
    assert not setting.assumed()


def test_nothing_is_held_when_a_gang_without_a_request_loses_a_place_to_a_more_important_pod() -> None:
    """Else the other members would be bound, and run in part."""
    setting = all_reserved_without_a_request(n1=2)
    assert setting.gangs.leave(pod_of(B).uid)
    assert not setting.assumed()


def test_nobody_of_a_gang_is_placed_when_the_node_of_another_member_has_gone_before_the_first_request() -> None:
    setting = all_reserved_without_a_request(n1=1, n2=1)
    setting.lose_node("n2")
    assert "2 of 3 members fit" in setting.ask(A)
    assert not setting.assumed()


@pytest.mark.parametrize("changes_node", ["its-own", "that-of-another"])
def test_nobody_of_a_gang_is_placed_when_a_node_fits_no_more_at_the_first_request(changes_node: str) -> None:
    """No event of the gang says that a node was cordoned. The first member would run without the others."""
    setting = all_reserved_without_a_request(n1=1, n2=1)
    setting.see_node(setting.place_of(A if changes_node == "its-own" else C), 0)
    assert "2 of 3 members fit" in setting.ask(A)
    assert not setting.assumed()


def test_nobody_is_placed_when_a_node_fits_no_more_and_the_only_member_that_was_decided_for_comes_again() -> None:
    setting = GangSetting(node("n0", 1), node("n1", 1), node("n2", 1))
    setting.see(A, B, C)
    assert setting.ask(A).startswith("on ")
    setting.see_node(setting.place_of(C), 0)
    assert "2 of 3 members fit" in setting.ask(A)
    assert not setting.assumed()


def test_after_the_first_member_each_place_is_judged_for_its_own_member() -> None:
    setting = all_reserved_without_a_request(n1=1, n2=1)
    assert setting.ask(A).startswith("on ")
    setting.see_node(setting.place_of(C), 0)
    assert setting.ask(B).startswith("on ")


@pytest.mark.parametrize("ends", ["fails", "expires"])
def test_nothing_is_held_when_the_only_member_that_was_decided_for_is_not_bound(ends: str) -> None:
    """Its place is free, so the others would run without it; and nobody may ask for hours."""
    first, *others = (make_pod(name).of_group("train", 3, 3600).requests(cpu=1) for name in "abc")
    setting = GangSetting(node("n0"), node("n1"))
    setting.see(first, *others)
    setting.ask(first)
    setting.now = 50.0
    if ends == "fails":
        setting.mirror.forget(pod_of(first).uid)
    else:
        assert [pod.name for pod in setting.mirror.expire(setting.now)] == ["a"]
    setting.gangs.begin(setting.now)
    assert not setting.assumed()


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_the_others_keep_their_places_when_the_first_member_has_finished(phase: str) -> None:
    """Else a member that ends at once, as it waits for the others, would have the gang placed anew for ever."""
    setting = setting_of_two()
    setting.ask(A)
    setting.bind(A)
    setting.see(A.on(setting.place_of(A)).phase(phase))
    setting.gangs.begin(0.0)
    assert setting.assumed() == {"b", "c"}
    assert setting.ask(B).startswith("on ")
    assert setting.ask(C).startswith("on ")


def test_a_member_that_has_finished_before_the_places_were_reserved_does_not_count_for_them() -> None:
    setting = setting_of_two()
    setting.see(A.on("n0").phase("Succeeded"), member("e", 3).on("n0"), D)
    setting.see(member("e", 3).on("n0").phase("Failed"))
    setting.ask(B)
    setting.bind(B)
    setting.delete(B)
    setting.gangs.begin(0.0)
    assert not setting.assumed()


def test_a_gang_that_has_started_keeps_its_other_places_when_it_loses_one() -> None:
    setting = setting_of_two()
    setting.ask(A)
    assert setting.gangs.leave(pod_of(B).uid)
    assert setting.assumed() == {"a", "c"}


def test_a_member_that_takes_too_much_work_at_its_place_releases_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    setting = setting_of_two()
    setting.ask(A)
    setting.ask(B)

    def raises(*_: object) -> NoReturn:
        raise WorkLimitError("spec", 1, 2, 1)

    monkeypatch.setattr(Placer, "fits", raises)
    with pytest.raises(WorkLimitError):
        setting.ask(C)
    setting.now = 60.0
    setting.gangs.begin(setting.now)
    assert setting.status().status is SchedulingStatus.SCHEDULING


def test_nothing_is_held_when_all_members_that_were_decided_for_come_again_and_one_has_no_place() -> None:
    """Else the last member would run alone."""
    large, small = member("large", 3, cpu=2), member("small", 3)
    setting = GangSetting(node("n0"), node("n1", 1), node("n2", 1))
    setting.see(large, small, C)
    assert setting.ask(large) == "on n0"
    assert setting.ask(small).startswith("on ")
    setting.see_node("n0", 1)
    for each in large, small:
        assert "large, does not" in setting.ask(each)
    assert not setting.assumed()


def test_nothing_is_held_when_a_member_comes_again_and_takes_too_much_work(monkeypatch: pytest.MonkeyPatch) -> None:
    setting = setting_of_two()
    setting.ask(A)

    def raises(*_: object) -> NoReturn:
        raise WorkLimitError("spec", 1, 2, 1)

    monkeypatch.setattr(Attempt, "go_on", raises)
    with pytest.raises(WorkLimitError):
        setting.ask(A)
    assert not setting.assumed()


def test_a_member_that_terminates_before_it_is_bound_does_not_count() -> None:
    setting = setting_of_two()
    setting.ask(A)
    setting.see(A.terminating())
    setting.gangs.begin(0.0)
    assert setting.assumed() == {"a"}
    status = setting.status()
    assert (status.assumed, status.terminating, status.reserved) == (0, 1, 0)
    assert "waits for 1 more member of 3" in setting.ask(B)


def test_a_request_for_a_member_that_terminates_places_nobody() -> None:
    setting = setting_of_two()
    setting.see(C.terminating())
    assert setting.ask(C) == "group default/train: default/c is being deleted"
    assert not setting.assumed()


def test_a_member_that_only_a_rejected_request_has_shown_leaves_nothing() -> None:
    setting = GangSetting(node("n0"), node("n1"))
    assert "waits for 8 more members of 9" in setting.ask(member("ghost", 9))
    assert not len(setting.mirror.groups)
    setting.see(A, B, C)
    assert setting.ask(A).startswith("on ")


def test_a_member_that_only_a_request_has_shown_is_forgotten_with_its_assumption() -> None:
    setting = GangSetting(node("n0"), node("n1"))
    setting.see(A, B)
    assert setting.ask(C).startswith("on ")
    assert [pod.name for pod in setting.mirror.expire(50.0)] == ["c"]
    assert setting.status().members == 2


def test_a_member_that_only_a_request_has_shown_is_forgotten_when_its_binding_fails() -> None:
    setting = GangSetting(node("n0"), node("n1"))
    setting.see(A, B)
    assert setting.ask(C).startswith("on ")
    setting.mirror.forget(pod_of(C).uid)
    assert setting.status().members == 2


def test_a_member_that_only_requests_have_shown_is_forgotten_when_the_last_is_rejected() -> None:
    setting = GangSetting(node("n0"), node("n1"))
    setting.see(A, B)
    assert setting.ask(C).startswith("on ")
    setting.see(A.terminating(), B.terminating())
    assert "waits for 2 more members of 3" in setting.ask(C)
    assert setting.status().members == 2


def test_a_member_that_the_watch_has_not_shown_is_not_one_that_cannot_be_placed() -> None:
    setting = GangSetting(node("n0"))
    assert setting.ask(A) == "group default/train: waits for 2 more members of 3"


def test_a_place_ends_with_its_timeout_also_if_another_member_comes_again_and_again() -> None:
    first, again, never = (make_pod(name).of_group("train", 3, 10).requests(cpu=1) for name in "abc")
    setting = GangSetting(node("n0"), node("n1"))
    setting.see(first, again, never)
    setting.ask(first)
    for second in range(1, 10):
        setting.now = float(second)
        assert setting.ask(again).startswith("on ")
    assert setting.status().reserved_since == 9.0
    setting.now = 10.0
    setting.gangs.begin(setting.now)
    assert setting.assumed() == {"a", "b"}
