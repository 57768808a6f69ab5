"""Runs a replica's part in the election: timely attempts, the effects of winning and losing, and the release.

A replica that has won does not decide at once. Its mirror may lack bindings of the previous leader, whose events have
not arrived yet. So it first catches up with them (app/verbs/admission.py, Takeover). It does so after a released Lease
and with a new Lease, too, because a missing holder does not make the watch current.

A replica that has lost continues as a follower. Upstream's components exit. A follower's state comes from the watch,
and its assumed pods count until the watch confirms them or they expire. So a restart has no benefit, and the replica
can lead again without a full sync. A replica that is not synced is no candidate. But it looks at the Lease already, so
that the time in which the Lease must stay unchanged passes during the sync.
"""

import asyncio
import logging
import random
import time
import uuid
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Final

from app.api_server.client import ApiClient
from app.api_server.election import Election, Exchange, LeaseResponse, Request
from app.api_server.lease_api import LeaseApi
from app.api_server.login import VARIABLE, own_namespace, own_pod
from app.process.logs import one_line
from app.settings.limits import Limits
from app.settings.settings import Settings, SettingsError

log = logging.getLogger(__name__)

JITTER: Final = 0.2
"""Largest jitter of a candidate's wait, as a multiple of the pause. client-go has 1.2 (leaderelection.go,
JitterFactor), for many candidates. Here are two or three, and each second of waiting delays pods."""


class _Term:
    """The time from when the Lease was won until it is lost."""

    def __init__(self) -> None:
        self.caught_up = False
        self.task: asyncio.Task[None] | None = None


class Elector:
    """The leadership of this replica."""

    def __init__(  # noqa: PLR0913  # what an election needs
        self,
        election: Election,
        api: LeaseApi,
        *,
        retry_period: float,
        stands: Callable[[], bool],
        catch_up: Callable[[float, float], Awaitable[None]],
        clock: Callable[[], float],
        jitter: Callable[[], float],
    ) -> None:
        """Try to lead only while `stands` returns True.

        `catch_up` brings the mirror up to all decisions of earlier leaders. It gets the time of their last decision,
        and the time since which no other replica has led: `decided_until` and `taken_at` of Election.

        `clock` is the election's clock. `jitter` returns numbers in [0, 1).
        """
        self._election = election
        self._api = api
        self._retry_period = retry_period
        self._stands = stands
        self._catch_up = catch_up
        self._clock = clock
        self._jitter = jitter
        self._turn = asyncio.Lock()  # held during an exchange
        self._known_leader = ""
        self._term: _Term | None = None  # None while this replica does not hold the Lease
        self._resigned = False

    @property
    def leader(self) -> str:
        """The present or last holder of the Lease. Empty if none is known."""
        return self._election.leader

    def leads(self) -> bool:
        """Return whether this replica may decide now."""
        return self._term is not None and self._term.caught_up and self._election.holds()

    def seconds_left(self) -> float:
        """Return the seconds for which no other replica can lead. 0 or less if one may lead already."""
        return self._election.others_may_acquire_at - self._clock()

    def problem(self) -> str:
        """Return why this replica may not decide, in one line. Empty if it may."""
        if self.leads():
            return ""
        leader = self._election.leader
        if self._election.holds():
            return "it takes over, and waits for the bindings of the previous leader"
        trouble = f" ({self._api.trouble})" if self._api.trouble else ""
        if leader == self._election.identity:
            return f"the lease was not renewed in time{trouble}"
        return f"another replica leads: {pod_of(leader)}" if leader else f"no replica leads{trouble}"

    async def run(self) -> None:
        """Try to lead, lead, and try again, until cancelled or resigned."""
        try:
            while not self._resigned:
                await self._attempt()
                await asyncio.sleep(self._pause())
        finally:
            self._end_term()

    def _pause(self) -> float:
        """Return the seconds until the next attempt: at the latest when the Lease of another holder ends."""
        if self._election.holds():
            return self._retry_period
        pause = self._retry_period * (1 + JITTER * self._jitter())
        left = self._election.free_at - self._clock()
        return left if 0 < left < pause else pause

    async def resign(self, *, landed: bool = True) -> None:
        """Release the Lease. All work that needs it must have ended. No effect if another replica holds the Lease.

        `landed`: no binding of a decision is under way. Then the next leader need not wait for any.
        """
        self._resigned = True
        async with self._turn:
            if self._election.leader != self._election.identity:
                return
            # A replica that has not caught up does not know whether bindings of its predecessor are under way.
            landed = landed and self._term is not None and self._term.caught_up
            self._end_term()
            if await self._exchange(self._election.release(landed=landed)):
                log.info("leader election: %s no longer leads and releases the lease", self._election.identity)

    async def _attempt(self) -> None:
        async with self._turn:
            holds = self._election.holds()
            if not holds:
                # The mirror may lack later bindings. This also covers a loss that is noticed late, after a long pause.
                self._end_term()
            if self._resigned:
                return
            await self._exchange(self._election.attempt(stands=holds or self._stands()))
        leader = self._election.leader
        if leader not in {"", self._known_leader}:
            self._known_leader = leader
            if leader != self._election.identity:
                log.info("leader election: %s leads", one_line(leader))
        if self._term is None and self._election.holds():
            self._term = _Term()
            self._term.task = asyncio.create_task(self._lead(self._term))

    async def _exchange(self, exchange: Exchange) -> bool:
        response: LeaseResponse | None = None
        while True:
            try:
                # A generator starts with next(), because there is no response yet.
                request: Request = exchange.send(response) if response is not None else next(exchange)
            except StopIteration as end:
                reached: bool = end.value
                return reached
            response = await self._api.respond(request)

    async def _lead(self, term: _Term) -> None:
        """Catch up, wait for the end of the term, which only the clock shows, and log the start and the end."""
        identity = self._election.identity
        log.info("leader election: %s has the lease, and takes over", identity)
        catching_up = asyncio.create_task(self._catch_up_in(term))
        try:
            while (left := self._election.holds_until - self._clock()) > 0:  # noqa: ASYNC110  # a time, not an event
                await asyncio.sleep(left)
            if self._term is term:
                self._term = None
            log.warning("leader election: %s no longer leads: %s", identity, self.problem())
        finally:
            catching_up.cancel()

    async def _catch_up_in(self, term: _Term) -> None:
        began = self._clock()
        while not term.caught_up:
            try:
                await self._catch_up(self._election.decided_until, self._election.taken_at)
                term.caught_up = True
            except Exception:
                # A bug of Kindred must not leave a holder that renews the Lease and never leads.
                log.exception("leader election: internal error, taking over again")
                await asyncio.sleep(self._retry_period)
        log.info("leader election: %s leads, after %.1f s", self._election.identity, self._clock() - began)

    def _end_term(self) -> None:
        if self._term is not None and self._term.task is not None:
            self._term.task.cancel()
        self._term = None


def pod_of(identity: str) -> str:
    """Return the name of the pod that an identity belongs to."""
    return one_line(identity.rpartition("_")[0] or identity)


def create_elector(
    settings: Settings,
    client: ApiClient,
    limits: Limits,
    *,
    stands: Callable[[], bool],
    catch_up: Callable[[float, float], Awaitable[None]],
) -> Elector:
    """Return the elector that the settings define. Raises SettingsError."""
    namespace = own_namespace()
    if not namespace:
        raise SettingsError(f"{VARIABLE}='': leader election needs the namespace of the lease")
    election = Election(
        # Not the pod's name alone: a restarted container must not hold the Lease of its predecessor.
        f"{own_pod()}_{uuid.uuid4()}",
        duration=limits.lease_duration,
        renew_deadline=limits.lease_renew_deadline,
        clock=time.monotonic,
        date=lambda: datetime.now(UTC),
    )
    # As in kube-scheduler (cmd/kube-scheduler/app/options), half of the deadline leaves time for a second request.
    api = LeaseApi(client, namespace, settings.leader_election, limits.lease_renew_deadline / 2)
    return Elector(
        election,
        api,
        retry_period=limits.lease_retry_period,
        stands=stands,
        catch_up=catch_up,
        clock=time.monotonic,
        jitter=random.random,
    )
