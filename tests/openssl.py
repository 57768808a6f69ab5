"""Temporary certificates and keys, made by the openssl command."""

import ssl
import subprocess
from pathlib import Path
from typing import Final

_CURVE: Final = "prime256v1"


class Authority:
    """A certificate authority and the certificates that it signed, in a folder: NAME.crt and NAME.key."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # With its own configuration, because the system's may add extensions.
        (folder / "openssl.cnf").write_text("[req]\ndistinguished_name = dn\n[dn]\n")
        self.make("authority", "basicConstraints=critical,CA:TRUE", signed=False)

    def crt(self, name: str = "authority") -> Path:
        """Return the file of a certificate."""
        return self.folder / f"{name}.crt"

    def key(self, name: str) -> Path:
        """Return the file of a key."""
        return self.folder / f"{name}.key"

    def directory(self, name: str = "server", *, clients: bool = False) -> Path:
        """Return a directory with the keys of a Secret of a server. `clients`: with the authorities of its clients."""
        made = self.folder / f"{name}{'-of-clients' * clients}"
        made.mkdir(exist_ok=True)
        files = {"tls.crt": self.crt(name), "tls.key": self.key(name)} | ({"ca.crt": self.crt()} if clients else {})
        for file, source in files.items():
            (made / file).write_bytes(source.read_bytes())
        return made

    def make(self, name: str, extension: str, *, subject: str = "", signed: bool = True, days: int = 2) -> None:
        """Make a key and its certificate, signed by the authority or by itself. Default subject: /CN=NAME."""
        signer = ("-CA", str(self.crt()), "-CAkey", str(self.key("authority"))) if signed else ()
        _openssl(
            *("req", "-x509", "-days", str(days), "-nodes", "-config", str(self.folder / "openssl.cnf")),
            *("-newkey", "ec", "-pkeyopt", f"ec_paramgen_curve:{_CURVE}"),
            *("-subj", subject or f"/CN={name}", "-addext", extension, *signer),
            *("-keyout", str(self.key(name)), "-out", str(self.crt(name))),
        )

    def make_key(self, name: str) -> None:
        """Make a key without a certificate, as SEC1. kube-apiserver reads no public key from a key in PKCS#8."""
        _openssl("ecparam", "-name", _CURVE, "-genkey", "-noout", "-out", str(self.key(name)))

    def server_tls(self, name: str = "server") -> ssl.SSLContext:
        """Make the TLS context of a server that has a certificate."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.crt(name), self.key(name))
        return context


def trusting(authority: Path) -> ssl.SSLContext:
    """Make the TLS context of a client that trusts one authority, the same in each release of Python.

    From Python 3.13 on, ssl.create_default_context rejects an authority with as few extensions as Authority's.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(authority)
    return context


def _openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)  # noqa: S603, S607  # our own arguments
