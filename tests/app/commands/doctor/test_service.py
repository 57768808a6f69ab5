"""A running service: what is wrong with what it says of itself, or why it does not respond."""

import asyncio
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from app.commands.admin_client import Access, UnusableFileError
from app.commands.doctor.findings import Finding, Severity
from app.commands.doctor.service import Visit, service_findings, visit
from app.settings.settings import Settings
from tests.app.api_server.api_server import END, Response, in_turn, response, serving
from tests.app.api_server.client_setting import Certificates

PLAIN = Access(url="")


def visited(response: Response, tls: ssl.SSLContext | None = None, access: Access = PLAIN, scheme: str = "") -> Visit:
    async def main() -> Visit:
        async with serving(response, tls) as server:
            url = f"{scheme or ('https' if tls else 'http')}://127.0.0.1:{server.port}"
            return await asyncio.to_thread(visit, {**access, "url": url})

    return asyncio.run(main())


@pytest.mark.parametrize("given", [True, False], ids=["given", "missing"])
def test_a_server_may_want_a_certificate(certificates: Certificates, *, given: bool) -> None:
    tls = certificates.asking_tls()
    tls.verify_mode = ssl.CERT_REQUIRED
    access = Access(url="", ca_file=certificates.crt())
    if given:
        access |= Access(url="", cert_file=certificates.crt("alice"), key_file=certificates.key("alice"))
    assert (visited(in_turn(response()), tls, access).failure == "") is given


@pytest.mark.parametrize(
    ("server", "trusted", "reported"),
    [
        ("server", "stranger", "certificate verify failed"),
        ("named", "authority", "IP address mismatch"),
    ],
)
def test_a_certificate_that_is_not_accepted_is_told(
    certificates: Certificates, server: str, trusted: str, reported: str
) -> None:
    access = Access(url="", ca_file=certificates.crt(trusted))
    assert reported in visited(in_turn(response()), certificates.server_tls(server), access).failure


def test_a_service_that_does_not_respond_is_told_with_what_to_look_at(certificates: Certificates) -> None:
    for result in (visited(in_turn(END)), visited(in_turn(response()), certificates.server_tls(), scheme="http")):
        (finding,) = service_findings(result, Settings())
        assert (finding.id, finding.severity, finding.where) == ("service-reachable", Severity.ERROR, result.url)
        assert finding.message == result.failure
        assert finding.message.endswith("is that a port of Kindred?")
        assert finding.fix


@pytest.mark.parametrize(("status", "what"), [(401, "wants a login, as Kindred's admin port"), (404, "not of Kindred")])
def test_a_port_with_a_login_is_not_said_to_be_of_another_program(status: int, what: str) -> None:
    (finding,) = found({"version": as_response({"detail": "Unauthorized"}, status)})
    assert what in finding.message


@pytest.mark.parametrize(
    "files",
    [{"ca_file": Path("absent.pem")}, {"ca_file": Path(__file__)}, {"cert_file": Path(__file__)}],
    ids=["absent", "no PEM", "no key"],
)
def test_tls_files_that_cannot_be_used_are_bad_input(files: dict[str, Path]) -> None:
    with pytest.raises(UnusableFileError, match=r"absent\.pem: |test_service\.py: |go together"):
        visit({"url": "https://127.0.0.1:1", **files})  # type: ignore[typeddict-item]  # paths


URL = "http://10.96.0.10:8888"
SIZES = {"generation": 9, "nodes": 3, "pods": 0, "pending": 0, "namespaces": 1}
READY: dict[str, Any] = {"ready": True, **SIZES, "leader": None, "problems": [], "resources": {}}
RELEASE = {"release": "1.37", "source": "server", "exact": True, "told": "v1.37.0", "ignored_gates": []}
VERSION = {"version": "1", "python": "3.11.1", "kubernetes": RELEASE}
WATCHED = {"synced": True, "serves": True, "absent": False, "seconds_since_last_byte": 1.0, "problem": None}
WATCHED |= {"missing_rbac_rule": None}
RULE = 'apiGroups: [""], resources: ["pods"], verbs: ["list", "watch"]'
GROUPS = "podgroups.scheduling.k8s.io"
GROUPING = Settings(admin="127.0.0.1:0", decide_groups_scheduler="kindred-groups")


def as_response(document: object, status: int = 200) -> httpx.Response:
    return httpx.Response(status, content=document if isinstance(document, bytes) else msgspec.json.encode(document))


def found(responses: Mapping[str, httpx.Response], settings: Settings = GROUPING) -> list[Finding]:
    """Check a Kindred that is well, but for these responses."""
    given = {"version": as_response(VERSION), "readyz": as_response(READY), **responses}
    return [*service_findings(Visit(URL, {f"/{path}": each for path, each in given.items()}), settings)]


def readiness(status: int = 503, **fields: Any) -> httpx.Response:  # noqa: ANN401  # of JSON
    return as_response({**READY, "ready": status == 200, **fields}, status)


NO_GROUPS = readiness(200, resources={GROUPS: {**WATCHED, "absent": True}})


@pytest.mark.parametrize(
    ("check", "severity", "where", "responses"),
    [
        pytest.param(
            "service-reachable", Severity.ERROR, "/version", {"version": as_response(b"<html>", 404)}, id="another"
        ),
        pytest.param("service-ready", Severity.ERROR, "/readyz", {"readyz": readiness()}, id="no reason"),
        pytest.param("service-ready", Severity.ERROR, "/readyz", {"readyz": as_response(b"", 500)}, id="no readiness"),
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
def test_what_is_wrong_is_found_once(
    check: str, severity: Severity, where: str, responses: dict[str, httpx.Response]
) -> None:
    (finding,) = found(responses)
    assert (check, severity, URL + where) == (finding.id, finding.severity, finding.where)


def test_of_a_kindred_that_is_well_nothing_is_said() -> None:
    assert found({"readyz": readiness(200, resources={GROUPS: WATCHED})}) == []
    assert found({"readyz": NO_GROUPS}, Settings()) == []  # which matter for a scheduler of groups alone


def test_a_missing_rule_is_told_once_and_with_what_to_write() -> None:
    resources = {"pods": {**WATCHED, "synced": False, "missing_rbac_rule": RULE}}
    rule, other = found({"readyz": readiness(resources=resources, problems=["pods: forbidden", "nodes: refused"])})
    assert rule.fix.startswith(f"- {{{RULE}}} in its ClusterRole")
    assert (rule.where, other.message) == (f"{URL}/readyz resources.pods", "nodes: refused")
