"""The rules of the election, one by one; as client-go's leaderelection_test.go has them where it has them."""

import pytest

from app.leadership.election import Election, Failure, Get, Update
from app.leadership.lease_object import LeaseRecord
from tests.app.leadership.lease_store import LeaseStore, Time, candidate, run

DATE = "2026-01-01T00:00:{:02}.000000Z"


class Setting:
    """Two candidates and a Lease."""

    def __init__(self) -> None:
        self.time = Time()
        self.store = LeaseStore()
        self.a = candidate("a", self.time.clock())
        self.b = candidate("b", self.time.clock(offset=1000.0))

    def attempt(self, election: Election, *lost: int) -> bool:
        return run(election.attempt(), self.store, lost)

    def record(self) -> LeaseRecord:
        assert self.store.lease is not None
        return self.store.lease.record


def test_who_makes_the_lease_leads() -> None:
    setting = Setting()
    assert setting.attempt(setting.a)
    assert setting.record() == LeaseRecord("a", 15, DATE.format(0), DATE.format(0), 0)
    assert (setting.a.holds(), setting.a.leader) == (True, "a")
    assert not setting.attempt(setting.b)
    assert (setting.b.holds(), setting.b.leader) == (False, "a")


def test_a_renewal_is_one_request_and_keeps_since_when_it_leads() -> None:
    setting = Setting()
    setting.attempt(setting.a)
    setting.time.now = 2
    exchange = setting.a.attempt()
    request = next(exchange)
    assert isinstance(request, Update)
    with pytest.raises(StopIteration):
        exchange.send(setting.store.carry_out(request))
    assert setting.record() == LeaseRecord("a", 15, DATE.format(0), DATE.format(2), 0)
    assert setting.a.holds_until == 12


def test_a_lease_that_is_not_renewed_is_taken_once_it_was_not_seen_to_change_for_its_duration() -> None:
    setting = Setting()
    setting.attempt(setting.a)
    setting.time.now = 14
    assert not setting.attempt(setting.b), "it has been seen just now"
    setting.time.now = 28.9
    assert not setting.attempt(setting.b)
    setting.time.now = 29
    assert setting.attempt(setting.b)
    assert setting.record() == LeaseRecord("b", 15, "2026-01-01T00:17:09.000000Z", "2026-01-01T00:17:09.000000Z", 1)
    assert not setting.attempt(setting.a)
    assert setting.a.leader == "b"


def test_a_renewal_deadline_near_the_duration_leaves_time_for_clocks_that_run_differently() -> None:
    time, store = Time(), LeaseStore()
    election = candidate("a", time.clock(), renew_deadline=14.9)
    run(election.attempt(), store)
    assert election.holds_until == 14.25


def test_a_duration_is_written_as_whole_seconds_and_no_shorter() -> None:
    time, store = Time(), LeaseStore()
    run(candidate("a", time.clock(), duration=1.5, renew_deadline=1.0).attempt(), store)
    assert store.lease is not None
    assert store.lease.record.seconds == 2


def test_the_time_counts_from_when_the_renewal_was_sent() -> None:
    setting = Setting()
    exchange = setting.a.attempt()
    assert next(exchange) == Get()
    setting.time.now = 3
    request = exchange.send(Failure.ABSENT)
    setting.time.now = 4
    answer = setting.store.carry_out(request)
    setting.time.now = 5
    with pytest.raises(StopIteration):
        exchange.send(answer)
    assert setting.a.holds_until == 10


def test_a_renewal_whose_answer_is_lost_is_found_by_reading() -> None:
    setting = Setting()
    setting.attempt(setting.a)
    setting.time.now = 5
    assert setting.attempt(setting.a, 0), "in the same attempt"
    setting.time.now = 6
    assert not setting.attempt(setting.a, 0, 1, 2)
    assert setting.a.holds_until == 15
    setting.time.now = 7
    assert setting.attempt(setting.a)
    assert setting.record().acquired == DATE.format(0)


def test_a_lease_that_was_taken_without_an_answer_is_known_as_ones_own_later() -> None:
    setting = Setting()
    assert not setting.attempt(setting.a, 1)
    assert setting.record().holder == "a"
    assert not setting.a.holds()
    setting.time.now = 2
    assert setting.attempt(setting.a)
    assert setting.record().transitions == 0


def test_a_released_lease_is_taken_at_once() -> None:
    setting = Setting()
    setting.attempt(setting.a)
    setting.attempt(setting.b)
    setting.time.now = 1
    assert run(setting.a.release(), setting.store)
    assert setting.record() == LeaseRecord("", 1, DATE.format(1), DATE.format(1), 0)
    assert not setting.a.holds()
    assert setting.attempt(setting.b)
    assert (setting.record().holder, setting.record().transitions) == ("b", 1)


def test_a_release_ends_the_leadership_before_anything_is_sent() -> None:
    setting = Setting()
    setting.attempt(setting.a)
    next(setting.a.release())
    assert not setting.a.holds()


def test_the_lease_of_another_is_not_released() -> None:
    setting = Setting()
    setting.attempt(setting.a)
    setting.attempt(setting.b)
    setting.time.now = 15
    setting.attempt(setting.b)
    assert run(setting.a.release(), setting.store)
    assert setting.record().holder == "b"


def test_who_was_overtaken_knows_it_from_the_first_answer() -> None:
    setting = Setting()
    setting.attempt(setting.b)
    setting.attempt(setting.a)
    setting.time.now = 16
    assert setting.attempt(setting.a)
    assert not setting.attempt(setting.b)
    assert setting.b.holds_until == float("-inf")
