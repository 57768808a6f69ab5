"""The rules of leader election by a Lease, without I/O: the requests to the API server, and the meaning of responses.

Source: k8s.io/client-go tools/leaderelection/leaderelection.go (tryAcquireOrRenew, release). A candidate takes a Lease
without a holder, or one that has not changed for its duration, by its own monotonic clock: clocks are not compared. The
resourceVersion lets one of several candidates win.

Stricter than upstream: a renewal is valid from the time when it was *sent*, not from its response, and for
`renew_deadline`. No other replica can take the Lease in that time, because others count from the later time when they
see the renewal. Clocks may run differently by a twentieth. A duration that is no whole number of seconds is written as
the next longer one. And a release looks at who holds the Lease now, so that it cannot take it from another.
"""

import math
from collections.abc import Callable, Generator
from datetime import datetime
from enum import Enum
from typing import Final, NamedTuple, TypeAlias

import msgspec

from app.leadership.lease_object import Lease, LeaseRecord, micro_time


class Get(NamedTuple):
    """Read the Lease."""


class Create(NamedTuple):
    """Make the Lease, which must not be there."""

    record: LeaseRecord


class Update(NamedTuple):
    """Change the Lease, if it is still as it was."""

    lease: Lease
    record: LeaseRecord


class Failure(Enum):
    """Why there is no Lease in a response."""

    ABSENT = "absent"
    """There is none of that name."""
    FAILED = "failed"
    """The request was rejected, has met a conflict, or its outcome is unknown."""


Request: TypeAlias = Get | Create | Update
LeaseResponse: TypeAlias = Lease | Failure
Exchange: TypeAlias = Generator[Request, LeaseResponse, bool]
"""Yields requests, is sent their responses, and returns whether it succeeded."""

_SAME_RATE: Final = 0.95
"""The share of the others' waiting time that is used, because no two clocks run alike."""
_RELEASED: Final = 1
"""Seconds of a record without a holder; 0 is not valid."""


class Election:
    """One candidate's view of a Lease, and its next requests. One exchange at a time."""

    def __init__(
        self,
        identity: str,
        *,
        duration: float,
        renew_deadline: float,
        clock: Callable[[], float],
        date: Callable[[], datetime],
    ) -> None:
        """Take seconds of `clock`, which is monotonic; `date` is for people to read."""
        self.identity: Final = identity
        self._duration = math.ceil(duration)
        self._waiting = _SAME_RATE * self._duration
        self._renew_deadline = min(renew_deadline, self._waiting)
        self._clock = clock
        self._date = date
        self._lease: Lease | None = None  # with the last version that is known
        self._observed = LeaseRecord()
        self._observed_at = -math.inf
        self._renewed_at = -math.inf

    @property
    def leader(self) -> str:
        """The holder of the Lease when it was last seen; empty if it was not seen, or had none."""
        return self._observed.holder

    @property
    def holds_until(self) -> float:
        """Until when this candidate leads, if it does not renew the Lease; in the past if it does not lead."""
        return self._renewed_at + self._renew_deadline

    @property
    def others_may_acquire_at(self) -> float:
        """Until when at least no other takes the Lease; in the past if this candidate did not hold it last."""
        return self._renewed_at + self._waiting

    def holds(self) -> bool:
        """Return whether this candidate leads now."""
        return self._clock() < self.holds_until

    def attempt(self) -> Exchange:
        """Take the Lease, or renew it."""
        now = self._clock()
        date = micro_time(self._date())
        fresh = LeaseRecord(self.identity, self._duration, date, date)
        if self._lease is not None and self._is_holder() and self._is_valid(now):
            # Most probably it is unchanged, so it need not be read first.
            answer = yield Update(self._lease, self._renewal(fresh))
            if isinstance(answer, Lease):
                return self._take(answer, now)
        answer = yield Get()
        if answer is Failure.ABSENT:
            answer = yield Create(fresh)
        elif isinstance(answer, Lease):
            self._see(answer)
            if self._observed.holder and self._is_valid(now) and not self._is_holder():
                return False
            taken = msgspec.structs.replace(fresh, transitions=self._observed.transitions + 1)
            answer = yield Update(answer, self._renewal(fresh) if self._is_holder() else taken)
        return isinstance(answer, Lease) and self._take(answer, now)

    def release(self) -> Exchange:
        """Give the Lease up, so that others need not wait. Nothing may be done any more that needs it."""
        self._renewed_at = -math.inf
        answer = yield Get()
        if not isinstance(answer, Lease):
            return False
        self._see(answer)
        if not self._is_holder():
            return True
        date = micro_time(self._date())
        record = LeaseRecord("", _RELEASED, date, date, self._observed.transitions)
        answer = yield Update(answer, record)
        if isinstance(answer, Lease):
            self._see(answer)
        return isinstance(answer, Lease)

    def _renewal(self, fresh: LeaseRecord) -> LeaseRecord:
        before = self._observed
        return msgspec.structs.replace(fresh, acquired=before.acquired, transitions=before.transitions)

    def _take(self, lease: Lease, sent_at: float) -> bool:
        self._see(lease)
        self._renewed_at = sent_at
        return True

    def _see(self, lease: Lease) -> None:
        self._lease = lease
        if lease.record != self._observed:
            self._observed = lease.record
            self._observed_at = self._clock()
        if not self._is_holder():
            self._renewed_at = -math.inf

    def _is_holder(self) -> bool:
        return self._observed.holder == self.identity

    def _is_valid(self, now: float) -> bool:
        return now < self._observed_at + self._observed.seconds
