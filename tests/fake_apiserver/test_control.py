"""The verbs below /_control/."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from tests.fake_apiserver.asking import FILLS_SOCKETS, listed, names, pod, watching
from tests.fake_apiserver.bench_data import bench_store
from tests.fake_apiserver.churn import Churn
from tests.fake_apiserver.control import ANSWERS, Control
from tests.fake_apiserver.resources import NODES, PODS
from tests.fake_apiserver.server import FakeApiServer
from tests.fake_apiserver.stored import Object

Asked = Callable[..., Awaitable[Object]]


@asynccontextmanager
async def controlled(*, bench: bool = False) -> AsyncIterator[tuple[FakeApiServer, httpx.AsyncClient, Asked]]:
    """Run a server with its control; gives a function that posts to a verb, or gets it with nothing to post."""
    store = bench_store(10, 100, history=1000) if bench else None
    server = FakeApiServer(store=store)
    control = Control(server, Churn(server.store, 10, 100) if bench else None)
    server.control = control.handle
    async with asyncio.timeout(20), server, httpx.AsyncClient(base_url=server.url) as client:

        async def ask(verb: str, given: Any = None, status: int = 200) -> Object:  # noqa: ANN401 - JSON
            path = f"/_control/{verb}"
            response = await (client.get(path) if given is None else client.post(path, json=given))
            assert response.status_code == status
            answer: Object = response.json()
            return answer

        yield server, client, ask
        await control.close()


def test_churn_runs_for_its_time_and_then_it_is_quiet() -> None:
    async def scenario() -> None:
        async with controlled(bench=True) as (server, client, ask):
            version = server.store.version
            async with watching(client, resourceVersion=str(version)) as watch:
                await ask("churn", {"rate": 1000, "seconds": 0.5})
                assert (await ask("quiet?seconds=0", status=504))["quiet"] is False
                stats = await ask("quiet?seconds=10")
                assert stats["quiet"] is True
                made = stats["churn_events"]
                assert made == 500
                assert stats["version"] == version + made
                assert len(await watch.lines(made)) == made == stats["events_sent"]
            assert 0 < stats["cpu_seconds"] <= (await ask("stats"))["cpu_seconds"]

    asyncio.run(scenario())


def test_churn_is_stopped_and_started_again() -> None:
    async def scenario() -> None:
        async with controlled(bench=True) as (server, _, ask):
            await ask("churn", {"rate": 500})
            await asyncio.sleep(0.1)
            await ask("churn", {"rate": 0})
            assert (await ask("quiet"))["quiet"] is True
            stopped_at = server.store.version
            await asyncio.sleep(0.05)
            assert (await ask("stats"))["version"] == stopped_at
            await ask("churn", {"rate": 500, "seconds": 0.1})
            assert (await ask("quiet"))["version"] > stopped_at

    asyncio.run(scenario())


def test_it_is_not_quiet_while_a_client_does_not_read() -> None:
    async def scenario() -> None:
        async with controlled() as (server, client, ask):
            async with watching(client, resourceVersion="1"):
                await server.until_watching(PODS.path)
                assert (await ask("quiet?seconds=1"))["quiet"] is True
                server.create(PODS.path, {"metadata": {"name": "a", "annotations": {"long": "x" * FILLS_SOCKETS}}})
                assert (await ask("quiet?seconds=0.1", status=504))["quiet"] is False
            assert (await ask("quiet?seconds=1"))["quiet"] is True

    asyncio.run(scenario())


def test_objects_are_changed_and_compacted() -> None:
    async def scenario() -> None:
        async with controlled() as (_, client, ask):
            changes = [
                {"verb": "create", "path": PODS.path, "object": pod("a")},
                {"verb": "create", "path": NODES.path, "object": {"metadata": {"name": "n"}}},
                {"verb": "update", "path": PODS.path, "object": pod("a", "Failed")},
                {"verb": "delete", "path": NODES.path, "name": "n"},
            ]
            assert (await ask("objects", changes))["version"] == 5
            assert [item["status"]["phase"] for item in (await listed(client))["items"]] == ["Failed"]
            await ask("objects", [{"verb": "delete", "path": PODS.path, "name": "a", "namespace": "default"}])
            assert names(await listed(client)) == []
            await ask("compact", {"path": PODS.path})
            async with watching(client, resourceVersion="5") as watch:
                assert [event["type"] for event in await watch.events(1)] == ["ERROR"]

    asyncio.run(scenario())


def test_faults_are_switched_on_and_off() -> None:
    async def scenario() -> None:
        async with controlled() as (server, client, ask):
            server.create(PODS.path, pod("a"))
            await ask(
                "faults",
                [
                    {"action": "refuse", "fields": {"answer": "unavailable"}, "path": PODS.path, "kinds": ["list"]},
                    {"action": "SendLine", "fields": {"line": "oops"}, "kinds": ["watch"]},
                    {"action": "StreamError", "fields": {"status": "expired", "after": 1}, "times": None},
                ],
            )
            assert [(await client.get(path)).status_code for path in (NODES.path, PODS.path, PODS.path)] == [
                200,
                503,
                200,
            ]
            async with watching(client, resourceVersion="1") as watch:
                assert (await watch.lines(1)) == [b"oops"]
            async with watching(client, resourceVersion="1") as watch:
                assert [event["object"].get("code") for event in await watch.events(2)] == [None, 410]
            assert (await ask("stats"))["faults_pending"] == 1
            await ask("clear", {})
            assert (await ask("stats"))["faults_pending"] == 0

    asyncio.run(scenario())


@pytest.mark.parametrize("answer", ANSWERS)
def test_every_named_answer_is_an_error(answer: str) -> None:
    async def scenario() -> None:
        async with controlled() as (_, client, ask):
            await ask("faults", [{"action": "refuse", "fields": {"answer": answer}}])
            assert (await client.get(PODS.path)).status_code >= 400

    asyncio.run(scenario())


def test_running_watches_are_disturbed() -> None:
    async def scenario() -> None:
        async with controlled() as (server, client, ask), watching(client, resourceVersion="1") as watch:
            await server.until_watching(PODS.path)
            await ask("disturb", {"action": "End", "path": NODES.path})
            assert await watch.silent()
            await ask("disturb", {"action": "End"})
            assert await watch.rest() == b""

    asyncio.run(scenario())


def test_behaviour_is_changed() -> None:
    async def scenario() -> None:
        async with controlled() as (_, client, ask):
            await ask("behaviour", {"token": "x", "forbidden": [PODS.path]})
            assert (await client.get(PODS.path)).status_code == 401
            assert (await client.get(PODS.path, headers={"Authorization": "Bearer x"})).status_code == 403

    asyncio.run(scenario())


def test_connections_are_refused_for_a_time() -> None:
    async def scenario() -> None:
        async with controlled() as (server, client, ask):
            await ask("refuse", {"seconds": 0.2})
            await asyncio.sleep(0.1)
            with pytest.raises(httpx.ConnectError):
                async with httpx.AsyncClient() as another:
                    await another.get(server.url)
            await asyncio.sleep(0.2)
            async with httpx.AsyncClient(base_url=server.url) as another:
                assert (await another.get(PODS.path)).status_code == 200
            async with watching(client, resourceVersion="1") as watch:
                await server.until_watching(PODS.path)
                await ask("refuse", {"seconds": 0.01, "drop": True})
                with pytest.raises(httpx.TransportError):
                    await watch.rest()

    asyncio.run(scenario())


def test_requests_are_told_and_counted() -> None:
    async def scenario() -> None:
        async with controlled() as (_, client, ask):
            await listed(client, limit="3")
            (request,) = (await ask("requests"))["requests"]
            assert (request["path"], request["kind"], request["query"]) == (PODS.path, "list", {"limit": "3"})
            stats = await ask("stats")
            assert stats["requests"] == {"list": 1, "page": 0, "watch": 0, "watch-list": 0}
            assert stats["objects"][PODS.path] == 0

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("verb", "given"),
    [
        ("nonsense", None),
        ("nonsense", {}),
        ("churn", {"rate": 5}),
        ("churn", {}),
        ("faults", [{"action": "Nonsense"}]),
        ("faults", [{"action": "Cut", "fields": {"nonsense": 1}}]),
        ("objects", [{"verb": "replace"}]),
        ("objects", [{"verb": "delete", "path": PODS.path, "name": "a"}]),
        ("behaviour", {"nonsense": 1}),
    ],
)
def test_what_is_not_understood_is_told(verb: str, given: object) -> None:
    async def scenario() -> None:
        async with controlled() as (_, _, ask):
            assert (await ask(verb, given, status=400))["error"]

    asyncio.run(scenario())
