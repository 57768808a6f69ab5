"""Who is let in by a port, and who is counted before TLS has begun."""

import asyncio
import contextlib
import errno
import socket
from collections.abc import AsyncIterator, Callable
from typing import Any, Final, TypeAlias

import pytest
import uvloop
from fastapi import FastAPI

from app.server.connections import RejectReason
from app.server.port import Connection
from app.server.ports import Port, extender_port
from app.server.server import listening_sockets
from app.settings.limits import DEFAULTS, Limits
from app.settings.settings import Settings
from tests.app.server.conversations import PATIENCE, connected, read_response, request, serving, until
from tests.app.server.tls.secrets import Certificates

BACKLOG: Final = 100
LoopFactory: TypeAlias = Callable[[], asyncio.AbstractEventLoop]
ON_BOTH_LOOPS: Final = pytest.mark.parametrize(
    "loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"]
)


def port(certificates: Certificates, limits: Limits = DEFAULTS, *, secure: bool = True) -> Port:
    app = FastAPI()

    @app.get("/")
    async def hello() -> str:
        return "hello"

    files = {"tls_directory": certificates.directory()} if secure else {}
    return extender_port(Settings.model_validate({"listen": "127.0.0.1:0", **files}), app, limits)


@contextlib.asynccontextmanager
async def silent(number: int, count: int) -> AsyncIterator[None]:
    """Hold connections that never begin TLS."""
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(count):
            await stack.enter_async_context(connected(number))
        yield


@ON_BOTH_LOOPS
def test_who_never_begins_tls_counts_and_is_closed_in_time(certificates: Certificates, loop: LoopFactory) -> None:
    served = port(certificates, Limits(max_connections=3, read_timeout=1.0))
    connections = served.connections

    async def talked() -> None:
        async with asyncio.timeout(PATIENCE), serving(served) as (_, number):
            async with silent(number, 3):
                await until(lambda: connections.open == 3)
                async with connected(number) as (reader, _):
                    assert await reader.read() == b""
                assert connections.rejected[RejectReason.TOO_MANY] == 1
                await until(lambda: connections.open == 0)
            assert connections.rejected[RejectReason.HANDSHAKE] == 3
            async with connected(number, certificates.client_tls()) as (reader, writer):
                writer.write(request("/", method="GET"))
                assert (await read_response(reader))[0] == 200
                assert connections.open == 1

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(talked())


@ON_BOTH_LOOPS
def test_nobody_is_let_in_after_the_end_and_the_port_is_free(certificates: Certificates, loop: LoopFactory) -> None:
    async def talked() -> None:
        async with asyncio.timeout(PATIENCE):
            async with serving(port(certificates)) as (server, number), silent(number, 1):
                server.should_exit = True
                await until(lambda: not server.connections.open)
                with pytest.raises(OSError, match=r".+"):
                    await asyncio.open_connection("127.0.0.1", number)
            for each in await listening_sockets("127.0.0.1", number, BACKLOG):
                each.close()

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(talked())


@ON_BOTH_LOOPS
@pytest.mark.parametrize("secure", [False, True], ids=["plain", "TLS"])
@pytest.mark.parametrize("rounds", [0, 1, 2, 3, None])
def test_a_connection_that_begins_in_the_very_moment_of_the_end_is_closed(
    certificates: Certificates, loop: LoopFactory, rounds: int | None, *, secure: bool
) -> None:
    """`rounds` of the loop after it was accepted, or when it is made: else the end would wait for the grace period."""

    async def talked() -> None:
        ending: list[asyncio.Task[None]] = []
        async with asyncio.timeout(PATIENCE), serving(port(certificates, secure=secure)) as (server, number):
            loop = asyncio.get_running_loop()
            made: Any = server.config.http_protocol_class

            def end_after(rounds: int) -> None:
                if rounds:
                    loop.call_soon(end_after, rounds - 1)
                else:
                    ending.append(loop.create_task(server.shutdown()))

            def late(**parts: Any) -> Connection:  # noqa: ANN401 - what uvicorn passes
                connection = made(**parts)
                assert isinstance(connection, Connection)
                if rounds is not None:
                    end_after(rounds)
                    return connection
                begun = connection.connection_made

                def begin(transport: asyncio.Transport) -> None:
                    begun(transport)
                    end_after(0)

                connection.connection_made = begin  # type: ignore[method-assign]  # to begin the end there
                return connection

            server.config.http_protocol_class = late  # type: ignore[assignment]  # uvicorn only calls it
            with contextlib.suppress(ConnectionError):
                async with connected(number, certificates.client_tls() if secure else None) as (reader, _):
                    assert await reader.read() == b""
            await until(lambda: ending != [] and server.connections.open == 0)
            await asyncio.gather(*ending)

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(talked())


def test_a_host_with_several_addresses_is_listened_on_at_all_of_them() -> None:
    async def listened() -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            number = free.getsockname()[1]
        expected = {
            (family, address[0])
            for family, _, _, _, address in socket.getaddrinfo("localhost", number, type=socket.SOCK_STREAM)
        }
        sockets = await listening_sockets("localhost", number, BACKLOG)
        taken = {(each.family, each.getsockname()[0]) for each in sockets}
        for each in sockets:
            each.close()
        assert (socket.AF_INET, "127.0.0.1") in taken
        assert taken <= expected

    asyncio.run(listened())


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_port_that_is_taken_is_named(host: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        with pytest.raises(OSError, match=rf"^\[Errno {errno.EADDRINUSE}\] cannot listen on {host} port {number}: "):
            asyncio.run(listening_sockets(host, number, BACKLOG))


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(OSError, match=r"cannot listen on 192\.0\.2\.1 port 8888: cannot assign requested address"):
        asyncio.run(listening_sockets("192.0.2.1", 8888, BACKLOG))
