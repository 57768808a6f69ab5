"""Which resource asks next, and when."""

import pytest

from app.watch.retry_plan import Attempts, Cause, RetryPlan, Wait

FIRST = 0.8  # seconds: no resource that failed is tried sooner
BACKOFF = 20.0
PROBE = 1.0
GAP = 0.05


class Cluster:
    """The resources of a server with their plan, and a clock that goes from one request to the next."""

    def __init__(self, resources: int, random: float = 0.5) -> None:
        """Let all resources be followed at the time 1000."""
        self.now = 1000.0
        self.plan = RetryPlan(PROBE, GAP, lambda: random)
        self.all = [self.plan.join() for _ in range(resources)]
        for number, each in enumerate(self.all):
            self.plan.begin(each, self.now - 100 + number)
            self.plan.answered(each, self.now - 100 + number)
            self.plan.followed(each)

    def fail(self, *resources: int, backoff: float = BACKOFF, earliest: float = FIRST, ours: bool = False) -> None:
        """Let the request or the watch of resources fail."""
        for each in resources:
            if not ours:
                self.plan.failed(self.all[each])
            self.plan.wait(self.all[each], Wait(self.now + backoff, self.now + earliest, ours))

    def end(self, *resources: int) -> None:
        """Let watches end normally."""
        for each in resources:
            self.plan.wait(self.all[each], Wait(self.now, self.now))

    def answer(self, *resources: int) -> list[int]:
        """Let requests succeed; return those that are stuck."""
        stuck: list[Attempts] = []
        for each in resources:
            stuck += self.plan.answered(self.all[each], self.now)
        return [self.all.index(each) for each in stuck]

    def follow(self, *resources: int) -> list[bool]:
        """Let resources be followed; return whether the server was unwell since they failed."""
        return [self.plan.followed(self.all[each]) for each in resources]

    def is_unwell(self) -> bool:
        """Return whether the server is."""
        return self.plan.is_unwell

    def has_own_trouble(self, resource: int) -> bool:
        """Return whether the trouble of a resource is its own."""
        return self.all[resource].has_own_trouble

    def due(self) -> tuple[int, float, Cause | None]:
        """Return what is due next, after how many seconds and why."""
        due = self.plan.next()
        assert due is not None
        return self.all.index(due.attempts), round(due.at - self.now, 6), due.cause

    def go_on(self) -> tuple[int, float, Cause | None]:
        """Make the request that is due next; return which, after how many seconds, and why."""
        found = self.due()
        due = self.plan.next()
        assert due is not None
        self.now = max(self.now, due.at)
        self.plan.grant(due, self.now)
        self.plan.begin(due.attempts, self.now)
        return found


def test_nothing_is_due_where_nothing_waits() -> None:
    assert Cluster(3).plan.next() is None


def test_a_resource_that_fails_alone_waits_for_its_own_backoff() -> None:
    cluster = Cluster(15)
    cluster.fail(3)
    assert not cluster.is_unwell()
    assert cluster.go_on() == (3, BACKOFF, "backoff")
    cluster.fail(3, backoff=5.0)
    assert cluster.go_on() == (3, 5.0, "backoff")


def test_the_only_resource_of_a_server_waits_for_its_own_backoff() -> None:
    cluster = Cluster(1)
    cluster.fail(0)
    assert cluster.go_on() == (0, BACKOFF, "backoff")


@pytest.mark.parametrize(
    ("random", "interval"), [pytest.param(0.0, 1.0, id="longest"), pytest.param(0.8, 0.8, id="shorter")]
)
def test_an_unwell_server_is_probed_at_one_rate_by_all_resources_in_turn(random: float, interval: float) -> None:
    cluster = Cluster(3, random)
    cluster.fail(2, 0, 1)
    assert cluster.is_unwell()
    probed = []
    for _ in range(6):
        probed.append(cluster.go_on())
        cluster.fail(probed[-1][0])
    assert probed[0] == (0, FIRST, "probe")
    assert [(number, cause) for number, _, cause in probed] == [(number, "probe") for number in (0, 1, 2, 0, 1, 2)]
    assert [after for _, after, _ in probed[1:]] == [interval] * 5


def test_a_probe_without_an_answer_yet_does_not_hold_up_the_next_one() -> None:
    cluster = Cluster(3)
    cluster.fail(0, 1, 2)
    assert [cluster.go_on()[0] for _ in range(3)] == [0, 1, 2]
    assert cluster.plan.next() is None


def test_the_first_success_wakes_all_others_at_short_gaps() -> None:
    cluster = Cluster(4)
    cluster.fail(0, 1, 2, 3)
    cluster.go_on()
    cluster.now += 1.0  # the server takes its time
    cluster.answer(0)
    assert [cluster.go_on() for _ in range(3)] == [(1, GAP, "woken"), (2, GAP, "woken"), (3, GAP, "woken")]


@pytest.mark.parametrize(("random", "gap"), [pytest.param(0.0, 0.025, id="least"), pytest.param(0.9, 0.07, id="most")])
def test_the_gaps_have_jitter(random: float, gap: float) -> None:
    cluster = Cluster(4, random)
    cluster.fail(0, 1, 2, 3)
    cluster.go_on()
    cluster.answer(0)
    cluster.go_on()
    assert cluster.go_on() == (2, gap, "woken")


def test_a_failure_ends_the_waking_until_another_success() -> None:
    cluster = Cluster(5)
    cluster.fail(0, 1, 2, 3, 4)
    cluster.go_on()
    cluster.answer(0)
    assert cluster.go_on()[0] == 1
    cluster.fail(1)
    assert cluster.go_on() == (2, PROBE * 0.875, "probe")
    cluster.answer(2)
    assert [cluster.go_on()[0] for _ in range(2)] == [3, 4]


def test_a_watch_that_breaks_as_soon_as_it_is_accepted_wakes_nobody() -> None:
    cluster = Cluster(5)
    cluster.fail(0, 1, 2, 3, 4)
    for probed in (0, 1, 2):
        assert cluster.go_on()[::2] == (probed, "probe")
        cluster.answer(probed)
        cluster.now += GAP / 2
        cluster.fail(probed)


def test_a_resource_that_fails_after_it_was_woken_is_not_woken_again_by_others() -> None:
    cluster = Cluster(4)
    cluster.fail(3)
    cluster.plan.begin(cluster.all[0], cluster.now)
    cluster.answer(0)
    assert cluster.go_on() == (3, FIRST, "woken")
    cluster.fail(3)
    for _ in range(3):
        cluster.plan.begin(cluster.all[0], cluster.now)
        cluster.answer(0)
        assert cluster.due() == (3, BACKOFF, "backoff")


def test_a_resource_with_trouble_of_its_own_does_not_make_the_server_unwell_with_another_one() -> None:
    cluster = Cluster(4)
    cluster.fail(3)
    cluster.plan.begin(cluster.all[0], cluster.now)
    cluster.answer(0)
    cluster.go_on()
    cluster.fail(3)
    cluster.fail(0, backoff=2.0)
    assert not cluster.is_unwell()
    assert cluster.go_on() == (0, 2.0, "backoff")


def test_a_resource_that_always_fails_is_woken_once_for_each_recovery_of_the_server() -> None:
    cluster = Cluster(4)
    cluster.fail(3)
    for _ in range(3):
        cluster.now += 5.0
        cluster.fail(0, 1, 2)
        woken = 0
        while (due := cluster.due())[2] != "backoff":
            number, _, cause = cluster.go_on()
            if number == 3:
                woken += cause == "woken"
                cluster.fail(3)
            else:
                cluster.answer(number)
        assert woken == 1
        assert due == (3, BACKOFF, "backoff")
        assert cluster.follow(0, 1, 2) == [True, True, True]


def test_a_resource_that_was_followed_again_is_woken_in_its_next_trouble() -> None:
    cluster = Cluster(3)
    for _ in range(2):
        cluster.fail(2)
        cluster.plan.begin(cluster.all[0], cluster.now)
        cluster.answer(0)
        assert cluster.go_on() == (2, FIRST, "woken")
        cluster.fail(2)
        assert cluster.due() == (2, BACKOFF, "backoff")
        cluster.follow(2)


def test_two_resources_that_always_fail_end_on_their_own_backoff_while_others_succeed() -> None:
    cluster = Cluster(5)
    cluster.fail(3, 4)
    assert cluster.is_unwell()
    for _ in range(2):
        cluster.plan.begin(cluster.all[0], cluster.now)
        cluster.answer(0)
        woken, _, cause = cluster.go_on()
        assert cause == "woken"
        cluster.fail(woken)
    assert not cluster.is_unwell()
    cluster.plan.begin(cluster.all[0], cluster.now)
    cluster.answer(0)
    assert cluster.due()[2] == "backoff"


def test_a_relapse_of_the_server_gives_another_chance_to_those_that_failed_then() -> None:
    cluster = Cluster(3)
    cluster.fail(0, 1, 2)
    cluster.go_on()
    cluster.answer(0)
    cluster.go_on()
    cluster.fail(1)  # woken
    assert cluster.has_own_trouble(1)
    cluster.fail(0)  # and its watch, which had been accepted
    assert not cluster.has_own_trouble(1)
    cluster.go_on()
    cluster.answer(2)
    assert {cluster.go_on()[::2] for _ in range(2)} == {(0, "woken"), (1, "woken")}


def test_a_list_of_many_pages_wakes_others_once() -> None:
    cluster = Cluster(3)
    cluster.fail(0, 1, 2)
    cluster.go_on()
    cluster.answer(0)
    cluster.go_on()
    cluster.fail(1)
    cluster.answer(0)
    assert cluster.due()[::2] == (2, "probe")


@pytest.mark.parametrize("unwell", [True, False])
def test_retry_after_is_kept_whatever_others_do(*, unwell: bool) -> None:
    cluster = Cluster(4)
    cluster.fail(0, earliest=30.0)
    if unwell:
        cluster.fail(1)
        cluster.go_on()
        cluster.answer(1)
    else:
        cluster.plan.begin(cluster.all[2], cluster.now)
        cluster.answer(2)
    assert cluster.go_on()[0::2] == (0, "woken")
    assert cluster.now == 1030.0


@pytest.mark.parametrize("unwell", [True, False])
def test_a_failure_of_ours_waits_as_long_as_it_wants_and_says_nothing_of_the_server(*, unwell: bool) -> None:
    cluster = Cluster(4)
    if unwell:
        cluster.fail(1, 2)
    cluster.fail(0, backoff=30.0, ours=True)
    assert cluster.plan.failing() == (2 if unwell else 0, 4)
    cluster.plan.begin(cluster.all[3], cluster.now)
    cluster.answer(3)
    while (found := cluster.go_on())[0] != 0:
        cluster.answer(found[0])
    assert (cluster.now, found[2]) == (1030.0, "backoff")


def test_requests_under_way_that_are_stuck_are_made_anew_when_the_server_answers() -> None:
    cluster = Cluster(4)
    cluster.fail(0, 1, 2, 3)
    cluster.go_on()
    cluster.go_on()
    cluster.go_on()
    cluster.now += 0.2
    assert cluster.answer(2) == [0, 1]
    cluster.end(0, 1)
    assert {cluster.go_on()[::2] for _ in range(3)} == {(0, "woken"), (1, "woken"), (3, "woken")}


def test_requests_that_take_long_are_left_alone_while_the_server_is_well() -> None:
    cluster = Cluster(4)
    cluster.plan.begin(cluster.all[0], cluster.now)
    cluster.plan.begin(cluster.all[1], cluster.now)
    cluster.now += 60.0
    assert cluster.answer(1) == []


def test_watches_that_end_at_once_are_resumed_at_short_gaps() -> None:
    cluster = Cluster(4)
    cluster.end(0, 1, 2, 3)
    assert [cluster.go_on() for _ in range(3)] == [(0, 0.0, None), (1, GAP, None), (2, GAP, None)]


def test_watches_that_end_wait_their_turn_while_the_server_is_unwell() -> None:
    cluster = Cluster(6)
    cluster.end(*range(6))
    for number in (0, 1):
        assert cluster.go_on()[::2] == (number, None)
        cluster.fail(number)
    assert cluster.go_on() == (2, PROBE * 0.875, "probe")


def test_the_server_is_well_when_one_resource_at_most_fails() -> None:
    cluster = Cluster(3)
    cluster.fail(0, 1)
    assert cluster.is_unwell()
    assert cluster.follow(0) == [True]
    assert not cluster.is_unwell()
    assert cluster.follow(1, 2) == [True, False]
    cluster.fail(1)
    assert cluster.follow(1) == [False]


def test_one_that_no_longer_waits_is_not_due() -> None:
    cluster = Cluster(3)
    cluster.fail(0)
    cluster.plan.leave(cluster.all[0])
    assert cluster.plan.next() is None
