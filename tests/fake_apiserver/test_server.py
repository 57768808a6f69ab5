"""The server's life: its port, its connections, and its end."""

import asyncio
import socket
from pathlib import Path

import httpx
import pytest

from tests.app.api_server.certificates import Certificates
from tests.fake_apiserver.asking import listed, names, pod, served, watching
from tests.fake_apiserver.faults import CloseOnAccept, Stall, Undecodable
from tests.fake_apiserver.resources import PODS
from tests.fake_apiserver.server import FakeApiServer
from tests.openssl import trusting


def refused(server: FakeApiServer) -> bool:
    """Return whether a connection is refused."""
    try:
        socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2]))).close()
    except ConnectionRefusedError:
        return True
    return False


@served()
async def test_refused_connections_come_again_on_the_same_port(
    server: FakeApiServer, client: httpx.AsyncClient
) -> None:
    url = server.url
    async with server.refusing_connections():
        assert refused(server)
        with pytest.raises(httpx.ConnectError):
            await client.get(PODS.path)
    assert server.url == url
    assert (await client.get(PODS.path)).status_code == 200
    await server.listen()  # does nothing now
    assert not refused(server)


@served()
async def test_refusing_leaves_connections_that_there_are(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    async with watching(client, resourceVersion="1") as watch, server.refusing_connections():
        server.create(PODS.path, pod("a"))
        assert await watch.told(1) == ["ADDED a"]


@served()
async def test_a_crash_resets_connections_and_keeps_the_cluster(
    server: FakeApiServer, client: httpx.AsyncClient
) -> None:
    server.create(PODS.path, pod("a"))
    async with watching(client, resourceVersion="1") as watch:
        await watch.lines(1)
        async with server.refusing_connections(drop=True):
            with pytest.raises(httpx.ReadError):
                await watch.rest()
    assert names(await listed(client)) == ["a"]


@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
@served()
async def test_connections_are_closed_as_soon_as_they_are_made(
    server: FakeApiServer,
    client: httpx.AsyncClient,
    reset: bool,  # noqa: FBT001 - one of two cases
) -> None:
    server.faults.add(CloseOnAccept(reset=reset), times=3)
    for _ in range(3):
        with pytest.raises((httpx.ReadError, httpx.RemoteProtocolError, httpx.WriteError)):
            await client.get(PODS.path)
    assert (await client.get(PODS.path)).status_code == 200
    assert (server.requests.connections, len(server.requests)) == (4, 1)


@served()
async def test_a_connection_serves_one_request_after_the_other(
    server: FakeApiServer, client: httpx.AsyncClient
) -> None:
    for _ in range(3):
        assert (await client.get(PODS.path)).status_code == 200
    assert server.requests.connections == 1
    await client.get(PODS.path, headers={"Connection": "close"})
    await client.get(PODS.path)
    assert server.requests.connections == 2


@served()
async def test_a_client_that_goes_away_while_it_waits_leaves_no_trace(
    server: FakeApiServer, client: httpx.AsyncClient
) -> None:
    server.faults.add(Stall(before_head=True))
    with pytest.raises(httpx.ReadTimeout):
        await client.get(PODS.path, timeout=0.05)
    await server.until(lambda: server.requests[0].ended)
    assert server.requests[0].status == 0


def test_leaving_it_ends_watches_and_stalls() -> None:
    async def scenario() -> None:
        async with FakeApiServer() as server, httpx.AsyncClient(base_url=server.url) as client:
            server.faults.add(Stall(before_head=True), PODS.path, "list")
            asked = asyncio.create_task(client.get(PODS.path, timeout=None))
            watch = asyncio.create_task(client.get(PODS.path, params={"watch": "true"}, timeout=None))
            await server.until_watching(PODS.path)
            await server.until(lambda: len(server.requests) == 2)
            await server.__aexit__(None, None, None)
            assert refused(server)
            for task in (asked, watch):
                with pytest.raises(httpx.TransportError):
                    await task

    asyncio.run(asyncio.wait_for(scenario(), 10))


def test_its_own_errors_are_raised_when_it_is_left() -> None:
    async def scenario() -> None:
        async with FakeApiServer() as server, httpx.AsyncClient(base_url=server.url) as client:
            server.faults.add(Undecodable(after=5))  # of a list that has no sixth item
            with pytest.raises(httpx.TransportError):
                await client.get(PODS.path)

    with pytest.raises(IndexError):
        asyncio.run(scenario())


def test_waiting_for_what_does_not_happen_ends() -> None:
    async def scenario() -> None:
        async with FakeApiServer() as server:
            with pytest.raises(TimeoutError):
                await server.until_watching(PODS.path, seconds=0.02)

    asyncio.run(scenario())


def test_it_speaks_tls(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    trust = trusting(certificates.crt("authority"))

    async def scenario() -> None:
        async with (
            FakeApiServer(tls=certificates.server_tls()) as server,
            httpx.AsyncClient(base_url=server.url, verify=trust) as client,
        ):
            assert server.url.startswith("https://127.0.0.1:")
            async with watching(client, resourceVersion="1") as watch:
                server.create(PODS.path, pod("a"))
                assert await watch.told(1) == ["ADDED a"]
                server.refuse_connections(drop=True)
                with pytest.raises(httpx.TransportError):
                    await watch.rest()

    asyncio.run(asyncio.wait_for(scenario(), 10))
