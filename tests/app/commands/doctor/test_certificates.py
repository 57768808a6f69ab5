"""What the standard library can tell of certificates."""

from datetime import UTC, datetime, timedelta

import pytest

from app.commands.doctor.certificates import validities, verification_problem
from tests.app.api_server.certificates import Certificates


def test_a_certificate_tells_how_long_it_is_valid(certificates: Certificates) -> None:
    (validity,) = validities(certificates.crt("alice").read_bytes())
    now = datetime.now(UTC)
    assert now - timedelta(days=1) < validity.not_before <= now
    assert timedelta(days=2) == validity.not_after - validity.not_before


def test_every_certificate_of_a_file_is_looked_at(certificates: Certificates) -> None:
    both = certificates.crt("alice").read_bytes() + b"a comment \xe4\n" + certificates.crt().read_bytes()
    assert len(validities(both)) == 2


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        b"-----BEGIN CERTIFICATE-----\nMII",
        b"-----BEGIN PRIVATE KEY-----",
    ],
)
def test_what_is_no_certificate_is_an_error(text: bytes) -> None:
    with pytest.raises(ValueError, match="certificate"):
        validities(text)


@pytest.mark.parametrize(
    ("authority", "server", "host", "problem"),
    [
        pytest.param("authority", "server", "localhost", "", id="right"),
        pytest.param("authority", "server", "127.0.0.1", "", id="right by address"),
        pytest.param("authority", "named", "localhost", "Hostname mismatch", id="another host"),
        pytest.param(
            "stranger", "server", "localhost", "unable to get local issuer certificate", id="another authority"
        ),
    ],
)
def test_a_client_says_why_it_refuses_a_server(
    certificates: Certificates, authority: str, server: str, host: str, problem: str
) -> None:
    told = verification_problem(
        certificates.crt(authority).read_bytes(), certificates.crt(server), certificates.key(server), host
    )
    assert told.startswith(problem)
    assert bool(told) == bool(problem)
