"""Keeps a replica in an election: attempts in time, the effects of winning and losing, and the end.

A replica that has won does not decide at once: its mirror may lack bindings of the leader before, whose events are
still on their way. So it lists the pods again first, by a read that shows all that was bound before the Lease was
taken. Also after a released Lease, and a new one: a missing holder says nothing about the watch.

A replica that has lost continues as a follower, where upstream's components end. Its state comes from the watch, and
its assumed pods count until the watch confirms them or they expire. A restart would improve nothing, and it can lead
again without a sync of everything. One that is not synced does not stand.
"""

import asyncio
import logging
import random
import socket
import time
import uuid
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Final

from app.api_server.client import ApiClient
from app.api_server.own_namespace import own_namespace
from app.leadership.election import Election, Exchange, LeaseResponse, Request
from app.leadership.lease_api import LeaseApi
from app.logs import one_line
from app.settings import Settings, SettingsError, variable_of

log = logging.getLogger(__name__)

JITTER: Final = 1.2
"""A candidate waits longer than the leader, by up to so many pauses (client-go leaderelection.go, JitterFactor)."""


class _Term:
    """The time from when the Lease was won until it is lost."""

    def __init__(self) -> None:
        self.caught_up = False
        self.task: asyncio.Task[None] | None = None


class Elector:
    """The leadership of this replica; see app.verbs.serving_state.Leadership."""

    def __init__(  # noqa: PLR0913  # what an election needs
        self,
        election: Election,
        api: LeaseApi,
        *,
        retry_period: float,
        stands: Callable[[], bool],
        catch_up: Callable[[], Awaitable[None]],
        clock: Callable[[], float],
        jitter: Callable[[], float],
    ) -> None:
        """Try to lead only while it `stands`. `catch_up` brings the mirror up to the state at its call.

        `clock` is the election's, `jitter` gives numbers in [0, 1).
        """
        self.changes = 0
        """How often another leader than before was seen."""
        self._election = election
        self._api = api
        self._retry_period = retry_period
        self._stands = stands
        self._catch_up = catch_up
        self._clock = clock
        self._jitter = jitter
        self._turn = asyncio.Lock()  # of the exchange under way
        self._known_leader = ""
        self._term: _Term | None = None  # from when the Lease was won until it is lost
        self._resigned = False

    @property
    def leader(self) -> str:
        """The present or last holder of the Lease; empty if none is known."""
        return self._election.leader

    def leads(self) -> bool:
        """Return whether this replica may decide now."""
        return self._term is not None and self._term.caught_up and self._election.holds()

    def seconds_left(self) -> float:
        """Return the seconds for which no other replica can lead; not more than 0 if one may already."""
        return self._election.others_may_acquire_at - self._clock()

    def problem(self) -> str:
        """Return why this replica may not decide, one line; empty if it may."""
        if self.leads():
            return ""
        leader = self._election.leader
        if self._election.holds():
            return "the pods are listed again, to see the bindings of the previous leader"
        trouble = f" ({self._api.trouble})" if self._api.trouble else ""
        if leader == self._election.identity:
            return f"the lease was not renewed in time{trouble}"
        return f"another replica leads: {pod_of(leader)}" if leader else f"no replica leads{trouble}"

    async def run(self) -> None:
        """Stand, lead, and stand again, until cancelled or resigned."""
        try:
            while not self._resigned:
                await self._attempt()
                jitter = 0.0 if self._election.holds() else JITTER * self._jitter()
                await asyncio.sleep(self._retry_period * (1 + jitter))
        finally:
            self._end_term()

    async def resign(self) -> None:
        """Give the Lease up; whatever needs it must have ended. Does nothing if another holds it."""
        self._resigned = True
        async with self._turn:
            if self._election.leader != self._election.identity:
                return
            self._end_term()
            if await self._exchange(self._election.release()):
                log.info("leader election: %s leads no more, the lease is given up", self._election.identity)

    async def _attempt(self) -> None:
        async with self._turn:
            holds = self._election.holds()
            if not holds:
                # Whatever was caught up with may be out of date; also where this is noticed late, after a long pause.
                self._end_term()
            if self._resigned or not (holds or self._stands()):
                return
            await self._exchange(self._election.attempt())
        leader = self._election.leader
        if leader not in {"", self._known_leader}:
            self.changes += 1
            self._known_leader = leader
            if leader != self._election.identity:
                log.info("leader election: %s leads", one_line(leader))
        if self._term is None and self._election.holds():
            self._term = _Term()
            self._term.task = asyncio.create_task(self._lead(self._term))

    async def _exchange(self, exchange: Exchange) -> bool:
        """Carry an exchange with the API server out."""
        answer: LeaseResponse | None = None
        while True:
            try:
                # A generator begins with None.
                request: Request = exchange.send(answer) if answer is not None else next(exchange)
            except StopIteration as end:
                reached: bool = end.value
                return reached
            answer = await self._api.answer(request)

    async def _lead(self, term: _Term) -> None:
        """Catch up, and notice the end of the term, which is by the clock, in `leads`."""
        identity = self._election.identity
        log.info("leader election: %s has the lease, and lists the pods again", identity)
        catching_up = asyncio.create_task(self._catch_up_in(term))
        try:
            while (left := self._election.holds_until - self._clock()) > 0:  # noqa: ASYNC110  # a time, not an event
                await asyncio.sleep(left)
            if self._term is term:
                self._term = None
            log.warning("leader election: %s leads no more: %s", identity, self.problem())
        finally:
            catching_up.cancel()

    async def _catch_up_in(self, term: _Term) -> None:
        began = self._clock()
        await self._catch_up()
        term.caught_up = True
        log.info("leader election: %s leads, after %.1f s", self._election.identity, self._clock() - began)

    def _end_term(self) -> None:
        if self._term is not None and self._term.task is not None:
            self._term.task.cancel()
        self._term = None


def pod_of(identity: str) -> str:
    """Return the name of the pod that an identity belongs to."""
    return one_line(identity.rpartition("_")[0] or identity)


def create_elector(
    settings: Settings, client: ApiClient, *, stands: Callable[[], bool], catch_up: Callable[[], Awaitable[None]]
) -> Elector:
    """Return this replica's part in the election that the settings want. Raises SettingsError."""
    namespace = own_namespace(settings)
    if not namespace:
        raise SettingsError(f"{variable_of('pod_namespace')}='': leader election needs the namespace of the lease")
    election = Election(
        # Not the pod's name alone: a restarted container must not hold the Lease of its predecessor.
        f"{settings.pod_name or socket.gethostname()}_{uuid.uuid4()}",
        duration=settings.lease_duration,
        renew_deadline=settings.lease_renew_deadline,
        clock=time.monotonic,
        date=lambda: datetime.now(UTC),
    )
    # Half of the deadline, as kube-scheduler has it (cmd/kube-scheduler/app/options), leaves time for a second request.
    api = LeaseApi(client, namespace, settings.lease_name, settings.lease_renew_deadline / 2)
    return Elector(
        election,
        api,
        retry_period=settings.lease_retry_period,
        stands=stands,
        catch_up=catch_up,
        clock=time.monotonic,
        jitter=random.random,
    )
