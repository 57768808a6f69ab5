"""The bodies of requests to the admin port: together, too, they take no more memory than the largest one."""

import asyncio
from typing import Final

import pytest

from app.server.ports import Port
from app.settings.limits import DEFAULTS
from app.settings.settings import Settings
from app.wiring.main import create_service
from tests.app.questions import shop
from tests.app.server.conversations import PATIENCE, Connection, connected, read_response, request, serving

MOST: Final = 1000  # bytes
KNOWN: Final = b'{"pod": "nowhere/known"}'


def admin() -> Port:
    limits = DEFAULTS._replace(max_body_bytes=MOST)
    return create_service(Settings(admin="127.0.0.1:0"), shop(), None, limits=limits).ports[-1]


async def status(connection: Connection, text: bytes) -> tuple[int, bytes]:
    reader, writer = connection
    writer.write(text)
    found, _, body = await read_response(reader)
    return found, body


def test_all_bodies_that_arrive_take_no_more_than_the_largest_one() -> None:
    async def story() -> None:
        async with serving(admin()) as (_, number), connected(number) as slow:
            long = request("/explain", b" " * (MOST - len(KNOWN)) + KNOWN)
            slow[1].write(long[:-1])
            async with connected(number) as other:
                assert (await status(other, request("/readyz", method="GET")))[0] == 200  # the head before is read
                rejected, body = await status(other, request("/explain", KNOWN))
                assert (rejected, b"take more than 1000 bytes" in body) == (503, True)
            async with connected(number) as other:
                assert (await status(other, request("/explain", b" " * (MOST + 1))))[0] == 413
            assert (await status(slow, long[-1:]))[0] == 404
            assert (await status(slow, request("/explain", KNOWN)))[0] == 404

    asyncio.run(asyncio.wait_for(story(), PATIENCE))


def test_the_body_of_a_client_that_leaves_counts_no_more(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        async with serving(admin()) as (_, number):
            async with connected(number) as slow:
                slow[1].write(request("/what-if/capacity", b" " * MOST)[:-1])
                async with connected(number) as other:
                    assert (await status(other, request("/readyz", method="GET")))[0] == 200
                    assert (await status(other, request("/explain", KNOWN)))[0] == 503
            async with connected(number) as other:
                while True:  # until the server has seen that it left
                    found = (await status(other, request("/explain", KNOWN)))[0]
                    if found != 503:
                        break
                    await asyncio.sleep(0.01)
            assert found == 404

    asyncio.run(asyncio.wait_for(story(), PATIENCE))
    assert "a route failed" not in caplog.text
