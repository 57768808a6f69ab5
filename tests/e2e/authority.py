"""Certificates and keys to throw away, made by the openssl command."""

import ssl
import subprocess
from pathlib import Path
from typing import Final

import yaml

_EC: Final = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")


class Authority:
    """A certificate authority of a control plane, and what it has signed, in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        # Of a configuration of its own, as that of the system may add what it likes.
        (folder / "openssl.cnf").write_text("[req]\ndistinguished_name = dn\n[dn]\n")
        self._make("authority", "/CN=authority", "basicConstraints=critical,CA:TRUE", signed=False)
        self._make("server", "/CN=server", "subjectAltName=DNS:localhost,IP:127.0.0.1")
        # SEC1, as kube-apiserver does not take a public key from one in PKCS#8.
        _openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", str(self.accounts_key))

    @property
    def accounts_key(self) -> Path:
        """The key that signs tokens of service accounts."""
        return self._folder / "accounts.key"

    def certificate(self, name: str = "authority") -> Path:
        """Return the file of a certificate."""
        return self._folder / f"{name}.crt"

    def key(self, name: str) -> Path:
        """Return the file of a key."""
        return self._folder / f"{name}.key"

    def issue_client(self, name: str, user: str, group: str | None = None) -> None:
        """Sign the certificate of a user, who is in a group (kube-apiserver reads CN as user and O as groups)."""
        subject = f"/O={group}/CN={user}" if group is not None else f"/CN={user}"
        self._make(name, subject, "extendedKeyUsage=clientAuth")

    def client_tls(self, name: str | None = None) -> ssl.SSLContext:
        """Return the TLS context of a client that trusts the authority, with a certificate or without."""
        context = ssl.create_default_context(cafile=str(self.certificate()))
        if name is not None:
            context.load_cert_chain(self.certificate(name), self.key(name))
        return context

    def server_tls(self) -> ssl.SSLContext:
        """Return the TLS context of a server on the loopback."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate("server"), self.key("server"))
        return context

    def kubeconfig(self, path: Path, server: str, *, client: str | None = None, token_file: Path | None = None) -> Path:
        """Write the kubeconfig of a user with a certificate or a token, and return its path."""
        user = {"tokenFile": str(token_file)} if token_file is not None else {}
        if client is not None:
            user = {"client-certificate": str(self.certificate(client)), "client-key": str(self.key(client))}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "e2e",
            "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": "e2e"}}],
            "clusters": [
                {"name": "e2e", "cluster": {"server": server, "certificate-authority": str(self.certificate())}}
            ],
            "users": [{"name": "e2e", "user": user}],
        }
        path.write_text(yaml.safe_dump(document))
        return path

    def _make(self, name: str, subject: str, extension: str, *, signed: bool = True) -> None:
        signer = ("-CA", str(self.certificate()), "-CAkey", str(self.key("authority"))) if signed else ()
        config = ("-config", str(self._folder / "openssl.cnf"))
        files = ("-keyout", str(self.key(name)), "-out", str(self.certificate(name)))
        named = ("-subj", subject, "-addext", extension)
        _openssl("req", "-x509", "-days", "2", "-nodes", *config, *_EC, *named, *signer, *files)


def _openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)  # noqa: S603, S607  # our own arguments
