"""Certificates, keys and the place of the API server: read from files or values, and made into TLS contexts."""

import os
import re
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, urlsplit

import msgspec

from app.process.files import MAX_PEM_BYTES, read_file


class ConfigurationError(ValueError):
    """A configuration that can never work. The message names the error and its file or context in one line."""


class CredentialsError(Exception):
    """Credentials are not available now, but may be later. The message names cause and source in one line."""


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


@contextmanager
def without_authorities() -> Iterator[None]:
    """Let the contexts that are made within the block trust nobody, so that the system's authorities are not read."""
    read = ssl.SSLContext.set_default_verify_paths
    ssl.SSLContext.set_default_verify_paths = lambda self: None  # type: ignore[method-assign]  # noqa: ARG005  # the name of the method
    try:
        yield
    finally:
        ssl.SSLContext.set_default_verify_paths = read  # type: ignore[method-assign]


def trust(context: ssl.SSLContext, source: PemSource, authority: bytes) -> None:
    """Make a context trust certificates of these authorities. Raises ConfigurationError."""
    try:
        context.load_verify_locations(cadata=authority.decode("ascii", "backslashreplace"))  # of comments
    except ssl.SSLError as error:
        raise ConfigurationError(f"{source.where}: {source}: no certificates in PEM: {openssl_reason(error)}") from None


def identify(context: ssl.SSLContext, certificate: PemSource, key: PemSource, material: TlsMaterial) -> None:
    """Make a context present a certificate. Raises ConfigurationError."""
    if b"-----BEGIN CERTIFICATE-----" not in material.certificate:
        raise ConfigurationError(f"{certificate.where}: {certificate}: no certificate in PEM")
    if b"PRIVATE KEY-----" not in material.key:
        raise ConfigurationError(f"{key.where}: {key}: no private key in PEM")
    try:
        with _written(material.certificate) as certificate_file, _written(material.key) as key_file:
            context.load_cert_chain(certificate_file, key_file, password="")  # else OpenSSL prompts on the terminal
    except OSError as error:  # or an ssl.SSLError, which is one
        if isinstance(error, ssl.SSLError) and error.reason in _OF_ANOTHER_KEY:
            raise ConfigurationError(f"{key.where}: {key} does not fit {certificate}") from None
        reason = openssl_reason(error) if isinstance(error, ssl.SSLError) else error.strerror
        raise ConfigurationError(f"{key.where}: {certificate} or {key} cannot be used: {reason}") from None


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


class TlsSettings(msgspec.Struct, frozen=True):
    """The trusted authorities of the API server, and the client certificate."""

    authority: PemSource | None = None
    """The trusted authorities for the server's certificate. None: the authorities of the system."""
    certificate: PemSource | None = None
    """Client certificate, with `key`."""
    key: PemSource | None = None
    server_name: str = ""
    """Name that the server's certificate must be for, also sent as SNI. Empty: the host in its URL."""
    insecure: bool = False
    """Do not verify the server's certificate."""

    @property
    def on_disk(self) -> bool:
        """Return whether any value is in a file, and so may change."""
        return any(source is not None and source.file for source in (self.authority, self.certificate, self.key))

    def read(self) -> TlsMaterial:
        """Read the files. Raises ConfigurationError."""
        sources = (self.authority, self.certificate, self.key)
        return TlsMaterial(*(source.read() if source is not None else b"" for source in sources))

    def context(self, material: TlsMaterial) -> ssl.SSLContext:
        """Make a context from the contents of the files. Raises ConfigurationError."""
        # Not ssl.create_default_context: that of Python 3.13 rejects authorities that lack an extension of RFC 5280.
        # kube-scheduler, curl and earlier releases of Python accept them.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # verifies the certificate and its host name
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        # As in Go, a configured certificate is trusted even if it is an intermediate authority or the server's own.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        if self.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        elif self.authority is not None:
            trust(context, self.authority, material.authority)
        else:
            context.load_default_certs()
        if self.certificate is not None and self.key is not None:
            identify(context, self.certificate, self.key, material)
        return context


_HOST: Final = re.compile(r"[\w.~:-]+")


class ClusterAccess(msgspec.Struct, frozen=True):
    """An API server, its trusted certificates, and the login."""

    source: str
    """The configuration, for people."""
    server: str
    """Base URL, without a slash at the end."""
    tls: TlsSettings | None = None
    """None: plain HTTP, and no login."""
    authorization: str = ""
    """The Authorization header. Empty: none."""
    renew_at: float | None = None
    """Time at which the login must be renewed, in seconds of the wall clock. None: it does not expire."""
    proxy: str | None = None
    """URL of the proxy to go through."""
    namespace: str = ""
    """The namespace that the configuration names. Empty if it names none."""


def checked_url(where: str, url: str) -> str:
    """Return the base URL of an API server, without a slash at the end. Raises ConfigurationError."""
    if not url:
        raise ConfigurationError(f"{where}: required")
    parsed = _parsed(url)
    if parsed is None:
        raise ConfigurationError(f"{where}: {url!r} is not a URL that begins with http:// or https://")
    if parsed.username is not None or parsed.query or parsed.fragment:
        raise ConfigurationError(f"{where}: more than scheme, host, port and path")  # not shown: may have a password
    return parsed.geturl().rstrip("/")


def checked_proxy(where: str, url: str) -> str:
    """Return the URL of a proxy. Raises ConfigurationError."""
    if _parsed(url) is None:
        text = "is not a proxy that begins with http:// or https://"
        raise ConfigurationError(f"{where}: the URL {text}")  # not shown: may have a password
    return url


def _parsed(url: str) -> SplitResult | None:
    """Return the parts of a URL with http or https and a host. None: it is not one."""
    try:
        parsed = urlsplit(url)
        parsed.port  # noqa: B018  # raises ValueError for a port that is not one
    except ValueError:
        return None
    is_one = parsed.scheme in {"http", "https"} and _HOST.fullmatch(parsed.hostname or "")
    return parsed if is_one else None
