"""A service answers for the release of the API server that it follows, from its first answer on."""

import asyncio
from typing import Any

import httpx
import pytest

from tests.app.feeds.following import scenario
from tests.app.verbs.binding.binding_setting import N1, Scheduler, scheduling
from tests.fake_apiserver import FakeApiServer
from tests.fake_apiserver.faults import refuse
from tests.fake_apiserver.single_objects import VERSION_PATH
from tests.fake_apiserver.statuses import failure, unavailable


async def kubernetes_of(scheduler: Scheduler) -> dict[str, Any]:
    transport = httpx.ASGITransport(scheduler.service.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://kindred") as client:
        reported: dict[str, Any] = (await client.get("/version")).json()["kubernetes"]
        return reported


@pytest.mark.parametrize(
    ("git_version", "release", "exact"),
    [
        ("v1.34.1", "1.34", True),
        ("v1.37.1", "1.37", True),
        ("v1.36.1+k3s1", "1.36", True),
        ("v1.33.5-eks-3025e55", "1.34", False),
        ("v1.38.0", "1.37", False),
    ],
)
@scenario()
async def test_the_release_of_the_server_is_answered_for(
    server: FakeApiServer, git_version: str, release: str, *, exact: bool
) -> None:
    server.behaviour.git_version = git_version
    async with scheduling(server, N1) as scheduler:
        reported = {"release": release, "source": "server", "exact": exact, "told": git_version, "ignored_gates": []}
        assert await kubernetes_of(scheduler) == reported
        assert str(scheduler.mirror.rules.release) == release
        labels = f'exact="{str(exact).lower()}",release="{release}",source="server"'
        assert await scheduler.metric(f"kindred_kubernetes_release_info{{{labels}}}") == 1


@scenario()
async def test_the_setting_wins_and_the_server_is_not_asked(server: FakeApiServer) -> None:
    server.behaviour.git_version = "v1.37.1"
    async with scheduling(server, N1, kubernetes="1.35") as scheduler:
        assert (await kubernetes_of(scheduler))["release"] == "1.35"
        assert server.requests.of(VERSION_PATH) == []


@scenario()
async def test_readiness_waits_for_a_server_that_is_only_late_with_its_version(server: FakeApiServer) -> None:
    server.behaviour.git_version = "v1.37.1"
    server.faults.add(refuse(unavailable()), VERSION_PATH, times=2)
    async with scheduling(server, N1, ready=False) as scheduler:
        problems = set()
        while not await scheduler.is_ready():
            await asyncio.sleep(0.01)
            problems |= {each.partition(" (")[0] for each in (await scheduler.readiness())["problems"]}
        assert "release of Kubernetes: not known yet" in problems
        assert (await kubernetes_of(scheduler))["release"] == "1.37"


@scenario()
async def test_readiness_does_not_wait_for_a_server_that_will_not_say(server: FakeApiServer) -> None:
    server.faults.add(refuse(failure(403, "Forbidden", "no")), VERSION_PATH, times=None)
    async with scheduling(server, N1) as scheduler:
        reported = await kubernetes_of(scheduler)
        assert (reported["source"], reported["exact"], reported["told"]) == ("default", False, "")
