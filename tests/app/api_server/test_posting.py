"""POSTs on connections of their own: what is kept and what breaks, on both event loops."""

import asyncio
import gzip
import re
import socket
import time
import zlib
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest
import uvloop

from app.api_server import posting
from app.api_server.client import (
    ApiClient,
    ApiError,
    ConnectionFailedError,
    ReadTimeoutError,
    ResponseTooLargeError,
    StatusError,
)
from tests.app.api_server.api_server import (
    END,
    NO_TLS,
    RESET,
    Answer,
    ApiServer,
    Request,
    chunk,
    head,
    in_turn,
    response,
    serving,
)
from tests.app.api_server.client_setting import PODS, Setting
from tests.app.api_server.connect_proxy import proxying

PATH = f"{PODS}/web/binding"
HEAD = f"POST {PATH} at SERVER"
DONE = response(b'{"status":"Success"}', status="201 Created")


@pytest.fixture(
    autouse=True, params=[asyncio.DefaultEventLoopPolicy, uvloop.EventLoopPolicy], ids=["asyncio", "uvloop"]
)
def _loop(request: pytest.FixtureRequest) -> Iterator[None]:
    asyncio.set_event_loop_policy(request.param())
    yield
    asyncio.set_event_loop_policy(None)


async def post(client: ApiClient, _: ApiServer) -> bytes:
    return await client.post(PATH, b"{}")


def fails(setting: Setting, answer: Answer, **limits: float) -> tuple[type[ApiError], str]:
    """Give how a POST fails, which leaves open whether it was done."""

    async def exchange(client: ApiClient, server: ApiServer) -> tuple[type[ApiError], str]:
        with pytest.raises(ApiError) as caught:
            await post(client, server)
        assert not getattr(caught.value, "unsent", False)
        assert "\n" not in str(caught.value)
        return caught.type, str(caught.value).replace(server.url, "SERVER")

    return setting.run(answer, exchange, **limits)


def connections(setting: Setting, answer: Answer, times: int = 2) -> list[int]:
    """Give the connections on which successful POSTs came, one after the other."""

    async def exchange(client: ApiClient, server: ApiServer) -> list[int]:
        for _ in range(times):
            await post(client, server)
            await asyncio.sleep(0.05)  # what the server does after its answer has arrived by then
        return [request.connection for request in server.requests]

    return setting.run(answer, exchange)


# What is answered.


@pytest.mark.parametrize(
    ("pieces", "body"),
    [
        pytest.param([DONE], b'{"status":"Success"}', id="length"),
        pytest.param([bytes([byte]) for byte in DONE], b'{"status":"Success"}', id="byte-by-byte"),
        pytest.param(
            [head(Transfer_Encoding="chunked") + chunk(b"{") + chunk(b"}") + b"0\r\n\r\n"], b"{}", id="chunks"
        ),
        pytest.param([b"HTTP/1.1 100 Continue\r\n\r\n", DONE], b'{"status":"Success"}', id="continue-first"),
        pytest.param(
            [b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + DONE], b'{"status":"Success"}', id="hints-first"
        ),
        pytest.param([head(Connection="close") + b"{}", END], b"{}", id="until-the-end"),
        pytest.param([response(gzip.compress(b"{}"), Content_Encoding="gzip")], b"{}", id="gzip"),
        pytest.param([response(zlib.compress(b"{}"), Content_Encoding="deflate")], b"{}", id="deflate"),
        pytest.param([response(b"{}", Content_Encoding="identity")], b"{}", id="identity"),
        pytest.param([response(b"", Server="a")], b"", id="empty"),
    ],
)
def test_an_answer_is_given_whole(setting: Setting, pieces: list[bytes], body: bytes) -> None:
    assert body == setting.run(in_turn(pieces), post)


def test_a_post_has_what_httpx_would_send(setting: Setting) -> None:
    setting.user = {"token": "abc"}

    async def exchange(client: ApiClient, server: ApiServer) -> tuple[Request, str]:
        await client.post("/api/v1/pods/a b?c", b"{}")
        return server.requests[0], httpx.URL(server.url).netloc.decode()

    request, host = setting.run(in_turn(DONE), exchange)
    assert request.line == "POST /api/v1/pods/a%20b%3Fc HTTP/1.1"
    assert request.headers.pop("user-agent").startswith("kindred/")
    assert request.headers == {
        "host": host,
        "accept": "application/json",
        "content-type": "application/json",
        "accept-encoding": "identity",
        "authorization": "Bearer abc",
        "content-length": "2",
    }


def test_a_server_behind_a_path_and_another_name_is_found(setting: Setting) -> None:
    setting.cluster |= {"tls-server-name": "kube.example"}

    async def main() -> str:
        async with serving(in_turn(DONE), setting.certificates.server_tls("named")) as server:
            client = setting.client(f"{server.url}/k8s/clusters/one/")
            await client.post(PATH, b"{}")
            await client.close()
            return server.requests[0].path

    assert asyncio.run(main()) == f"/k8s/clusters/one{PATH}"


def test_a_proxy_is_gone_through(setting: Setting) -> None:
    async def main() -> int:
        async with proxying() as proxy, serving(in_turn(DONE), setting.certificates.server_tls()) as server:
            setting.cluster |= {"proxy-url": f"http://127.0.0.1:{proxy.port}"}
            client = setting.client(server.url)
            assert await client.post(PATH, b"{}", lambda: True) == b'{"status":"Success"}'
            with pytest.raises(ConnectionFailedError, match="held back") as caught:
                await client.post(PATH, b"{}", lambda: False)
            assert caught.value.unsent
            await client.close()
            return len(proxy.heads)

    assert asyncio.run(main()) == 1


# Which connections are kept.


@pytest.mark.parametrize(
    ("pieces", "kept"),
    [
        pytest.param([DONE], True, id="as-usual"),
        pytest.param([response(b"{}", Connection="close")], False, id="server-wants-to-close"),
        pytest.param([DONE, END], False, id="closed-behind"),
        pytest.param([DONE, RESET], False, id="reset-behind"),
        pytest.param([DONE + response(b"", status="408 Request Timeout")], False, id="more-than-was-asked"),
        pytest.param([DONE + b"HTTP/1.1 2"], False, id="the-beginning-of-more"),
        pytest.param([DONE.replace(b"HTTP/1.1", b"HTTP/1.0")], False, id="http-1.0"),
    ],
)
def test_a_connection_is_kept_while_it_is_of_use(setting: Setting, pieces: list[bytes], *, kept: bool) -> None:
    assert [0, 0 if kept else 1] == connections(setting, in_turn(pieces))


def test_a_connection_that_was_long_unused_is_left(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(posting, "IDLE_SECONDS", 0.01)
    assert connections(setting, in_turn(DONE), 3) == [0, 1, 2]


def test_what_a_server_says_unasked_ends_the_connection(setting: Setting) -> None:
    async def late(_: Request) -> AsyncIterator[bytes]:
        yield DONE
        await asyncio.sleep(0.01)
        yield response(b"", status="408 Request Timeout")

    assert connections(setting, late) == [0, 1]


def test_requests_at_once_have_a_connection_each_and_those_are_used_again(setting: Setting) -> None:
    async def exchange(client: ApiClient, server: ApiServer) -> set[int]:
        for _ in range(3):
            await asyncio.gather(*(post(client, server) for _ in range(5)))
        return {request.connection for request in server.requests}

    assert setting.run(in_turn(DONE), exchange) == set(range(5))


def test_another_certificate_is_shown_on_a_connection_of_its_own(setting: Setting) -> None:
    crt, key = (setting.folder / name for name in ("crt", "key"))

    def become(name: str) -> None:
        crt.write_text(setting.certificates.crt(name).read_text())
        key.write_text(setting.certificates.key(name).read_text())

    become("alice")
    setting.user = {"client-certificate": str(crt), "client-key": str(key)}

    async def exchange(client: ApiClient, server: ApiServer) -> list[tuple[str, int]]:
        await post(client, server)
        become("bob")
        setting.clock.now += 100.0
        await post(client, server)
        await post(client, server)
        return [(request.client, request.connection) for request in server.requests]

    assert setting.run(in_turn(DONE), exchange) == [("alice", 0), ("bob", 1), ("bob", 1)]


def test_past_the_limit_requests_wait_and_are_not_sent_in_the_end(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(posting, "MAX_CONNECTIONS", 2)

    async def slow(_: Request) -> AsyncIterator[bytes]:
        await asyncio.sleep(0.6)
        yield DONE

    async def exchange(client: ApiClient, server: ApiServer) -> tuple[int, int, set[str]]:
        results = await asyncio.gather(*(post(client, server) for _ in range(5)), return_exceptions=True)
        failed = [each for each in results if isinstance(each, ConnectionFailedError)]
        assert all(each.unsent for each in failed)
        texts = {str(each).replace(server.url, "SERVER") for each in failed}
        return results.count(b'{"status":"Success"}'), len(server.requests), texts

    answered, sent, texts = setting.run(slow, exchange, connect_timeout=1.0)
    assert answered == sent
    assert answered == 4
    assert texts == {f"{HEAD}: no connection within 1 s"}


def test_a_request_that_is_cancelled_takes_its_connection_with_it(setting: Setting) -> None:
    async def late(request: Request) -> AsyncIterator[bytes]:
        await asyncio.sleep(0.3)
        yield response(b"%d" % request.connection)

    async def exchange(client: ApiClient, server: ApiServer) -> bytes:
        asked = asyncio.create_task(post(client, server))
        await server.asked(1)
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)
        await asyncio.wait_for(server.hung_up.wait(), 5)
        return await post(client, server)

    assert setting.run(late, exchange) == b"1"


def test_a_closed_client_leaves_no_connection(setting: Setting) -> None:
    async def exchange(client: ApiClient, server: ApiServer) -> None:
        await post(client, server)
        await client.close()
        await asyncio.wait_for(server.hung_up.wait(), 5)

    setting.run(in_turn(DONE), exchange)


def test_after_one_connection_broke_the_others_are_not_trusted(setting: Setting) -> None:
    async def answer(request: Request) -> AsyncIterator[bytes]:
        await asyncio.sleep(0.02)
        seen.append(request.connection)
        yield END if len(seen) == 3 else DONE

    seen: list[int] = []

    async def exchange(client: ApiClient, server: ApiServer) -> list[int]:
        await asyncio.gather(post(client, server), post(client, server))
        with pytest.raises(ConnectionFailedError):
            await post(client, server)
        await post(client, server)
        return [request.connection for request in server.requests]

    assert setting.run(answer, exchange)[-1] == 2


# What breaks.


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        pytest.param([END], "Server disconnected without sending a response.", id="closed"),
        pytest.param([RESET], "Connection reset by peer", id="reset"),
        pytest.param([b"220 mail ready\r\n\r\n"], "the answer is not HTTP: ", id="not-http"),
        pytest.param([b"HTTP/1.1 200 OK\r\nCon", END], "Server disconnected without sending a response.", id="head"),
        pytest.param([b"HTTP/1.1 100 Continue\r\n\r\n", END], "Server disconnected without", id="only-continue"),
        pytest.param(
            [b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"], "the answer is", id="101"
        ),
        pytest.param([head(Content_Length="99") + b"{}", END], "peer closed connection within its response", id="cut"),
        pytest.param(
            [head(Transfer_Encoding="chunked") + chunk(b"{}"), END], "peer closed connection within", id="cut-chunks"
        ),
        pytest.param([head(Transfer_Encoding="chunked") + chunk(b"{}"), RESET], "Connection reset by peer", id="torn"),
        pytest.param([head(Connection="close") + b"{}", RESET], "Connection reset by peer", id="torn-until-the-end"),
        pytest.param([head(Transfer_Encoding="chunked") + b"zz\r\n"], "the answer is not HTTP: ", id="no-chunk"),
        pytest.param([response(b"<html>", kind="text/html")], "the answer is text/html, not application", id="html"),
        pytest.param([response(b"x", Content_Encoding="br")], "Content-Encoding br was not asked for", id="brotli"),
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
    assert text == f"{HEAD}: answers more than 16777216 bytes"


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
