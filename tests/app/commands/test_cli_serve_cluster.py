"""`kindred serve` following an API server, as a process of its own: what it becomes, says and survives."""

import asyncio
import re
import signal
import socket
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from tests.app.api_server.client_setting import write_kubeconfig
from tests.app.questions import NEAR_WEB, ZONE, by_name
from tests.app.serving import ANY_PORT, PATIENCE, Service, connected, kindred, request_head
from tests.builders import make_node, make_pod
from tests.fake_apiserver import FakeApiServer
from tests.fake_apiserver.faults import Stall
from tests.fake_apiserver.resources import NODES, PODS

WANTS_WEB: Final = by_name(make_pod("p").required_affinity(NEAR_WEB), "a1", "b1")
# Which of the two ports listens first is open, so there may be a line behind this one.
DEBUGGING: Final = re.compile(r"Debugging at (\S+)\n")
AT_ONCE: Final = 2.0  # seconds; a grace period is many times that here


def kubeconfig(folder: Path, server: str) -> str:
    """Write a kubeconfig, and give its path."""
    return write_kubeconfig(folder / "kubeconfig", server)


def fill(server: FakeApiServer) -> None:
    """Make a cluster of two zones, with one web pod."""
    server.create(NODES.path, make_node("a1").label(ZONE, "a").obj())
    server.create(NODES.path, make_node("b1").label(ZONE, "b").obj())
    server.create(PODS.path, make_pod("w").label("app", "web").on("a1").obj())


async def until(condition: Callable[[], Awaitable[bool]]) -> float:
    """Wait for a condition, with patience, while the server of this process serves; return the seconds that it took."""
    began = time.monotonic()
    async with asyncio.timeout(PATIENCE):
        while not await condition():  # noqa: ASYNC110  # what happens in another process sets no event here
            await asyncio.sleep(0.02)
    return time.monotonic() - began


async def readiness(service: Service) -> tuple[int, dict[str, Any]]:
    async with httpx.AsyncClient() as client:
        response = await client.get(f"{service.url}/readyz")
    return response.status_code, response.json()


async def until_ready(service: Service) -> None:
    async def ready() -> bool:
        return (await readiness(service))[0] == 200

    await until(ready)


async def fitting(service: Service) -> list[str]:
    """Ask where a pod fits that wants to be near a web pod."""
    async with httpx.AsyncClient() as client:
        answer = (await client.post(f"{service.url}/filter", content=WANTS_WEB)).json()
    assert answer["Error"] == ""
    names: list[str] = answer["NodeNames"]
    return names


async def ended(service: Service) -> int:
    return await asyncio.to_thread(service.process.wait, PATIENCE)


def test_it_follows_the_cluster(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with FakeApiServer() as server:
            fill(server)
            with kindred(tmp_path, "serve", "--kubeconfig", kubeconfig(tmp_path, server.url), *ANY_PORT) as service:
                await until_ready(service)
                assert await fitting(service) == ["a1"]
                server.delete(PODS.path, "w", "default")
                server.create(PODS.path, make_pod("w").label("app", "web").on("b1").obj())

                async def has_moved() -> bool:
                    return await fitting(service) == ["b1"]

                await until(has_moved)
                _, state = await readiness(service)
                assert (state["nodes"], state["pods"]) == (2, 1)
                assert state["resources"].keys() == {"nodes", "pods", "namespaces"}
                assert f"Following {server.url} (kubeconfig {tmp_path}/kubeconfig, context here)\n" in service.stderr
                async with httpx.AsyncClient() as client:
                    assert (await client.get(f"{service.url}/debug/mirror")).status_code == 404
                    metrics = (await client.get(f"{service.url}/metrics")).text
                assert 'kindred_watch_known_objects{resource="pods"} 1.0' in metrics
                service.process.send_signal(signal.SIGTERM)
                assert await ended(service) == 0
                assert "Traceback" not in service.stderr

    asyncio.run(scenario())


def test_a_server_that_is_not_there_yet_is_tried_until_it_is(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with FakeApiServer() as server:
            fill(server)
            async with server.refusing_connections(drop=True):
                config = kubeconfig(tmp_path, server.url)
                with kindred(tmp_path, "serve", "--kubeconfig", config, *ANY_PORT) as service:

                    async def has_failed() -> bool:
                        return service.stderr.count("Connection refused") >= 3  # once for each resource

                    await until(has_failed)
                    code, state = await readiness(service)
                    problem = f"GET /api/v1/pods at {server.url}: Connection refused"
                    assert (code, state["ready"], state["pods"]) == (503, False, 0)
                    assert f"pods: not synced ({problem})" in state["problems"]
                    async with httpx.AsyncClient() as client:
                        answer = (await client.post(f"{service.url}/filter", content=WANTS_WEB)).json()
                    assert answer["Error"].startswith("the mirror is not synced: ")
                    assert answer["NodeNames"] is None
                    await server.listen()
                    await until_ready(service)
                    assert await fitting(service) == ["a1"]
                    assert "Traceback" not in service.stderr

    asyncio.run(scenario())


def test_sigterm_ends_it_while_the_server_keeps_it_waiting(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with FakeApiServer() as server:
            server.faults.add(Stall(), times=None)
            config = kubeconfig(tmp_path, server.url)
            with kindred(tmp_path, "serve", "--kubeconfig", config, *ANY_PORT) as service:
                await server.until(lambda: len(server.requests) >= 3)
                began = time.monotonic()
                service.process.send_signal(signal.SIGTERM)
                assert await ended(service) == 0
                assert time.monotonic() - began < 10 * AT_ONCE

    asyncio.run(scenario())


def test_the_admin_port_is_there_when_it_is_enabled(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with FakeApiServer() as server:
            fill(server)
            config = kubeconfig(tmp_path, server.url)
            environment = {"KINDRED_ADMIN": "127.0.0.1:0"}
            with kindred(tmp_path, "serve", "--kubeconfig", config, *ANY_PORT, environment=environment) as service:
                await until_ready(service)

                async def announced() -> bool:
                    return DEBUGGING.search(service.stdout) is not None

                await until(announced)
                url = DEBUGGING.findall(service.stdout)[0]
                async with httpx.AsyncClient() as client:
                    dump = (await client.get(url)).json()
                    diff = (await client.get(f"{url}/diff", params={"settle": 0})).json()
                    assert (await client.get(url.replace("/debug/mirror", "/metrics"))).status_code == 404
                assert [node["name"] for node in dump["nodes"]] == ["a1", "b1"]
                parts = {plural: (part["listed"], part["missed"]) for plural, part in diff.items()}
                assert [parts.pop(plural) for plural in ("nodes", "pods", "namespaces")] == [(2, []), (1, []), (0, [])]
                assert "persistentvolumeclaims" in parts  # which explanations alone read
                assert {*map(str, parts.values())} == {"(0, [])"}

    asyncio.run(scenario())


# How it ends.


BEGUN: Final = request_head(len(WANTS_WEB)) + WANTS_WEB[:10]


def finish(request: socket.socket) -> bytes:
    """Send the rest of a request, and give the answer."""
    request.sendall(WANTS_WEB[10:])
    answer = b""
    while chunk := request.recv(65536):
        answer += chunk
    return answer


def test_sigterm_lets_a_request_under_way_finish(tmp_path: Path) -> None:
    with (
        kindred(tmp_path, "serve", "--demo", *ANY_PORT) as service,
        connected(service, BEGUN) as request,
    ):
        service.process.send_signal(signal.SIGTERM)
        time.sleep(0.5)  # what must not happen meanwhile is the end
        assert service.process.poll() is None
        assert b"HTTP/1.1 200 OK" in finish(request)
        assert service.process.wait(PATIENCE) == 0


def test_a_request_that_never_ends_does_not_outlast_the_grace_period(tmp_path: Path) -> None:
    environment = {"KINDRED_GRACE_PERIOD": "3"}
    with (
        kindred(tmp_path, "serve", "--demo", *ANY_PORT, environment=environment) as service,
        connected(service, BEGUN),
    ):
        began = time.monotonic()
        service.process.send_signal(signal.SIGTERM)
        service.process.wait(PATIENCE)
        assert 1 <= time.monotonic() - began < 3 + AT_ONCE


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM], ids=["interrupted-twice", "told-then-interrupted"])
def test_an_interrupt_after_the_first_signal_ends_it_at_once(first: signal.Signals, tmp_path: Path) -> None:
    with kindred(tmp_path, "serve", "--demo", *ANY_PORT) as service, connected(service, BEGUN):
        service.process.send_signal(first)
        time.sleep(0.5)
        assert service.process.poll() is None
        began = time.monotonic()
        service.process.send_signal(signal.SIGINT)
        assert service.process.wait(PATIENCE) == 128 + signal.SIGINT
        assert time.monotonic() - began < AT_ONCE


def test_a_second_sigterm_still_drains(tmp_path: Path) -> None:
    with (
        kindred(tmp_path, "serve", "--demo", *ANY_PORT) as service,
        connected(service, BEGUN) as request,
    ):
        for _ in range(2):
            service.process.send_signal(signal.SIGTERM)
            time.sleep(0.2)
        assert b"HTTP/1.1 200 OK" in finish(request)
        assert service.process.wait(PATIENCE) == 0
