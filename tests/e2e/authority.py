"""Who is who in a control plane: its certificates, and the kubeconfigs of its users."""

import ssl
from pathlib import Path
from typing import Final

import yaml

from tests.openssl import Authority, trusting

_ACCOUNTS: Final = "accounts"


class ControlPlaneAuthority(Authority):
    """The authority of a control plane, with the certificate of its servers on the loopback."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.make("server", "subjectAltName=DNS:localhost,IP:127.0.0.1")
        self.make_key(_ACCOUNTS)

    @property
    def accounts_key(self) -> Path:
        """The key that signs tokens of service accounts."""
        return self.key(_ACCOUNTS)

    def issue_client(self, name: str, user: str, group: str | None = None) -> None:
        """Sign the certificate of a user, who is in a group (kube-apiserver reads CN as user and O as groups)."""
        subject = f"/O={group}/CN={user}" if group is not None else f"/CN={user}"
        self.make(name, "extendedKeyUsage=clientAuth", subject=subject)

    def client_tls(self, name: str | None = None) -> ssl.SSLContext:
        """Return the TLS context of a client that trusts the authority, with a certificate or without."""
        context = trusting(self.crt())
        if name is not None:
            context.load_cert_chain(self.crt(name), self.key(name))
        return context

    def kubeconfig(self, path: Path, server: str, *, client: str | None = None, token_file: Path | None = None) -> Path:
        """Write the kubeconfig of a user with a certificate or a token, and return its path."""
        user = {"tokenFile": str(token_file)} if token_file is not None else {}
        if client is not None:
            user = {"client-certificate": str(self.crt(client)), "client-key": str(self.key(client))}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "e2e",
            "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": "e2e"}}],
            "clusters": [{"name": "e2e", "cluster": {"server": server, "certificate-authority": str(self.crt())}}],
            "users": [{"name": "e2e", "user": user}],
        }
        path.write_text(yaml.safe_dump(document))
        return path
