"""The TLS contexts of a port: made from the settings, and replaced while the port is open."""

import ssl
from pathlib import Path
from typing import Final

import msgspec

from app.api_server.pem import PemSource, TlsMaterial, identify, trust
from app.settings import CLIENT_AUTHORITIES, Settings, wants_certificates

_MAX_READINGS: Final = 5  # for files that keep changing


class ServerTls(msgspec.Struct, frozen=True):
    """The certificate of a port, and the authorities of its clients."""

    certificate: PemSource
    key: PemSource
    client_ca: PemSource | None
    """Authorities of the clients' certificates, which every client must have then. None: the port requests none."""
    minimum_version: ssl.TLSVersion

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
        context.minimum_version = self.minimum_version
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


def scheduler_tls(settings: Settings) -> ServerTls | None:
    """Return the TLS of the scheduler's port. None for plain HTTP."""
    if settings.tls_directory is None:
        return None
    client_ca = _source(settings.tls_directory, CLIENT_AUTHORITIES, "authorities")
    return _server_tls(settings, client_ca if wants_certificates(settings) else None)


def admin_tls(settings: Settings) -> ServerTls | None:
    """Return the TLS of the admin port, whose clients have a token and no certificate. None for plain HTTP."""
    return _server_tls(settings, None)


def _server_tls(settings: Settings, client_ca: PemSource | None) -> ServerTls | None:
    directory = settings.tls_directory
    if directory is None:
        return None
    return ServerTls(
        _source(directory, "tls.crt", "certificate"),
        _source(directory, "tls.key", "key"),
        client_ca,
        ssl.TLSVersion.TLSv1_2,
    )


def _source(directory: Path, file: str, name: str) -> PemSource:
    return PemSource("KINDRED_TLS_DIRECTORY", name, file=str(directory / file))
