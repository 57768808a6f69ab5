"""A small cluster with two pending pods, and the command with a kubeconfig for it."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.app.api_server.client_setting import write_kubeconfig
from tests.app.commands.why.cluster import SmallCluster, small_cluster
from tests.app.commands.why.command_runs import BUSY, LARGE, NODES, SMALL, WITHOUT_ADMIN_PORT, Why
from tests.builders import make_namespace


@pytest.fixture
def cluster() -> Iterator[SmallCluster]:
    with small_cluster() as served:
        served.add("nodes", *(each.obj() for each in NODES))
        served.add("namespaces", make_namespace("shop").obj())
        served.add("pods", *(each.obj() for each in (BUSY, LARGE, SMALL)))
        yield served


@pytest.fixture
def kubeconfig(cluster: SmallCluster, tmp_path: Path) -> str:
    return write_kubeconfig(tmp_path / "kubeconfig", cluster.url)


class Kubectl:
    """The stand-in for kubectl."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def forwards_to(self, port: int) -> None:
        (self.folder / "to").write_text(str(port))

    def complains(self, text: str) -> None:
        (self.folder / "complaint").write_text(text)

    @property
    def requested(self) -> list[str]:
        return (self.folder / "asked").read_text().splitlines()


@pytest.fixture
def kubectl(cluster: SmallCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kubectl:
    """Put the stand-in into the PATH, for the Service of the manifests; nothing listens where it forwards to."""
    cluster.add("services", WITHOUT_ADMIN_PORT)
    folder = tmp_path / "bin"
    folder.mkdir()
    program = Path(__file__).with_name("kubectl.py")
    # A script that runs another program, as installers of kubectl make it.
    (folder / "kubectl").write_text(f'#!/bin/sh\n{sys.executable} "$0.py" "$@"\nexit $?\n')
    (folder / "kubectl").chmod(0o755)
    (folder / "kubectl.py").symlink_to(program)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    found = Kubectl(folder)
    found.forwards_to(1)
    return found


@pytest.fixture
def why(kubeconfig: str) -> Why:
    return Why(kubeconfig)
