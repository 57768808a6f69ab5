"""Running `kindred why` against a small cluster, and the objects of that cluster."""

from pathlib import Path
from typing import Any

from click.testing import Result
from fastapi import FastAPI

from app.settings.settings import Settings
from app.wiring.main import create_service
from core.mirror.cluster import ClusterMirror
from tests.app.commands.invoked import kindred
from tests.app.questions import mirror_of
from tests.builders import NodeBuilder, PodBuilder, make_node, make_pod

NODES = [make_node(f"n{number}").allocatable(cpu="2", memory="4Gi", pods=10) for number in range(3)]
BUSY = make_pod("busy").in_namespace("shop").requests(cpu="1").on("n0")
LARGE = make_pod("large").in_namespace("shop").requests(cpu="3").phase("Pending")
SMALL = make_pod("small").in_namespace("shop").requests(cpu="1500m").phase("Pending")


class Why:
    """Runs the command with a kubeconfig."""

    def __init__(self, kubeconfig: str) -> None:
        self.kubeconfig = kubeconfig

    def __call__(self, *arguments: object, namespace: str = "shop") -> Result:
        options = ["-n", namespace] if namespace else []
        return kindred("why", *arguments, *options, "--kubeconfig", self.kubeconfig)


def mirror() -> ClusterMirror:
    objects: list[NodeBuilder | PodBuilder] = [*NODES, BUSY, LARGE, SMALL]
    return mirror_of(*objects)


def admin_app(token_file: Path | None = None) -> FastAPI:
    settings = Settings.model_validate({"admin": "127.0.0.1:0", "profile": "full", "admin_read_token_file": token_file})
    app = create_service(settings, mirror(), None).admin
    assert app is not None
    return app


def service(name: str, *ports: dict[str, Any]) -> dict[str, Any]:
    labels = {"app.kubernetes.io/name": "kindred"}
    spec = {"selector": labels, "ports": list(ports)}
    return {"metadata": {"name": name, "namespace": "kindred", "labels": labels}, "spec": spec}


def replica(name: str, *, is_ready: bool = True) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": str(is_ready)}]
    metadata = {"name": name, "namespace": "kindred", "labels": {"app.kubernetes.io/name": "kindred"}, "uid": name}
    return {"metadata": metadata, "spec": {"nodeName": "n1"}, "status": {"phase": "Running", "conditions": conditions}}


WITHOUT_ADMIN_PORT = service("kindred", {"name": "extender", "port": 8888})
"""The Service of the manifests, whose admin port is on the loopback of its pods."""
