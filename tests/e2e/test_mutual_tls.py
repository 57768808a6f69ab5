"""Full offload by mutual TLS, with the certificates of docs/install.md and an address as docs/register.md has it."""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import yaml

from tests.e2e.cluster import Cluster
from tests.e2e.kindred import BINDS, MANIFESTS, Kindred
from tests.e2e.programs import free_port
from tests.e2e.shapes import apart, pod
from tests.manifests.install_commands import commands
from tests.openssl import trusting

OVERLAY: Final = MANIFESTS / "overlays" / "full-offload"
SERVICE: Final = "kindred.kindred.svc"
APART: Final = {"app": "apart"}
PODS: Final = 12


class KindredByTls(Kindred):
    """A Kindred with the settings of the overlay, which tells those without a certificate only how it is."""

    def __init__(self, folder: Path, kubeconfig: Path, certificates: Path) -> None:
        self.health_port = free_port()
        settings = {
            "KINDRED_CONFIG": str(OVERLAY / "kindred.yaml"),
            "KINDRED_HEALTH_PORT": str(self.health_port),
            "POD_NAMESPACE": "kindred",
            "KINDRED_TLS_DIRECTORY": str(certificates),
        }
        super().__init__(folder, kubeconfig, settings)

    def is_ready(self) -> bool:
        """Whether it leads."""
        try:
            return httpx.get(f"http://127.0.0.1:{self.health_port}/readyz", timeout=5.0).is_success
        except httpx.HTTPError:
            return False


def registration(kindred: Kindred, certificates: Path) -> Mapping[str, Any]:
    """Return full-offload.yaml with an address instead of a name, and files that are here."""
    config: dict[str, Any] = yaml.safe_load((MANIFESTS / "scheduler" / "full-offload.yaml").read_text("utf-8"))
    (extender,) = config["extenders"]
    extender["urlPrefix"] = f"https://127.0.0.1:{kindred.port}"
    assert extender["tlsConfig"].keys() == {"caFile", "certFile", "keyFile"}
    files = {"caFile": "ca.crt", "certFile": "scheduler.crt", "keyFile": "scheduler.key"}
    extender["tlsConfig"] = {key: str(certificates / file) for key, file in files.items()} | {"serverName": SERVICE}
    return config


def test_the_scheduler_is_let_in_by_its_certificate_and_nobody_without(cluster: Cluster, tmp_path: Path) -> None:
    for command in commands("openssl "):
        subprocess.run(command, shell=True, check=True, cwd=tmp_path, capture_output=True)  # noqa: S602  # of our docs
    cluster.add_nodes(PODS)
    admitted = {
        **BINDS,
        "KINDRED_PREEMPT": "verb",
        "KINDRED_LEADER_ELECTION": "kindred",
        "POD_NAMESPACE": "kindred",
    }
    token = cluster.admit_kindred(admitted)
    kindred = KindredByTls(tmp_path, cluster.plane.kubeconfig("kindred", token_file=token), tmp_path)
    try:
        cluster.start_scheduler(registration(kindred, tmp_path))
        guard = apart(APART)
        cluster.create_pods([pod(f"apart-{number}", APART, affinity=guard) for number in range(PODS)])
        cluster.wait_bound(PODS)
        assert cluster.violations() == []
        foreign = trusting(tmp_path / "ca.crt")
        foreign.check_hostname = False  # the name is that of the Service
        with pytest.raises(httpx.HTTPError):
            httpx.post(f"https://127.0.0.1:{kindred.port}/filter", content=b"{}", verify=foreign)
    finally:
        cluster.stop_all()
        kindred.end()
