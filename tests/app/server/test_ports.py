"""The headers that each port sends with every response."""

import asyncio
from pathlib import Path
from typing import Final

import pytest

from app.server.ports import Port
from app.settings.limits import Limits
from app.settings.settings import Settings
from app.wiring.main import create_service
from tests.app.questions import shop
from tests.app.server.conversations import PATIENCE, connected, request, serving

ON_ALL: Final = (b"\r\ncache-control: no-store\r\n", b"\r\nx-content-type-options: nosniff\r\n")


def port_of(index: int, **settings: object) -> Port:
    values = {"listen": "127.0.0.1:0", "admin": "127.0.0.1:0", **settings}
    limits = Limits(max_body_bytes=1024, max_header_bytes=1024)
    return create_service(Settings.model_validate(values), shop(), None, limits=limits).ports[index]


def head_of_response(port: Port, sent: bytes) -> bytes:
    async def talked() -> bytes:
        async with asyncio.timeout(PATIENCE), serving(port) as (_, number), connected(number) as (reader, writer):
            writer.write(sent)
            return await reader.readuntil(b"\r\n\r\n")

    return asyncio.run(talked())


def get(path: str, *headers: str, method: str = "GET") -> bytes:
    return request(path, b"", *headers, method=method)


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (get("/"), 200),
        (get("/", method="HEAD"), 200),
        (get("/page/page.js"), 200),
        (get("/page/icon.svg"), 200),
        (get("/openapi.json"), 200),
        (get("/debug/mirror"), 200),
        (get("/pending"), 200),
        (get("/nowhere"), 404),
        (get("/page/nothing.js"), 404),
        (get("/debug/mirror", method="DELETE"), 405),
        (request("/explain", b"{"), 400),
        (request("/explain", b"{" + b" " * 1024), 413),
        (request("/explain/nodes?score=best", b"{}"), 422),
        (get("/debug/mirror", "Sec-Fetch-Site: cross-site"), 403),
        (get("/debug/mirror").replace(b"localhost", b"example.com"), 421),
        (b"no http\r\n\r\n", 400),
        (get("/", "X: " + "a" * 1024), 431),
    ],
    ids=lambda given: str(given) if isinstance(given, int) else given[:24].decode("ascii", "replace").strip(),
)
def test_every_answer_of_the_admin_port_is_kept_nowhere_and_is_what_it_says(sent: bytes, status: int) -> None:
    head = head_of_response(port_of(1), sent)
    assert head.startswith(b"HTTP/1.1 %d " % status)
    assert [head.lower().count(header) for header in ON_ALL] == [1, 1]
    assert head.lower().count(b"\r\ncache-control:") == 1


def test_so_is_the_answer_to_who_bears_no_token(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret")
    head = head_of_response(port_of(1, admin_token_file=tmp_path / "token"), get("/debug/mirror"))
    assert head.startswith(b"HTTP/1.1 401 ")
    assert [head.lower().count(header) for header in ON_ALL] == [1, 1]


def test_the_schedulers_port_spends_no_bytes_on_it() -> None:
    head = head_of_response(port_of(0), request("/filter", b"{"))
    assert [head.lower().count(header) for header in ON_ALL] == [0, 0]


@pytest.mark.parametrize("index", [0, 1], ids=["extender", "admin"])
def test_refusals_have_a_date_as_answers_do(index: int) -> None:
    assert head_of_response(port_of(index), b"no http\r\n\r\n").lower().count(b"\r\ndate: ") == 1


def test_effects_that_every_client_can_use_are_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    reported = "scheduler's port: every client that reaches it can use KINDRED_BIND=true and KINDRED_PREEMPT=evict"
    create_service(Settings(bind=True, preempt="evict"), shop(), None)
    assert reported not in caplog.text
    allowed = Settings(bind=True, preempt="evict", listen="[::]:8888", allow_unauthenticated_effects=True)
    create_service(allowed, shop(), None)
    assert reported in caplog.text
