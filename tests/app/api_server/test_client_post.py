"""What is posted: the request, the answers that are success, and which failures leave open whether it was done."""

import asyncio
import itertools
import socket
from collections.abc import AsyncIterator
from contextlib import closing

import pytest

from app.api_server import client as client_module
from app.api_server.client import ApiClient, ApiError, ConnectionFailedError, ReadTimeoutError, StatusError
from tests.app.api_server.api_server import (
    END,
    RESET,
    ApiServer,
    Request,
    Response,
    head,
    in_turn,
    proxying,
    response,
    serving,
)
from tests.app.api_server.client_setting import PODS, Setting

BINDING = f"{PODS}/web/binding"
BODY = b'{"kind":"Binding"}'
DONE = response(b'{"status":"Success"}', status="201 Created")


async def post(client: ApiClient, _: ApiServer) -> bytes:
    return await client.post(BINDING, BODY)


def test_json_is_posted_and_the_answer_given(setting: Setting) -> None:
    async def exchange(client: ApiClient, server: ApiServer) -> tuple[bytes, list[Request]]:
        return await post(client, server), server.requests

    response, (request,) = setting.run(in_turn(DONE), exchange)
    assert response == b'{"status":"Success"}'
    assert request.line.startswith(f"POST {BINDING} ")
    assert (request.body, request.headers["content-type"]) == (BODY, "application/json")
    assert (request.headers["accept"], request.headers["accept-encoding"]) == ("application/json", "identity")


def test_created_is_success_of_a_post_and_not_of_a_get(setting: Setting) -> None:
    assert setting.run(in_turn(response(b"{}")), post) == b"{}"
    with pytest.raises(StatusError, match=f"POST {BINDING} at .*: 204 No Content"):
        setting.run(in_turn(b"HTTP/1.1 204 No Content\r\n\r\n"), post)
    with pytest.raises(StatusError, match="201 Created"):
        setting.ask(in_turn(DONE))


def test_a_path_is_quoted_but_not_twice(setting: Setting) -> None:
    async def exchange(client: ApiClient, server: ApiServer) -> list[str]:
        await client.post("/api/v1/pods/a b?c%2Fd", b"{}")
        await client.post("/api/v1/namespaces/x/services/https:y:1/proxy/", b"{}")
        return [request.line for request in server.requests]

    assert setting.run(in_turn(DONE), exchange) == [
        "POST /api/v1/pods/a%20b%3Fc%2Fd HTTP/1.1",
        "POST /api/v1/namespaces/x/services/https:y:1/proxy/ HTTP/1.1",
    ]


def test_a_login_that_is_refused_is_renewed_and_the_body_sent_again(setting: Setting) -> None:
    token = setting.folder / "token"
    token.write_text("old")
    setting.user = {"tokenFile": str(token)}

    async def exchange(client: ApiClient, server: ApiServer) -> ApiServer:
        await client.get(PODS, {})
        token.write_text("new")
        await post(client, server)
        return server

    server = setting.run(in_turn(response(), response(b"{}", status="401 Unauthorized"), DONE), exchange)
    assert server.logins() == ["Bearer old", "Bearer old", "Bearer new"]
    assert [request.body for request in server.requests] == [b"", BODY, BODY]


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param([END], id="closed"),
        pytest.param([RESET], id="reset"),
        pytest.param([head("201 Created", Content_Length="9") + b"{", END], id="cut"),
        pytest.param([response(b"<html>", kind="text/html")], id="html"),
    ],
)
def test_a_connection_that_breaks_leaves_open_whether_it_was_done(setting: Setting, pieces: list[bytes]) -> None:
    with pytest.raises(ConnectionFailedError) as caught:
        setting.run(in_turn(pieces), post)
    assert not caught.value.unsent


def test_a_silent_server_leaves_open_whether_it_was_done(setting: Setting) -> None:
    with pytest.raises(ReadTimeoutError):
        setting.run(in_turn([b""]), post, read_timeout=0.2)


def test_without_a_connection_it_was_not_done(setting: Setting) -> None:
    async def main(url: str) -> ApiError:
        client = setting.client(url)
        with pytest.raises(ConnectionFailedError) as caught:
            await client.post(BINDING, BODY)
        await client.close()
        assert caught.value.unsent
        return caught.value

    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"https://127.0.0.1:{taken.getsockname()[1]}"
        assert str(asyncio.run(main(url))) == f"POST {BINDING} at {url}: Connection refused"


# Held back.


def test_what_may_not_be_sent_any_more_is_not_sent_though_the_connection_stands(setting: Setting) -> None:
    async def scenario(client: ApiClient, server: ApiServer) -> tuple[bool, list[bytes]]:
        await client.post(BINDING, b"1", lambda: True)
        with pytest.raises(ConnectionFailedError, match=f"POST {BINDING} at .*: held back") as raised:
            await client.post(BINDING, b"2", lambda: False)
        await client.post(BINDING, b"3")
        return raised.value.unsent, [request.body for request in server.requests]

    assert setting.run(in_turn(DONE), scenario) == (True, [b"1", b"3"])


def test_it_may_be_sent_or_not_as_of_when_a_connection_stands(setting: Setting) -> None:
    async def main() -> list[int]:
        async with proxying() as proxy, serving(in_turn(DONE), setting.certificates.server_tls()) as server:
            setting.cluster |= {"proxy-url": f"http://127.0.0.1:{proxy.port}"}
            client = setting.client(server.url)
            connected: list[int] = []

            def may_send() -> bool:
                connected.append(len(proxy.heads))
                return True

            await client.post(BINDING, BODY, may_send)
            await client.close()
            return connected

    assert asyncio.run(main()) == [1]


# It is sent once.


@pytest.mark.usefixtures("both_loops")
@pytest.mark.parametrize("method", ["get", "post", "put", "patch", "delete"])
@pytest.mark.parametrize("end", [END, RESET], ids=["closed", "reset"])
def test_nothing_is_sent_again_because_a_kept_connection_broke(setting: Setting, method: str, end: bytes) -> None:
    async def send(client: ApiClient) -> None:
        if method == "get":
            await client.get(PODS, {})
        else:
            await getattr(client, method)(PODS, BODY)

    async def exchange(client: ApiClient, server: ApiServer) -> int:
        await send(client)
        with pytest.raises(ConnectionFailedError) as caught:
            await send(client)
        assert not caught.value.unsent
        return len(server.requests)

    assert setting.run(in_turn(response(), [end]), exchange) == 2


# Which connections are kept.


def connections(setting: Setting, response: Response, times: int = 2) -> list[int]:
    """Return the connections on which successful POSTs came, one after the other."""

    async def exchange(client: ApiClient, server: ApiServer) -> list[int]:
        for _ in range(times):
            await post(client, server)
            await asyncio.sleep(0.05)  # what the server does after its answer has arrived by then
        return [request.connection for request in server.requests]

    return setting.run(response, exchange)


@pytest.mark.parametrize(
    ("pieces", "retained"),
    [
        pytest.param([DONE], True, id="as-usual"),
        pytest.param([response(b"{}", Connection="close")], False, id="server-wants-to-close"),
        pytest.param([DONE, END], False, id="closed-behind"),
        pytest.param([DONE, RESET], False, id="reset-behind"),
        pytest.param([DONE + response(b"", status="408 Request Timeout")], False, id="more-than-was-asked"),
        pytest.param([DONE.replace(b"HTTP/1.1", b"HTTP/1.0")], False, id="http-1.0"),
    ],
)
def test_a_connection_is_kept_while_it_is_of_use(setting: Setting, pieces: list[bytes], *, retained: bool) -> None:
    assert connections(setting, in_turn(pieces)) == [0, 0 if retained else 1]


def test_a_connection_that_was_long_unused_is_left(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "IDLE_SECONDS", 0.01)
    assert connections(setting, in_turn(DONE), 3) == [0, 1, 2]


def test_what_a_server_says_unasked_ends_the_connection(setting: Setting) -> None:
    async def late(_: Request) -> AsyncIterator[bytes]:
        yield DONE
        await asyncio.sleep(0.01)
        yield response(b"", status="408 Request Timeout")

    assert connections(setting, late) == [0, 1]


def test_past_the_limit_requests_wait_and_are_not_sent_in_the_end(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "MAX_CONNECTIONS", 2)

    over, arrived = asyncio.Event(), itertools.count()

    async def busy(_: Request) -> AsyncIterator[bytes]:
        if next(arrived) >= 2:  # the others are the second ones of their connections
            await over.wait()
        yield DONE

    async def posted(client: ApiClient, server: ApiServer) -> bytes:
        try:
            return await post(client, server)
        except ConnectionFailedError:
            over.set()
            raise

    async def exchange(client: ApiClient, server: ApiServer) -> tuple[int, int, set[str]]:
        results = await asyncio.gather(*(posted(client, server) for _ in range(5)), return_exceptions=True)
        failed = [each for each in results if isinstance(each, ConnectionFailedError)]
        assert all(each.unsent for each in failed)
        texts = {str(each).replace(server.url, "SERVER") for each in failed}
        return results.count(b'{"status":"Success"}'), len(server.requests), texts

    responded, sent, texts = setting.run(busy, exchange, connect_timeout=1.0)
    assert responded == sent == 4
    assert texts == {f"POST {BINDING} at SERVER: no connection within 1 s"}


def test_a_request_that_is_cancelled_takes_its_connection_with_it(setting: Setting) -> None:
    async def late(request: Request) -> AsyncIterator[bytes]:
        await asyncio.sleep(0.3)
        yield response(b"%d" % request.connection)

    async def exchange(client: ApiClient, server: ApiServer) -> bytes:
        requested = asyncio.create_task(post(client, server))
        await server.requested(1)
        requested.cancel()
        await asyncio.gather(requested, return_exceptions=True)
        await asyncio.wait_for(server.hung_up.wait(), 5)
        return await post(client, server)

    assert setting.run(late, exchange) == b"1"
