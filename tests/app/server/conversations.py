"""Ports served in this loop as `kindred serve` does, and what is said to them over real connections."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Final

from app.server.ports import Port, extender_port
from app.server.server import Server
from app.settings.settings import Settings
from app.verbs.endpoint import ExtenderApp
from tests.app.server.tls.secrets import Certificates

PATIENCE: Final = 60.0  # seconds
Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def serving(port: Port) -> AsyncIterator[tuple[Server, int]]:
    """Serve a port, which is to be any; give the server and the number that it took."""
    listening: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    server = Server(port, listening.set_result)
    tasks = [asyncio.create_task(server.serve()), *(asyncio.create_task(start()) for start in port.background)]
    try:
        yield server, int((await listening).rpartition(":")[2])
    finally:
        server.should_exit = True
        await tasks[0]
        for task in tasks[1:]:
            task.cancel()
        await asyncio.gather(*tasks[1:], return_exceptions=True)


@asynccontextmanager
async def connected(port: int, tls: ssl.SSLContext | None = None) -> AsyncIterator[Connection]:
    """Connect to a port of this machine; with TLS the server is asked for as kindred."""
    name = "kindred" if tls is not None else None
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls, server_hostname=name)
    try:
        yield reader, writer
    finally:
        writer.close()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)  # the server may have been the first


def request(path: str, body: bytes = b"", *headers: str, method: str = "POST", version: str = "1.1") -> bytes:
    """Write a request."""
    head = [f"{method} {path} HTTP/{version}", "Host: localhost", *headers, f"Content-Length: {len(body)}"]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


async def read_response(reader: asyncio.StreamReader) -> tuple[int, dict[str, str], bytes]:
    """Read an answer; headers without the date, which the clock decides."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = dict(line.split(": ", 1) for line in head[1:] if line)
    headers.pop("date", None)
    return int(head[0].split()[1]), headers, await reader.readexactly(int(headers.get("content-length", 0)))


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what nobody tells of; the caller has a limit of time."""
    while not condition():  # noqa: ASYNC110 - nobody tells of it
        await asyncio.sleep(0.01)


LoopFactory = Callable[[], asyncio.AbstractEventLoop]


def run_on(loop: LoopFactory, story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a story in a loop of this kind, with a limit of time."""

    async def in_time() -> None:
        async with asyncio.timeout(PATIENCE):
            await story()

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(in_time())


def port_of(app: ExtenderApp, certificates: Certificates | None) -> Port:
    """Return any port for an app, with TLS if there are certificates."""
    files = {} if certificates is None else {"tls_directory": str(certificates.directory())}
    return extender_port(Settings.model_validate({"listen": "127.0.0.1:0", **files}), app)
