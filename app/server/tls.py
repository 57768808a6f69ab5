"""The TLS of a port: made from the settings, and reloaded when its files change, without a restart."""

import asyncio
import logging
import ssl
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from app.api_server.tls import ConfigurationError, PemSource, TlsMaterial, identify, trust
from app.settings.settings import CLIENT_AUTHORITIES, Settings, wants_certificates

log = logging.getLogger(__name__)

T = TypeVar("T")

_MAX_READINGS: Final = 5  # for files that keep changing


class ServerTls(msgspec.Struct, frozen=True):
    """The certificate of a port, and the authorities of its clients."""

    certificate: PemSource
    key: PemSource
    client_ca: PemSource | None
    """Authorities of the clients' certificates, which every client must have then. None: the port requests none."""

    def read(self) -> TlsMaterial:
        """Read the files. Raises ConfigurationError.

        They are read until two reads agree. If Kubernetes replaced a Secret between the reads of two files, certificate
        and key would not match.
        """
        material = self._read()
        for _ in range(_MAX_READINGS):
            again = self._read()
            if again == material:
                break
            material = again
        return material

    def context(self, material: TlsMaterial) -> ssl.SSLContext:
        """Make a context from the contents of the files. Raises ConfigurationError."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.options |= ssl.OP_NO_RENEGOTIATION
        context.set_alpn_protocols(["http/1.1"])  # Go's clients offer h2, too
        identify(context, self.certificate, self.key, material)
        if self.client_ca is not None:
            context.verify_mode = ssl.CERT_REQUIRED
            # As in Go, a configured certificate is trusted even if it is an intermediate authority.
            context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
            trust(context, self.client_ca, material.authority)
        return context

    def _read(self) -> TlsMaterial:
        authority = b"" if self.client_ca is None else self.client_ca.read()
        return TlsMaterial(authority, self.certificate.read(), self.key.read())


class ReplaceableContext(ssl.SSLContext):
    """A context that uses, for each connection, the latest of the contexts that it was given.

    A server has one context for as long as it listens. Other files could be loaded into that context, but this would
    remove no authority. A client could also resume a session although its certificate is no longer trusted.
    """

    current: ssl.SSLContext

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,  # noqa: FBT001, FBT002  # the signature of the standard library
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        """Begin TLS over buffers. Both asyncio and uvloop call this method."""
        return self.current.wrap_bio(incoming, outgoing, server_side, server_hostname, session)


def server_tls(settings: Settings, *, clients: bool) -> ServerTls | None:
    """Return the TLS of a port. None for plain HTTP.

    `clients`: whether a client needs a certificate, if the settings want one. Clients of the admin port have a token.
    """
    directory = settings.tls_directory
    if directory is None:
        return None
    return ServerTls(
        _source(directory, "tls.crt", "certificate"),
        _source(directory, "tls.key", "key"),
        _source(directory, CLIENT_AUTHORITIES, "authorities") if clients and wants_certificates(settings) else None,
    )


def _source(directory: Path, file: str, name: str) -> PemSource:
    return PemSource("KINDRED_TLS_DIRECTORY", name, file=str(directory / file))


# The expiry of a certificate. The standard library returns it only for a peer's certificate, not for a file.

_END: Final = "-----END CERTIFICATE-----"
_VERSION: Final = 0xA0  # [0] EXPLICIT, which certificates of version 1 do not have
_UTC_TIME: Final = 0x17
_LONG_FORM: Final = 0x80


def not_after(pem: bytes) -> float:
    """Return the time, in seconds since 1970, at which the first certificate in PEM expires. Raises ValueError.

    RFC 5280, 4.1: Certificate = { tbsCertificate = { [version], serial, signature, issuer, validity = { from, to } ...
    """
    text = pem.decode("ascii", "ignore")
    first = text[text.index("-----BEGIN CERTIFICATE-----") : text.index(_END) + len(_END)]
    try:
        _, certificate = next(_elements(ssl.PEM_cert_to_DER_cert(first)))
        _, to_be_signed = next(_elements(certificate))
        fields = [field for field in _elements(to_be_signed) if field[0] != _VERSION]
        _, (tag, end) = _elements(fields[3][1])
    except (IndexError, StopIteration):
        raise ValueError("not a certificate") from None
    written = end.decode("ascii")
    if tag == _UTC_TIME:  # two digits for the year: 50 is 1950
        written = ("19" if written >= "5" else "20") + written
    return datetime.strptime(written, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp()


def _elements(der: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield tag and content of successive elements in DER."""
    at = 0
    while at < len(der):
        tag, length = der[at], der[at + 1]
        at += 2
        if length >= _LONG_FORM:
            size = length - _LONG_FORM
            length = int.from_bytes(der[at : at + size], "big")
            at += size
        yield tag, der[at : at + length]
        at += length


LOOKS_EVERY: Final = 5.0
"""Seconds between two checks of files that may change. kubelet updates a changed Secret within about a minute."""


async def follow(
    port: str, pause: float, read: Callable[[], T], take: Callable[[T], None], failed: Callable[[], None]
) -> None:
    """Read files every `pause` seconds until cancelled. `take` gets what `read` returns, mostly the same as before.

    Either may raise ConfigurationError: then `failed` is called, and each new problem is logged, once.
    """
    last = ""
    while True:
        await asyncio.sleep(pause)
        problem = ""
        try:
            take(await asyncio.to_thread(read))  # in a thread, because a disk that hangs must not hold the loop
        except ConfigurationError as error:
            problem = str(error)
            failed()
            if problem != last:
                log.error("%s port: %s; keeping the previous version", port, problem)  # noqa: TRY400  # all there is
        last = problem


class ReloadedTls:
    """The context of one port, with the last contents of its files. Open connections keep their old context."""

    def __init__(self, port: str, tls: ServerTls, wall_clock: Callable[[], float], pause: float = LOOKS_EVERY) -> None:
        """Read the files. `port` is the name for messages and metrics. Raises ConfigurationError."""
        self.port = port
        self.context: Final = ReplaceableContext(ssl.PROTOCOL_TLS_SERVER)
        self.reloads: Counter[str] = Counter({"success": 0, "failure": 0})
        """Result -> reads of changed files."""
        self._tls = tls
        self._wall_clock = wall_clock
        self._pause = pause
        self._material = tls.read()
        self.context.current = tls.context(self._material)
        self.not_after = self._end(self._material)
        """Time at which the certificate expires, in seconds since 1970."""
        if self.not_after <= wall_clock():
            log.warning("%s: has expired; clients that verify it will reject it", tls.certificate)

    async def run(self) -> None:
        """Follow the files until cancelled. Invalid files are logged and tried again, and change nothing."""
        await follow(self.port, self._pause, self._tls.read, self._take, lambda: self.reloads.update(["failure"]))

    def _take(self, material: TlsMaterial) -> None:
        if material == self._material:
            return
        context, end = self._tls.context(material), self._end(material)
        if material.certificate != self._material.certificate and end <= self._wall_clock():
            raise ConfigurationError(f"{self._tls.certificate.where}: {self._tls.certificate}: has expired")
        self.context.current, self.not_after, self._material = context, end, material
        self.reloads["success"] += 1
        log.info("%s port: reloaded certificates and authorities, for new connections", self.port)

    def _end(self, material: TlsMaterial) -> float:
        try:
            return not_after(material.certificate)
        except ValueError as error:
            source = self._tls.certificate
            raise ConfigurationError(f"{source.where}: {source}: cannot be read: {error}") from None


def peer_names(certificate: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the common names and DNS names of a client's certificate, as returned by `SSLObject.getpeercert`."""
    common = [value for part in certificate.get("subject", ()) for key, value in part if key == "commonName"]
    return (*common, *(value for kind, value in certificate.get("subjectAltName", ()) if kind == "DNS"))
