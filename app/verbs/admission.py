"""Admission of requests: one at a time, a bounded queue before it, and a deadline for requests that wait.

Between two responses the event loop runs its other tasks and reads its sockets. So a flood of requests delays neither
the watch nor `/livez`, and each arriving request is counted at once. If the queue is empty, a request is evaluated at
once. Shedding must be cheap, or the queue would not get shorter.
"""

import asyncio
import logging
import math
from collections import deque
from collections.abc import Awaitable, Callable
from enum import Enum
from typing import Final, NamedTuple

from app.api_server.elector import Elector
from app.feeds.freshness import OF_A_DUMP, Freshness, SyncStatus
from app.feeds.memory import UNLIMITED, MemoryWatch
from app.process.logs import one_line

log = logging.getLogger(__name__)

# A replica that starts or takes over lacks the decisions of its predecessor. Only pods carry them: a decision counts as
# a pod on a node, by its binding or nomination. All other objects are written by other programs, for which a watch
# may lag at any time: nodes, volumes, claims. (For claims and volumes, kube-scheduler's own plugins judge a node first.
# They have not lost their state.)
#
# 1. The replica writes a mark to its own pod, and waits until its watch of pods shows it. All bindings before the mark
#    are in the mirror then, because a watch of one resource is in the order of the writes.
# 2. kube-scheduler binds in the background and reports nothing to the extender. So the binding of a decision may still
#    be under way. Its pod is pending at the mark, without a scheduling gate, and does not terminate. Without such a
#    pod, nothing is under way. No earlier leader decided for a pod that is created after the mark.
# 3. Otherwise the replica waits until the last of these pods is bound or deleted, at most until some seconds after the
#    last decision of the predecessor, ten times the duration of a binding. After that time it writes a second mark.

_LOOKS_EVERY: Final = 0.1  # seconds
_READINESS_EVERY: Final = 1.0  # seconds


class Takeover:
    """Waits until the mirror has all decisions of earlier leaders, bound by then. No decision can be made before."""

    def __init__(
        self,
        seconds: float,
        *,
        undecided: Callable[[], set[str]],
        catch_up: Callable[[], Awaitable[None]],
        clock: Callable[[], float],
    ) -> None:
        """Take over. `catch_up` brings the mirror up to the time of its call.

        A binding has ended `seconds` after its decision. `undecided` returns the uids of the pods that can be bound.
        """
        self.complete = False
        """Whether the mirror has these decisions."""
        self.catch_up: Final = catch_up
        self._seconds = seconds
        self._undecided = undecided
        self._clock = clock
        self._started = clock()
        self._first: Callable[[float], None] = lambda _: None

    def before_first_decision(self, call: Callable[[float], None]) -> None:
        """Call `call` when the mirror has all decisions, before any new one, with the time up to which others led."""
        self._first = call

    def problem(self) -> str:
        """Return why no decision can be made yet, in one line. Empty if decisions can be made."""
        return "" if self.complete else "waiting for earlier decisions to settle"

    async def after_sync(self, synced: Callable[[], bool]) -> None:
        """Take over once the mirror is synced, for a service without leader election. Then wait for cancellation.

        The process before this one had ended when this one started. The wait is needed because background work that
        returns ends the process.
        """
        while not synced():  # noqa: ASYNC110 - the freshness of several reflectors is no event
            await asyncio.sleep(_LOOKS_EVERY)
        began = self._clock()
        await self._settle(self._started, self._started + self._seconds)  # the sync began later: it serves as the mark
        self._end(began, self._started)
        await asyncio.Event().wait()

    async def after(self, last_decision: float, since: float) -> None:
        """Take over from a leader that made its last decision at a time, by the clock, or earlier.

        `since`: no other replica has led from then on.
        """
        began = self._clock()
        await self.catch_up()
        await self._settle(began, last_decision + self._seconds)
        self._end(began, since)

    async def _settle(self, marked: float, landed: float) -> None:
        """Wait for bindings under way, which have ended at `landed`. The mirror has all changes up to `marked`."""
        if marked >= landed:
            return
        under_way = self._undecided()
        while under_way and (left := landed - self._clock()) > 0:
            await asyncio.sleep(min(_LOOKS_EVERY, left))
            under_way &= self._undecided()
        if under_way:
            await self.catch_up()

    def _end(self, began: float, since: float) -> None:
        log.info("earlier decisions have settled in %.1f s", self._clock() - began)
        self._first(since)
        self.complete = True


# Whether this process accepts requests: the state that shutdown, leader election, probes and verbs share.
#
# With leader election a replica that does not lead decides nothing. Every verb returns an `Error`, which
# kube-scheduler ignores for `prioritize`, and each response closes its connection. The reason is that kube-scheduler
# keeps connections alive, also to a pod that has left the Service, and would continue to call the previous leader.
# The `filter` of that replica would break no rule, because `bind` checks all rules again. But the replica lacks the
# pods that the leader assumed and the rejections that `preempt` needs. So many of its decisions would end as
# conflicts. The cost is one attempt for each pod in progress when the leader changes. A replica that does not lead
# does not bind pods that pass untouched either, because they take capacity.


class ServingState:
    """The state. It changes at the start and at the shutdown, and every request reads it."""

    def __init__(
        self,
        leadership: Elector | None = None,
        memory: MemoryWatch = UNLIMITED,
        settling: Takeover | None = None,
        *,
        freshness: Freshness = OF_A_DUMP,
        names: bool = True,
    ) -> None:
        """`leadership` is None without leader election. No request is evaluated while `settling` has a problem.

        `names`: whether a refusal may name resources and other replicas, and quote the API server.
        """
        self.freshness: Final = freshness
        self.names: Final = names
        self.leadership = leadership
        """None without leader election: then every replica decides."""
        self.draining = False
        """Whether the shutdown has begun. The process still serves requests, but is not ready."""
        self.memory = memory
        self._settling = settling

    def may_decide(self) -> bool:
        """Return whether this replica may decide now."""
        is_settled = self._settling is None or self._settling.complete
        return is_settled and (self.leadership is None or self.leadership.leads())

    def closes_connections(self) -> bool:
        """Return whether clients must move on to another replica after their next response."""
        return self.draining or not self.may_decide()

    def rejection(self) -> str:
        """Return why no request is evaluated, in one line. Empty if requests are evaluated."""
        problem = self.leadership.problem() if self.leadership is not None else ""
        if problem:
            return f"not leading: {problem}" if self.names else "not leading"
        return "" if self._settling is None or self._settling.complete else self._settling.problem()

    def rejection_of_decide(self) -> str:
        """Return why no decision is allowed now, in one line. Empty if decisions are allowed."""
        return self.rejection() or ("" if self.freshness.status() is SyncStatus.FRESH else "the mirror is stale")

    def problems(self) -> list[str]:
        """Return the reasons, other than the mirror, why this replica is not ready."""
        problem = self.leadership.problem() if self.leadership is not None else ""
        settling = self._settling.problem() if self._settling is not None else ""
        return [
            each for each in ("draining" if self.draining else "", problem, settling, self.memory.problem()) if each
        ]

    async def log_readiness(self) -> None:
        """Log each change of the readiness, until cancelled. The start is no change: the first line says ready."""
        was_ready = False
        while True:
            problems = [*self.problems(), *self.freshness.problems()]
            if was_ready == bool(problems):
                was_ready = not problems
                if was_ready:
                    log.info("ready")
                else:
                    more = f"; and {len(problems) - 1} more (kindred status)" if problems[1:] else ""
                    log.warning("not ready: %s%s", one_line(problems[0]), more)
            await asyncio.sleep(_READINESS_EVERY)

    def kinds_of_problems(self) -> list[str]:
        """Return the kinds of these problems, without the names and texts of other programs."""
        kinds = {
            "draining": self.draining,
            "not leading": self.leadership is not None and self.leadership.problem(),
            "waiting for earlier decisions": self._settling is not None and self._settling.problem(),
            "memory": self.memory.is_above(),
        }
        return [kind for kind, exists in kinds.items() if exists]

    def seconds_left(self) -> float:
        """Return the seconds for which no other replica can decide."""
        return self.leadership.seconds_left() if self.leadership is not None else math.inf


class Shed(Enum):
    """Why a request was shed. Also the values of the metric's label and of the header."""

    DEADLINE = "deadline"
    """The request waited so long that its client has given up, or is about to."""
    QUEUE_FULL = "queue_full"
    """Too many requests wait."""
    BYTES = "bytes"
    """Too many bytes of requests are held."""


class Turn(NamedTuple):
    """The end of the wait in the queue."""

    waited: float
    """Seconds in the queue."""
    shed: Shed | None = None


_AT_ONCE: Final = Turn(0.0)


class _Waiting(NamedTuple):
    turn: asyncio.Future[Turn | None]
    since: float
    began: float
    has_left: Callable[[], bool]


class Admission:
    """The queue before the verbs."""

    def __init__(self, *, deadline: float, queue_limit: int, max_bytes: int, clock: Callable[[], float]) -> None:
        """`deadline`: seconds from its beginning that a request may wait. `queue_limit`: requests that may wait.

        `max_bytes`: bytes that the bodies of all requests may take, complete or not.
        """
        self.clock: Final = clock
        self.in_flight = 0
        """Requests in progress, queued ones included."""
        self.buffered_bytes = 0
        """Bytes of the bodies of these requests."""
        self.shed: Final = {reason.value: 0 for reason in Shed}
        """Reason -> requests that were shed for it."""
        self._deadline = deadline
        self.queue_limit: Final = queue_limit
        self._max_bytes = max_bytes
        self._queue: deque[_Waiting] = deque()
        self._taken = False  # whether a request had its turn since the loop last read its sockets
        self._begun = 0  # requests that had their turn

    @property
    def waiting(self) -> int:
        """Requests in the queue."""
        return len(self._queue)

    def buffer(self, size: int) -> bool:
        """Count further bytes of a body. Return whether the sum is within the limit."""
        self.buffered_bytes += size
        return self.buffered_bytes <= self._max_bytes

    def release(self, size: int) -> None:
        """Subtract the bytes of a released body."""
        self.buffered_bytes -= size

    def enter(self, began: float) -> Turn | None:
        """Return the turn of a complete request that began at a time, by the clock. None if it must `wait`."""
        if self._taken or self._queue:
            return None if len(self._queue) < self.queue_limit else self.shed_now(Shed.QUEUE_FULL)
        if self.clock() - began > self._deadline:  # the body took long to arrive
            return self.shed_now(Shed.DEADLINE)
        self.takes(0)  # its bytes are counted
        return _AT_ONCE

    def takes(self, size: int) -> bool:
        """Return whether a whole request of `size` bytes has its turn at once. If not, nothing is counted."""
        if self._taken or self._queue or self.buffered_bytes + size > self._max_bytes:
            return False
        self._taken = True
        self._begun += 1
        asyncio.get_running_loop().call_soon(self._next)
        return True

    async def wait(self, began: float, has_left: Callable[[], bool]) -> Turn | None:
        """Wait for the turn of a request that could not `enter`. Return None if its client left.

        `has_left` returns whether the client has disconnected. It is called when the turn has come.
        """
        turn: asyncio.Future[Turn | None] = asyncio.get_running_loop().create_future()
        self._queue.append(_Waiting(turn, self.clock(), began, has_left))
        try:
            return await turn
        finally:  # not earlier: the next request has its turn after this one
            ended = turn.result() if turn.done() and not turn.cancelled() else None
            if ended is not None and ended.shed is None:
                asyncio.get_running_loop().call_soon(self._next)

    def shed_now(self, reason: Shed, waited: float = 0.0) -> Turn:
        """Count a shed request."""
        self.shed[reason.value] += 1
        return Turn(waited, reason)

    async def wait_until_idle(self, patience: float) -> None:
        """Return when no request waits or arrives, at the latest after `patience` seconds. Call it before long work.

        A request that arrives waits for the work up to the next `await`. A second call lets all waiting requests go
        first. So no request waits for two pieces of work, unless the queue is not empty for `patience` seconds.
        """
        until = self.clock() + patience
        seen: tuple[int, int, int] | None = None
        while seen != self._progress():  # a queue makes progress in each round of the loop
            seen = self._progress()
            if self.clock() >= until:
                break
            # The loop reads its sockets in one round, and calls the app or passes on a piece of a body in the next. The
            # app evaluates a request that had waited, or lets the connection read on, in the one after.
            for _ in range(4):
                await asyncio.sleep(0)

    def _progress(self) -> tuple[int, int, int]:
        return self._begun, self.in_flight, self.buffered_bytes

    def _next(self) -> None:
        self._taken = False
        while self._queue and not self._taken:
            turn, since, began, has_left = self._queue.popleft()
            now = self.clock()
            if turn.done():  # cancelled by the shutdown
                continue
            if has_left():
                turn.set_result(None)
            elif now - began > self._deadline:
                turn.set_result(self.shed_now(Shed.DEADLINE, now - since))
            else:
                self._taken = True
                self._begun += 1
                turn.set_result(Turn(now - since))
