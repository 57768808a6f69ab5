"""A visit to a service: what it gives where one answers, and what it says where none does."""

import asyncio
import itertools
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.commands.doctor.service import TlsFiles, Visit, fetch_settings, visit
from app.scheduler_configuration.scheduler_config import UnreadableError
from tests.app.api_server.api_server import END, Answer, in_turn, response, serving
from tests.app.api_server.certificates import Certificates
from tests.app.serving import ANY_PORT, kindred

NO_FILES = TlsFiles()


def ticking() -> Iterator[float]:
    return (tick / 10 for tick in itertools.count())


def visited(answer: Answer, tls: ssl.SSLContext | None = None, files: TlsFiles = NO_FILES, scheme: str = "") -> Visit:
    async def main() -> Visit:
        async with serving(answer, tls) as server:
            url = f"{scheme or ('https' if tls else 'http')}://127.0.0.1:{server.port}"
            return await asyncio.to_thread(visit, url, files, ticking().__next__)

    return asyncio.run(main())


def fetched(answer: Answer, token_file: Path | None = None) -> tuple[dict[str, dict[str, object]], list[str]]:
    async def main() -> tuple[dict[str, dict[str, object]], list[str]]:
        async with serving(answer) as server:
            told = await asyncio.to_thread(fetch_settings, server.url, NO_FILES, token_file)
            return told, [server.requests[0].path, *server.logins()]

    return asyncio.run(main())


def test_a_running_kindred_is_asked_everything(tmp_path: Path) -> None:
    with kindred(tmp_path, "serve", "--demo", *ANY_PORT) as service:
        result = visit(service.url + "/", NO_FILES, ticking().__next__)
    assert (service.url, "", "") == (result.url, result.failure, result.mending)
    assert {"/version", "/readyz", "/metrics", "/filter", "/prioritize"} == set(result.answers)
    assert {200} == {answer.status for answer in result.answers.values()}
    assert result.seconds == pytest.approx(0.1)


def test_tls_with_a_certificate_on_both_sides_works(certificates: Certificates) -> None:
    files = TlsFiles(certificates.crt(), certificates.crt("alice"), certificates.key("alice"))
    tls = certificates.asking_tls()
    tls.verify_mode = ssl.CERT_REQUIRED
    assert visited(in_turn(response()), tls, files).failure == ""


@pytest.mark.parametrize(
    ("server", "trusted", "told", "mending"),
    [
        ("server", "stranger", "TLS: the certificate is not accepted: ", "--ca-file with the CA that signed it"),
        (
            "named",
            "authority",
            "TLS: the certificate is not accepted: IP address mismatch",
            "or the host that it is for",
        ),
    ],
)
def test_a_certificate_that_is_not_accepted_is_told(
    certificates: Certificates, server: str, trusted: str, told: str, mending: str
) -> None:
    result = visited(in_turn(response()), certificates.server_tls(server), TlsFiles(certificates.crt(trusted)))
    assert result.failure.startswith(told)
    assert mending in result.mending


def test_a_server_that_wants_a_certificate_is_told(certificates: Certificates) -> None:
    tls = certificates.asking_tls()
    tls.verify_mode = ssl.CERT_REQUIRED
    result = visited(in_turn(response()), tls, TlsFiles(certificates.crt()))
    # With TLS 1.3 the refusal comes after the handshake, and is lost where the connection has ended by then.
    assert result.failure.startswith(("TLS: rejected by Kindred: ", "/version: "))
    assert "--cert-file and --key-file" in result.mending


def test_plain_http_where_tls_is_asked_is_told(tmp_path: Path) -> None:
    with kindred(tmp_path, "serve", "--demo", *ANY_PORT) as service:
        result = visit(service.url.replace("http:", "https:"), NO_FILES, ticking().__next__)
    assert result.failure.startswith("TLS: ")
    assert "an http URL" in result.mending


def test_tls_where_plain_http_is_asked_is_told(certificates: Certificates) -> None:
    result = visited(in_turn(response()), certificates.server_tls(), NO_FILES, "http")
    assert result.failure.startswith("/version: ")
    assert "an https URL" in result.mending


def test_a_connection_that_ends_is_told() -> None:
    result = visited(in_turn(END))
    assert result.failure.startswith("/version: ")
    assert result.mending


def test_nobody_who_listens_is_told() -> None:
    with socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))
        result = visit(f"http://127.0.0.1:{unheard.getsockname()[1]}", NO_FILES, ticking().__next__)
    assert result.failure == "connection refused: no process listens there"


def test_an_unknown_host_is_told() -> None:
    assert visit("http://kindred.invalid:1", NO_FILES, ticking().__next__).failure.startswith("unknown host: ")


@pytest.mark.parametrize("url", ["kindred:8888", "ftp://kindred", "http://", "http://kindred:port", "http://[::1"])
def test_what_is_no_url_is_bad_input(url: str) -> None:
    with pytest.raises(UnreadableError, match="is not a URL"):
        visit(url, NO_FILES, ticking().__next__)


@pytest.mark.parametrize("broken", ["absent", "no PEM", "no key"])
def test_tls_files_that_cannot_be_used_are_bad_input(tmp_path: Path, certificates: Certificates, broken: str) -> None:
    (tmp_path / "no.pem").write_text("hello")
    files = {
        "absent": TlsFiles(tmp_path / "absent.pem"),
        "no PEM": TlsFiles(tmp_path / "no.pem"),
        "no key": TlsFiles(None, certificates.crt("alice")),
    }[broken]
    with pytest.raises(UnreadableError, match=r"(absent|no)\.pem: |go together"):
        visit("https://127.0.0.1:1", files, ticking().__next__)


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
        (END, "look at its log"),
    ],
)
def test_settings_that_cannot_be_fetched_are_bad_input(answer: bytes, told: str) -> None:
    with pytest.raises(UnreadableError) as error:
        fetched(in_turn(answer))
    assert str(error.value).endswith(told)


def test_a_token_that_cannot_be_read_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match="token: No such file"):
        fetch_settings("http://127.0.0.1:1", NO_FILES, tmp_path / "token")
