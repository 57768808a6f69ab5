"""The ports' protocol answers as uvicorn's own: the same app, served by both, and compared byte for byte."""

import asyncio
import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import pytest
import uvicorn
from fastapi import FastAPI, Response
from starlette.responses import StreamingResponse

from app.server.ports import extender_port
from app.settings.settings import Settings
from app.wiring.main import create_service
from tests.app.questions import NEAR_WEB, by_name, shop
from tests.app.server.conversations import PATIENCE, connected, request, serving
from tests.builders import make_pod

QUESTION: Final = by_name(make_pod("p").required_affinity(NEAR_WEB), "a1", "c1")
DATE: Final = re.compile(rb"date: [^\r]+\r\n")
LAST: Final = "Connection: close"
REQUESTS: Final = {
    "filter": request("/filter", QUESTION, LAST),
    "prioritize": request("/prioritize", QUESTION, LAST),
    "bind": request("/bind", b"{}", LAST),
    "preempt": request("/preempt", b"{}", LAST),
    "bad-body": request("/filter", b"{", LAST),
    "afresh": request("/filter", QUESTION, "Kindred-Cache: off", LAST),
    "two": request("/filter", QUESTION) + request("/filter", b"", LAST),
    "one-after-the-other": b"".join(
        (
            request("/filter", QUESTION),
            request("/prioritize", QUESTION),
            request("/bind", b"{}"),
            request("/filter", b"{"),
            request("/preempt", b"{}"),
            request("/filter", QUESTION, "Kindred-Cache: off"),
            request("/filter", QUESTION, LAST),
        )
    ),
    "probe": request("/livez", b"", LAST, method="GET"),
    "escaped-path": request("/live%7A", b"", LAST, method="GET"),
    "query": request("/filter?timeout=5s", QUESTION, LAST),
    "head": request("/livez", b"", LAST, method="HEAD"),
    "another-method": request("/filter", b"", LAST, method="GET"),
    "nowhere": request("/nowhere", QUESTION, LAST),
    "http-1.0": request("/filter", QUESTION, version="1.0"),
    "streamed": request("/streamed", b"", LAST, method="GET"),
    "streamed-head": request("/streamed", b"", LAST, method="HEAD"),
    "empty": request("/empty", b"", LAST, method="GET"),
    "echo": request("/echo", b"a" * 100_000, LAST),
    "fails": request("/fails", b"", LAST, method="GET"),
}


def app() -> FastAPI:
    """Make the scheduler's app, with routes whose responses have other forms."""
    made = create_service(Settings(listen="127.0.0.1:0"), shop(), None).app

    @made.api_route("/streamed", methods=["GET", "HEAD"])
    async def streamed() -> StreamingResponse:
        async def pieces() -> AsyncIterator[bytes]:
            for piece in (b"one", b"", b"two"):
                yield piece

        return StreamingResponse(pieces())

    @made.get("/empty", status_code=204)
    async def empty() -> Response:
        return Response(status_code=204)

    @made.post("/echo")
    async def echo(body: str = "") -> str:
        return body

    @made.get("/fails")
    async def fails() -> str:
        raise ZeroDivisionError

    return made


@asynccontextmanager
async def by_uvicorn(served: FastAPI) -> AsyncIterator[int]:
    """Serve an app by uvicorn alone. Give the number of the port."""
    config = uvicorn.Config(
        served, http="httptools", ws="none", log_config=None, access_log=False, proxy_headers=False, server_header=False
    )
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        number = listening.getsockname()[1]
        task = asyncio.create_task(server.serve([listening]))
        try:
            yield number
        finally:
            server.should_exit = True
            await task


async def responded(number: int, sent: bytes) -> bytes:
    """Send requests, the last of which closes the connection. Give what comes back, without dates."""
    async with connected(number) as (reader, writer):
        writer.write(sent)
        return DATE.sub(b"", await reader.read())


@pytest.mark.parametrize("sent", REQUESTS.values(), ids=REQUESTS)
def test_each_response_is_that_of_uvicorn_byte_for_byte(sent: bytes) -> None:
    async def compared() -> None:
        async with asyncio.timeout(PATIENCE), by_uvicorn(app()) as number:
            expected = await responded(number, sent)
        async with (
            asyncio.timeout(PATIENCE),
            serving(extender_port(Settings(listen="127.0.0.1:0"), app())) as (_, number),
        ):
            assert await responded(number, sent) == expected
        assert expected.startswith(b"HTTP/1.1 ")

    asyncio.run(compared())
