"""A visit to a service: what it gives where one answers, and what it says where none does."""

import asyncio
import socket
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.commands.doctor.findings import Finding, Severity
from app.commands.doctor.service import Answer, TlsFiles, Visit, fetch_settings, service_findings, visit
from app.scheduler_configuration.scheduler_config import UnreadableError
from app.settings.settings import Settings
from tests.app.api_server.api_server import END, in_turn, response, serving
from tests.app.api_server.api_server import Answer as Handler
from tests.app.api_server.certificates import Certificates

NO_FILES = TlsFiles()


def visited(answer: Handler, tls: ssl.SSLContext | None = None, files: TlsFiles = NO_FILES, scheme: str = "") -> Visit:
    async def main() -> Visit:
        async with serving(answer, tls) as server:
            url = f"{scheme or ('https' if tls else 'http')}://127.0.0.1:{server.port}"
            return await asyncio.to_thread(visit, url, files)

    return asyncio.run(main())


def fetched(answer: Handler, token_file: Path | None = None) -> tuple[dict[str, dict[str, object]], list[str]]:
    async def main() -> tuple[dict[str, dict[str, object]], list[str]]:
        async with serving(answer) as server:
            told = await asyncio.to_thread(fetch_settings, server.url, NO_FILES, token_file)
            return told, [server.requests[0].path, *server.logins()]

    return asyncio.run(main())


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


URL = "http://10.96.0.10:8888"
READY = {"ready": True, "nodes": 3, "problems": [], "resources": {}}
VERSION = {"version": "1", "python": "3.11.1"}
RULE = 'apiGroups: [""], resources: ["pods"], verbs: ["list", "watch"]'
GROUPS = "podgroups.scheduling.k8s.io"
GROUPING = Settings(admin="127.0.0.1:0", decide_groups_scheduler="kindred-groups")


def answer(document: object, status: int = 200) -> Answer:
    return Answer(status, document if isinstance(document, bytes) else msgspec.json.encode(document))


def found(answers: Mapping[str, Answer], settings: Settings = GROUPING) -> list[Finding]:
    """Check a Kindred that is well, but for these responses."""
    given = {"version": answer(VERSION), "readyz": answer(READY), **answers}
    return [*service_findings(Visit(URL, {f"/{path}": each for path, each in given.items()}), settings)]


def readiness(status: int = 503, **fields: Any) -> Answer:  # noqa: ANN401  # of JSON
    return answer({**READY, "ready": status == 200, **fields}, status)


NO_GROUPS = readiness(200, resources={GROUPS: {"absent": True}})


@pytest.mark.parametrize(
    ("check", "severity", "where", "answers"),
    [
        pytest.param(
            "service-reachable", Severity.ERROR, "/version", {"version": answer(b"<html>", 404)}, id="another"
        ),
        pytest.param("service-ready", Severity.ERROR, "/readyz", {"readyz": readiness()}, id="no reason"),
        pytest.param("service-ready", Severity.ERROR, "/readyz", {"readyz": answer(b"", 500)}, id="no readiness"),
        pytest.param("service-ready", Severity.ERROR, "/readyz", {"readyz": readiness(200, nodes=0)}, id="no node"),
        pytest.param(
            "service-ready",
            Severity.ERROR,
            "/readyz",
            {"readyz": readiness(problems=["pods: never listed"])},
            id="not ready",
        ),
        pytest.param(
            "service-ready",
            Severity.INFO,
            "/readyz",
            {"readyz": readiness(problems=["another replica leads: kindred-1"])},
            id="another replica leads",
        ),
        pytest.param(
            "service-ready",
            Severity.INFO,
            "/readyz",
            {"readyz": readiness(problems=["not leading"])},
            id="another replica leads, without its name",
        ),
        pytest.param(
            "service-groups", Severity.INFO, f"/readyz resources.{GROUPS}", {"readyz": NO_GROUPS}, id="no groups"
        ),
    ],
)
def test_what_is_wrong_is_found_once(check: str, severity: Severity, where: str, answers: dict[str, Answer]) -> None:
    (finding,) = found(answers)
    assert (check, severity, URL + where) == (finding.id, finding.severity, finding.where)


def test_of_a_kindred_that_is_well_nothing_is_said() -> None:
    assert found({"readyz": readiness(200, resources={GROUPS: {"absent": False}})}) == []
    assert found({"readyz": NO_GROUPS}, Settings()) == []  # which matter for a scheduler of groups alone


def test_a_missing_rule_is_told_once_and_with_what_to_write() -> None:
    resources = {"pods": {"synced": False, "missing_rbac_rule": RULE}}
    rule, other = found({"readyz": readiness(resources=resources, problems=["pods: forbidden", "nodes: refused"])})
    assert rule.fix.startswith(f"- {{{RULE}}} in its ClusterRole")
    assert (rule.where, other.message) == (f"{URL}/readyz resources.pods", "nodes: refused")
