"""Answers of whole nodes: over TLS they are written as the client takes them, byte for byte as without."""

import asyncio
import random
import time
from typing import Final

import pytest
import uvloop

from app.objects.decode import Body
from app.server.port import Connection
from app.verbs.admission import Admission
from app.verbs.request import VerbResponse
from tests.app.server.conversations import (
    LoopFactory,
    connected,
    port_of,
    read_response,
    request,
    run_on,
    serving,
    until,
)
from tests.app.server.tls.secrets import Certificates
from tests.app.verbs.receptions import app_of, reception

LARGE: Final = random.Random(0).randbytes(16 * 1024 * 1024)  # noqa: S311 - so that no two parts are alike
each_loop = pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
each_scheme = pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
QUESTION: Final = request("/preempt", b"{}")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("tls") / "authority")


class Served:
    """An app whose verb has a large answer, on a port of its own."""

    def __init__(self, certificates: Certificates | None) -> None:
        self._admission = Admission(deadline=4.0, queue_limit=100, max_bytes=1 << 30, clock=time.monotonic)
        app = app_of(self._response, reception(admission=self._admission))
        self.port = port_of(app, certificates)
        self.client_tls = certificates.client_tls() if certificates is not None else None

    @property
    def is_idle(self) -> bool:
        return (self._admission.in_flight, self._admission.buffered_bytes) == (0, 0)

    def unsent(self) -> int:
        """Return the bytes that wait to be sent on the only connection."""
        (connection,) = self.port.connections.connections
        assert isinstance(connection, Connection)
        size: int = connection.transport.get_write_buffer_size()
        return size

    def _response(self, _: Body) -> VerbResponse:
        return VerbResponse(LARGE)


@each_loop
@each_scheme
def test_each_answer_is_whole_and_in_its_turn(certificates: Certificates, loop: LoopFactory, tls: bool) -> None:  # noqa: FBT001 - a column
    served = Served(certificates if tls else None)

    async def story() -> None:
        async with (
            serving(served.port) as (_, number),
            connected(number, served.client_tls) as (reader, writer),
        ):
            writer.write(QUESTION)
            assert (await read_response(reader))[2] == LARGE
            writer.write(QUESTION * 3)  # at once: they are pipelined
            for _ in range(3):
                assert (await read_response(reader))[2] == LARGE
            await until(lambda: served.is_idle)

    run_on(loop, story)


@each_loop
def test_over_tls_no_more_is_encrypted_than_the_client_takes(certificates: Certificates, loop: LoopFactory) -> None:
    served = Served(certificates)

    async def story() -> None:
        async with (
            serving(served.port) as (_, number),
            connected(number, served.client_tls) as (reader, writer),
        ):
            writer.write(QUESTION)
            await reader.readuntil(b"\r\n\r\n")  # and not on: the stream holds little
            await asyncio.sleep(0.3)
            assert 0 < served.unsent() < 2 * 1024 * 1024
            assert await reader.readexactly(len(LARGE)) == LARGE

    run_on(loop, story)


@each_loop
@each_scheme
def test_who_goes_away_in_the_middle_leaves_nothing_behind(
    certificates: Certificates,
    loop: LoopFactory,
    tls: bool,  # noqa: FBT001 - a column
) -> None:
    served = Served(certificates if tls else None)

    async def story() -> None:
        async with serving(served.port) as (_, number):
            async with connected(number, served.client_tls) as (reader, writer):
                writer.write(QUESTION)
                await reader.readuntil(b"\r\n\r\n")
                writer.transport.abort()
            await until(lambda: served.is_idle and not served.port.connections.connections)
            async with connected(number, served.client_tls) as (reader, writer):
                writer.write(QUESTION)
                assert (await read_response(reader))[2] == LARGE

    run_on(loop, story)
