"""What is posted: the request, the answers that are success, and which failures leave open whether it was done."""

import asyncio
import socket
from contextlib import closing

import pytest

from app.api_server.client import ApiClient, ApiError, ConnectionFailedError, ReadTimeoutError, StatusError
from tests.app.api_server.api_server import END, RESET, ApiServer, Request, head, in_turn, response, serving
from tests.app.api_server.client_setting import PODS, Setting
from tests.fake_apiserver.statuses import conflict

BINDING = f"{PODS}/web/binding"
BODY = b'{"kind":"Binding"}'
DONE = response(b'{"status":"Success"}', status="201 Created")


async def post(client: ApiClient, _: ApiServer) -> bytes:
    return await client.post(BINDING, BODY)


def test_json_is_posted_and_the_answer_given(setting: Setting) -> None:
    async def exchange(client: ApiClient, server: ApiServer) -> tuple[bytes, list[Request]]:
        return await post(client, server), server.requests

    answer, (request,) = setting.run(in_turn(DONE), exchange)
    assert answer == b'{"status":"Success"}'
    assert request.line.startswith(f"POST {BINDING} ")
    assert (request.body, request.headers["content-type"]) == (BODY, "application/json")
    assert (request.headers["accept"], request.headers["accept-encoding"]) == ("application/json", "identity")


@pytest.mark.parametrize(("status", "done"), [("200 OK", True), ("201 Created", True), ("204 No Content", False)])
def test_created_is_success_of_a_post(setting: Setting, status: str, *, done: bool) -> None:
    answer = in_turn(response(b"{}", status=status))
    if done:
        assert setting.run(answer, post) == b"{}"
    else:
        with pytest.raises(StatusError):
            setting.run(answer, post)


def test_created_is_no_success_of_a_get(setting: Setting) -> None:
    with pytest.raises(StatusError, match="201 Created"):
        setting.ask(in_turn(DONE))


def test_a_connection_is_kept_for_the_next_request(setting: Setting) -> None:
    async def exchange(client: ApiClient, server: ApiServer) -> list[int]:
        await post(client, server)
        await client.get(PODS, {})
        await post(client, server)
        return [request.connection for request in server.requests]

    assert setting.run(in_turn(DONE, response(), DONE), exchange) == [0, 1, 0], "and POSTs have their own"


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


def test_a_refusal_is_told_with_the_method(setting: Setting) -> None:
    async def exchange(client: ApiClient, server: ApiServer) -> str:
        with pytest.raises(StatusError) as caught:
            await post(client, server)
        assert caught.value.code == 409
        return str(caught.value).replace(server.url, "SERVER")

    status = conflict("pods/binding", "web", "is being deleted")
    body = b'{"kind":"Status","reason":"Conflict","message":"%s"}' % status["message"].replace('"', '\\"').encode()
    expected = f"POST {BINDING} at SERVER: 409 Conflict: {status['message']}"
    assert expected == setting.run(in_turn(response(body, status="409 Conflict")), exchange)


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


def test_without_trust_it_was_not_done(setting: Setting) -> None:
    setting.cluster = {"certificate-authority": str(setting.certificates.crt("stranger"))}

    async def main() -> bool:
        async with serving(in_turn(DONE), setting.certificates.server_tls("named")) as server:
            client = setting.client(server.url)
            with pytest.raises(ConnectionFailedError) as caught:
                await client.post(BINDING, BODY)
            await client.close()
            return caught.value.unsent

    assert asyncio.run(main())
