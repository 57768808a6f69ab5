"""POSTs that break: how each failure is reported, on both event loops."""

import asyncio
import gzip
import re
import socket
import time
from collections.abc import AsyncIterator

import pytest

from app.api_server.client import (
    ApiClient,
    ConnectionFailedError,
    ReadTimeoutError,
    ResponseTooLargeError,
    StatusError,
)
from tests.app.api_server.api_server import (
    END,
    NO_TLS,
    RESET,
    ApiServer,
    Request,
    chunk,
    head,
    in_turn,
    response,
    serving,
)
from tests.app.api_server.client_setting import Setting
from tests.app.api_server.posting_setting import DONE, HEAD, PATH, fails, post

pytestmark = pytest.mark.usefixtures("both_loops")


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        pytest.param([END], "Server disconnected without sending a response.", id="closed"),
        pytest.param([RESET], "Connection reset by peer", id="reset"),
        pytest.param([b"220 mail ready\r\n\r\n"], "the response is not HTTP: ", id="not-http"),
        pytest.param([b"HTTP/1.1 200 OK\r\nCon", END], "Server disconnected without sending a response.", id="head"),
        pytest.param([b"HTTP/1.1 100 Continue\r\n\r\n", END], "Server disconnected without", id="only-continue"),
        pytest.param(
            [b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"], "the response is", id="101"
        ),
        pytest.param([head(Content_Length="99") + b"{}", END], "peer closed connection within its response", id="cut"),
        pytest.param(
            [head(Transfer_Encoding="chunked") + chunk(b"{}"), END], "peer closed connection within", id="cut-chunks"
        ),
        pytest.param([head(Transfer_Encoding="chunked") + chunk(b"{}"), RESET], "Connection reset by peer", id="torn"),
        pytest.param([head(Connection="close") + b"{}", RESET], "Connection reset by peer", id="torn-until-the-end"),
        pytest.param([head(Transfer_Encoding="chunked") + b"zz\r\n"], "the response is not HTTP: ", id="no-chunk"),
        pytest.param([response(b"<html>", kind="text/html")], "the response is text/html, not application", id="html"),
        pytest.param([response(b"x", Content_Encoding="br")], "Content-Encoding br was not requested", id="brotli"),
        pytest.param([response(b"\x1f\x8b\x08no", Content_Encoding="gzip")], "Error -", id="broken-gzip"),
        pytest.param([b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 20_000], "headers of more than 65536 bytes", id="headers"),
        pytest.param([b"HTTP/1.1 100 A\r\n\r\n" * 20_000], "headers of more than 65536 bytes", id="endless-continue"),
    ],
)
def test_an_answer_that_is_none(setting: Setting, pieces: list[bytes], expected: str) -> None:
    kind, text = fails(setting, in_turn(pieces))
    assert kind is ConnectionFailedError
    assert text.startswith(f"{HEAD}: {expected}")


def test_tls_that_breaks_is_told(setting: Setting) -> None:
    kind, text = fails(setting, in_turn([NO_TLS]))
    assert kind is ConnectionFailedError
    assert re.fullmatch(rf"{HEAD}: (TLS: .*|Server disconnected without sending a response\.)", text)


@pytest.mark.parametrize("sent", [b"", head(Transfer_Encoding="chunked") + chunk(b"{}")], ids=["before", "between"])
def test_a_server_that_falls_silent(setting: Setting, sent: bytes) -> None:
    async def stalls(_: Request) -> AsyncIterator[bytes]:
        yield sent
        await asyncio.sleep(60)

    began = time.monotonic()
    assert fails(setting, stalls, read_timeout=0.3) == (ReadTimeoutError, f"{HEAD}: nothing received for 0.3 s")
    assert 0.2 < time.monotonic() - began < 5


def test_a_server_that_is_slow_is_not_silent(setting: Setting) -> None:
    async def slow(_: Request) -> AsyncIterator[bytes]:
        yield head(Transfer_Encoding="chunked")
        for _piece in range(6):
            await asyncio.sleep(0.15)
            yield chunk(b"1")
        yield b"0\r\n\r\n"

    assert setting.run(slow, post, read_timeout=0.5) == b"111111"


@pytest.mark.parametrize("kind", ["plain", "gzip"])
def test_an_answer_that_is_too_large_is_refused(setting: Setting, kind: str) -> None:
    async def endless(_: Request) -> AsyncIterator[bytes]:
        yield head(Transfer_Encoding="chunked")
        while True:
            yield chunk(b"x" * 65_536)

    large = in_turn([response(gzip.compress(b"x" * 200_000_000), Content_Encoding="gzip")])
    kind_of_error, text = fails(setting, endless if kind == "plain" else large)
    assert kind_of_error is ResponseTooLargeError
    assert text == f"{HEAD}: the response has more than 16777216 bytes"


def test_a_refusal_that_is_cut_stalls_or_is_endless_is_still_told(setting: Setting) -> None:
    async def stalls(_: Request) -> AsyncIterator[bytes]:
        yield head("503 Service Unavailable", "text/plain", Content_Length="99") + b"busy busy busy"
        await asyncio.sleep(60)

    async def endless(_: Request) -> AsyncIterator[bytes]:
        yield head("503 Service Unavailable", "text/plain", Transfer_Encoding="chunked")
        while True:
            yield chunk(b"busy " * 1000)

    async def drips(_: Request) -> AsyncIterator[bytes]:
        yield head("503 Service Unavailable", "text/plain", Transfer_Encoding="chunked") + chunk(b"busy busy busy")
        while True:
            await asyncio.sleep(0.1)
            yield chunk(b".")

    async def exchange(client: ApiClient, server: ApiServer) -> str:
        with pytest.raises(StatusError) as caught:
            await post(client, server)
        return caught.value.message[:10]

    cut = in_turn([head("503 Service Unavailable", "text/plain", Content_Length="99") + b"busy busy busy", END])
    for answer, limit in ((cut, 10.0), (stalls, 1.0), (endless, 10.0), (drips, 1.0)):
        began = time.monotonic()
        assert setting.run(answer, exchange, connect_timeout=limit) == "busy busy "
        assert time.monotonic() - began < 5


def test_a_refusal_is_told_with_its_wait_and_the_connection_kept(setting: Setting) -> None:
    async def exchange(client: ApiClient, server: ApiServer) -> tuple[float | None, list[int]]:
        with pytest.raises(StatusError, match="429 Too Many Requests") as caught:
            await post(client, server)
        await post(client, server)
        return caught.value.retry_after, [request.connection for request in server.requests]

    busy = response(gzip.compress(b"no"), "429 Too Many Requests", Retry_After="3", Content_Encoding="gzip")
    assert setting.run(in_turn(busy, DONE), exchange) == (3.0, [0, 0])


# No connection: it was not done.


def unsent(setting: Setting, url: str, **limits: float) -> str:
    async def main() -> str:
        client = setting.client(url, **limits)
        with pytest.raises(ConnectionFailedError) as caught:
            await client.post(PATH, b"{}")
        await client.close()
        assert caught.value.unsent
        return str(caught.value).replace(url, "SERVER")

    return asyncio.run(main())


def test_a_name_that_nobody_has(setting: Setting) -> None:
    assert unsent(setting, "https://no-such-host.invalid", connect_timeout=60.0).startswith(f"{HEAD}: unknown host: ")


def test_a_server_that_does_not_shake_hands(setting: Setting) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        began = time.monotonic()
        url = f"https://127.0.0.1:{silent.getsockname()[1]}"
        assert unsent(setting, url, connect_timeout=0.3) == f"{HEAD}: no connection within 0.3 s"
        assert 0.2 < time.monotonic() - began < 5


def test_a_server_without_tls(setting: Setting) -> None:
    async def main() -> str:
        async def speak(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            writer.close()

        async with await asyncio.start_server(speak, "127.0.0.1", 0) as server:
            url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            client = setting.client(url)
            with pytest.raises(ConnectionFailedError) as caught:
                await client.post(PATH, b"{}")
            await client.close()
            assert caught.value.unsent
            return str(caught.value).replace(url, "SERVER")

    assert asyncio.run(main()) == f"{HEAD}: TLS: wrong version number"


def test_an_address_that_does_not_answer_leaves_time_for_the_next(setting: Setting) -> None:
    tried: list[str] = []

    class Loop(asyncio.SelectorEventLoop):
        async def getaddrinfo(self, *_: object, **__: object) -> list[object]:  # type: ignore[override]  # as little
            inet = (socket.AF_INET, socket.SOCK_STREAM, 6, "")
            return [(*inet, ("127.0.0.2", 1)), (*inet, ("127.0.0.1", self.port))]

        async def sock_connect(self, sock: socket.socket, address: tuple[str, int]) -> None:  # type: ignore[override]  # as little
            tried.append(address[0])
            if address[0] == "127.0.0.2":
                await asyncio.sleep(60)
            await super().sock_connect(sock, address)

        port = 0

    async def main() -> bytes:
        async with serving(in_turn(DONE), setting.certificates.server_tls()) as server:
            Loop.port = server.port
            client = setting.client(f"https://localhost:{server.port}", connect_timeout=2.0)
            try:
                return await client.post(PATH, b"{}")
            finally:
                await client.close()

    with asyncio.Runner(loop_factory=Loop) as runner:
        assert runner.run(main()) == b'{"status":"Success"}'
    assert tried == ["127.0.0.2", "127.0.0.1"]
