"""The TLS context for one API server, from the certificates that a configuration names or contains."""

import ssl

import msgspec

from app.api_server.pem import PemSource, TlsMaterial, identify, trust


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
