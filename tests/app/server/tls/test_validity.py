"""When a certificate ends, as OpenSSL says it does."""

import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from app.server.tls import not_after
from tests.openssl import Authority


def openssl(*options: str, given: bytes) -> bytes:
    command = ["openssl", "x509", *options]
    return subprocess.run(command, input=given, check=True, capture_output=True).stdout  # noqa: S603 - our own arguments


@pytest.mark.parametrize("days", [1, 365 * 60], ids=["of-two-digits", "after-2049"])
def test_the_end_is_what_openssl_shows(days: int, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pem = openssl("-signkey", str(authority.key("authority")), "-days", str(days), given=authority.crt().read_bytes())
    rendered = openssl("-noout", "-enddate", given=pem).decode().strip()
    expected = datetime.strptime(rendered, "notAfter=%b %d %H:%M:%S %Y GMT").replace(tzinfo=UTC)
    assert expected.timestamp() == not_after(pem)


def test_of_a_chain_the_first_certificate_counts(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    authority.make("server", "subjectAltName=DNS:kindred")
    chain = b"some words\n" + authority.crt("server").read_bytes() + authority.crt().read_bytes()
    assert not_after(authority.crt("server").read_bytes()) == not_after(chain)


@pytest.mark.parametrize(
    "content",
    [b"", b"AAAA", b"MAA=", b"MIIBIjAN", b"MDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAw", b"//8=", b"*"],
)
def test_what_is_no_certificate_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        not_after(b"-----BEGIN CERTIFICATE-----\n" + content + b"\n-----END CERTIFICATE-----\n")


def test_text_without_a_certificate_is_refused() -> None:
    with pytest.raises(ValueError, match="not found"):
        not_after(b"just text")
