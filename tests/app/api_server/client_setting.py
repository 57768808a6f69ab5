"""What clients of an API server need: certificates, kubeconfigs, plugins, clocks, and a server to talk to by TLS."""

import asyncio
import ssl
import subprocess
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Final, TypeVar

import yaml

from app.api_server.client import ApiClient
from app.api_server.credentials import Credentials, load_credentials
from tests.app.api_server.api_server import ApiServer, Request, Response, serving
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


V1 = "client.authentication.k8s.io/v1"
SERVER = "https://127.0.0.1:6443"


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def write_kubeconfig(
    path: Path,
    server: str = SERVER,
    *,
    cluster: Mapping[str, object] | None = None,
    user: Mapping[str, object] | None = None,
) -> str:
    """Write a kubeconfig of one context, `here`, and give its path."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": server, **(cluster or {})}}],
        "users": [{"name": "u", "user": dict(user or {})}],
    }
    path.write_text(yaml.safe_dump(document))
    return str(path)


def write_plugin(folder: Path, script: str, name: str = "plugin") -> Path:
    """Write a plugin in shell, and give its path. Each run adds a line to the file RUNS beside it."""
    path = folder / name
    text = f'#!/bin/sh\necho run >> "{folder}/RUNS"\n{script}\n'
    # Another process writes it. A child that this one forks meanwhile would keep the file open for writing for a
    # moment, and then it cannot be executed: "text file busy". The same goes for a plugin that runs while it is written
    # again, so that its file is replaced.
    command = ["/bin/sh", "-c", 'cat > "$0.new" && chmod 755 "$0.new" && mv "$0.new" "$0"', str(path)]
    subprocess.run(command, input=text.encode(), check=True)  # noqa: S603 - our own command
    return path


def runs(folder: Path) -> int:
    """Count the runs of the plugin in a folder."""
    log = folder / "RUNS"
    return len(log.read_text().splitlines()) if log.exists() else 0


def printing(status: str, version: str = V1) -> str:
    """Return the script of a plugin that prints a status."""
    return f"""cat <<'END'
{{"apiVersion": "{version}", "kind": "ExecCredential", "status": {status}}}
END"""


def exec_user(plugin: Path, **fields: object) -> dict[str, object]:
    """Return the user of a kubeconfig that runs a plugin."""
    return {"exec": {"apiVersion": V1, "command": str(plugin), "interactiveMode": "Never", **fields}}


def authorization(credentials: Credentials, *, refresh: bool = False) -> str | None:
    """Return the Authorization header of now."""
    return asyncio.run(credentials.headers(refresh=refresh)).get("Authorization")


def certificate_status(certificates: Certificates, name: str) -> str:
    """Return the status of a plugin that has a certificate in two files."""
    crt = certificates.crt(name).read_text().replace("\n", "\\\\n")
    key = certificates.key(name).read_text().replace("\n", "\\\\n")
    return f'{{"clientCertificateData": "{crt}", "clientKeyData": "{key}"}}'.replace("\\\\", "\\")


T = TypeVar("T")
PODS: Final = "/api/v1/pods"


class Setting:
    """Where a test talks to a server by TLS, as the user of a kubeconfig."""

    def __init__(self, folder: Path, certificates: Certificates) -> None:
        self.folder = folder
        self.certificates = certificates
        self.clock = Clock()
        self.user: dict[str, object] = {}
        self.cluster: dict[str, object] = {"certificate-authority": str(certificates.crt("authority"))}

    def client(self, url: str, connect_timeout: float = 10.0, read_timeout: float = 75.0) -> ApiClient:
        """Make a client of the server at a URL, with limits in seconds."""
        config = write_kubeconfig(self.folder / "config", url, cluster=self.cluster, user=self.user)
        credentials = load_credentials(config, None, clock=self.clock)
        return ApiClient(credentials, connect_timeout=connect_timeout, read_timeout=read_timeout)

    def run(self, response: Response, exchange: Callable[[ApiClient, ApiServer], Awaitable[T]], **limits: float) -> T:
        """Talk to a server that answers so."""

        async def main() -> T:
            tls = self.certificates.asking_tls()
            async with serving(response, tls) as server:
                client = self.client(server.url, **limits)
                try:
                    return await exchange(client, server)
                finally:
                    await client.close()

        return asyncio.run(main())

    def ask(self, response: Response, times: int = 1) -> list[Request]:
        """Send requests one after the other, and give what reached the server."""

        async def exchange(client: ApiClient, server: ApiServer) -> list[Request]:
            for _ in range(times):
                await client.get(PODS, {})
            return server.requests

        return self.run(response, exchange)


def certificate_user(setting: Setting, name: str) -> dict[str, object]:
    """Copy a certificate to where the user's is, and give the user."""
    (setting.folder / "crt").write_bytes(setting.certificates.crt(name).read_bytes())
    (setting.folder / "key").write_bytes(setting.certificates.key(name).read_bytes())
    return {"client-certificate": "crt", "client-key": "key"}
