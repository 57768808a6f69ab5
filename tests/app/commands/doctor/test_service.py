"""A visit to a service: what it gives where one answers, and what it says where none does."""

import asyncio
import socket
import ssl
from pathlib import Path

import pytest

from app.commands.doctor.service import TlsFiles, Visit, fetch_settings, visit
from app.scheduler_configuration.scheduler_config import UnreadableError
from tests.app.api_server.api_server import END, Answer, in_turn, response, serving
from tests.app.api_server.certificates import Certificates
from tests.app.serving import ANY_PORT, kindred

NO_FILES = TlsFiles()


def visited(answer: Answer, tls: ssl.SSLContext | None = None, files: TlsFiles = NO_FILES, scheme: str = "") -> Visit:
    async def main() -> Visit:
        async with serving(answer, tls) as server:
            url = f"{scheme or ('https' if tls else 'http')}://127.0.0.1:{server.port}"
            return await asyncio.to_thread(visit, url, files)

    return asyncio.run(main())


def fetched(answer: Answer, token_file: Path | None = None) -> tuple[dict[str, dict[str, object]], list[str]]:
    async def main() -> tuple[dict[str, dict[str, object]], list[str]]:
        async with serving(answer) as server:
            told = await asyncio.to_thread(fetch_settings, server.url, NO_FILES, token_file)
            return told, [server.requests[0].path, *server.logins()]

    return asyncio.run(main())


def test_a_running_kindred_is_asked_everything(tmp_path: Path) -> None:
    with kindred(tmp_path, "serve", "--demo", *ANY_PORT) as service:
        result = visit(service.url + "/", NO_FILES)
    assert (service.url, "", "") == (result.url, result.failure, result.mending)
    assert {"/version", "/readyz", "/metrics"} == set(result.answers)
    assert {200} == {answer.status for answer in result.answers.values()}


def test_tls_with_a_certificate_on_both_sides_works(certificates: Certificates) -> None:
    files = TlsFiles(certificates.crt(), certificates.crt("alice"), certificates.key("alice"))
    tls = certificates.asking_tls()
    tls.verify_mode = ssl.CERT_REQUIRED
    assert visited(in_turn(response()), tls, files).failure == ""


@pytest.mark.parametrize(
    ("server", "trusted", "told"),
    [
        ("server", "stranger", "certificate verify failed"),
        ("named", "authority", "IP address mismatch"),
    ],
)
def test_a_certificate_that_is_not_accepted_is_told(
    certificates: Certificates, server: str, trusted: str, told: str
) -> None:
    result = visited(in_turn(response()), certificates.server_tls(server), TlsFiles(certificates.crt(trusted)))
    assert told in result.failure
    assert "--ca-file with the CA of its certificate" in result.mending


def test_a_server_that_wants_a_certificate_is_told(certificates: Certificates) -> None:
    tls = certificates.asking_tls()
    tls.verify_mode = ssl.CERT_REQUIRED
    result = visited(in_turn(response()), tls, TlsFiles(certificates.crt()))
    assert result.failure.startswith("/version: ")
    assert "--cert-file and --key-file" in result.mending


def test_plain_http_where_tls_is_asked_is_told(tmp_path: Path) -> None:
    with kindred(tmp_path, "serve", "--demo", *ANY_PORT) as service:
        result = visit(service.url.replace("http:", "https:"), NO_FILES)
    assert "SSL" in result.failure


def test_tls_where_plain_http_is_asked_is_told(certificates: Certificates) -> None:
    result = visited(in_turn(response()), certificates.server_tls(), NO_FILES, "http")
    assert result.failure.startswith("/version: ")
    assert "begins with https" in result.mending


def test_a_connection_that_ends_is_told() -> None:
    result = visited(in_turn(END))
    assert result.failure.startswith("/version: ")
    assert result.mending


def test_nobody_who_listens_is_told() -> None:
    with socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))
        result = visit(f"http://127.0.0.1:{unheard.getsockname()[1]}", NO_FILES)
    assert "Connection refused" in result.failure


def test_an_unknown_host_is_told() -> None:
    assert visit("http://kindred.invalid:1", NO_FILES).failure.startswith("/version: ")


@pytest.mark.parametrize("url", ["kindred:8888", "ftp://kindred", "http://", "http://kindred:port", "http://[::1"])
def test_what_is_no_url_is_bad_input(url: str) -> None:
    with pytest.raises(UnreadableError, match="is not a URL"):
        visit(url, NO_FILES)


@pytest.mark.parametrize("broken", ["absent", "no PEM", "no key"])
def test_tls_files_that_cannot_be_used_are_bad_input(tmp_path: Path, certificates: Certificates, broken: str) -> None:
    (tmp_path / "no.pem").write_text("hello")
    files = {
        "absent": TlsFiles(tmp_path / "absent.pem"),
        "no PEM": TlsFiles(tmp_path / "no.pem"),
        "no key": TlsFiles(None, certificates.crt("alice")),
    }[broken]
    with pytest.raises(UnreadableError, match=r"(absent|no)\.pem: |go together"):
        visit("https://127.0.0.1:1", files)


def test_the_settings_of_a_service_are_fetched_with_a_token(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret\n")
    told, asked = fetched(in_turn(response(b'{"maxScore":{"value":20,"source":"default"}}')), tmp_path / "token")
    assert told == {"maxScore": {"value": 20, "source": "default"}}
    assert asked == ["/debug/config", "Bearer secret"]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (response(b"{}", "401 Unauthorized"), "status 401; give --admin-token-file"),
        (response(b"{}", "404 Not Found"), "status 404"),
        (response(b"[]"), "no settings of Kindred; is this its admin port?"),
        (END, "begins with https if Kindred speaks TLS"),
    ],
)
def test_settings_that_cannot_be_fetched_are_bad_input(answer: bytes, told: str) -> None:
    with pytest.raises(UnreadableError) as error:
        fetched(in_turn(answer))
    assert str(error.value).endswith(told)


def test_a_token_that_cannot_be_read_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match="token: No such file"):
        fetch_settings("http://127.0.0.1:1", NO_FILES, tmp_path / "token")
