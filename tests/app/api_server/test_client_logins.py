"""Logins: how each kind reaches the server, and what happens when it is refused."""

import asyncio
import json
import time
from collections.abc import AsyncIterator

import pytest

from app.api_server.client import ApiClient, StatusError
from app.api_server.credentials import CredentialsError
from tests.app.api_server.api_server import END, ApiServer, Request, chunk, head, in_turn, response
from tests.app.api_server.client_setting import (
    PODS,
    Setting,
    certificate_status,
    certificate_user,
    exec_user,
    printing,
    runs,
    write_plugin,
)

UNAUTHORIZED = response(b'{"kind":"Status","code":401,"reason":"Unauthorized","message":"no"}', "401 Unauthorized")


def test_a_token_file_reaches_the_server_and_what_it_is_a_minute_later(setting: Setting) -> None:
    token = setting.folder / "token"
    token.write_text("one")
    setting.user = {"tokenFile": str(token)}

    async def exchange(client: ApiClient, server: ApiServer) -> list[str]:
        await client.get(PODS, {})
        token.write_text("two")
        setting.clock.now += 60
        await client.get(PODS, {})
        return server.logins()

    assert setting.run(in_turn(response()), exchange) == ["Bearer one", "Bearer two"]


def test_a_client_certificate_reaches_the_server_beside_a_token(setting: Setting) -> None:
    setting.user = {**certificate_user(setting, "alice"), "token": "abc"}
    (request,) = setting.ask(in_turn(response()))
    assert (request.client, request.headers["authorization"]) == ("alice", "Bearer abc")


def test_a_new_client_certificate_reaches_the_server_and_streams_go_on(setting: Setting) -> None:
    setting.user = certificate_user(setting, "alice")
    go_on = asyncio.Event()

    async def respond(request: Request) -> AsyncIterator[bytes]:
        if "watch" not in request.query:
            yield response()
            return
        yield head(Transfer_Encoding="chunked") + chunk(b"1\n")
        await go_on.wait()
        yield chunk(b"2\n") + b"0\r\n\r\n"

    async def exchange(client: ApiClient, server: ApiServer) -> tuple[list[tuple[str, int]], bytes]:
        async with client.stream(PODS, {"watch": "true"}) as chunks:
            reported = await anext(chunks)
            for name in ("alice", "bob", "bob"):
                certificate_user(setting, name)
                setting.clock.now += 60
                await client.get(PODS, {})
            go_on.set()
            reported += b"".join([each async for each in chunks])
        await asyncio.wait_for(server.hung_up.wait(), 5)  # the connections of the old certificate
        return [(request.client, request.connection) for request in server.requests], reported

    # Three connections: the stream's, the lists' as alice, and as bob.
    assert setting.run(respond, exchange) == ([("alice", 0), ("alice", 1), ("bob", 2), ("bob", 2)], b"1\n2\n")


# Logins that are refused.


def test_a_refused_login_is_renewed_once_and_asked_with_again(setting: Setting) -> None:
    setting.user = exec_user(write_plugin(setting.folder, printing('{"token": "abc"}')))
    requests = setting.ask(in_turn(UNAUTHORIZED, response()), times=3)
    assert [request.headers["authorization"] for request in requests] == ["Bearer abc"] * 4
    assert runs(setting.folder) == 2
    assert {request.connection for request in requests} == {0}


def test_a_login_that_is_refused_twice_is_an_error(setting: Setting) -> None:
    setting.user = exec_user(write_plugin(setting.folder, printing('{"token": "abc"}')))

    async def exchange(client: ApiClient, server: ApiServer) -> tuple[str, int]:
        with pytest.raises(StatusError) as caught:
            await client.get(PODS, {})
        return str(caught.value).replace(server.url, "SERVER"), len(server.requests)

    assert setting.run(in_turn(UNAUTHORIZED), exchange) == (f"GET {PODS} at SERVER: 401 Unauthorized: no", 2)
    assert runs(setting.folder) == 2


def test_requests_that_are_refused_at_the_same_time_renew_the_login_once(setting: Setting) -> None:
    script = write_plugin(setting.folder, f"echo x >> {setting.folder}/n; n=$(wc -l < {setting.folder}/n)\n")
    script.write_text(script.read_text() + printing('{"token": "t$n"}').replace("<<'END'", "<<END"))
    setting.user = exec_user(script)

    async def respond(request: Request) -> AsyncIterator[bytes]:
        fresh = request.headers["authorization"] == "Bearer t2"
        await asyncio.sleep(0.02 * request.connection)  # so that some are refused when the login is renewed already
        yield response() if fresh else UNAUTHORIZED

    async def exchange(client: ApiClient, _: ApiServer) -> None:
        await asyncio.gather(*(client.get(PODS, {}) for _ in range(10)))

    setting.run(respond, exchange)
    assert runs(setting.folder) == 2


def test_certificates_that_are_refused_at_the_same_time_are_renewed_once(setting: Setting) -> None:
    write_plugin(setting.folder, printing(certificate_status(setting.certificates, "alice")))
    setting.user = exec_user(setting.folder / "plugin")

    async def respond(request: Request) -> AsyncIterator[bytes]:
        write_plugin(setting.folder, printing(certificate_status(setting.certificates, "bob")))
        await asyncio.sleep(0.05 * request.connection)  # so that some are refused when it is renewed already
        yield response() if request.client == "bob" else UNAUTHORIZED

    async def exchange(client: ApiClient, _: ApiServer) -> None:
        await asyncio.gather(*(client.get(PODS, {}) for _ in range(6)))

    setting.run(respond, exchange)
    assert runs(setting.folder) == 2


def test_a_stream_renews_a_refused_login_too_and_one_that_cannot_be_renewed_is_told(setting: Setting) -> None:
    setting.user = {"tokenFile": "token"}
    token = setting.folder / "token"
    token.write_text("old")

    async def exchange(client: ApiClient, server: ApiServer) -> list[str]:
        token.write_text("new")
        async with client.stream(PODS, {"watch": "true"}) as chunks:
            assert await anext(chunks) == b'{"kind":"PodList"}'
        token.unlink()
        with pytest.raises(CredentialsError, match="token: No such file or directory"):
            await client.get(PODS, {})
        return server.logins()

    logins = setting.run(in_turn(UNAUTHORIZED, response(), UNAUTHORIZED), exchange)
    assert logins == ["Bearer old", "Bearer new", "Bearer new"]


@pytest.mark.parametrize("status", ["403 Forbidden", "500 Internal Server Error", "204 No Content", "302 Found"])
def test_other_refusals_are_not_asked_again(setting: Setting, status: str) -> None:
    async def exchange(client: ApiClient, server: ApiServer) -> tuple[int, int]:
        with pytest.raises(StatusError) as caught:
            await client.get(PODS, {})
        return caught.value.code, len(server.requests)

    code = int(status.split(maxsplit=1)[0])
    served = in_turn(b"HTTP/1.1 204 No Content\r\n\r\n" if code == 204 else response(b"", status))
    assert setting.run(served, exchange) == (code, 1)


def test_a_refusal_is_told_with_its_status_and_its_wait(setting: Setting) -> None:
    body = json.dumps({"kind": "Status", "reason": "TooManyRequests", "message": "later"}).encode()

    async def exchange(client: ApiClient, server: ApiServer) -> tuple[str, float | None]:
        with pytest.raises(StatusError) as caught:
            await client.get(PODS, {"limit": "1"})
        return str(caught.value).replace(server.url, "SERVER"), caught.value.retry_after

    reported = setting.run(in_turn(response(body, "429 Too Many Requests", Retry_After="3")), exchange)
    assert reported == (f"GET {PODS} at SERVER: 429 TooManyRequests: later", 3.0)


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

    async def exchange(client: ApiClient, _: ApiServer) -> str:
        with pytest.raises(StatusError) as caught:
            await client.get(PODS, {})
        return caught.value.message[:10]

    cut = [head("503 Service Unavailable", "text/plain", Content_Length="99") + b"busy busy busy", END]
    for served, limit in ((in_turn(cut), 10.0), (stalls, 1.0), (endless, 10.0), (drips, 1.0)):
        began = time.monotonic()
        assert setting.run(served, exchange, connect_timeout=limit) == "busy busy "
        assert time.monotonic() - began < 8
