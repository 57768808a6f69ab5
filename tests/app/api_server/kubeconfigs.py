"""Kubeconfig files, plugins that they name, and clocks that tests move."""

import asyncio
import subprocess
from collections.abc import Mapping
from pathlib import Path

import yaml

from app.api_server.credentials import Credentials
from tests.app.api_server.certificates import Certificates

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
