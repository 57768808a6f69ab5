"""Certificates to throw away, made by the openssl command, and the TLS contexts of servers that have them."""

import ssl
import subprocess
from pathlib import Path


class Certificates:
    """An authority, and what it has signed: each NAME is NAME.crt and NAME.key in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # Of a configuration of its own, as that of the system may add what it likes.
        (folder / "openssl.cnf").write_text("[req]\ndistinguished_name = dn\n[dn]\n")
        self._make("authority", "basicConstraints=critical,CA:TRUE")
        self._make("stranger", "basicConstraints=critical,CA:TRUE")
        self._make("server", "subjectAltName=DNS:localhost,IP:127.0.0.1", signed=True)
        self._make("named", "subjectAltName=DNS:kube.example", signed=True)
        self._make("self-signed", "subjectAltName=DNS:localhost,IP:127.0.0.1")
        for client in ("alice", "bob"):
            self._make(client, "extendedKeyUsage=clientAuth", signed=True)

    def crt(self, name: str) -> Path:
        """Give the file of a certificate."""
        return self.folder / f"{name}.crt"

    def key(self, name: str) -> Path:
        """Give the file of a key."""
        return self.folder / f"{name}.key"

    def server_tls(self, name: str = "server", *, asks_clients: bool = False) -> ssl.SSLContext:
        """Make the TLS context of a server that has a certificate."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.crt(name), self.key(name))
        if asks_clients:
            context.verify_mode = ssl.CERT_OPTIONAL
            context.load_verify_locations(self.crt("authority"))
        return context

    def _make(self, name: str, extension: str, *, signed: bool = False) -> None:
        signer = ["-CA", str(self.crt("authority")), "-CAkey", str(self.key("authority"))] if signed else []
        subprocess.run(  # noqa: S603  # our own arguments
            [
                *("openssl", "req", "-x509", "-days", "2", "-nodes", "-config", str(self.folder / "openssl.cnf")),
                *("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
                *("-subj", f"/CN={name}", "-addext", extension, *signer),
                *("-keyout", str(self.key(name)), "-out", str(self.crt(name))),
            ],
            check=True,
            capture_output=True,
        )
