"""An attempt to place a gang is made in parts. Attempts that fail take at most a tenth of the CPU in the long run.

That holds however many namespaces make them.
"""

from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise

import pytest

from core.events import ClusterEvent
from core.gangs import placing, trials
from core.gangs.ledger import Ledger
from core.mirror.work import WorkLimitError
from core.objects.kinds import Namespace
from tests.builders import PodBuilder, labelled, make_pod, term
from tests.core.decoded import pod_of
from tests.core.gangs.gang_setting import HOSTNAME, ZONE, GangSetting, member, node
from tests.core.mirror.audit import audit

STEP = 0.004
"""Seconds of CPU for each step. A part has 13 of them."""
OPEN = "are still looked for"


@pytest.fixture(autouse=True)
def _few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the search back end soon."""
    monkeypatch.setattr(trials, "steps_for", lambda _: 10)


def unlike(group: str, number: int, namespace: str = "default", cpu: int = 1) -> list[PodBuilder]:
    """Return members of which no two are of one class, and no two may share a node."""
    apart = term(HOSTNAME, labelled(job=group))
    members = [member(f"{group}-{at}", number, group, cpu).label("job", group) for at in range(number)]
    return [
        each.label("number", str(at)).required_anti_affinity(apart).in_namespace(namespace)
        for at, each in enumerate(members)
    ]


def cluster(nodes: int, *gangs: Sequence[PodBuilder], step: float = STEP) -> GangSetting:
    setting = GangSetting(*(node(f"n{at:02}", cpu=9) for at in range(nodes)), step=step)
    for each in gangs:
        setting.see(*each)
    return setting


def spent_by(setting: GangSetting, pod: PodBuilder) -> float:
    before = setting.spent
    setting.ask(pod)
    return setting.spent - before


def test_an_attempt_goes_on_between_requests_and_no_member_is_placed_alone() -> None:
    gang = unlike("train", 20)
    setting = cluster(20, gang)
    assert {setting.ask(pod) for pod in gang} == {"group default/train: places for its 20 members are still looked for"}
    assert setting.spent < 0.06
    seen = set()
    for _ in range(20):
        setting.work(0.1)
        seen.add(len(setting.mirror.assumed))
    assert seen == {0, 20}
    assert all(setting.ask(pod).startswith("on ") for pod in gang)
    assert setting.status().attempts == 1
    assert audit(setting.mirror) == []


def test_a_request_takes_at_most_a_part_whatever_waits() -> None:
    gangs = [unlike(f"g{number}", 30) for number in range(6)]
    setting = cluster(29, *gangs)
    small = unlike("small", 2)
    for _ in range(30):
        setting.now += 0.1
        for gang in gangs:
            assert spent_by(setting, gang[0]) < 0.06
    setting.see(*small)
    assert spent_by(setting, small[0]) < 0.02  # of its own attempt alone
    assert len(setting.mirror.assumed) == 2


def test_a_search_among_members_without_a_node_is_made_in_parts() -> None:
    gang = [each.required_affinity(term(HOSTNAME, labelled(job="nobody"))) for each in unlike("train", 40)]
    setting = cluster(20, gang)
    setting.ask(gang[0])
    spent = [setting.spent]
    while OPEN in setting.status().reason:
        setting.work(0.1)
        spent.append(setting.spent)
    assert max(after - before for before, after in pairwise(spent)) < 0.06


@pytest.mark.parametrize("namespaces", [["a"], ["a", "b", "c"]])
def test_attempts_that_fail_take_at_most_a_tenth_of_the_time(namespaces: list[str]) -> None:
    gangs = [unlike(f"g{at}", 30, namespaces[at % len(namespaces)]) for at in range(6)]
    setting = cluster(29, *gangs)
    for second in range(60):
        for gang in gangs:
            setting.see(*unlike(gang[0].labels["job"], 30, gang[0].namespace, cpu=second % 2 + 1))  # always hopeful
            setting.ask(gang[second % 30])
        setting.work(1.0)
    assert setting.spent < 0.11 * setting.now
    assert min(each.attempts for each in setting.gangs.unit_statuses(setting.now)) > 1


def test_a_gang_is_placed_soon_after_a_node_has_come_for_its_last_member() -> None:
    gangs = [unlike(f"g{at}", 30) for at in range(6)]
    setting = cluster(29, *gangs)
    for gang in gangs:
        setting.ask(gang[0])
    setting.work(60.0)
    assert {each.attempts for each in setting.gangs.unit_statuses(setting.now)} == {1}
    setting.see_node("new", cpu=1)
    setting.work(0.1)  # in one part, because the other 29 have places since the last attempt
    assert len(setting.mirror.assumed) == 30
    assert audit(setting.mirror) == []


def test_a_gang_that_does_not_fit_beside_the_places_of_the_last_attempt_gets_others() -> None:
    setting = GangSetting(node("n0", 2))
    gang = [member("small", cpu=1), member("large", cpu=2)]
    setting.see(*gang)
    assert "1 of 2 members fit; the next one, default/large" in setting.ask(gang[0])
    setting.see_node("n1", cpu=1)
    assert [setting.ask(pod) for pod in gang] == ["on n1", "on n0"]


def test_what_cannot_help_has_no_gang_tried_again() -> None:
    gang, busy = unlike("train", 4), make_pod("busy").on("n00")
    setting = cluster(3, gang, step=0.0)
    assert "3 of 4 members fit" in setting.ask(gang[0])
    for pod in gang:
        setting.see(busy)  # on a node where a member would be, so the room of the pod is of no use
        setting.delete(busy)
        setting.ask(pod)
    assert setting.status().attempts == 1


def test_another_object_or_a_change_of_a_member_has_a_gang_tried_again() -> None:
    gang = unlike("train", 4)
    setting = cluster(3, gang, step=0.0)
    setting.ask(gang[0])
    setting.mirror.apply(ClusterEvent("Add", Namespace(name="new", labels={"a": "b"})))
    setting.ask(gang[0])
    assert setting.status().attempts == 2
    setting.see(member("train-0", 4))
    assert setting.ask(gang[1]).startswith("on ")


def test_an_object_that_comes_while_a_gang_is_tried_has_it_tried_again() -> None:
    gang = unlike("train", 30)
    setting = cluster(29, gang)
    assert OPEN in setting.ask(gang[0])
    setting.mirror.apply(ClusterEvent("Add", Namespace(name="new", labels={"a": "b"})))
    setting.work(10.0)
    assert setting.status().attempts == 2


@pytest.mark.parametrize("step", [STEP, 0.06])
def test_a_place_that_is_taken_in_the_meantime_is_replaced(step: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placing, "_FEWEST_AT_ONCE", 1)
    monkeypatch.setattr(placing, "_LONGEST_CHECK", 1.0)
    gang = unlike("train", 20, cpu=9)
    setting = cluster(25, gang)
    assert OPEN in setting.ask(gang[0])
    setting.work(0.2)
    setting.step = step
    setting.see(*(make_pod(f"other-{at}").requests(cpu=9).on(f"n{at:02}") for at in range(5)))
    setting.work(3.0)
    assert len(setting.mirror.assumed) == 20
    assert {each.pod.node_name for each in setting.mirror.assumed.values()}.isdisjoint(f"n{at:02}" for at in range(5))
    assert all(setting.ask(pod).startswith("on ") for pod in gang)
    assert audit(setting.mirror) == []


def test_an_attempt_begins_anew_if_a_node_goes_or_a_member_changes() -> None:
    gang = unlike("train", 20)
    setting = cluster(21, gang)
    setting.ask(gang[0])
    setting.lose_node("n00")
    setting.ask(gang[1])
    assert setting.status().attempts == 2
    setting.see(gang[7].label("number", "x"))
    setting.ask(gang[1])
    assert setting.status().attempts == 3
    setting.work(2.0)
    assert len(setting.mirror.assumed) == 20


def test_an_attempt_ends_when_a_member_goes() -> None:
    first, second = unlike("first", 20, "a"), unlike("second", 20, "b")
    setting = cluster(20, first, second)
    setting.ask(first[0])
    setting.ask(second[0])
    setting.delete(first[0])
    setting.work(2.0)
    assert len(setting.mirror.assumed) == 20
    assert setting.ask(first[1]) == "group a/first: waits for 1 more member of 20"


def test_long_attempts_of_a_namespace_wait_for_those_of_others() -> None:
    greedy = [unlike(f"g{at}", 30, "greedy") for at in range(6)]
    fair = [each.created("2026-05-05T00:00:00Z") for each in unlike("fair", 20, "fair")]
    setting = cluster(29, *greedy)
    for gang in greedy:
        setting.ask(gang[0])
    setting.work(11.0)
    setting.see(*fair)
    setting.ask(fair[0])
    setting.work(2.0)
    assert {each.pod.namespace for each in setting.mirror.assumed.values()} == {"fair"}


@pytest.mark.parametrize("limit", ["_LONGEST_CHECK", "_LONGEST_RESUME"])
def test_members_that_take_too_long_together_are_refused(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    gang = unlike("train", 20)
    setting = cluster(20, gang)
    monkeypatch.setattr(placing, limit, -1.0)
    with suppress(WorkLimitError):
        setting.ask(gang[0])
    setting.see(make_pod("other").on("n00"))
    setting.work(2.0)
    assert not setting.mirror.assumed
    for pod in gang[:2]:
        with pytest.raises(WorkLimitError, match="too much work: 20 entries"):
            setting.gangs.ask(pod_of(pod), setting.now)
    assert setting.status().attempts == 1


def test_who_decides_no_more_goes_on_with_nothing() -> None:
    gang = unlike("train", 20)
    setting = cluster(20, gang)
    setting.ask(gang[0])
    setting.gangs.end()
    for _ in range(20):
        assert not setting.gangs.work(setting.now)
    assert not setting.mirror.assumed


def test_a_member_of_a_gang_that_was_placed_for_another_request_gets_a_node_of_its_own_request() -> None:
    gang = unlike("train", 20)
    setting = cluster(25, gang)
    assert OPEN in setting.ask(gang[0], setting.mirror.batch(["n00", "n01"]))
    responses = []
    for _ in range(12):
        setting.work(0.5)
        responses.append(setting.ask(gang[5], setting.mirror.batch(["n24"])))
    assert {response for response in responses if OPEN not in response} == {"on n24"}
    assert audit(setting.mirror) == []


def test_a_change_on_another_node_of_the_zone_has_a_gang_tried_again() -> None:
    setting = GangSetting(node("n0"), node("n1"))
    foe, fill = (make_pod(name).label("app", name).requests(cpu=1).on("n0") for name in ("foe", "fill"))
    gang = [member(f"m{at}").required_anti_affinity(term(ZONE, labelled(app="foe"))) for at in range(2)]
    setting.see(foe, fill, *gang)
    assert "0 of 2 members fit" in setting.ask(gang[0])
    setting.see(make_pod("more").requests(cpu=1).on("n0"))
    setting.delete(foe)  # n0 is as full as before, and n1 has not changed
    setting.work(1.0)
    assert {setting.place_of(pod) for pod in gang} == {"n1"}


def test_a_node_that_goes_has_a_gang_tried_again() -> None:
    setting = GangSetting(node("a0", 4), node("b0", 1, "b"))
    full = make_pod("full").requests(cpu=1).on("b0")
    gang = [member(f"m{at}", 3).label("job", "x").spread(ZONE, labelled(job="x")) for at in range(3)]
    setting.see(full, *gang)
    assert "1 of 3 members fit" in setting.ask(gang[0])
    setting.delete(full)
    setting.lose_node("b0")
    setting.work(1.0)
    assert {setting.place_of(pod) for pod in gang} == {"a0"}


def test_the_rest_of_a_gang_that_has_started_is_placed_before_the_first_decision() -> None:
    gang = unlike("train", 30)
    setting = cluster(40, gang)
    setting.see(gang[0].on("n39"), gang[1].on("n38"))
    setting.gangs = setting.fresh()
    setting.gangs.begin(0.0)
    assert len(setting.mirror.assumed) == 28


@pytest.mark.parametrize("short", [6, 10, 20])
def test_a_long_attempt_does_not_wait_for_ever_beside_short_ones_that_fail(short: int) -> None:
    long = unlike("long", 30, "fair")
    others = [unlike(f"s{at}", 2, f"t{at % 3}", cpu=99) for at in range(short)]
    setting = cluster(31, long, *others, step=0.01)
    for second in range(25):
        setting.mirror.apply(ClusterEvent("Add", Namespace(name=f"ns{second}", labels={"a": str(second)})))
        for gang in others:
            setting.ask(gang[second % 2])
        if setting.ask(long[0]).startswith("on "):
            break
        setting.work(1.0)
    assert {each.pod.namespace for each in setting.mirror.assumed.values()} == {"fair"}


def test_a_gang_behind_one_that_holds_it_up_is_tried_when_that_ends() -> None:
    setting = GangSetting(node("n0", 1))
    old = [member(f"w{at}", 9, "w").created("2020-01-01T00:00:00Z") for at in range(9)]
    young = [member(f"x{at}", 2, "x").created("2026-01-01T00:00:00Z") for at in range(2)]
    setting.see(*old, *young)
    setting.ask(old[0])
    setting.ask(young[0])
    setting.unit("default/w").holds_until = 30.0  # else twenty gangs have to overtake it
    setting.see_node("n1")
    setting.work(29.0)
    assert setting.assumed() == set()
    setting.work(2.0)
    assert setting.assumed() == {"x0", "x1"}


def test_an_attempt_that_is_held_up_holds_up_no_other_one() -> None:
    first, small, holding = unlike("first", 20, "a"), unlike("fails", 2, "a", cpu=99), unlike("holding", 30, "a")
    late = unlike("late", 20, "b")
    setting = cluster(29, holding, late)
    setting.ask(holding[0])
    setting.work(25.0)
    assert OPEN in setting.ask(late[0])
    setting.unit("a/holding").holds_others_until = 600.0  # else twenty gangs have to overtake it
    setting.see(*first, *small)
    for gang in small, first:  # attempts of their namespace have failed, and none of the one of `late`
        setting.ask(gang[0])
    setting.work(2.0)
    assert [setting.status(key).reserved for key in ("a/first", "b/late")] == [20, 0]


def test_nothing_is_held_while_the_only_member_that_was_decided_for_is_tried_again() -> None:
    """Its new place may be another pod's before the attempt ends. Then the others would run without it."""
    gang, others = unlike("train", 20), [unlike(f"g{at}", 30) for at in range(10)]
    setting = cluster(20, gang, *others)
    setting.ask(gang[0])
    setting.work(3.0)
    assert setting.ask(gang[0]).startswith("on ")
    for other in others:  # they take all time that there is for attempts
        setting.ask(other[0])
    setting.work(3.0)
    assert "are still looked for" in setting.ask(gang[0])
    assert not {each.pod.name for each in setting.mirror.assumed.values()} & {pod.name for pod in gang}


def test_a_gang_that_fits_takes_nothing_off_what_others_of_its_name_have_taken() -> None:
    """Else a tenant would delete a large gang that fits nowhere, and create a small one of its name, and so on."""
    setting = cluster(29)
    for _ in range(20):
        large, small = unlike("g", 30), [pod.label("small", "yes").uid(f"small-{pod.name}") for pod in unlike("g", 2)]
        setting.see(*large)
        setting.ask(large[0])
        setting.work(0.5)
        setting.delete(*large)
        setting.see(*small)
        for pod in small:
            setting.ask(pod)
        setting.delete(*small)
    assert setting.spent < 0.11 * (setting.now + 10)


def test_what_takes_long_before_the_first_decision_goes_on_between_requests() -> None:
    """A tenant may bind a member of a gang whose other members take a minute. Then no replica could ever lead."""
    gang = unlike("train", 50)
    setting = cluster(60, gang, step=0.02)
    setting.see(gang[0].on("n59"))
    setting.gangs = setting.fresh()
    setting.gangs.begin(0.0)
    assert setting.spent < 1.1
    setting.work(30.0)
    assert len(setting.mirror.assumed) == 49


def test_many_gangs_together_take_a_second_before_the_first_decision() -> None:
    setting = GangSetting(*(node(f"n{at}", 40) for at in range(17)), step=0.02)
    for at in range(100):
        setting.see(member(f"a{at}", group=f"g{at}").on("n0"), member(f"b{at}", group=f"g{at}").label("g", f"{at}"))
    setting.gangs = setting.fresh()
    setting.gangs.begin(0.0)
    assert setting.spent < 1.1
    setting.work(30.0)
    assert len(setting.mirror.assumed) == 100


def test_gangs_that_are_whole_have_no_turn_after_a_start() -> None:
    """Else none would be left for gangs that wait."""
    setting = GangSetting(*(node(f"n{at}", 0) for at in range(17)), step=0.02)
    stuck = [member(f"{at}", group=f"g{at}").label("g", f"{at}").in_namespace(f"a{at}") for at in range(30)]
    setting.see(*stuck, *(pod.uid(f"running-{pod.name}").on("n0") for pod in stuck))
    for at in range(4):
        setting.see(*(member(f"{name}{at}", group="whole").in_namespace(f"b{at}").on("n0") for name in "ab"))
    first, late = [member(f"f{at}", group="first").priority(9) for at in "ab"], [member(f"l{at}") for at in "ab"]
    setting.see(*first, *late)
    setting.gangs = setting.fresh()
    setting.work(60.0)
    setting.delete(*stuck, *(pod.uid(f"running-{pod.name}") for pod in stuck))
    for pod in (first[0], late[0]):
        assert "0 of 2 members fit" in setting.ask(pod)
    setting.see_node("new", 2)
    setting.ask(late[0])
    assert setting.status("default/first").reserved == 2


def test_nothing_is_done_at_once_while_no_attempt_may_go_on() -> None:
    gangs = [unlike(f"g{at}", 30) for at in range(6)]
    setting = cluster(29, *gangs, step=0.03)
    for gang in gangs:
        setting.ask(gang[0])
    setting.work(5.0)
    before = setting.spent
    assert not setting.gangs.work(setting.now)
    assert setting.spent == before


def test_what_is_charged_to_a_later_window_leaves_this_one_as_it_is() -> None:
    ledger = Ledger()
    ledger.charge("a/x", 0.75, 100.5)
    ledger.charge("b/y", 0.25, 111.0)
    assert ledger.used(101.0) == 1.0
    assert (ledger.used(112.0), ledger.used_by("a/x"), ledger.used_by("b/z")) == (0.25, 0.0, 0.25)
    ledger.forgive("b/y")
    assert ledger.used(112.0) == 0.0


def test_a_ledger_keeps_nothing_of_namespaces_whose_gangs_failed_long_ago() -> None:
    ledger = Ledger()
    for second in range(100):
        ledger.charge(f"n{second}/train", 0.1, float(second))
        ledger.used(float(second))
    assert len(ledger._of) <= 12  # noqa: SLF001  # memory has no other sign
