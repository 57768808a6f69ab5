"""Requests on real ports: what reaches the server and as whom, what comes back, and when connections are closed."""

import asyncio
import gzip
import logging
import subprocess
import sys
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from app import __version__
from app.api_server.client import ApiClient, ConnectionFailedError, StatusError, impersonating
from app.api_server.credentials import load_credentials
from app.api_server.tls import ConfigurationError
from tests.app.api_server.api_server import ApiServer, Request, chunk, head, in_turn, response, serving
from tests.app.api_server.client_setting import PODS, Setting, write_kubeconfig


def test_a_request_says_what_it_wants(setting: Setting) -> None:
    async def exchange(client: ApiClient, server: ApiServer) -> Request:
        params = {"fieldSelector": "status.phase!=Succeeded,status.phase!=Failed", "limit": "500"}
        assert await client.get(PODS, params) == b'{"kind":"PodList"}'
        return server.requests[0]

    request = setting.run(in_turn(response()), exchange)
    assert (request.path, request.line[-9:]) == (PODS, " HTTP/1.1")
    assert request.query == {"fieldSelector": ["status.phase!=Succeeded,status.phase!=Failed"], "limit": ["500"]}
    assert request.headers["accept"] == "application/json"
    assert request.headers["accept-encoding"] == "identity"
    assert request.headers["user-agent"] == f"kindred/{__version__}"
    assert "cookie" not in request.headers
    assert "authorization" not in request.headers


def test_the_path_follows_that_of_the_server(tmp_path: Path) -> None:
    async def main() -> str:
        async with serving(in_turn(response())) as server:
            config = write_kubeconfig(tmp_path / "config", f"{server.url}/clusters/c-1/")
            client = ApiClient(load_credentials(config, None))
            await client.get(PODS, {})
            await client.close()
            return server.requests[0].path

    assert asyncio.run(main()) == f"/clusters/c-1{PODS}"


def test_the_import_of_the_client_reads_no_authorities() -> None:
    code = "import app.api_server.client, aiohttp.connector as c; print(c._SSL_CONTEXT_VERIFIED.get_ca_certs())"
    imported = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)  # noqa: S603  # our own code
    assert imported.stdout == b"[]\n"


def test_a_proxy_by_tls_is_one_that_the_system_trusts(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(setting.certificates.crt("authority")))

    async def main(name: str) -> str:
        async with serving(in_turn(response()), setting.certificates.server_tls(name)) as proxy:
            setting.cluster = {"proxy-url": proxy.url}
            client = setting.client("http://api.example")
            try:
                await client.get(PODS, {})
            finally:
                await client.close()
            return proxy.requests[0].line

    assert asyncio.run(main("server")) == f"GET http://api.example{PODS} HTTP/1.1"
    with pytest.raises(ConnectionFailedError, match="self-signed certificate"):
        asyncio.run(main("self-signed"))


def test_the_servers_name_is_the_one_of_the_configuration(setting: Setting) -> None:
    setting.cluster |= {"tls-server-name": "kube.example"}

    async def main(name: str) -> bytes:
        tls, requested = setting.certificates.server_tls(name), []
        tls.sni_callback = lambda _, sent, __: requested.append(sent)
        async with serving(in_turn(response()), tls) as server:
            client = setting.client(server.url)
            try:
                return await client.get(PODS, {})
            finally:
                await client.close()
                assert requested == ["kube.example"]

    assert asyncio.run(main("named")) == b'{"kind":"PodList"}'
    with pytest.raises(ConnectionFailedError, match=r"certificate is not valid for 'kube\.example'"):
        asyncio.run(main("server"))


# Streams.


def taking(taken: asyncio.Event) -> Callable[[ApiClient, ApiServer], Awaitable[list[bytes]]]:
    """Return a function that reads a stream. It sets the event after each chunk, and returns all of them."""

    async def exchange(client: ApiClient, _: ApiServer) -> list[bytes]:
        reported: list[bytes] = []
        async with client.stream(PODS, {"watch": "true"}) as chunks:
            async for each in chunks:
                reported.append(each)
                taken.set()
        return reported

    return exchange


def test_chunks_are_given_as_they_arrive(setting: Setting) -> None:
    taken = asyncio.Event()

    async def respond(_: Request) -> AsyncIterator[bytes]:
        yield head(Transfer_Encoding="chunked")
        for data in (b'{"a"', b":1}\n", b"\xe2\x80\xa8\n"):
            yield chunk(data)
            await taken.wait()
            taken.clear()
        yield b"0\r\n\r\n"

    assert setting.run(respond, taking(taken)) == [b'{"a"', b":1}\n", b"\xe2\x80\xa8\n"]


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "GZIP"])
def test_what_a_proxy_compresses_is_decoded_as_it_arrives(setting: Setting, encoding: str) -> None:
    taken = asyncio.Event()

    async def respond(_: Request) -> AsyncIterator[bytes]:
        packer = zlib.compressobj(wbits=zlib.MAX_WBITS if encoding == "deflate" else zlib.MAX_WBITS | 16)
        yield head(Transfer_Encoding="chunked", Content_Encoding=encoding)
        for data in (b"one\n", b"two\n"):
            yield chunk(packer.compress(data) + packer.flush(zlib.Z_SYNC_FLUSH))
            await taken.wait()
            taken.clear()
        yield chunk(packer.flush()) + b"0\r\n\r\n"

    assert setting.run(respond, taking(taken)) == [b"one\n", b"two\n"]


def test_a_compressed_list_is_decoded(setting: Setting) -> None:
    async def exchange(client: ApiClient, _: ApiServer) -> bytes:
        return await client.get(PODS, {})

    packed = response(gzip.compress(b'{"items":[]}'), Content_Encoding="gzip")
    assert setting.run(in_turn(packed), exchange) == b'{"items":[]}'


async def _endless(_: Request) -> AsyncIterator[bytes]:
    yield head(Transfer_Encoding="chunked")
    while True:
        yield chunk(b"{}\n")
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("how", ["left", "error", "cancelled"])
def test_a_stream_that_is_left_closes_its_connection(setting: Setting, how: str) -> None:
    async def watch(client: ApiClient) -> None:
        async with client.stream(PODS, {"watch": "true"}) as chunks:
            await anext(chunks)
            if how == "error":
                raise KeyError(how)
            if how == "cancelled":
                await asyncio.sleep(60)

    async def exchange(client: ApiClient, server: ApiServer) -> None:
        task = asyncio.create_task(watch(client))
        await asyncio.sleep(0.3)
        task.cancel()
        (result,) = await asyncio.gather(task, return_exceptions=True)
        assert type(result) is {"left": type(None), "error": KeyError, "cancelled": asyncio.CancelledError}[how]
        await asyncio.wait_for(server.hung_up.wait(), 5)

    setting.run(_endless, exchange)


# Connections.


def test_lists_share_a_connection_and_watches_have_their_own(setting: Setting) -> None:
    async def respond(request: Request) -> AsyncIterator[bytes]:
        async for piece in (_endless if "watch" in request.query else in_turn(response()))(request):
            yield piece

    async def exchange(client: ApiClient, server: ApiServer) -> list[int]:
        async def watch() -> None:
            async with client.stream(PODS, {"watch": "true"}) as chunks:
                async for _ in chunks:
                    pass

        watches = [asyncio.create_task(watch()) for _ in range(30)]
        await server.requested(30)
        for _ in range(3):
            await client.get(PODS, {})
        for task in watches:
            task.cancel()
        await asyncio.gather(*watches, return_exceptions=True)
        return [request.connection for request in server.requests[30:]]

    assert setting.run(respond, exchange) == [30, 30, 30]


def test_a_dead_peer_is_looked_for_by_the_system(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    import socket  # noqa: PLC0415  # as one name, to be watched

    seen: set[tuple[int, int, int]] = set()

    class Watched(socket.socket):
        def setsockopt(self, *arguments: object) -> None:
            seen.add(arguments)  # type: ignore[arg-type]  # whatever is set
            super().setsockopt(*arguments)  # type: ignore[call-overload]  # the same

    monkeypatch.setattr(socket, "socket", Watched)
    setting.ask(in_turn(response()))
    assert seen >= {
        (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
        (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30),
        (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10),
        (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
    }


def test_a_closed_client_leaves_no_connection_no_cookie_and_no_line_in_the_log(
    setting: Setting, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    async def exchange(client: ApiClient, server: ApiServer) -> None:
        for _ in range(2):
            await client.get(PODS, {})
        assert "cookie" not in server.requests[1].headers
        assert not server.hung_up.is_set()
        await client.close()
        await asyncio.wait_for(server.hung_up.wait(), 5)

    setting.run(in_turn(response(Set_Cookie="a=b; Path=/")), exchange)
    assert caplog.messages == []


# Writes.


JSON = "application/json"


@pytest.mark.parametrize(
    ("method", "status", "kind"),
    [
        ("put", "200 OK", JSON),
        ("patch", "200 OK", "application/strategic-merge-patch+json"),
        ("delete", "200 OK", JSON),
        ("delete", "202 Accepted", JSON),
        ("patch", "202 Accepted", ""),
    ],
)
def test_what_is_written_is_sent_whole_and_only_a_deletion_may_take_its_time(
    setting: Setting, method: str, status: str, kind: str
) -> None:
    async def exchange(client: ApiClient, server: ApiServer) -> Request:
        assert await getattr(client, method)(f"{PODS}/web", b'{"a":1}') == b'{"b":2}'
        return server.requests[0]

    served = in_turn(response(b'{"b":2}', status=status))
    if not kind:
        with pytest.raises(StatusError, match=status):
            setting.run(served, exchange)
        return
    request = setting.run(served, exchange)
    assert request.line.startswith(f"{method.upper()} {PODS}/web ")
    assert (request.body, request.headers["content-type"]) == (b'{"a":1}', kind)


# As whom.


def test_a_user_and_each_group_have_a_header() -> None:
    assert impersonating("jane", ["a", "b"]) == (
        ("Impersonate-User", "jane"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
    )
    assert impersonating("") == ()


@pytest.mark.parametrize(
    ("user", "groups", "message"),
    [
        ("", ["a"], "--as-group: needs --as"),
        ("a\r\nX: y", [], "--as: 'a.*' cannot be the value of a header"),
        ("jane", ["ä"], "--as-group: 'ä' cannot be the value of a header"),
        ("jane", [""], "--as-group: '' cannot be the value of a header"),
    ],
    ids=["groups-alone", "line-break", "no-ascii", "empty"],
)
def test_what_no_header_can_hold_is_refused(user: str, groups: list[str], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        impersonating(user, groups)


def test_requests_of_every_kind_say_it(tmp_path: object) -> None:
    async def ask() -> list[str]:
        async with serving(in_turn(response(b"{}"))) as api:
            kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", api.url)  # type: ignore[operator]  # a Path
            client = ApiClient(load_credentials(kubeconfig, None), impersonating("jane"))
            await client.get("/api/v1/pods", {})
            await client.post("/api/v1/pods", b"{}")
            await client.post_to_proxy("/proxy/explain", {"node": ["a", "b"]}, b"{}", {"Kindred-Token": "t"})
            await client.close()
            assert api.requests[-1].query == {"node": ["a", "b"]}
            assert api.requests[-1].headers["kindred-token"] == "t"
            return [request.headers.get("impersonate-user", "") for request in api.requests]

    assert asyncio.run(ask()) == ["jane"] * 3
