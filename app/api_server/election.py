"""The rules of leader election by a Lease, without I/O: the requests to the API server, and the meaning of responses.

Source: k8s.io/client-go tools/leaderelection/leaderelection.go (tryAcquireOrRenew, release) and
resourcelock/leaselock.go, k8s.io/api coordination/v1 types.go. A candidate takes a Lease without a holder, or a Lease
that has not changed for its duration. It measures the duration by its own monotonic clock, so the clocks of machines
are never compared. The resourceVersion lets only one of several candidates win.

These rules are stricter than upstream. A renewal is valid for `renew_deadline` from the time when it was *sent*, not
from its response. No other replica can take the Lease in that time, because others count from the later time at which
they see the renewal. The rates of clocks may differ by a twentieth. A fractional duration is written as the next larger
whole number of seconds. A release checks the present holder first, so that it cannot take the Lease from another.

A new leader has to know when the last one made its last decision. The holder of an unchanged Lease made it within its
own `renew_deadline` after the last renewal, so no later than that long after others saw the renewal. A holder that
released its Lease made it before the release. If no binding of its decisions is under way, the release writes a
duration that other programs do not write.
"""

import math
from collections.abc import Callable, Generator
from datetime import UTC, datetime
from enum import Enum
from typing import Final, NamedTuple, TypeAlias

import msgspec

from app.objects.decode import NULL, DecodeError, Int32, Wire, decoding


class LeaseRecord(msgspec.Struct, frozen=True, gc=False):
    """The spec of a Lease. No holder: the Lease was released. Times are text, because only people read them."""

    holder: str = msgspec.field(default="", name="holderIdentity")
    seconds: int = msgspec.field(default=0, name="leaseDurationSeconds")
    """Seconds after the last change of the record in which no other replica may take it."""
    acquired: str = msgspec.field(default="", name="acquireTime")
    renewed: str = msgspec.field(default="", name="renewTime")
    transitions: int = msgspec.field(default=0, name="leaseTransitions")


class Lease(msgspec.Struct, frozen=True, gc=False):
    """A Lease from the API server. `metadata`, with the resourceVersion, is sent back unchanged."""

    metadata: msgspec.Raw
    record: LeaseRecord


class _Spec(Wire):
    holder_identity: str | None = None
    lease_duration_seconds: Int32 | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: Int32 | None = None


class _Lease(Wire):
    metadata: msgspec.Raw = NULL
    spec: _Spec | None = None


_decoder: Final = msgspec.json.Decoder(_Lease)


def decode_lease(body: bytes) -> Lease:
    """Decode a Lease. Raises DecodeError."""
    lease = decoding(_decoder.decode, body)
    if lease.metadata == NULL:
        raise DecodeError("metadata", "required")
    spec = lease.spec or _Spec()
    record = LeaseRecord(
        spec.holder_identity or "",
        spec.lease_duration_seconds or 0,
        spec.acquire_time or "",
        spec.renew_time or "",
        spec.lease_transitions or 0,
    )
    return Lease(msgspec.Raw(bytes(lease.metadata)), record)  # a copy, not a view of the whole body


def micro_time(time: datetime) -> str:
    """Return a time in the format of Kubernetes' MicroTime."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def encode_lease(metadata: object, record: LeaseRecord) -> bytes:
    """Return a Lease. With the metadata that was read, the API server accepts it only if the Lease is unchanged."""
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": record}
    return msgspec.json.encode(lease)


class Get(NamedTuple):
    """Read the Lease."""


class Create(NamedTuple):
    """Create the Lease, which must not exist."""

    record: LeaseRecord


class Update(NamedTuple):
    """Change the Lease, if it is unchanged since it was read."""

    lease: Lease
    record: LeaseRecord


class Failure(Enum):
    """Why there is no Lease in a response."""

    ABSENT = "absent"
    """There is no Lease of that name."""
    FAILED = "failed"
    """The request was rejected, met a conflict, or has an unknown outcome."""


Request: TypeAlias = Get | Create | Update
LeaseResponse: TypeAlias = Lease | Failure
Exchange: TypeAlias = Generator[Request, LeaseResponse, bool]
"""A generator that yields requests, receives their responses, and returns whether it succeeded."""

_SAME_RATE: Final = 0.95
"""Share of the others' waiting time that the leader uses, because clocks run at different rates."""
_LANDED: Final = 2
"""Duration in a record without a holder, in seconds: all decisions of the last holder are bound or dropped."""
_UNDER_WAY: Final = 1
"""The same, if bindings of these decisions may still be under way. client-go writes it, too (release)."""


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
        """`duration` and `renew_deadline` are seconds of `clock`, which is monotonic. `date` is only for people."""
        self.identity: Final = identity
        self._duration = math.ceil(duration)
        self._waiting = _SAME_RATE * self._duration
        self._renew_deadline = min(renew_deadline, self._waiting)
        self._clock = clock
        self._date = date
        self._lease: Lease | None = None  # with its last known version
        self._observed = LeaseRecord()
        self._observed_at = -math.inf
        self._renewed_at = -math.inf
        self.decided_until = -math.inf
        """Time after which no leader before this one made a decision whose binding can be under way."""
        self.taken_at = -math.inf
        """Time at which this candidate took the Lease, other than its own. No other one has led since."""

    @property
    def leader(self) -> str:
        """The last known holder of the Lease. Empty without one."""
        return self._observed.holder

    @property
    def holds_until(self) -> float:
        """Time until which this candidate leads without a renewal. In the past if it does not lead."""
        return self._renewed_at + self._renew_deadline

    @property
    def others_may_acquire_at(self) -> float:
        """Time before which no other candidate takes the Lease. In the past if this one was not the last holder."""
        return self._renewed_at + self._waiting

    @property
    def free_at(self) -> float:
        """Time at which the Lease of another holder ends, unless its next renewal is seen. In the past without one."""
        return self._observed_at + self._observed.seconds

    def holds(self) -> bool:
        """Return whether this candidate leads now."""
        return self._clock() < self.holds_until

    def attempt(self, *, stands: bool = True) -> Exchange:
        """Take the Lease, or renew it. Unless this candidate `stands`, only look who holds it, and since when."""
        now = self._clock()
        date = micro_time(self._date())
        fresh = LeaseRecord(self.identity, self._duration, date, date)
        if stands and self._lease is not None and self._is_holder() and self._is_valid(now):
            # Update without a read: the Lease is most probably unchanged.
            response = yield Update(self._lease, self._renewal(fresh))
            if isinstance(response, Lease):
                return self._take(response, now)
        response = yield Get()
        if isinstance(response, Lease):
            self._see(response)
        # Also if somebody has deleted the Lease: its holder leads until it learns of that.
        is_anothers = self._observed.holder and not self._is_holder() and self._is_valid(now)
        if not stands or is_anothers:
            return False
        # The times are set before the request, because its response may get lost.
        if response is Failure.ABSENT:
            self.decided_until = self.taken_at = self._clock()
            response = yield Create(fresh)
        elif isinstance(response, Lease) and self._is_holder():  # nobody has led since, and it has its own decisions
            response = yield Update(response, self._renewal(fresh))
        elif isinstance(response, Lease):
            self.decided_until, self.taken_at = self._last_decision(), self._clock()
            taken = msgspec.structs.replace(fresh, transitions=self._observed.transitions + 1)
            response = yield Update(response, taken)
        return isinstance(response, Lease) and self._take(response, now)

    def release(self, *, landed: bool = True) -> Exchange:
        """Release the Lease, so that others need not wait. All work that needs the Lease must have ended.

        `landed`: no binding of a decision is under way.
        """
        self._renewed_at = -math.inf
        response = yield Get()
        if not isinstance(response, Lease):
            return False
        self._see(response)
        if not self._is_holder():
            return True
        date = micro_time(self._date())
        record = LeaseRecord("", _LANDED if landed else _UNDER_WAY, date, date, self._observed.transitions)
        response = yield Update(response, record)
        if isinstance(response, Lease):
            self._see(response)
        return isinstance(response, Lease)

    def _last_decision(self) -> float:
        """Return the value of `decided_until` for the leader that takes the observed Lease."""
        last = self._observed
        if not last.holder:
            return -math.inf if last.seconds == _LANDED else self._observed_at
        led = self._renew_deadline / _SAME_RATE if last.seconds == self._duration else last.seconds
        return self._observed_at + led

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
