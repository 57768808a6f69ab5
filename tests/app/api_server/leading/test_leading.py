"""Two replicas of which one leads: what the other answers, and what it knows when it takes over."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest

from app.settings.limits import Limits
from tests.app.commands.test_serve import until_async
from tests.app.feeds.following import scenario
from tests.app.verbs.binding.binding_setting import N1, PATIENCE, WEB, Scheduler, loner, scheduling, until
from tests.builders import make_pod
from tests.fake_apiserver import FakeApiServer, Stall
from tests.fake_apiserver.resources import PODS
from tests.fake_apiserver.single_objects import binding_path, lease_path, status_path

DURATION: Final = 3.0  # seconds
LEASE: Final = lease_path("kindred", "ours")
ELECTED: Final[dict[str, Any]] = {
    "leader_election": "kindred",
    "limits": Limits(lease_duration=DURATION, lease_renew_deadline=2.0, lease_retry_period=0.1),
}


@asynccontextmanager
async def two_replicas(
    server: FakeApiServer, other: FakeApiServer | None = None
) -> AsyncIterator[tuple[Scheduler, Scheduler]]:
    """Serve twice; the first leads, and the second, which may follow another server of the cluster, knows it."""
    async with (
        scheduling(server, N1, **ELECTED, pod="ours/first") as first,
        scheduling(other or server, **ELECTED, pod="ours/second", ready=False) as second,
    ):
        await until_async(lambda: problems_are(second, ["another replica leads: first"]))
        yield first, second


async def problems_are(replica: Scheduler, problems: list[str]) -> bool:
    return bool((await replica.readiness())["problems"] == problems)


@scenario()
async def test_one_replica_is_ready_and_the_other_decides_nothing_and_sends_its_clients_away(
    server: FakeApiServer,
) -> None:
    async with two_replicas(server) as (first, second):
        pod = first.create(WEB)
        assert (await first.readiness())["leader"].startswith("first_")
        response = await second.ask("filter", pod, "n1")
        assert response.json()["Error"] == "not leading: another replica leads: first"
        assert response.headers["connection"] == "close"
        assert (await second.ask("prioritize", pod, "n1")).json() == {
            "Error": "not leading: another replica leads: first"
        }
        assert await second.bind(pod, "n1") == "not leading: another replica leads: first"
        assert server.requests.of(None, "bind") == []
        response = await first.ask("filter", pod, "n1")
        assert (response.json()["NodeNames"], response.headers.get("connection")) == (["n1"], None)
        assert await first.bind(pod, "n1") == ""
        assert [await each.metric("kindred_leader") for each in (first, second)] == [1.0, 0.0]


@scenario()
async def test_without_leader_election_there_is_no_word_of_it(server: FakeApiServer) -> None:
    async with scheduling(server, N1) as scheduler:
        with pytest.raises(KeyError, match="kindred_leader"):
            await scheduler.metric("kindred_leader")
        assert (await scheduler.readiness())["leader"] is None
        assert server.requests.of(LEASE) == []


def start_pods(server: FakeApiServer) -> None:
    """Make the replicas' own pods."""
    for name in ("first", "second"):
        server.create(PODS.path, make_pod(name).in_namespace("ours").on("n9").obj())


@pytest.mark.parametrize("marks", [True, False])
@scenario()
async def test_a_new_leader_knows_what_the_one_before_has_bound_though_its_watch_does_not(
    server: FakeApiServer, *, marks: bool
) -> None:
    if marks:
        start_pods(server)
    async with two_replicas(server) as (first, second):
        stall = Stall()
        assert server.disturb(stall, PODS.path) == 2
        bound, next_one = first.create(loner("a")), first.create(loner("b"))
        mark = status_path("second", "ours")
        assert await first.decide(bound, "n1") == ""
        await first.service.finish()
        assert await first.bind(next_one, "n1") == "not leading: no replica leads"
        if marks:
            await server.until(lambda: bool(server.requests.of(mark, "patch")))
            assert not await second.is_ready()
            stall.release()
        await until_async(second.is_ready)
        assert len(server.requests.of(PODS.path, "watch-list")) == (2 if marks else 4)
        assert second.is_added(bound, "n1")
        assert "does not fit on n1" in await second.bind(next_one, "n1")
        assert (first.node_of(bound), first.node_of(next_one)) == ("n1", "")


DECIDES: Final[dict[str, Any]] = {
    "decide": "listed-nodes",
    "bind": False,
    "leader_election": "kindred",
    "limits": Limits(lease_duration=DURATION, lease_renew_deadline=2.0, lease_retry_period=0.1, settle=5.0),
}


@pytest.mark.parametrize("lands", [True, False])
@scenario()
async def test_the_next_leader_waits_for_bindings_if_some_are_under_way_at_the_end_of_the_one_before(
    server: FakeApiServer, *, lands: bool
) -> None:
    start_pods(server)
    async with (
        scheduling(server, N1, **DECIDES, pod="ours/first") as first,
        scheduling(server, **DECIDES, pod="ours/second", ready=False) as second,
    ):
        await until_async(lambda: problems_are(second, ["another replica leads: first"]))
        pods = [first.create(loner(name)) for name in ("a", "b")]
        assert await first.filter(pods[0], "n1") == ["n1"]
        finishing = asyncio.create_task(first.service.finish())
        if lands:
            await asyncio.sleep(0.3)  # what must not happen meanwhile is the release
            assert first.service.state.may_decide()
            server.update(PODS.path, {**pods[0], "spec": {**pods[0]["spec"], "nodeName": "n1"}})
        await finishing
        ended = time.monotonic()
        await until_async(second.is_ready)
        assert (time.monotonic() - ended < 3.0) is lands, "5 s after the release"
        second_response = await second.ask("filter", pods[1], "n1")
        # The wait is over. A pod that was not bound in that time takes no capacity.
        assert bool(second_response.json()["NodeNames"]) is not lands


@scenario()
async def test_only_pods_that_can_be_bound_are_waited_for(server: FakeApiServer) -> None:
    server.create(PODS.path, make_pod("gated").gated("example.com/quota").obj())
    server.create(PODS.path, make_pod("goes").terminating().obj())
    alone = {**DECIDES, "leader_election": "off", "limits": Limits(settle=PATIENCE)}
    async with scheduling(server, N1, **alone) as scheduler:
        assert len(scheduler.mirror.pending) == 2
    server.create(PODS.path, make_pod("pending").obj())
    async with scheduling(server, **alone, ready=False) as scheduler:
        await until(lambda: len(scheduler.mirror.pending) == 3)
        await asyncio.sleep(0.5)
        assert (await scheduler.readiness())["problems"] == ["waiting for earlier decisions to settle"]


@scenario()
async def test_a_leader_that_cannot_renew_stops_deciding_before_another_leads(server: FakeApiServer) -> None:
    async with (
        FakeApiServer(store=server.store) as other,
        two_replicas(server, other) as (first, second),
    ):
        pod = first.create(WEB)
        async with server.refusing_connections(drop=True):
            decided: list[tuple[bool, bool]] = []

            async def second_leads() -> bool:
                states = [each.service.state for each in (first, second)]
                decided.append((states[0].may_decide(), states[1].may_decide()))
                return await second.is_ready()

            await until_async(second_leads)
            assert decided[0] == (True, False)
            assert (False, False) in decided
            assert (True, True) not in decided
            error = await first.bind(pod, "n1")
            assert error.startswith("not leading: the lease was not renewed in time (")
            assert await second.bind(pod, "n1") == ""
        await until_async(lambda: problems_are(first, ["another replica leads: second"]))


@scenario()
async def test_a_binding_that_the_server_keeps_waiting_does_not_outlast_the_lease(server: FakeApiServer) -> None:
    async with (
        scheduling(server, N1, **ELECTED, pod="ours/kindred", http_timeout=75.0) as scheduler,
    ):
        pod = scheduler.create(WEB)
        assert await scheduler.filter(pod, "n1") == ["n1"]
        stall = Stall(before_head=True)
        server.faults.add(stall, binding_path("web"), "bind")
        server.faults.add(Stall(before_head=True), LEASE, times=None)
        began = time.monotonic()
        error = await scheduler.bind(pod, "n1")
        assert "the API server did not respond within" in error
        assert time.monotonic() - began < DURATION + 1.0
        assert not await scheduler.is_ready()


@scenario()
async def test_the_lease_is_not_given_up_while_a_binding_is_under_way(server: FakeApiServer) -> None:
    async with two_replicas(server) as (first, second):
        pod = first.create(WEB)
        assert await first.filter(pod, "n1") == ["n1"]
        stall = Stall(before_head=True)
        server.faults.add(stall, binding_path("web"), "bind")
        binding = asyncio.create_task(first.bind(pod, "n1"))
        await server.until(lambda: not server.faults.pending)
        finishing = asyncio.create_task(first.service.finish())
        await asyncio.sleep(0.3)  # what must not happen meanwhile is the release
        assert (finishing.done(), first.service.state.may_decide()) == (False, True)
        stall.release()
        await finishing
        assert await binding == ""
        await until_async(second.is_ready)
