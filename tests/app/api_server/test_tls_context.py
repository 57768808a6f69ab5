"""What a TLS context trusts, whom it says it is, and what is refused with which words."""

import asyncio
import errno
import os
import ssl
import subprocess
import tempfile
from pathlib import Path

import pytest

from app.api_server.tls import ConfigurationError, PemSource, TlsSettings
from tests.app.api_server.client_setting import Certificates


def authority(file: Path) -> PemSource:
    return PemSource("here", "the authority", file=str(file))


def client(certificate: Path, key: Path) -> TlsSettings:
    return TlsSettings(
        certificate=PemSource("here", "the certificate", file=str(certificate)),
        key=PemSource("here", "the key", file=str(key)),
    )


def made(settings: TlsSettings) -> ssl.SSLContext:
    return settings.context(settings.read())


def shake_hands(context: ssl.SSLContext, server: ssl.SSLContext) -> str:
    """Connect to 127.0.0.1 by TLS, and give the name that the server was asked by."""
    requested: list[str] = []
    server.sni_callback = lambda _, name, __: requested.append(name or "")

    async def connect() -> None:
        listening = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=server)
        async with listening:
            port = listening.sockets[0].getsockname()[1]
            # Through buffers, as anyio does it.
            loop = asyncio.get_running_loop()
            transport, _ = await loop.create_connection(
                asyncio.Protocol, "127.0.0.1", port, ssl=context, server_hostname="127.0.0.1"
            )
            transport.close()

    asyncio.run(connect())
    return requested[0]


@pytest.mark.parametrize(
    ("trusted", "server", "problem"),
    [
        ("stranger", "server", "certificate verify failed"),
        (None, "server", "certificate verify failed"),  # by the authorities of the system
        ("authority", "named", "IP address mismatch"),
    ],
)
def test_a_server_of_another_authority_or_name_is_not_trusted(
    certificates: Certificates, trusted: str | None, server: str, problem: str
) -> None:
    context = made(TlsSettings(authority=authority(certificates.crt(trusted)) if trusted else None))
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
    with pytest.raises(ssl.SSLCertVerificationError, match=problem):
        shake_hands(context, certificates.server_tls(server))


def test_a_certificate_that_is_configured_itself_is_trusted(certificates: Certificates) -> None:
    settings = TlsSettings(authority=authority(certificates.crt("server")))  # which another one has signed
    shake_hands(made(settings), certificates.server_tls())


def test_insecure_trusts_whatever_answers(certificates: Certificates) -> None:
    shake_hands(made(TlsSettings(insecure=True)), certificates.server_tls("named"))


def test_a_certificate_that_cannot_be_written_for_openssl_is_an_error_of_the_configuration(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be replaced while the process is out of files. The next read succeeds, so this one must end nothing."""

    def full(**_: object) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(tempfile, "NamedTemporaryFile", full)
    with pytest.raises(ConfigurationError, match=r"here: the certificate .* or the key .*: Too many open files$"):
        made(client(certificates.crt("alice"), certificates.key("alice")))


def test_authorities_may_have_comments_of_any_language(certificates: Certificates, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    foreign, ours = certificates.crt("stranger").read_bytes(), certificates.crt("authority").read_bytes()
    bundle.write_bytes("# Autorité\n".encode() + foreign + "# Unsere für Tests\n".encode() + ours)
    shake_hands(made(TlsSettings(authority=authority(bundle))), certificates.server_tls())


def test_certificate_and_key_may_be_in_one_file(certificates: Certificates, tmp_path: Path) -> None:
    both = tmp_path / "both.pem"  # as the kubelet keeps its own
    both.write_bytes(certificates.crt("alice").read_bytes() + certificates.key("alice").read_bytes())
    made(client(both, both))


def test_a_key_leaves_no_file_behind(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("app.api_server.tls.IN_MEMORY", str(tmp_path))
    made(client(certificates.crt("alice"), certificates.key("alice")))
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


def test_files_may_change_and_what_is_in_the_configuration_does_not(certificates: Certificates) -> None:
    assert TlsSettings(authority=authority(certificates.crt("authority"))).on_disk
    assert not TlsSettings(authority=PemSource("here", "the authority", data=b"x")).on_disk


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(None, "No such file or directory", id="missing"),
        pytest.param(b"", "empty", id="empty"),
        pytest.param(b"just text\n", "no certificates in PEM: no start line: cadata does not contain", id="not-pem"),
        pytest.param(
            b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "no certificates in PEM: ", id="broken"
        ),
    ],
)
def test_an_authority_that_cannot_be_used_is_named(tmp_path: Path, text: bytes | None, expected: str) -> None:
    file = tmp_path / "ca.crt"
    if text is not None:
        file.write_bytes(text)
    with pytest.raises(ConfigurationError, match=f"^here: the authority {file}: {expected}"):
        made(TlsSettings(authority=authority(file)))
    with pytest.raises(ConfigurationError, match=rf"^here: the authority {tmp_path}: Is a directory$"):
        made(TlsSettings(authority=authority(tmp_path)))


def test_a_certificate_and_a_key_that_cannot_be_used_are_refused_by_name(
    certificates: Certificates, tmp_path: Path
) -> None:
    good, key, other = certificates.crt("alice"), certificates.key("alice"), certificates.key("bob")
    broken, locked, rsa = (tmp_path / name for name in ("broken.crt", "locked.key", "rsa.key"))
    broken.write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    locking = ["openssl", "pkey", "-aes256", "-passout", "pass:secret", "-in", str(key), "-out", str(locked)]
    for command in (locking, ["openssl", "genpkey", "-algorithm", "RSA", "-out", str(rsa)]):
        subprocess.run(command, check=True, capture_output=True)  # noqa: S603  # our own arguments
    for certificate, with_key, expected in (
        (good, other, f"the key {other} does not fit the certificate {good}$"),
        (good, rsa, f"the key {rsa} does not fit the certificate {good}$"),
        (key, key, f"the certificate {key}: no certificate in PEM$"),
        (good, good, f"the key {good}: no private key in PEM$"),
        (good, locked, f"the certificate {good} or the key {locked} cannot be used: ."),  # no password is asked for
        (broken, key, f"the certificate {broken} or the key .* cannot be used: ."),
    ):
        with pytest.raises(ConfigurationError, match=f"^here: {expected}"):
            made(client(certificate, with_key))
