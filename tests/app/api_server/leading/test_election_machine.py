"""Random elections: late and lost answers, clocks that differ, pauses, restarts; never do two lead at once.

And who leads knows a time by which all others had made their last decision.
"""

import math
from collections.abc import Callable, Mapping
from typing import Final

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from app.api_server.election import Election, Exchange, Failure, LeaseResponse, Request
from tests.app.api_server.leading.lease_store import LeaseStore, Time, candidate
from tests.depth import tries

CANDIDATES: Final = 3
WHICH: Final = st.integers(0, CANDIDATES - 1)
SECONDS: Final = st.one_of(st.sampled_from([0.01, 2.0, 4.9, 9.9, 14.2, 15.0, 15.1]), st.floats(0.01, 40.0))


class Replica:
    """A candidate, and its exchange with the server as far as it has come."""

    def __init__(self, election: Election) -> None:
        self.election = election
        self.exchange: Exchange | None = None
        self.request: Request | None = None  # on its way
        self.response: LeaseResponse | None = None  # on its way

    def begin(self, begun: Callable[[], Exchange]) -> None:
        """Begin an exchange, unless one is under way."""
        if self.exchange is None:
            self.exchange = begun()
            self.request = next(self.exchange)

    def take(self, response: LeaseResponse) -> None:
        """Go on with an answer."""
        assert self.exchange is not None
        self.request = self.response = None
        try:
            self.request = self.exchange.send(response)
        except StopIteration:
            self.exchange = None


class Elections(RuleBasedStateMachine):
    """Three replicas, one Lease, and a network that loses and delays."""

    def __init__(self) -> None:
        super().__init__()
        self.time = Time()
        self.store = LeaseStore()
        self.strays: list[Request] = []  # given up by whoever sent them; the server may get them yet
        self.started = 0
        self.replicas: list[Replica] = []
        self.decided: dict[str, float] = {}  # identity -> time of the world of its last decision that has not landed
        self.led: dict[str, float] = {}  # the same for all decisions

    @initialize(
        clocks=st.lists(st.tuples(st.floats(0, 1e6), st.floats(0.98, 1.02)), min_size=CANDIDATES, max_size=CANDIDATES),
        renew_deadline=st.sampled_from([10.0, 14.9]),
    )
    def begin_all(self, clocks: list[tuple[float, float]], renew_deadline: float) -> None:
        self.clocks = [self.time.clock(*each) for each in clocks]
        self.renew_deadline = renew_deadline
        self.replicas = [self._started(which) for which in range(CANDIDATES)]

    def _started(self, which: int) -> Replica:
        self.started += 1
        name = f"{which}_{self.started}"
        return Replica(candidate(name, self.clocks[which], renew_deadline=self.renew_deadline))

    @rule(seconds=SECONDS)
    def time_passes(self, seconds: float) -> None:
        for which, replica in enumerate(self.replicas):
            left = (replica.election.holds_until - self.clocks[which]()) / self.clocks[which].rate
            if left > 0:  # it decides all the time
                self.decided[replica.election.identity] = self.time.now + min(left, seconds)
                self.led[replica.election.identity] = self.time.now + min(left, seconds)
        self.time.now += seconds

    @rule(which=WHICH)
    def attempts(self, which: int) -> None:
        replica = self.replicas[which]
        replica.begin(replica.election.attempt)

    @rule(which=WHICH)
    def attempts_and_all_goes_well(self, which: int) -> None:
        replica = self.replicas[which]
        replica.begin(replica.election.attempt)
        self._goes_well(which)

    def _goes_well(self, which: int) -> None:
        while self.replicas[which].exchange is not None:
            self.server_carries_out(which)
            self.response_comes(which)

    @rule(which=WHICH, seconds=SECONDS, landed=st.booleans(), following=WHICH)
    def leads_for_a_time_and_another_follows(self, which: int, seconds: float, following: int, *, landed: bool) -> None:
        self.attempts_and_all_goes_well(which)
        self.time_passes(seconds)
        self.releases(which, landed=landed)
        self._goes_well(which)
        self.attempts_and_all_goes_well(following)

    @rule(which=WHICH, on_the_way=SECONDS, back=SECONDS)
    def attempts_and_the_response_is_late_where_others_have_seen_it(
        self, which: int, on_the_way: float, back: float
    ) -> None:
        replica = self.replicas[which]
        replica.begin(replica.election.attempt)
        self.time_passes(on_the_way)
        self.server_carries_out(which)
        for other in range(CANDIDATES):
            if other != which:
                self.attempts_and_all_goes_well(other)
        self.time_passes(back)
        self.response_comes(which)

    @rule(which=WHICH, landed=st.booleans())
    def releases(self, which: int, *, landed: bool) -> None:
        replica = self.replicas[which]
        if landed and replica.exchange is None:
            if not replica.election.holds():
                return  # who does not lead does not know
            self.decided.clear()
        replica.begin(lambda: replica.election.release(landed=landed))

    @rule(which=WHICH)
    def server_carries_out(self, which: int) -> None:
        replica = self.replicas[which]
        if replica.request is not None:
            replica.response = self.store.carry_out(replica.request)
            replica.request = None

    @rule(which=WHICH)
    def response_comes(self, which: int) -> None:
        replica = self.replicas[which]
        if replica.response is not None:
            replica.take(replica.response)

    @rule(which=WHICH)
    def response_is_lost(self, which: int) -> None:
        replica = self.replicas[which]
        if replica.exchange is not None:
            if replica.request is not None:
                self.strays.append(replica.request)
            replica.take(Failure.FAILED)

    @rule()
    def stray_is_carried_out(self) -> None:
        if self.strays:
            self.store.carry_out(self.strays.pop(0))

    @rule(which=WHICH)
    def restarts(self, which: int) -> None:
        replica = self.replicas[which]
        if replica.request is not None:
            self.strays.append(replica.request)
        self.replicas[which] = self._started(which)

    @invariant()
    def at_most_one_leads_and_nobody_is_bound_by_another_then(self) -> None:
        for which, replica in enumerate(self.replicas):
            if replica.election.holds():
                assert self.clocks[which]() < replica.election.others_may_acquire_at
                others = [each for each in range(len(self.replicas)) if each != which]
                assert [each for each in others if self._may_still_post(each)] == []

    @invariant()
    def who_leads_knows_when_the_last_decision_of_another_was_made(self) -> None:
        for which, replica in enumerate(self.replicas):
            if replica.election.holds():
                assert self._last_of_others(which, self.decided) <= replica.election.decided_until + 1e-6
                assert self._last_of_others(which, self.led) <= replica.election.taken_at + 1e-6

    def _last_of_others(self, which: int, times: Mapping[str, float]) -> float:
        own = self.replicas[which].election.identity
        return self.clocks[which].at(max((at for name, at in times.items() if name != own), default=-math.inf))

    def _may_still_post(self, which: int) -> bool:
        return self.clocks[which]() < self.replicas[which].election.others_may_acquire_at


TestElections = Elections.TestCase
TestElections.settings = settings(max_examples=tries(default=80, full=300), stateful_step_count=60, deadline=None)
