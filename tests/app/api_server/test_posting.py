"""POSTs on connections of their own: what is answered and which connections are kept, on both event loops."""

import asyncio
import gzip
import zlib
from collections.abc import AsyncIterator

import httpx
import pytest

from app.api_server import posting
from app.api_server.client import ApiClient, ConnectionFailedError
from tests.app.api_server.api_server import END, RESET, ApiServer, Request, chunk, head, in_turn, response, serving
from tests.app.api_server.client_setting import Setting
from tests.app.api_server.connect_proxy import proxying
from tests.app.api_server.posting_setting import DONE, HEAD, PATH, connections, post

pytestmark = pytest.mark.usefixtures("both_loops")


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
