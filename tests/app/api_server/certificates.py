"""Certificates of servers and clients, good ones and others."""

import ssl
from pathlib import Path
from typing import Final

from tests.openssl import Authority

_LOOPBACK: Final = "subjectAltName=DNS:localhost,IP:127.0.0.1"


class Certificates(Authority):
    """An authority, a stranger, three servers and two clients."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.make("stranger", "basicConstraints=critical,CA:TRUE", signed=False)
        self.make("server", _LOOPBACK)
        self.make("named", "subjectAltName=DNS:kube.example")
        self.make("self-signed", _LOOPBACK, signed=False)
        for client in ("alice", "bob"):
            self.make(client, "extendedKeyUsage=clientAuth")

    def asking_tls(self) -> ssl.SSLContext:
        """Make the TLS context of a server that asks its clients for certificates."""
        context = self.server_tls()
        context.verify_mode = ssl.CERT_OPTIONAL
        context.load_verify_locations(self.crt())
        return context
