"""What a browser may be made to send to the admin port by pages of others, over real connections."""

import asyncio
import json
import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from app.admin.page_routes import OPEN_PATHS
from app.server.connections import RejectReason
from app.server.ports import Port
from app.settings.settings import Settings
from app.wiring.main import create_service
from tests.app.questions import shop
from tests.app.server.conversations import PATIENCE, connected, read_response, serving

PATH: Final = "/debug/config"
FIRST: Final = f"GET {PATH} HTTP/1.1"
NUMBER: Final = "NUMBER"  # stands for the port's, which is not known before
Reported = tuple[int, dict[str, str]]


def admin(**settings: object) -> Port:
    return create_service(Settings.model_validate({"admin": "127.0.0.1:0", **settings}), shop(), None).ports[-1]


def requested(port: Port, *heads: Sequence[str], tls: ssl.SSLContext | None = None) -> list[Reported]:
    """Send requests with these lines and no others; give the status of each, and the members of the answer."""
    reported: list[Reported] = []

    async def talked(number: int, head: Sequence[str]) -> None:
        async with connected(number, tls) as (reader, writer):
            lines = [line.replace(NUMBER, str(number)) for line in head]
            writer.write("\r\n".join([*lines, "", ""]).encode())
            status, _, body = await read_response(reader)
            reported.append((status, json.loads(body) if body.startswith(b"{") else {}))

    async def talked_of_all() -> None:
        async with asyncio.timeout(PATIENCE), serving(port) as (_, number):
            for head in heads:
                await talked(number, head)

    asyncio.run(talked_of_all())
    return reported


def test_an_address_is_answered_as_nobody_else_can_make_it_ours() -> None:
    hosts = [
        "localhost:NUMBER",  # of kubectl port-forward
        "127.0.0.1:NUMBER",
        "[::1]:NUMBER",
        "localhost",
        "LocalHost.:1",
        "10.0.0.7:80",
        "[::1]",
    ]
    reported = requested(admin(), *([FIRST, f"Host: {host}"] for host in hosts))
    assert dict(zip(hosts, (status for status, _ in reported), strict=True)) == dict.fromkeys(hosts, 200)


def test_a_client_without_a_host_is_answered_as_browsers_have_one() -> None:
    assert requested(admin(), [f"GET {PATH} HTTP/1.0"])[0][0] == 200


@pytest.mark.parametrize("first", [FIRST, "GET / HTTP/1.1", f"PUT {PATH} HTTP/1.1"])
def test_a_name_that_others_may_have_made_ours_is_refused_and_told_what_is_not(first: str) -> None:
    hosts = [
        "evil.example:1",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "evil.localhost",
        "kindred:1",
        "",
        "localhost:x",
        "localhost:1:2",
        "localhost@evil.example",
        "[evil.example]",
        "[::1",
        "::1",
    ]
    port = admin()
    reported = requested(port, *([first, f"Host: {host}", "Sec-Fetch-Site: same-origin"] for host in hosts))
    rule = "expected localhost or an IP address, because KINDRED_ADMIN_TOKEN_FILE is not set"
    assert reported == [(421, {"detail": f"Host {host!r}: {rule}"}) for host in hosts]
    assert port.connections.rejected[RejectReason.HOST] == len(hosts)


def test_one_host_that_is_ours_does_not_cover_another() -> None:
    assert requested(admin(), [FIRST, "Host: localhost", "Host: evil.example"])[0][0] == 421


@pytest.mark.parametrize("first", [FIRST, "POST /explain HTTP/1.1", "OPTIONS / HTTP/1.1", "POST / HTTP/1.1"])
def test_a_page_of_another_site_is_not_answered(first: str) -> None:
    port = admin()
    foreign = [
        ["Sec-Fetch-Site: cross-site"],
        ["Sec-Fetch-Site: same-site", "Origin: http://localhost:3000"],
        ["Sec-Fetch-Site: something-new"],
        ["Origin: http://evil.example"],
        ["Origin: http://localhost:1"],
        ["Origin: http://localhost"],
        ["Origin: null"],
    ]
    reported = requested(port, *([first, "Host: localhost:NUMBER", *headers] for headers in foreign))
    named = [headers[0].partition(": ") for headers in foreign]
    rule = "the admin port serves no page of another site"
    assert reported == [(403, {"detail": f"{name} {value!r}: {rule}"}) for name, _, value in named]
    assert port.connections.rejected[RejectReason.CROSS_SITE] == len(foreign)


def test_anybody_may_link_to_the_page() -> None:
    headers = ["Host: localhost", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"]
    reported = requested(admin(), *([f"GET {path} HTTP/1.1", *headers] for path in sorted(OPEN_PATHS)))
    assert {status for status, _ in reported} == {200}


def test_the_page_itself_is_answered_and_whoever_types_an_address() -> None:
    ours = [
        ["Sec-Fetch-Site: same-origin", "Origin: http://localhost:NUMBER"],
        ["Sec-Fetch-Site: same-origin", "Origin: null"],
        ["Sec-Fetch-Site: none"],
        ["Origin: http://localhost:NUMBER"],
        ["Origin: HTTP://LOCALHOST:NUMBER"],
    ]
    reported = requested(admin(), *([FIRST, "Host: localhost:NUMBER", *headers] for headers in ours))
    assert [status for status, _ in reported] == [200] * len(ours)


def test_what_is_refused_is_logged_without_what_was_sent(caplog: pytest.LogCaptureFixture) -> None:
    requested(admin(), [FIRST, "Host: evil.example"], [FIRST, "Host: localhost", "Origin: http://evil.example"])
    assert "admin port: rejected 127.0.0.1: foreign host" in caplog.text
    assert "admin port: rejected 127.0.0.1: cross site" in caplog.text
    assert "evil" not in caplog.text


def test_with_a_token_every_name_will_do_as_no_page_of_others_has_it(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("right")
    headers = ["Host: kindred.kindred.svc", "Origin: https://kindred.example", "Authorization: Bearer right"]
    assert requested(admin(admin_token_file=tmp_path / "token"), [FIRST, *headers])[0][0] == 200
