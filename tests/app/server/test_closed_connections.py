"""Connections that were closed: nothing of them waits for the garbage collector, which does not look at all objects."""

import asyncio
import gc
import ssl
from collections.abc import Iterator
from weakref import ref

import pytest
import uvloop

from app.server.ports import Port
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


@pytest.fixture(autouse=True)
def _no_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def served(certificates: Certificates | None) -> Port:
    return port_of(app_of(lambda _: VerbResponse(b"{}"), reception()), certificates)


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize(
    "sent",
    [request("/preempt", b"{}"), request("/nowhere", b"{}"), request("/preempt", b"{}")[:-1], b""],
    ids=["verb", "asgi", "half", "nothing"],
)
def test_a_closed_connection_is_gone_without_a_collection(
    certificates: Certificates,
    loop: LoopFactory,
    tls: bool,  # noqa: FBT001 - a column
    sent: bytes,
) -> None:
    port = served(certificates if tls else None)
    before = sum(isinstance(each, ssl.SSLObject) for each in gc.get_objects())

    async def story() -> None:
        async with serving(port) as (_, number):
            async with connected(number, certificates.client_tls() if tls else None) as (reader, writer):
                await until(lambda: bool(port.connections.connections))
                (connection,) = port.connections.connections
                seen = ref(connection)
                del connection
                if sent.endswith(b"{}"):
                    writer.write(sent)
                    await read_response(reader)
            await until(lambda: not port.connections.open)
            await until(lambda: seen() is None)
            left = sum(isinstance(each, ssl.SSLObject) for each in gc.get_objects())
            assert left <= before + int(tls)  # that of this test's own side

    run_on(loop, story)
