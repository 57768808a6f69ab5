"""Makes the resources of one API server wait after failures, and retries them one by one. See `RetryPlan`."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from app.watch.freshness import ResourceState
from app.watch.retry_plan import Attempts, Next, RetryPlan, Wait
from app.watch.timing import Timing

log = logging.getLogger(__name__)

_MIN_TIMER: Final = 0.001  # seconds: the timer's clock may be ahead of the plan's clock by its resolution


class Retries:
    """The retries of all resources of one API server."""

    def __init__(self, timing: Timing) -> None:
        self.timing = timing
        self._plan = RetryPlan(timing.probe_every, timing.wake_gap, timing.random)
        self._interrupts: dict[Attempts, Callable[[], None]] = {}
        self._waiting: dict[Attempts, asyncio.Future[Next]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._unwell_since = 0.0

    def join(self, state: ResourceState, interrupt: Callable[[], None]) -> "ResourceRetries":
        """Return the retries of one resource. `interrupt` ends its present request, so that it is made again."""
        retries = ResourceRetries(self, self._plan, state)
        self._interrupts[retries.attempts] = interrupt
        return retries

    async def wait(self, attempts: Attempts, wait: Wait) -> Next:
        """Return when to try the resource again, with the reason."""
        self._plan.wait(attempts, wait)
        granted: asyncio.Future[Next] = asyncio.get_running_loop().create_future()
        self._waiting[attempts] = granted
        self.reschedule()
        try:
            return await granted
        finally:
            self._plan.leave(attempts)
            self._waiting.pop(attempts, None)

    def reschedule(self) -> None:
        """Compute again which resource is due, and when."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        now = self.timing.clock()
        while (due := self._plan.next()) is not None:
            if due.at > now:
                self._timer = asyncio.get_running_loop().call_later(max(due.at - now, _MIN_TIMER), self.reschedule)
                return
            self._plan.grant(due, now)
            granted = self._waiting.pop(due.attempts)
            if not granted.done():
                granted.set_result(due)

    def answered(self, attempts: Attempts) -> None:
        """Wake all resources that wait, and interrupt stuck requests."""
        for stuck in self._plan.answered(attempts, self.timing.clock()):
            self._interrupts[stuck]()
        self.reschedule()

    def report(self, *, was_unwell: bool) -> None:
        """Log the change if the server becomes unwell, or recovers."""
        if self._plan.is_unwell == was_unwell:
            return
        now = self.timing.clock()
        failing, of = self._plan.failing()
        if was_unwell:
            log.info("API server: %d of %d resources fail, after %.1f s", failing, of, now - self._unwell_since)
            return
        self._unwell_since = now
        every = self.timing.probe_every
        log.warning("API server: %d of %d resources fail; one of them is tried every %g s", failing, of, every)


class ResourceRetries:
    """The retries of one resource. Its failures and successes affect the retries of the others, too."""

    def __init__(self, retries: Retries, plan: RetryPlan, state: ResourceState) -> None:
        self._retries = retries
        self._plan = plan
        self._state = state
        self.attempts = plan.join()
        self._clock = retries.timing.clock

    @property
    def is_server_unwell(self) -> bool:
        """Return whether several resources fail, which means that the server is the cause."""
        return self._plan.is_unwell

    def begin(self) -> None:
        """Record that a request begins."""
        self._plan.begin(self.attempts, self._clock())

    def answered(self) -> None:
        """Record that the present request succeeded. Waiting resources are then tried."""
        self._retries.answered(self.attempts)

    def failed(self) -> None:
        """Record that a request failed with an error that the server may have caused."""
        was_unwell = self._plan.is_unwell
        self._plan.failed(self.attempts)
        self._retries.report(was_unwell=was_unwell)
        self._retries.reschedule()

    def followed(self) -> bool:
        """Record that the resource is followed. Return whether the server had caused its failures."""
        if not self.attempts.is_failing:
            return False
        was_unwell = self._plan.is_unwell
        of_server = self._plan.followed(self.attempts)
        self._retries.report(was_unwell=was_unwell)
        self._retries.reschedule()
        return of_server

    async def wait(self, wait: Wait) -> None:
        """Return when to try the resource again."""
        due = await self._retries.wait(self.attempts, wait)
        if due.cause is not None:
            self._state.retries[due.cause] += 1

    async def pass_on(self) -> None:
        """Return when a request that follows no failure may be made. Mostly that is at once."""
        now = self._clock()
        await self.wait(Wait(now, now))
