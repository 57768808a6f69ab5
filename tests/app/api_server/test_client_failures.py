"""Every way in which a request fails for want of a server, with the words that it is told in."""

import asyncio
import errno
import gzip
import re
import resource
import socket
import ssl
import threading
import time
from collections.abc import AsyncIterator
from contextlib import closing, suppress

import aiohttp
import pytest

from app.api_server import client as client_module
from app.api_server.client import ApiClient, ApiError, ConnectionFailedError, ReadTimeoutError, ResponseTooLargeError
from tests.app.api_server.api_server import (
    END,
    NO_TLS,
    RESET,
    ApiServer,
    Request,
    Response,
    chunk,
    head,
    in_turn,
    proxying,
    response,
    serving,
)
from tests.app.api_server.client_setting import PODS, Setting, certificate_user

on_both_loops = pytest.mark.usefixtures("both_loops")
HEAD = f"GET {PODS} at SERVER"


def reported(error: BaseException, server: str) -> str:
    """Return the message, the same on all ports."""
    assert "\n" not in str(error)
    return str(error).replace(server, "SERVER")


def fails(setting: Setting, response: Response, **limits: float) -> tuple[type[ApiError], str]:
    """Return how a request fails."""

    async def exchange(client: ApiClient, server: ApiServer) -> tuple[type[ApiError], str]:
        with pytest.raises(ApiError) as caught:
            await client.get(PODS, {"limit": "500"})
        return caught.type, reported(caught.value, server.url)

    return setting.run(response, exchange, **limits)


async def failure_at(setting: Setting, url: str, **limits: float) -> str:
    """Return how a connection fails."""
    client = setting.client(url, **limits)
    with pytest.raises(ConnectionFailedError) as caught:
        await client.get(PODS, {})
    await client.close()
    return reported(caught.value, url)


def fails_at(setting: Setting, url: str, **limits: float) -> str:
    """Return how a connection fails, from outside of an event loop."""
    return asyncio.run(failure_at(setting, url, **limits))


# No connection.


@on_both_loops
def test_a_port_where_nobody_listens(setting: Setting) -> None:
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"https://127.0.0.1:{taken.getsockname()[1]}"
        assert fails_at(setting, url) == f"{HEAD}: Connection refused"


@on_both_loops
def test_a_name_of_several_addresses_where_nobody_listens(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    resolve_to(monkeypatch, "127.0.0.1", "127.0.0.2", port=1)
    assert fails_at(setting, "https://kube.example:1") == f"{HEAD}: Connection refused"


@on_both_loops
def test_an_address_that_does_not_answer_leaves_time_for_the_next(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> bytes:
        with socket.create_server(("127.0.0.2", 0), backlog=0) as full:
            port = full.getsockname()[1]
            taken = [socket.socket() for _ in range(4)]  # what the backlog holds; further connections get no answer
            for each in taken:
                each.settimeout(0.0)
                each.connect_ex(("127.0.0.2", port))
            server = await asyncio.start_server(_response_ok, "127.0.0.1", port, ssl=setting.certificates.server_tls())
            resolve_to(monkeypatch, "127.0.0.2", "127.0.0.1", port=port)
            client = setting.client(f"https://localhost:{port}", connect_timeout=5.0)
            try:
                return await client.get(PODS, {})
            finally:
                await client.close()
                server.close()
                for each in taken:
                    each.close()

    assert asyncio.run(main()) == b'{"kind":"PodList"}'


async def _response_ok(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(response())
    await writer.drain()
    writer.close()


@on_both_loops
def test_a_request_that_closes_old_connections_fails_like_the_one_beside_it(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connections that it has made are closed by the other's failure, before it has used them."""
    setting.user = certificate_user(setting, "alice")

    def refuse(_: object) -> socket.socket:
        raise ConnectionRefusedError(errno.ECONNREFUSED, "refused")

    async def exchange(client: ApiClient, _: ApiServer) -> list[bytes | BaseException]:
        await client.get(PODS, {})
        certificate_user(setting, "bob")
        setting.clock.now += 60
        monkeypatch.setattr(client_module, "_watched_socket", refuse)
        return await asyncio.gather(*(client.get(PODS, {}) for _ in range(3)), return_exceptions=True)

    assert [type(each) for each in setting.run(in_turn(response()), exchange)] == [ConnectionFailedError] * 3


def resolve_to(monkeypatch: pytest.MonkeyPatch, *hosts: str, port: int) -> None:
    """Give every name these addresses."""

    async def resolve(*_: object, **__: object) -> list[dict[str, object]]:
        inet = {"hostname": "x", "port": port, "family": socket.AF_INET, "proto": 6, "flags": 0}
        return [{**inet, "host": host} for host in hosts]

    monkeypatch.setattr(aiohttp.ThreadedResolver, "resolve", resolve)


def test_a_name_that_nobody_has(setting: Setting) -> None:
    assert re.fullmatch(
        rf"{HEAD}: unknown host: \w.*", fails_at(setting, "https://no-such-host.invalid", connect_timeout=60.0)
    )


@on_both_loops
def test_a_server_that_does_not_shake_hands(setting: Setting) -> None:
    with closing(socket.socket()) as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        began = time.monotonic()
        url = f"https://127.0.0.1:{silent.getsockname()[1]}"
        assert fails_at(setting, url, connect_timeout=0.3) == f"{HEAD}: no connection within 0.3 s"
        assert 0.2 < time.monotonic() - began < 5


@on_both_loops
@pytest.mark.parametrize(
    ("trusted", "expected"),
    [
        ("stranger", "certificate verify failed: unable to get local issuer certificate"),
        ("authority", "certificate verify failed: IP address mismatch, certificate is not valid for '127.0.0.1'"),
    ],
    ids=["another-authority", "another-name"],
)
def test_a_server_that_is_not_trusted(setting: Setting, trusted: str, expected: str) -> None:
    setting.cluster = {"certificate-authority": str(setting.certificates.crt(trusted))}

    async def main() -> str:
        async with serving(in_turn(response()), setting.certificates.server_tls("named")) as server:
            return await failure_at(setting, server.url)

    assert asyncio.run(main()) == f"{HEAD}: {expected}"


@on_both_loops
def test_a_client_that_is_not_trusted(setting: Setting) -> None:
    # With TLS 1.3 the server says so only after the handshake. A server of asyncio does not say it at all.
    tls = setting.certificates.server_tls()
    tls.load_verify_locations(setting.certificates.crt("stranger"))
    tls.verify_mode = ssl.CERT_REQUIRED
    crt, key = setting.certificates.crt("alice"), setting.certificates.key("alice")
    setting.user = {"client-certificate": str(crt), "client-key": str(key)}

    with socket.create_server(("127.0.0.1", 0)) as listening:

        def refuse() -> None:
            connection, _ = listening.accept()
            with closing(connection), suppress(ssl.SSLError):
                tls.wrap_socket(connection, server_side=True)

        serving_one = threading.Thread(target=refuse)
        serving_one.start()
        text = fails_at(setting, f"https://127.0.0.1:{listening.getsockname()[1]}")
        serving_one.join()

    # The word may be overtaken by the end of the connection.
    assert re.fullmatch(rf"{HEAD}: (TLS: tlsv1 alert unknown ca|Connection reset by peer)", text)


@on_both_loops
def test_a_server_without_tls(setting: Setting) -> None:
    async def main() -> str:
        def speak(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            writer.close()

        server = await asyncio.start_server(speak, "127.0.0.1", 0)
        async with server:
            url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            return await failure_at(setting, url)

    assert asyncio.run(main()) == f"{HEAD}: TLS: wrong version number"


# No answer, or half of one.


@on_both_loops
@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        pytest.param([END], "Server disconnected without sending a response.", id="closed"),
        pytest.param([RESET], "Connection reset by peer", id="reset"),
        pytest.param([b"220 mail ready\r\n\r\n"], "the response is not HTTP: ", id="not-http"),
        pytest.param(
            [b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"],
            "the response is another protocol",
            id="101",
        ),
        pytest.param([b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 20_000], "the response is not HTTP: ", id="headers"),
        pytest.param([head(Transfer_Encoding="chunked") + b"zz\r\n"], "the response is not", id="no-chunk"),
        pytest.param(
            [head(Content_Length="99") + b"{}", END],
            "peer closed connection within its response",
            id="cut-length",
        ),
        pytest.param(
            [head(Transfer_Encoding="chunked") + chunk(b"{}"), END],
            "peer closed connection within its response",
            id="cut-chunks",
        ),
        pytest.param([NO_TLS], "TLS: wrong version number", id="no-tls"),
        pytest.param(
            [response(b"\x1f\x8b\x08nonsense", Content_Encoding="gzip")],
            "400, message: Can not decode content-encoding: gzip",
            id="broken-gzip",
        ),
        pytest.param(
            [response(b"<html>", kind="text/html; charset=utf-8")],
            "the response is text/html, not application/json: is a proxy or a login page in between?",
            id="html",
        ),
        pytest.param(
            [response(b"x", Content_Encoding="br")], "Content-Encoding br was not requested", id="unknown-encoding"
        ),
    ],
)
def test_an_answer_that_is_none(setting: Setting, pieces: list[bytes], expected: str) -> None:
    kind, text = fails(setting, in_turn(pieces))
    assert kind is ConnectionFailedError
    assert text.startswith(f"{HEAD}: {expected}")


def test_an_answer_that_is_refused_here_leaves_no_connection(setting: Setting) -> None:
    async def exchange(client: ApiClient, server: ApiServer) -> None:
        with pytest.raises(ConnectionFailedError):
            await client.get(PODS, {})
        await asyncio.wait_for(server.hung_up.wait(), 5)

    setting.run(in_turn([head(kind="text/html", Content_Length="99") + b"<html>"]), exchange)


def test_a_body_that_ends_with_its_connection_is_whole(setting: Setting) -> None:
    async def exchange(client: ApiClient, _: ApiServer) -> bytes:
        return await client.get(PODS, {})

    whole = [head(kind="Application/JSON; charset=utf-8", Connection="close") + b"{}", END]
    assert setting.run(in_turn(whole), exchange) == b"{}"


@on_both_loops
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

    async def exchange(client: ApiClient, _: ApiServer) -> bytes:
        return await client.get(PODS, {})

    assert setting.run(slow, exchange, read_timeout=0.5) == b"111111"


def test_what_came_before_a_break_is_given(setting: Setting) -> None:
    async def exchange(client: ApiClient, server: ApiServer) -> tuple[bytes, str]:
        async with client.stream(PODS, {"watch": "true"}) as chunks:
            got = await anext(chunks)
            with pytest.raises(ConnectionFailedError) as caught:
                await anext(chunks)
        return got, reported(caught.value, server.url)

    got, text = setting.run(in_turn([head(Transfer_Encoding="chunked") + chunk(b"1\n"), END]), exchange)
    assert got == b"1\n"
    assert text.startswith(f"{HEAD}: peer closed connection within its response")


@on_both_loops
@pytest.mark.parametrize(
    "pieces", [[END], [RESET], [response(b"<html>", kind="text/html")]], ids=["end", "reset", "html"]
)
def test_after_a_failure_the_next_request_succeeds(setting: Setting, pieces: list[bytes]) -> None:
    async def exchange(client: ApiClient, _: ApiServer) -> bytes:
        with pytest.raises(ConnectionFailedError):
            await client.get(PODS, {})
        return await client.get(PODS, {})

    assert setting.run(in_turn(pieces, response()), exchange) == b'{"kind":"PodList"}'


# Through a proxy.


def test_a_proxy_is_gone_through_with_its_password_and_the_servers_name(setting: Setting) -> None:
    async def main() -> str:
        async with (
            proxying() as proxy,
            serving(in_turn(response()), setting.certificates.server_tls("named")) as server,
        ):
            setting.cluster |= {"proxy-url": f"http://joe:pw@127.0.0.1:{proxy.port}", "tls-server-name": "kube.example"}
            setting.user = {"token": "abc"}
            client = setting.client(server.url)
            await client.get(PODS, {})
            await client.close()
            assert server.logins() == ["Bearer abc"]
            assert proxy.heads[0].startswith(f"CONNECT 127.0.0.1:{server.port} HTTP/1.1\r\n")
            return proxy.heads[0]

    requested = asyncio.run(main())
    assert "Proxy-Authorization: Basic am9lOnB3\r\n" in requested
    assert "Bearer" not in requested


def test_a_proxy_that_refuses(setting: Setting) -> None:
    async def main() -> str:
        async with proxying(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n") as proxy:
            setting.cluster |= {"proxy-url": f"http://joe:secret@127.0.0.1:{proxy.port}"}
            return await failure_at(setting, "https://kube.example")

    expected = f"{HEAD} through proxy 127.0.0.1: 407 Proxy Authentication Required"
    assert asyncio.run(main()) == expected


def test_a_server_that_is_not_trusted_behind_a_proxy_does_not_use_up_the_connections(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "MAX_CONNECTIONS", 2)

    async def main() -> set[str]:
        async with (
            proxying() as proxy,
            serving(in_turn(response()), setting.certificates.server_tls("named")) as server,
        ):
            setting.cluster |= {"proxy-url": f"http://127.0.0.1:{proxy.port}"}
            client = setting.client(server.url, connect_timeout=2.0)
            texts = set()
            for _ in range(4):
                with pytest.raises(ConnectionFailedError) as caught:
                    await client.get(PODS, {})
                texts.add(reported(caught.value, server.url))
            await client.close()
            return texts

    mismatch = "certificate verify failed: IP address mismatch, certificate is not valid for '127.0.0.1'"
    assert asyncio.run(main()) == {f"{HEAD} through proxy 127.0.0.1: {mismatch}"}


# What is too large.


def endless(*before: bytes) -> Response:
    async def response(_: Request) -> AsyncIterator[bytes]:
        for each in before:
            yield each
        while True:
            yield chunk(b"x" * 65_536)

    return response


def test_an_answer_without_end_is_refused_at_the_limit(setting: Setting) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    kind, text = fails(setting, endless(head(Transfer_Encoding="chunked")))
    assert kind is ResponseTooLargeError
    assert text.startswith("GET /api/v1/pods ")
    assert text.endswith(": the response has more than 16777216 bytes")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 * 1024  # KiB


def test_an_answer_that_is_decoded_to_very_much_is_refused_at_the_limit(setting: Setting) -> None:
    text = gzip.compress(b"x" * 20_000_000)
    kind, _ = fails(setting, in_turn([response(text, Content_Encoding="gzip")]))
    assert kind is ResponseTooLargeError
