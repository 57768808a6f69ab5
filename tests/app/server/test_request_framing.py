"""What a head says about the body behind it: requests for other protocols, and forms that proxies read differently."""

import asyncio
from collections.abc import Iterator
from typing import Final

import pytest

from app.server.connections import RejectReason
from app.server.ports import Port
from app.settings.settings import Settings
from app.wiring.main import create_service
from tests.app.questions import NEAR_WEB, by_name, shop
from tests.app.server.conversations import PATIENCE, connected, read_response, serving
from tests.builders import make_pod

QUESTION: Final = by_name(make_pod("p").required_affinity(NEAR_WEB), "a1", "c1")
LENGTH: Final = f"Content-Length: {len(QUESTION)}\r\n\r\n".encode() + QUESTION
CHUNKS: Final = b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(QUESTION), QUESTION)
UPGRADES: Final = {
    "curl": b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n",
    "h2c": b"Upgrade: h2c\r\nConnection: upgrade\r\n",
    "websocket": b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n",
    "two": b"Connection: keep-alive, Upgrade\r\nUpgrade: a\r\nUpgrade: b\r\n",
}


def ports(**settings: float) -> dict[str, Port]:
    service = create_service(
        Settings.model_validate({"listen": "127.0.0.1:0", "admin": "127.0.0.1:0", **settings}), shop(), None
    )
    return dict(zip(["extender", "admin"], service.ports, strict=True))


def rejected(sent: bytes) -> tuple[int, bytes]:
    """Send bytes; give the answer, behind which the connection is closed."""
    port = ports()["extender"]
    found: list[tuple[int, bytes]] = []

    async def talked() -> None:
        async with asyncio.timeout(PATIENCE), serving(port) as (_, number), connected(number) as (reader, writer):
            writer.write(sent)
            status, headers, body = await read_response(reader)
            assert headers["connection"] == "close"
            assert await reader.read() == b""
            found.append((status, body))

    asyncio.run(talked())
    assert port.connections.rejected[RejectReason.MALFORMED] == 1
    return found[0]


def malformed() -> Iterator[tuple[str, bytes]]:
    """Yield an id, and a request whose body somebody else may see elsewhere."""
    post = b"POST /filter HTTP/1.1\r\nHost: k\r\n"
    for number, line in enumerate((b"HTTP/2.0", b"HTTP/0.9", b"HTTP/1.2", b"HTTP/3.0", b"http/1.1", b"")):
        yield f"version-{number}", b"POST /filter " + line + b"\r\nHost: k\r\n" + LENGTH
    yield "simple-request", b"GET /livez\r\n\r\n"
    yield "preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    yield "connect", b"CONNECT k:80 HTTP/1.1\r\nHost: k:80\r\n\r\n"
    yield "connect-path", b"CONNECT /livez HTTP/1.1\r\nHost: k\r\n\r\n"
    for coding in (b"gzip", b"identity", b"chunked, gzip", b"chunked, chunked", b"xchunked", b"chunked;a=b"):
        yield f"coding-{coding.decode()}", CHUNKS.replace(b"chunked", coding).join((post, b""))
    yield "coding-and-length", post + b"Content-Length: 5\r\n" + CHUNKS
    yield "length-and-coding", post + CHUNKS.replace(b"\r\n\r\n", b"\r\nContent-Length: 5\r\n\r\n", 1)
    yield "same-length-twice", post + b"Content-Length: %d\r\n" % len(QUESTION) + LENGTH
    for length in (b"1, 1", b"+1", b"0x1", b"1 1", b"", b"18446744073709551616"):
        yield f"length-{length.decode()}", post + b"Content-Length: " + length + b"\r\n\r\n{"
    for name, line in {
        "folded": b"X: a\r\n b", "space-before-colon": b"Content-Length : 1", "no-colon": b"Content-Length",
        "nul": b"X: a\0b", "bare-cr": b"X: a\rContent-Length: 1", "bare-lf": b"X: a\nContent-Length: 1",
        "leading-space": b" Content-Length: 1",
    }.items():  # fmt: skip
        yield name, b"POST /filter HTTP/1.1\r\n" + line + b"\r\n\r\n{"
    yield "upgrade-and-coding", post + UPGRADES["h2c"] + CHUNKS.replace(b"chunked", b"gzip, chunked")
    yield "upgrade-and-version", b"POST /filter HTTP/2.0\r\n" + UPGRADES["h2c"] + LENGTH
    for name, upgrade in UPGRADES.items():
        yield f"upgrade-{name}", post + upgrade + LENGTH
        yield f"upgrade-{name}-of-a-page", b"GET /livez HTTP/1.1\r\nHost: k\r\n" + upgrade + b"\r\n"


def codings() -> Iterator[tuple[str, bytes]]:
    """Yield an id, and a request whose body has no length."""
    post = b"POST /filter HTTP/1.1\r\nHost: k\r\n"
    for coding in (b"chunked", b"gzip, chunked", b"Chunked "):
        yield coding.decode(), post + CHUNKS.replace(b"chunked", coding)
    yield "http-1.0", b"POST /filter HTTP/1.0\r\nHost: k\r\n" + CHUNKS
    yield "in-pieces", post + b"Transfer-Encoding: chunked\r\n\r\n"
    yield "of-a-page", b"GET /livez HTTP/1.1\r\nHost: k\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"


MALFORMED: Final = dict(malformed())


@pytest.mark.parametrize("sent", MALFORMED.values(), ids=MALFORMED)
def test_what_others_may_read_differently_is_refused_and_the_connection_closed(sent: bytes) -> None:
    assert rejected(sent) == (400, b"Not HTTP/1.1.")


CODINGS: Final = dict(codings())


@pytest.mark.parametrize("sent", CODINGS.values(), ids=CODINGS)
def test_a_body_without_a_length_is_refused_and_the_connection_closed(sent: bytes) -> None:
    assert rejected(sent) == (411, b"A body needs a Content-Length.")
