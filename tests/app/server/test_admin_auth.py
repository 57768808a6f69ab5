"""Who may use the admin port, by requests to the app and over real connections."""

import asyncio
import ssl
from pathlib import Path
from typing import Final

import pytest
from fastapi import FastAPI
from starlette.types import Message, Receive, Scope, Send

from app.admin.openapi import describe
from app.admin.page_routes import OPEN_PATHS
from app.api_server.tls import ConfigurationError
from app.server.auth import ADMIN, TOKEN_HEADER, AdminAuthentication, AdminToken
from app.server.connections import Connections, RejectReason
from app.server.ports import Port
from app.settings.limits import DEFAULTS
from app.settings.settings import Settings
from app.wiring.main import create_service
from tests.app.asgi import ask
from tests.app.questions import shop
from tests.app.server.conversations import PATIENCE, connected, read_response, request, serving, until
from tests.app.server.tls.secrets import Certificates

TOKEN: Final = "s3cr3t-t0ken"  # noqa: S105 - of a test
READ_TOKEN: Final = "r3ad-0nly"  # noqa: S105 - the same
PATH: Final = "/debug/config"


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    return file


def admin(**settings: object) -> Port:
    service = create_service(Settings.model_validate({"admin": "127.0.0.1:0", **settings}), shop(), None)
    assert service.admin is service.ports[-1].app
    return service.ports[-1]


def test_on_the_loopback_without_a_setting_it_is_open() -> None:
    assert ask(admin().app, "GET", PATH).status_code == 200


@pytest.mark.parametrize("header", [f"Bearer {TOKEN}", f"bearer  {TOKEN} "], ids=["plain", "as-it-may-be-written"])
def test_the_bearer_of_the_token_is_let_in(token_file: Path, header: str) -> None:
    app = admin(admin_token_file=token_file).app
    assert ask(app, "GET", PATH, headers={"Authorization": header}).status_code == 200


@pytest.mark.parametrize("path", sorted(OPEN_PATHS))
def test_anybody_may_get_the_page_and_nothing_else(token_file: Path, path: str) -> None:
    app = admin(admin_token_file=token_file).app
    assert ask(app, "GET", path).status_code == 200
    assert ask(app, "HEAD", path).status_code == 200
    assert ask(app, "POST", path).status_code == 401


@pytest.mark.parametrize("path", ["/debug/mirror", "/pending", "/openapi.json", "/page", "/page/", "/page/x.js"])
def test_what_is_no_file_of_the_page_needs_proof(token_file: Path, path: str) -> None:
    assert ask(admin(admin_token_file=token_file).app, "GET", path).status_code == 401


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer wrong"},
        {"Authorization": f"Bearer {TOKEN}x"},
        {"Authorization": f"Bearer {TOKEN[:-1]}"},
        {"Authorization": TOKEN},
        {"Authorization": f"Basic {TOKEN}"},
        {"X-Authorization": f"Bearer {TOKEN}"},
    ],
    ids=["none", "no-token", "wrong", "longer", "shorter", "no-scheme", "basic", "another-header"],
)
@pytest.mark.parametrize("path", [PATH, "/debug/mirror", "/openapi.json", "/nowhere", "/page/nothing.js"])
def test_whoever_bears_another_one_is_not(token_file: Path, headers: dict[str, str], path: str) -> None:
    port = admin(admin_token_file=token_file)
    rejection = ask(port.app, "GET", path, headers=headers)
    assert (rejection.status_code, rejection.json()) == (401, {"detail": "the admin port needs a bearer token"})
    assert rejection.headers["www-authenticate"] == 'Bearer realm="kindred"'
    assert port.connections.rejected[RejectReason.UNAUTHORIZED] == 1


def test_nobody_bears_an_empty_token(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(" \n")
    port = admin(admin_token_file=tmp_path / "token")
    for header in ("Bearer ", "Bearer"):
        assert ask(port.app, "GET", PATH, headers={"Authorization": header}).status_code == 401


def test_a_token_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        admin(admin_token_file=tmp_path / "none")
    assert str(caught.value) == f"KINDRED_ADMIN_TOKEN_FILE: token {tmp_path}/none: No such file or directory"


def test_a_token_that_would_go_as_plain_text_is_warned_of(token_file: Path, caplog: pytest.LogCaptureFixture) -> None:
    admin(admin_token_file=token_file)
    assert "without KINDRED_TLS_DIRECTORY the token goes over the network as plain text" in caplog.text


def test_the_token_is_read_again_when_it_changes(token_file: Path, caplog: pytest.LogCaptureFixture) -> None:
    token = AdminToken(token_file, pause=0.02)

    async def rotated() -> None:
        async with asyncio.timeout(PATIENCE):
            running = asyncio.create_task(token.run())
            token_file.write_text("another")  # noqa: ASYNC240 - of a test, and short
            await until(lambda: token.matches(b"another"))
            assert not token.matches(TOKEN.encode())
            token_file.unlink()  # noqa: ASYNC240 - the same
            await until(lambda: "No such file" in caplog.text)
            assert token.matches(b"another")
            token_file.write_text("")  # noqa: ASYNC240 - the same
            await until(lambda: not token.matches(b"another"))
            running.cancel()

    asyncio.run(rotated())
    assert not token.matches(b"")
    assert caplog.text.count("No such file") == 1
    assert "another" not in caplog.text


def test_the_start_and_the_end_of_the_app_need_no_proof(token_file: Path) -> None:
    begun = []

    async def app(scope: object, receive: object, send: object) -> None:  # noqa: ARG001 - ASGI
        begun.append(scope)

    connections = Connections("admin", DEFAULTS)
    authentication = AdminAuthentication(app, connections, AdminToken(token_file))
    asyncio.run(authentication({"type": "lifespan"}, None, None))  # type: ignore[arg-type]  # not used
    assert begun == [{"type": "lifespan"}]


# The token for reading.


@pytest.fixture
def read_token_file(tmp_path: Path) -> Path:
    file = tmp_path / "read-token"
    file.write_text(READ_TOKEN)
    return file


@pytest.mark.parametrize("header", ["Authorization", "Kindred-Token"])
def test_the_bearer_of_the_token_for_reading_is_let_in_and_changes_nothing(
    token_file: Path, read_token_file: Path, header: str
) -> None:
    port = admin(admin_token_file=token_file, admin_read_token_file=read_token_file)
    borne = {header: f"{'Bearer ' if header == 'Authorization' else ''}{READ_TOKEN}"}
    assert ask(port.app, "GET", PATH, headers=borne).status_code == 200
    assert ask(port.app, "POST", "/explain", b'{"pod": "a/b"}', borne).status_code == 404
    assert ask(port.app, "PUT", PATH, b"{}", borne).status_code == 405
    assert ask(port.app, "DELETE", "/no/such/route", headers=borne).status_code == 404


def test_the_token_for_reading_alone_guards_the_port(read_token_file: Path) -> None:
    app = admin(admin_read_token_file=read_token_file).app
    assert ask(app, "GET", PATH).status_code == 401
    assert ask(app, "GET", PATH, headers={"Authorization": f"Bearer {READ_TOKEN}"}).status_code == 200


@pytest.mark.parametrize("token", ["wrong", "", READ_TOKEN[:-1]])
def test_another_token_beside_the_one_for_reading_is_nobodys(read_token_file: Path, token: str) -> None:
    rejection = ask(admin(admin_read_token_file=read_token_file).app, "GET", PATH, headers={"Kindred-Token": token})
    assert (rejection.status_code, rejection.json()) == (401, {"detail": "the admin port needs a bearer token"})


def test_a_wrong_header_of_our_own_is_not_made_good_by_the_other(token_file: Path) -> None:
    both = {"Kindred-Token": "wrong", "Authorization": f"Bearer {TOKEN}"}
    assert ask(admin(admin_token_file=token_file).app, "GET", PATH, headers=both).status_code == 401


def test_a_missing_file_of_the_token_for_reading_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        admin(admin_read_token_file=tmp_path / "none")
    assert str(caught.value) == f"KINDRED_ADMIN_READ_TOKEN_FILE: token {tmp_path}/none: No such file or directory"


def test_a_token_makes_an_admin_of_its_own_request_alone(token_file: Path, read_token_file: Path) -> None:
    """The requests of a connection share a state, and the next one may have another token."""
    found = []

    async def app(scope: Scope, _receive: Receive, _send: Send) -> None:
        found.append(scope["state"].get(ADMIN, False))

    async def receive() -> Message:
        raise AssertionError

    async def send(_: Message) -> None:
        raise AssertionError

    connections = Connections("admin", DEFAULTS)
    tokens = AdminToken(token_file), AdminToken(read_token_file)
    guarded = AdminAuthentication(app, connections, tokens[0], read_token=tokens[1])
    shared: dict[str, object] = {}
    for token in (TOKEN, READ_TOKEN):
        headers = [(TOKEN_HEADER.lower().encode(), token.encode())]
        scope = {"type": "http", "method": "GET", "path": PATH, "headers": headers, "state": shared}
        asyncio.run(guarded(scope, receive, send))
    assert (found, shared) == ([True, False], {})


# Over TLS.


def secured(certificates: Certificates, **settings: object) -> Port:
    return admin(
        tls_directory=certificates.directory(),
        **settings,
    )


def requested(port: Port, tls: ssl.SSLContext, *headers: str) -> int:
    """Ask a port over a connection of its own; give the status."""
    statuses = []

    async def talked() -> None:
        async with asyncio.timeout(PATIENCE), serving(port) as (_, number), connected(number, tls) as (reader, writer):
            writer.write(request(PATH, b"", *headers, method="GET"))
            statuses.append((await read_response(reader))[0])

    asyncio.run(talked())
    return statuses[0]


def test_the_token_opens_the_port_over_tls(certificates: Certificates, token_file: Path) -> None:
    for token, status in ((TOKEN, 200), ("another", 401)):
        port = secured(certificates, admin_token_file=token_file)
        assert requested(port, certificates.client_tls(), f"Authorization: Bearer {token}") == status


def test_the_schedulers_certificate_does_not_open_the_admin_port(certificates: Certificates, token_file: Path) -> None:
    port = admin(tls_directory=certificates.directory(clients=True), admin_token_file=token_file)
    assert requested(port, certificates.client_tls("scheduler")) == 401


def test_without_a_token_the_loopback_is_plain_http_because_no_certificate_names_it(certificates: Certificates) -> None:
    """As `kubectl port-forward` and the runbook of docs/operate.md reach the overlays full-offload and decide."""
    assert secured(certificates).tls is None


def test_the_app_has_no_route_but_the_page_that_needs_no_proof(token_file: Path) -> None:
    app = admin(admin_token_file=token_file).app
    assert isinstance(app, FastAPI)
    paths = (describe(app)["paths"].keys() | {"/events"}) - OPEN_PATHS  # a stream without an end is not described
    assert len(paths) > 10
    assert {ask(app, "GET", path).status_code for path in paths} == {401}
