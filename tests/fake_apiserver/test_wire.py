"""HTTP as it is on the wire, byte by byte."""

import asyncio

import httpx
import pytest

from tests.fake_apiserver.asking import listed, pod, served
from tests.fake_apiserver.resources import PODS
from tests.fake_apiserver.server import FakeApiServer

GET = b"GET /api/v1/pods?limit=1&x=%2Fa HTTP/1.1\r\nHost: x\r\nAccept-Encoding:identity\r\n\r\n"


async def connected(server: FakeApiServer) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", int(server.url.rpartition(":")[2]))


@served()
async def test_a_request_may_come_in_pieces(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    reader, writer = await connected(server)
    for position in range(len(GET)):
        writer.write(GET[position : position + 1])
        await asyncio.sleep(0)
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
    assert dict(server.requests[0].query) == {"limit": "1", "x": "/a"}
    assert server.requests[0].headers["accept-encoding"] == "identity"
    assert (await client.get(PODS.path)).status_code == 200
    writer.close()
    await writer.wait_closed()


@served()
async def test_requests_may_come_at_once(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    reader, writer = await connected(server)
    writer.write(b"POST /api/v1/pods HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello" + GET + GET)
    refused = await reader.readuntil(b"\r\n\r\n")
    assert refused.startswith(b"HTTP/1.1 405 Method Not Allowed\r\n")
    await reader.readexactly(int(refused.rpartition(b": ")[2]))
    for _ in range(2):
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 OK\r\n")
        assert (await reader.readuntil(b"\r\n0\r\n\r\n")).endswith(b"]}\n\r\n0\r\n\r\n")
    assert [request.status for request in server.requests] == [405, 200, 200]
    assert (await client.get(PODS.path)).status_code == 200
    writer.close()
    await writer.wait_closed()


@served()
async def test_a_client_that_closes_its_side_is_let_go(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    reader, writer = await connected(server)
    writer.write(b"GET /api/v1/pods?watch=1&resourceVersion=1 HTTP/1.1\r\n\r\n")
    await server.until_watching(PODS.path)
    writer.write_eof()
    await reader.read()
    await server.until(lambda: server.watching() == 0)
    assert (await client.get(PODS.path)).status_code == 200
    writer.close()
    await writer.wait_closed()


@pytest.mark.parametrize("text", [b"nonsense\r\n\r\n", b"GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n"])
@served()
async def test_what_is_no_request_is_a_bad_one(server: FakeApiServer, client: httpx.AsyncClient, text: bytes) -> None:
    reader, writer = await connected(server)
    writer.write(text)
    assert (await reader.read()).startswith(b"HTTP/1.1 400 Bad Request\r\n")
    writer.close()
    await writer.wait_closed()
    assert (await listed(client))["kind"] == "PodList"


@served(chunk_bytes=100)
async def test_each_chunk_can_be_read_before_the_next(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    server.create(PODS.path, pod("a" * 1000))
    async with client.stream("GET", PODS.path, params={"watch": "true", "timeoutSeconds": "1"}) as response:
        sizes = [len(chunk) async for chunk in response.aiter_raw()]
    assert sizes[:-1] == [100] * (len(sizes) - 1)
    assert sum(sizes) > 1000
