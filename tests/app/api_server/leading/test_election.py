"""The rules of the election, as client-go's leaderelection_test.go has them where it has them; and the Lease."""

import math
from datetime import UTC, datetime

import msgspec
import pytest

from app.api_server.election import Election, Failure, Get, LeaseRecord, Update, decode_lease, encode_lease, micro_time
from app.objects.decode import DecodeError
from tests.app.api_server.leading.lease_store import LeaseStore, Time, candidate, run

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
    store = LeaseStore()
    run(candidate("a", Time().clock(), duration=1.5, renew_deadline=1.0).attempt(), store)
    assert store.lease is not None
    assert store.lease.record.seconds == 2


def test_the_time_counts_from_when_the_renewal_was_sent() -> None:
    setting = Setting()
    exchange = setting.a.attempt()
    assert next(exchange) == Get()
    setting.time.now = 3
    request = exchange.send(Failure.ABSENT)
    setting.time.now = 4
    response = setting.store.carry_out(request)
    setting.time.now = 5
    with pytest.raises(StopIteration):
        exchange.send(response)
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
    assert setting.record() == LeaseRecord("", 2, DATE.format(1), DATE.format(1), 0)
    assert not setting.a.holds()
    assert setting.attempt(setting.b)
    assert (setting.record().holder, setting.record().transitions) == ("b", 1)


def test_the_lease_of_another_is_not_released_and_a_release_ends_the_leadership_before_anything_is_sent() -> None:
    setting = Setting()
    setting.attempt(setting.a)
    setting.attempt(setting.b)
    setting.time.now = 15
    setting.attempt(setting.b)
    assert run(setting.a.release(), setting.store)
    assert setting.record().holder == "b"
    assert setting.b.holds()
    next(setting.b.release())
    assert not setting.b.holds()


# Until when an earlier leader may have decided. The clock of b is 1000 s ahead.


def test_the_holder_of_an_unchanged_lease_decided_until_its_renew_deadline_by_any_clock() -> None:
    setting = Setting()
    setting.attempt(setting.a)
    setting.time.now = 4
    assert not setting.attempt(setting.b), "seen at 1004"
    setting.time.now = 19
    assert setting.b.decided_until == -math.inf
    assert setting.attempt(setting.b)
    assert setting.b.decided_until == pytest.approx(1004 + 10 / 0.95)


def test_a_lease_of_another_duration_has_an_unknown_deadline() -> None:
    setting = Setting()
    other = candidate("c", setting.time.clock(), duration=20.0)
    setting.attempt(other)
    setting.attempt(setting.b)
    setting.time.now = 20
    assert setting.attempt(setting.b)
    assert setting.b.decided_until == 1020


@pytest.mark.parametrize(("landed", "until"), [(True, -math.inf), (False, 1003.0)])
def test_who_gives_the_lease_up_tells_whether_bindings_are_under_way(*, landed: bool, until: float) -> None:
    setting = Setting()
    setting.attempt(setting.a)
    setting.attempt(setting.b)
    setting.time.now = 2
    run(setting.a.release(landed=landed), setting.store)
    assert setting.record().seconds == (2 if landed else 1), "client-go writes 1, which must promise nothing"
    setting.time.now = 3
    assert setting.attempt(setting.b)
    assert setting.b.decided_until == until


def test_a_new_lease_tells_nothing_about_earlier_ones() -> None:
    setting = Setting()
    setting.time.now = 3
    assert setting.attempt(setting.b)
    assert setting.b.decided_until == 1003


def test_a_lease_that_was_taken_without_an_answer_is_no_reason_to_forget_the_leader_before() -> None:
    setting = Setting()
    setting.attempt(setting.a)
    setting.attempt(setting.b)
    setting.time.now = 16
    assert not setting.attempt(setting.b, 1), "the response to the update is lost"
    assert setting.record().holder == "b"
    setting.time.now = 17
    assert setting.attempt(setting.b)
    assert setting.b.decided_until == pytest.approx(1000 + 10 / 0.95)
    assert setting.b.taken_at == 1016


def test_who_takes_its_own_lease_again_has_its_own_decisions() -> None:
    setting = Setting()
    setting.attempt(setting.a)
    before = setting.a.decided_until
    setting.time.now = 100
    assert not setting.a.holds()
    assert setting.attempt(setting.a)
    assert setting.a.decided_until == before == setting.a.taken_at == 0


def test_who_takes_the_lease_again_that_another_has_released_knows_that_it_did_not_lead_meanwhile() -> None:
    setting = Setting()
    setting.attempt(setting.a)
    run(setting.a.release(), setting.store)
    assert setting.attempt(setting.b)
    run(setting.b.release(), setting.store)
    setting.time.now = 5
    assert setting.attempt(setting.a)
    assert (setting.a.decided_until, setting.a.taken_at) == (-math.inf, 5)


def test_who_does_not_stand_sees_the_lease_and_takes_none() -> None:
    setting = Setting()
    assert not run(setting.b.attempt(stands=False), setting.store)
    assert setting.store.lease is None
    setting.attempt(setting.a)
    assert setting.b.free_at < 1000
    assert not run(setting.b.attempt(stands=False), setting.store)
    assert (setting.b.leader, setting.b.free_at) == ("a", 1015)
    setting.time.now = 15
    assert not run(setting.b.attempt(stands=False), setting.store)
    assert setting.record().holder == "a"
    assert setting.attempt(setting.b), "it need not see the lease for its duration again"


def test_who_does_not_stand_does_not_renew_a_lease_that_it_has_lost() -> None:
    setting = Setting()
    setting.attempt(setting.a)
    setting.time.now = 12
    before = setting.record()
    assert not setting.a.holds()
    assert not run(setting.a.attempt(stands=False), setting.store)
    assert (setting.record(), setting.a.holds()) == (before, False)
    assert setting.attempt(setting.a)


def test_a_lease_that_is_deleted_is_still_its_holders() -> None:
    setting = Setting()
    setting.attempt(setting.a)
    setting.attempt(setting.b)
    setting.store.lease = None
    setting.time.now = 2
    assert not setting.attempt(setting.b), "the holder does not know yet"
    assert setting.a.holds()
    assert setting.attempt(setting.a), "it makes the lease again"
    setting.attempt(setting.b)
    setting.store.lease = None
    setting.time.now = 17
    assert setting.attempt(setting.b)
    assert setting.b.decided_until == 1017


# The Lease.


METADATA = {"name": "kindred", "resourceVersion": "7", "labels": {"app": "x"}, "managedFields": [{"manager": "k"}]}
SPEC = {
    "holderIdentity": "a_1",
    "leaseDurationSeconds": 15,
    "acquireTime": "2026-01-01T00:00:00.000000Z",
    "renewTime": "2026-01-01T00:00:02.000000Z",
    "leaseTransitions": 3,
}
WRITTEN = LeaseRecord("a_1", 15, "2026-01-01T00:00:00.000000Z", "2026-01-01T00:00:02.000000Z", 3)


def body(**fields: object) -> bytes:
    return msgspec.json.encode({"kind": "Lease", **fields})


def test_a_lease_is_read_and_goes_back_with_its_metadata_as_they_came() -> None:
    lease = decode_lease(body(metadata=METADATA, spec={**SPEC, "strategy": "of another release"}))
    assert lease.record == WRITTEN
    assert msgspec.json.decode(encode_lease(lease.metadata, WRITTEN)) == {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": METADATA,
        "spec": SPEC,
    }
    made = msgspec.json.decode(encode_lease({"namespace": "ours", "name": "kindred"}, WRITTEN))
    assert (made["metadata"], made["spec"]) == ({"namespace": "ours", "name": "kindred"}, SPEC)
    assert micro_time(datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)) == "2026-01-02T03:04:05.000006Z"


def test_what_is_not_said_is_empty() -> None:
    for spec in (None, {}, dict.fromkeys(SPEC)):
        assert decode_lease(body(metadata=METADATA, spec=spec)).record == LeaseRecord()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        pytest.param(b"{}", "metadata: required", id="no-metadata"),
        pytest.param(b'{"metadata":null}', "metadata: required", id="null-metadata"),
        pytest.param(b'{"metadata":{},"spec":{"leaseDurationSeconds":"1"}}', "leaseDurationSeconds", id="no-number"),
        pytest.param(b"<html>", "malformed JSON", id="no-json"),
    ],
)
def test_what_is_no_lease_is_refused(wrong: bytes, message: str) -> None:
    with pytest.raises(DecodeError, match=message):
        decode_lease(wrong)
