"""Certificates and keys in PEM: their sources, and how OpenSSL loads them."""

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from app.api_server.credential_errors import ConfigurationError
from app.process.files import MAX_PEM_BYTES, read_file

# OpenSSL reads a key only from a file. A file in /dev/shm is never on a disk, and works in a container with a read-only
# root, too.
IN_MEMORY: Final = "/dev/shm"  # noqa: S108  # the file gets a random name and is readable by its owner only
_OF_ANOTHER_KEY: Final = {"KEY_VALUES_MISMATCH", "NO_CERTIFICATE_ASSIGNED"}  # the latter: not even of the same kind


class PemSource(msgspec.Struct, frozen=True, gc=False):
    """The place of certificates or a key: a file, or the value in a configuration."""

    where: str
    """The source, for messages."""
    name: str
    """The name of the value in the source."""
    file: str = ""
    data: bytes = b""

    def __str__(self) -> str:
        return f"{self.name} {self.file}" if self.file else self.name

    def read(self) -> bytes:
        """Return the PEM text. Raises ConfigurationError."""
        if not self.file:
            return self.data
        try:
            text = read_file(Path(self.file), MAX_PEM_BYTES)
        except OSError as error:
            raise ConfigurationError(f"{self.where}: {self}: {error.strerror}") from None
        if not text:
            raise ConfigurationError(f"{self.where}: {self}: empty")
        return text


class TlsMaterial(msgspec.Struct, frozen=True, gc=False):
    """PEM texts that were read at one time. Any may be empty."""

    authority: bytes
    certificate: bytes
    key: bytes


def trust(context: ssl.SSLContext, source: PemSource, authority: bytes) -> None:
    """Make a context trust certificates of these authorities. Raises ConfigurationError."""
    try:
        context.load_verify_locations(cadata=authority.decode("ascii", "ignore"))  # only comments are not ASCII
    except ssl.SSLError as error:
        raise ConfigurationError(f"{source.where}: {source}: no certificates in PEM: {openssl_reason(error)}") from None


def identify(context: ssl.SSLContext, certificate: PemSource, key: PemSource, material: TlsMaterial) -> None:
    """Make a context present a certificate. Raises ConfigurationError."""
    if b"-----BEGIN CERTIFICATE-----" not in material.certificate:
        raise ConfigurationError(f"{certificate.where}: {certificate}: no certificate in PEM")
    if b"PRIVATE KEY-----" not in material.key:
        raise ConfigurationError(f"{key.where}: {key}: no private key in PEM")
    with _written(material.certificate) as certificate_file, _written(material.key) as key_file:
        try:
            context.load_cert_chain(certificate_file, key_file, password="")  # else OpenSSL prompts on the terminal
        except ssl.SSLError as error:
            if error.reason in _OF_ANOTHER_KEY:
                raise ConfigurationError(f"{key.where}: {key} does not fit {certificate}") from None
            problem = f"{certificate} or {key} cannot be used: {openssl_reason(error)}"
            raise ConfigurationError(f"{key.where}: {problem}") from None


def load_authorities(context: ssl.SSLContext, file: Path) -> None:
    """Make a context trust the authorities of a file. Raises OSError, and its subclass ssl.SSLError.

    OpenSSL itself would read a device for ever.
    """
    text = read_file(file, MAX_PEM_BYTES).decode("ascii", "ignore")  # only comments are not ASCII
    if not text.strip():
        raise ssl.SSLError(1, "[PEM] no certificate (_ssl)")
    context.load_verify_locations(cadata=text)


def load_identity(context: ssl.SSLContext, certificate: Path, key: Path | None) -> None:
    """Make a context present the certificate of a file. Without `key`, the same file has the key.

    Raises OSError, and its subclass ssl.SSLError.
    """
    texts = [read_file(each, MAX_PEM_BYTES) for each in (certificate, key or certificate)]
    with _written(texts[0]) as certificate_file, _written(texts[1]) as key_file:
        context.load_cert_chain(certificate_file, key_file, password="")  # else OpenSSL prompts on the terminal


@contextmanager
def _written(text: bytes) -> Iterator[str]:
    folder = IN_MEMORY if os.access(IN_MEMORY, os.W_OK) else None
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        file.write(text)
        file.flush()
        yield file.name


def openssl_reason(error: ssl.SSLError) -> str:
    """Return the text of OpenSSL's error: `[SSL: BAD_THING] bad thing (_ssl.c:123)` -> bad thing."""
    text = error.strerror or str(error)
    return text.partition("] ")[2].partition(" (_ssl")[0] or text.partition(" (_ssl")[0]
