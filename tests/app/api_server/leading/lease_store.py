"""One Lease as an API server keeps it, for elections without a network, and candidates whose requests tests carry."""

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Final

import msgspec

from app.api_server.election import Create, Election, Exchange, Failure, Get, Lease, LeaseRecord, LeaseResponse, Request

_BEGIN: Final = datetime(2026, 1, 1, tzinfo=UTC)


class LeaseStore:
    """The Lease, or none, with a version that grows."""

    def __init__(self) -> None:
        self.lease: Lease | None = None
        self.version = 0

    def carry_out(self, request: Request) -> LeaseResponse:
        """Do what is asked, and answer."""
        match request:
            case Get():
                return self.lease or Failure.ABSENT
            case Create(record):
                return self._put(record) if self.lease is None else Failure.FAILED
        if self.lease is None or request.lease.metadata != self.lease.metadata:
            return Failure.FAILED
        return self._put(request.record)

    def _put(self, record: LeaseRecord) -> Lease:
        self.version += 1
        self.lease = Lease(msgspec.Raw(b'{"resourceVersion":"%d"}' % self.version), record)
        return self.lease


class Time:
    """The time of the world; clocks of candidates begin anywhere, and run a little differently."""

    def __init__(self) -> None:
        self.now = 0.0

    def clock(self, offset: float = 0.0, rate: float = 1.0) -> "Clock":
        """Make a clock."""
        return Clock(self, offset, rate)


class Clock:
    """A monotonic clock, and the date by a wall clock that is as wrong."""

    def __init__(self, time: Time, offset: float, rate: float) -> None:
        self._time = time
        self._offset = offset
        self.rate: Final = rate

    def __call__(self) -> float:
        return self.at(self._time.now)

    def at(self, time: float) -> float:
        """Return what it shows at a time of the world."""
        return self._offset + self.rate * time

    def date(self) -> datetime:
        """Return the date."""
        return _BEGIN + timedelta(seconds=self())


def candidate(name: str, clock: Clock, duration: float = 15.0, renew_deadline: float = 10.0) -> Election:
    return Election(name, duration=duration, renew_deadline=renew_deadline, clock=clock, date=clock.date)


def run(exchange: Exchange, store: LeaseStore, lost: Collection[int] = ()) -> bool:
    """Carry an exchange out at once; its requests with these numbers get no answer, though they are carried out."""
    try:
        request = next(exchange)
        for number in count():
            response = store.carry_out(request)
            request = exchange.send(Failure.FAILED if number in lost else response)
    except StopIteration as end:
        reached: bool = end.value
        return reached
    raise AssertionError("an exchange that does not end")
