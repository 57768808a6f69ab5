"""An elector at an API server: when it leads, what it says when it does not, and what it asks for."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Final

import pytest

from app.api_server.client import ApiClient
from app.api_server.credentials import Credentials
from app.api_server.election import Election, Get
from app.api_server.elector import Elector, create_elector, pod_of
from app.api_server.lease_api import LeaseApi
from app.api_server.tls import ClusterAccess
from app.settings.limits import DEFAULTS, Limits
from app.settings.settings import Settings, SettingsError
from tests.app.feeds.following import scenario
from tests.app.verbs.binding.binding_setting import until
from tests.fake_apiserver import FakeApiServer, Stall, refuse
from tests.fake_apiserver.resources import LEASES
from tests.fake_apiserver.single_objects import lease_path, leases_path
from tests.fake_apiserver.statuses import forbidden, unavailable

PATIENCE: Final = 60.0  # seconds
DURATION, DEADLINE, RETRY = 2.0, 1.5, 0.1
LEASE: Final = lease_path("kindred", "ours")
OFTEN: Final = Limits(lease_duration=DURATION, lease_renew_deadline=DEADLINE, lease_retry_period=RETRY)


class Replica:
    """An elector, with what it has to go by, set by the test."""

    def __init__(self, name: str, client: ApiClient) -> None:
        self.stands = True
        self.ahead = 0.0  # seconds by which the clock was put forward, as by a long pause
        self.may_catch_up = asyncio.Event()
        self.may_catch_up.set()
        self.caught_up = 0
        self.failures = 0  # of the next attempts to catch up
        election = self.election = Election(
            f"{name}_1",
            duration=DURATION,
            renew_deadline=DEADLINE,
            clock=self._clock,
            date=lambda: datetime.now(UTC),
        )
        self.elector = Elector(
            election,
            LeaseApi(client, "ours", "kindred", DEADLINE / 2),
            retry_period=RETRY,
            stands=lambda: self.stands,
            catch_up=self._catch_up,
            clock=self._clock,
            jitter=lambda: 0.0,
        )
        self.running: asyncio.Task[None] | None = None

    def retry_after(self, seconds: float) -> None:
        self.elector._retry_period = seconds  # noqa: SLF001 - only one of the test's replicas has it

    def start(self) -> None:
        self.running = asyncio.create_task(self.elector.run())

    def _clock(self) -> float:
        return time.monotonic() + self.ahead

    async def _catch_up(self, decided_until: float, taken_at: float) -> None:
        assert (decided_until, taken_at) == (self.election.decided_until, self.election.taken_at)
        self.caught_up += 1
        await self.may_catch_up.wait()
        if self.failures:
            self.failures -= 1
            raise LookupError("a bug")


@asynccontextmanager
async def replicas(server: FakeApiServer, *names: str) -> AsyncIterator[list[Replica]]:
    """Make replicas, which run from when a test starts them."""
    client = ApiClient(Credentials(ClusterAccess(source="test", server=server.url, tls=None), None))
    made = [Replica(name, client) for name in names]
    try:
        yield made
    finally:
        running = [each.running for each in made if each.running is not None]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await client.close()


@scenario()
async def test_the_winner_leads_once_it_has_caught_up_and_the_other_says_who_leads(server: FakeApiServer) -> None:
    async with replicas(server, "a", "b") as (a, b):
        assert a.elector.problem() == "no replica leads"
        a.may_catch_up.clear()
        a.start()
        await until(lambda: a.caught_up == 1)
        assert not a.elector.leads()
        assert a.elector.problem() == "it takes over, and waits for the bindings of the previous leader"
        a.may_catch_up.set()
        await until(a.elector.leads)
        assert (a.elector.problem(), a.elector.leader) == ("", "a_1")
        assert 0 < a.elector.seconds_left() <= DURATION
        b.start()
        await until(lambda: b.elector.problem() == "another replica leads: a")
        assert (a.elector.leads(), a.caught_up) == (True, 1)
        assert (b.elector.leads(), b.caught_up) == (False, 0)
        await b.elector.resign()
        assert a.elector.leads(), "only the holder gives the lease up"


@scenario()
async def test_a_winner_that_fails_to_catch_up_tries_again(
    server: FakeApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with replicas(server, "a") as (a,):
        a.failures = 2
        a.start()
        await until(a.elector.leads)
        assert a.caught_up == 3
    assert caplog.messages.count("leader election: internal error, taking over again") == 2


@scenario()
async def test_a_lease_that_is_given_up_goes_to_the_next_who_catches_up_with_it(server: FakeApiServer) -> None:
    async with replicas(server, "a", "b") as (a, b):
        a.start()
        await until(a.elector.leads)
        b.start()
        await until(lambda: b.elector.leader == "a_1")
        began = time.monotonic()
        await a.elector.resign()
        assert not a.elector.leads()
        await until(b.elector.leads)
        assert time.monotonic() - began < DURATION, "nobody waited for the lease to run out"
        assert b.caught_up == 1
        spec = server.objects(LEASES.path)[0]["spec"]
        assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("b_1", 1)
        assert a.running is not None
        await asyncio.wait_for(a.running, PATIENCE)


@scenario()
async def test_the_lease_of_a_dead_leader_is_taken_as_soon_as_it_ends(server: FakeApiServer) -> None:
    async with replicas(server, "a", "b") as (a, b):
        a.start()
        await until(a.elector.leads)
        assert a.running is not None
        a.running.cancel()
        b.retry_after(10 * DURATION)
        b.start()
        await until(lambda: b.elector.leader == "a_1")
        ends = b.election.free_at
        await until(b.elector.leads)
        assert 0 <= b.election.holds_until - DEADLINE - ends < DURATION, "between two attempts"
        assert b.election.decided_until < ends


@pytest.mark.parametrize(("ready", "landed", "seconds"), [(True, True, 2), (True, False, 1), (False, True, 1)])
@scenario()
async def test_the_next_leader_need_not_wait_if_all_bindings_have_landed_as_far_as_the_leader_knows(
    server: FakeApiServer, *, ready: bool, landed: bool, seconds: int
) -> None:
    async with replicas(server, "a") as (a,):
        if not ready:
            a.may_catch_up.clear()
        a.start()
        await until(a.elector.leads if ready else lambda: a.caught_up == 1)
        await a.elector.resign(landed=landed)
        spec = server.objects(LEASES.path)[0]["spec"]
        assert (spec["holderIdentity"], spec["leaseDurationSeconds"]) == ("", seconds)


@scenario()
async def test_without_an_api_server_the_leader_stops_before_the_lease_runs_out_and_catches_up_when_it_is_back(
    server: FakeApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with replicas(server, "a") as (a,):
        a.start()
        await until(a.elector.leads)
        async with server.refusing_connections(drop=True):
            rejected = time.monotonic()
            await until(lambda: not a.elector.leads())
            assert a.election.holds_until < rejected + DEADLINE
            assert a.election.holds_until < a.election.others_may_acquire_at, "others wait longer"
            assert a.elector.problem().startswith("the lease was not renewed in time (GET ")
            await until(lambda: "no longer leads: the lease was not renewed in time" in caplog.text)
        await until(a.elector.leads)
        assert a.caught_up == 2
    # Once for the renewal, once for reading, and once more in the line of the loss.
    assert caplog.text.count("Connection refused") == 3


@scenario()
async def test_an_api_server_that_does_not_answer_is_asked_twice_before_the_leadership_is_lost(
    server: FakeApiServer,
) -> None:
    async with replicas(server, "a") as (a,):
        a.start()
        await until(a.elector.leads)
        server.faults.add(Stall(before_head=True), LEASE, times=1)
        await until(lambda: not server.faults.pending)
        await asyncio.sleep(DEADLINE)
        assert (a.elector.leads(), a.caught_up) == (True, 1)


@scenario()
async def test_who_was_away_for_longer_than_its_lease_does_not_lead_when_it_goes_on(server: FakeApiServer) -> None:
    async with replicas(server, "a") as (a,):
        a.start()
        await until(a.elector.leads)
        a.may_catch_up.clear()
        a.ahead = 10.0
        assert not a.elector.leads()
        await until(lambda: a.caught_up == 2)
        assert not a.elector.leads()
        a.may_catch_up.set()
        await until(a.elector.leads)


@scenario()
async def test_a_replica_whose_mirror_is_not_complete_does_not_stand(server: FakeApiServer) -> None:
    async with replicas(server, "a") as (a,):
        a.stands = False
        a.start()
        await until(lambda: len(server.requests) == 3)
        assert {request.kind for request in server.requests} == {"get"}, "it only looks"
        a.stands = True
        await until(a.elector.leads)
        a.stands = False
        renewals = len(server.requests.of(LEASE, "update"))
        await until(lambda: len(server.requests.of(LEASE, "update")) > renewals + 2)
        assert a.elector.leads(), "what it has it keeps"


def test_a_missing_permission_is_told_with_its_rule(caplog: pytest.LogCaptureFixture) -> None:
    rules = (
        'apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: ["create"]; '
        'apiGroups: ["coordination.k8s.io"], resources: ["leases"], resourceNames: ["kindred"], '
        'verbs: ["get", "update"]'
    )

    async def scenario() -> None:
        async with FakeApiServer() as server, replicas(server, "a") as (a,):
            fault = server.faults.add(refuse(forbidden("eve", "create", LEASES)), leases_path("ours"), times=None)
            a.start()
            await until(lambda: fault.applied >= 3)
            assert a.elector.problem().startswith("no replica leads (POST ")
            assert a.elector.problem().endswith(f"; the RBAC rules that are needed: {rules})")
            server.faults.remove(fault)
            await until(a.elector.leads)

    asyncio.run(scenario())
    assert caplog.text.count(rules) == 1


@scenario()
async def test_an_error_of_the_server_is_tried_again_within_the_deadline(server: FakeApiServer) -> None:
    async with replicas(server, "a") as (a,):
        a.start()
        await until(a.elector.leads)
        fault = server.faults.add(refuse(unavailable()), LEASE, times=4)
        await until(lambda: fault.applied == 4)
        await until(lambda: a.elector.seconds_left() > DURATION - 0.5)
        assert (a.elector.leads(), a.caught_up) == (True, 1)


@scenario()
async def test_errors_that_all_differ_take_no_memory(server: FakeApiServer) -> None:
    async with replicas(server, "a") as (a,):
        api = a.elector._api  # noqa: SLF001  # it has no reader
        for number in range(1000):
            server.faults.add(refuse(unavailable(f"request {number}")), LEASE)
            await api.respond(Get())
        assert api.trouble.endswith("request 999")
        assert len(api._logged) <= 100  # noqa: SLF001


async def nothing(*_: float) -> None:
    """Catch up with nothing."""


@scenario()
async def test_leader_election_needs_a_namespace(server: FakeApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    client = ApiClient(Credentials(ClusterAccess(source="test", server=server.url, tls=None), None))
    with pytest.raises(SettingsError, match="POD_NAMESPACE=''"):
        create_elector(Settings(), client, DEFAULTS, stands=lambda: True, catch_up=nothing)
    monkeypatch.setenv("POD_NAMESPACE", "ours")
    monkeypatch.setenv("POD_NAME", "kindred-0")
    settings = Settings(leader_election="kindred")
    made = [create_elector(settings, client, OFTEN, stands=lambda: True, catch_up=nothing) for _ in range(2)]
    running = [asyncio.create_task(each.run()) for each in made]
    await until(lambda: made[0].leader == made[1].leader != "")
    assert made[0].leader.startswith("kindred-0_")
    assert made[0].leads() != made[1].leads(), "two containers of a pod are two candidates"
    for each in running:
        each.cancel()
    await client.close()


@pytest.mark.parametrize(
    ("identity", "name"),
    [
        pytest.param("kindred-7f9_0a1b-2c", "kindred-7f9", id="pod-and-uuid"),
        pytest.param("by-hand", "by-hand", id="no-uuid"),
        pytest.param("", "", id="nobody"),
    ],
)
def test_the_pod_of_an_identity(identity: str, name: str) -> None:
    assert pod_of(identity) == name
