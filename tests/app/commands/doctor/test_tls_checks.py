"""TLS between kube-scheduler and Kindred: whether it is spoken, who trusts whom, and the files, where they are here."""

import base64
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from app.commands.doctor.registration import Registration
from app.scheduler_configuration.finding import Severity
from tests.app.api_server.certificates import Certificates
from tests.app.commands.doctor.registrations import SCORE_OFFLOAD as PLAIN
from tests.app.commands.doctor.registrations import (
    Case,
    assert_told_apart,
    error,
    extenders,
    found,
    not_checked,
    registration,
    warning,
)

HTTPS = "https://10.96.0.10:8888"
CA = {"caFile": "/nowhere/ca.crt"}
MUTUAL = {**CA, "certFile": "/nowhere/tls.crt", "keyFile": "/nowhere/tls.key"}
SERVED: dict[str, Any] = {"tls_directory": "/nowhere"}
ASKING: dict[str, Any] = {**SERVED, "tls_client_names": ["kube-scheduler"]}
OTHER = {"urlPrefix": "http://other:1", "preemptVerb": "preempt"}
CASES = {
    "https-in-words-only": error(
        "https-scheme",
        "extenders[0].urlPrefix",
        registration(enableHTTPS=True),
        registration(urlPrefix=HTTPS, enableHTTPS=True),
    ),
    "a-ca-for-plain-http": error("https-scheme", "extenders[0].urlPrefix", registration(tlsConfig=CA), registration()),
    "an-https-url-and-no-ca-of-the-cluster": warning(
        "https-scheme",
        "extenders[0].enableHTTPS",
        registration(urlPrefix=HTTPS),
        registration(urlPrefix=HTTPS, tlsConfig=CA),
    ),
    "tls-without-a-ca": error(
        "tls-without-ca",
        "extenders[1].tlsConfig.caFile",
        registration(extenders(PLAIN, OTHER), urlPrefix=HTTPS, enableHTTPS=True),
        registration(extenders(PLAIN, OTHER), urlPrefix=HTTPS, enableHTTPS=True, tlsConfig=CA),
    ),
    "tls-that-believes-everybody": warning(
        "tls-without-ca",
        "extenders[0].tlsConfig.insecure",
        registration(urlPrefix=HTTPS, enableHTTPS=True, tlsConfig={"insecure": True}),
        registration(urlPrefix=HTTPS, enableHTTPS=True, tlsConfig={"caData": "AAAA"}),
    ),
    "a-ca-that-nobody-asks": error(
        "tls-contradiction",
        "extenders[0].tlsConfig.insecure",
        registration(urlPrefix=HTTPS, tlsConfig={**CA, "insecure": True}),
        registration(urlPrefix=HTTPS, tlsConfig=CA),
    ),
    "a-certificate-without-its-key": error(
        "tls-contradiction",
        "extenders[0].tlsConfig.keyFile",
        registration(urlPrefix=HTTPS, tlsConfig={**CA, "certFile": "/nowhere/tls.crt"}),
        registration(urlPrefix=HTTPS, tlsConfig=MUTUAL),
    ),
    "plain-http-to-tls": error(
        "tls-of-kindred",
        "extenders[0].urlPrefix",
        registration(settings=SERVED),
        registration(urlPrefix=HTTPS, settings=SERVED),
    ),
    "tls-to-plain-http": error(
        "tls-of-kindred", "extenders[0].urlPrefix", registration(urlPrefix=HTTPS), registration()
    ),
    "no-client-certificate": error(
        "tls-of-kindred",
        "extenders[0].tlsConfig.certFile",
        registration(urlPrefix=HTTPS, tlsConfig=CA, settings=ASKING),
        registration(urlPrefix=HTTPS, tlsConfig=MUTUAL, settings=ASKING),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_it_is_found_where_it_is_wrong_and_nowhere_else(case: Case) -> None:
    assert_told_apart(case)


def with_files(certificates: Certificates, now: datetime | None = None, **tls: str) -> Registration:
    paths = {
        field: str(certificates.key(name) if field == "keyFile" else certificates.crt(name))
        for field, name in tls.items()
    }
    looked_at = registration(urlPrefix=HTTPS, enableHTTPS=True, tlsConfig=paths)
    return looked_at._replace(now=now or datetime.now(UTC) - timedelta(days=6))


def test_whether_kindred_speaks_tls_is_not_said_of_settings_that_were_not_given() -> None:
    looked_at = registration(urlPrefix=HTTPS, assumed=True)
    assert found(looked_at, "tls-of-kindred") == []
    assert not_checked(looked_at, "tls-of-kindred") == ["Kindred's settings: --config FILE or --admin-url URL"]


def test_files_that_are_not_on_this_machine_are_no_error() -> None:
    looked_at = registration(urlPrefix=HTTPS, tlsConfig=MUTUAL)
    assert found(looked_at, "tls-files") == []
    assert not_checked(looked_at, "tls-files") == [
        "/nowhere/ca.crt on this machine (no such file or directory)",
        "/nowhere/tls.crt on this machine (no such file or directory)",
    ]


def test_certificates_that_are_valid_are_right(certificates: Certificates) -> None:
    now = datetime.now(UTC)
    looked_at = with_files(certificates, now, caFile="authority", certFile="alice", keyFile="alice")
    assert {Severity.INFO} == {finding.severity for finding in found(looked_at, "tls-files")}
    assert not_checked(looked_at, "tls-files") == []


@pytest.mark.parametrize(
    ("days", "told"), [(3, "expired on "), (-3, "valid only from "), (0, "expires on ")], ids=["late", "early", "soon"]
)
def test_a_certificate_is_held_against_the_clock(certificates: Certificates, days: int, told: str) -> None:
    looked_at = with_files(certificates, datetime.now(UTC) + timedelta(days=days), caFile="authority")
    (finding,) = found(looked_at, "tls-files")
    assert f"{certificates.crt()}: {told}" in finding.message
    assert (Severity.ERROR if days else Severity.INFO) is finding.severity


def test_a_key_of_another_certificate_is_an_error(certificates: Certificates) -> None:
    now = datetime.now(UTC)
    (finding,) = [
        finding
        for finding in found(with_files(certificates, now, certFile="alice", keyFile="bob"), "tls-files")
        if finding.severity is Severity.ERROR
    ]
    assert f"{certificates.key('bob')} is not the key of {certificates.crt('alice')}" == finding.message


def test_a_file_that_is_no_certificate_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("hello")
    (finding,) = found(registration(urlPrefix=HTTPS, tlsConfig={"caFile": str(tmp_path / "ca.crt")}), "tls-files")
    assert finding.message.endswith("ca.crt: no certificate in PEM")


def test_data_is_looked_at_instead_of_the_file(certificates: Certificates) -> None:
    data = base64.b64encode(certificates.crt().read_bytes()).decode()
    looked_at = registration(urlPrefix=HTTPS, tlsConfig={**CA, "caData": data})
    (finding,) = found(looked_at._replace(now=datetime.now(UTC) + timedelta(days=9)), "tls-files")
    assert finding.message.startswith("its data: expired on ")
    assert not_checked(looked_at, "tls-files") == []


@pytest.mark.parametrize(
    ("server", "name", "problem"),
    [("server", "localhost", ""), ("named", "localhost", "Hostname mismatch"), ("named", "kube.example", "")],
    ids=["right", "another host", "by its serverName"],
)
def test_the_server_certificate_is_for_the_host_that_is_asked(
    certificates: Certificates, server: str, name: str, problem: str
) -> None:
    looked_at = registration(
        urlPrefix="https://localhost:8888",
        tlsConfig={"caFile": str(certificates.crt()), "serverName": name},
        settings={"tls_directory": certificates.directory(server)},
    )
    told = [finding.message for finding in found(looked_at, "tls-server-certificate")]
    assert bool(problem) == bool(told)
    assert all(
        f"kube-scheduler refuses {certificates.directory(server)}/tls.crt for {name}: {problem}" in each
        for each in told
    )


def test_a_server_certificate_that_is_not_here_is_not_checked(certificates: Certificates) -> None:
    looked_at = registration(urlPrefix=HTTPS, tlsConfig={"caFile": str(certificates.crt())}, settings=SERVED)
    assert found(looked_at, "tls-server-certificate") == []
    (needs,) = not_checked(looked_at, "tls-server-certificate")
    assert needs.startswith("/nowhere/tls.crt and its key on this machine")
