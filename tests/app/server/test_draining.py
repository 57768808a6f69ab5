"""The end of a process while pods are being bound: each gets its answer, and is bound or is not, as the answer says."""

import asyncio
import signal
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from tests.app.commands.test_serve import kubeconfig, until_async, until_ready
from tests.app.serving import ANY_PORT, PATIENCE, Service, kindred
from tests.builders import make_node, make_pod
from tests.fake_apiserver import FakeApiServer, Stall
from tests.fake_apiserver.resources import NODES, PODS
from tests.fake_apiserver.single_objects import binding_path

BINDINGS: Final = 50
SLOW: Final = 1.5  # seconds that the API server takes for each


def binding(folder: Path, server: FakeApiServer, **environment: str) -> AbstractContextManager[Service]:
    """Run a service that binds."""
    arguments = ("serve", "--kubeconfig", kubeconfig(folder, server.url), *ANY_PORT, "--bind", "true")
    return kindred(folder, *arguments, environment=environment)


async def bind(client: httpx.AsyncClient, service: Service, pod: dict[str, Any]) -> httpx.Response:
    metadata = pod["metadata"]
    args = {"PodName": metadata["name"], "PodNamespace": metadata["namespace"], "PodUID": metadata["uid"]}
    return await client.post(f"{service.url}/bind", json={**args, "Node": "n1"})


async def until_closed(service: Service) -> None:
    """Wait until nobody can connect any more."""

    async def closed() -> bool:
        try:
            _, writer = await asyncio.open_connection(*service.address)
        except ConnectionRefusedError:
            return True
        except ConnectionResetError:  # it was in the backlog when the socket was closed: ask once more
            return False
        writer.close()
        return False

    await until_async(closed)


def nodes_of(server: FakeApiServer) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["spec"].get("nodeName", "") for pod in server.objects(PODS.path)}


@pytest.mark.parametrize("before_head", [True, False], ids=["carried-out-late", "answered-late"])
def test_bindings_under_way_are_finished_and_answered(tmp_path: Path, *, before_head: bool) -> None:
    async def scenario() -> None:
        async with FakeApiServer() as server, httpx.AsyncClient(timeout=PATIENCE) as client:
            server.create(NODES.path, make_node("n1").obj())
            pods = [server.create(PODS.path, make_pod(f"p{number}").obj()) for number in range(BINDINGS)]
            stall = Stall(before_head=before_head)
            server.faults.add(stall, None, "bind", times=None)
            with binding(tmp_path, server) as service:
                await until_ready(service)
                requested = [asyncio.create_task(bind(client, service, pod)) for pod in pods]
                await server.until(lambda: len(server.requests.of(None, "bind")) == BINDINGS, PATIENCE)
                service.process.send_signal(signal.SIGTERM)
                await until_closed(service)
                stall.release()
                responses = await asyncio.gather(*requested)
                assert await asyncio.to_thread(service.process.wait, PATIENCE) == 0
            assert [response.status_code for response in responses] == [200] * BINDINGS
            assert {response.headers["connection"] for response in responses} == {"close"}
            assert {response.json()["Error"] for response in responses} == {""}
            assert set(nodes_of(server).values()) == {"n1"}
            assert len(server.requests.of(None, "bind")) == BINDINGS, "none was tried twice"

    asyncio.run(scenario())


def test_a_binding_whose_caller_has_gone_is_finished(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with FakeApiServer() as server:
            server.create(NODES.path, make_node("n1").obj())
            pod = server.create(PODS.path, make_pod("p").obj())
            stall = Stall(SLOW, before_head=True)
            server.faults.add(stall, binding_path("p"), "bind")
            with binding(tmp_path, server) as service:
                await until_ready(service)
                async with httpx.AsyncClient(timeout=PATIENCE) as client:
                    requested = asyncio.create_task(bind(client, service, pod))
                    await server.until(lambda: len(server.requests.of(None, "bind")) == 1, PATIENCE)
                    requested.cancel()
                    await asyncio.gather(requested, return_exceptions=True)
                service.process.send_signal(signal.SIGTERM)
                assert await asyncio.to_thread(service.process.wait, PATIENCE) == 0
            assert nodes_of(server) == {"p": "n1"}

    asyncio.run(scenario())


def test_an_api_server_that_never_answers_does_not_keep_it_beyond_the_time_for_a_binding(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with FakeApiServer() as server, httpx.AsyncClient(timeout=PATIENCE) as client:
            server.create(NODES.path, make_node("n1").obj())
            pod = server.create(PODS.path, make_pod("p").obj())
            server.faults.add(Stall(before_head=True), binding_path("p"), "bind")
            with binding(tmp_path, server, KINDRED_HTTP_TIMEOUT="2.5") as service:
                await until_ready(service)
                requested = asyncio.create_task(bind(client, service, pod))
                await server.until(lambda: len(server.requests.of(None, "bind")) == 1, PATIENCE)
                began = time.monotonic()
                service.process.send_signal(signal.SIGTERM)
                assert "the API server did not respond within 1.5 s" in (await requested).json()["Error"]
                assert await asyncio.to_thread(service.process.wait, PATIENCE) == 0
                assert time.monotonic() - began < 10
            assert nodes_of(server) == {"p": ""}

    asyncio.run(scenario())


def test_health_is_told_until_the_end(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with FakeApiServer() as server, httpx.AsyncClient(timeout=PATIENCE) as client:
            server.create(NODES.path, make_node("n1").obj())
            pod = server.create(PODS.path, make_pod("p").obj())
            stall = Stall()
            server.faults.add(stall, binding_path("p"), "bind")
            with binding(tmp_path, server, KINDRED_HEALTH_PORT="0") as service:
                await until_ready(service)
                requested = asyncio.create_task(bind(client, service, pod))
                await server.until(lambda: len(server.requests.of(None, "bind")) == 1, PATIENCE)
                service.process.send_signal(signal.SIGTERM)
                await until_closed(service)
                health = service.stdout.partition("Health and metrics at ")[2].split()[0]
                assert (await client.get(health)).json()["problems"] == ["draining"]
                stall.release()
                assert (await requested).json()["Error"] == ""
                assert await asyncio.to_thread(service.process.wait, PATIENCE) == 0

    asyncio.run(scenario())
