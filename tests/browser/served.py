"""Services for a browser to look at: the demo cluster, and the bench cluster with 5,000 nodes, each asked a little."""

import json
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import httpx

from tests.app.serving import ROOT, Service, kindred, until
from tests.bench import cluster

NODES: Final = 5_000
PODS: Final = 25_000
REQUESTS: Final = ROOT / "app" / "demo" / "requests"


def bench_dump(nodes: int = NODES, pods: int = PODS) -> str:
    """Return what `kubectl get nodes,pods,namespaces -A -o json` would print of the bench cluster."""
    kinds = (
        ("Node", cluster.nodes(nodes)),
        ("Pod", cluster.pods(pods, nodes)),
        ("Namespace", cluster.namespaces()),
    )
    items = [{"apiVersion": "v1", "kind": kind, **each} for kind, objects in kinds for each in objects]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


def admin_url(service: Service) -> str:
    """Return where the page is."""
    announced = re.search(r"Debugging at (\S+?)/debug", service.stdout)
    assert announced, service.stderr
    return announced[1] + "/"


def bench_pod(kind: str) -> str:
    """Return the name of the pod of a kind that a scheduler has asked about."""
    about = cluster.incoming(kind, 1, cluster.app_count(PODS))["metadata"]
    return f"{about['namespace']}/{about['name']}"


@contextmanager
def serving(folder: Path, *arguments: str, **settings: str) -> Iterator[Service]:
    """Run a service with an admin port; it must end with status 0."""
    environment = {"KINDRED_ADMIN_PORT": "0", "KINDRED_LOG_LEVEL": "warning", **settings}
    with kindred(folder, "serve", *arguments, "--port", "0", environment=environment) as service:
        until(lambda: "Debugging at" in service.stdout or service.process.poll() is not None)
        yield service
        assert service.end(signal.SIGTERM) == 0, service.stderr[-2000:]


@contextmanager
def demo(folder: Path, **settings: str) -> Iterator[Service]:
    """Serve the demo cluster, of which a scheduler has asked all requests of the demo twice."""
    with serving(folder, "--demo", **settings) as service:
        for file in sorted(REQUESTS.glob("*.json")) * 2:
            httpx.post(f"{service.url}/filter", content=file.read_bytes()).raise_for_status()
        yield service


@contextmanager
def bench(folder: Path) -> Iterator[Service]:
    """Serve the bench cluster, of which a scheduler has asked about a pod of each kind twice."""
    (folder / "cluster.json").write_text(bench_dump())
    with serving(folder, "--snapshot", str(folder / "cluster.json")) as service:
        names = [cluster.node_name(index) for index in range(NODES)]
        for kind in [*cluster.KINDS] * 2:
            pod = cluster.incoming(kind, 1, cluster.app_count(PODS))
            httpx.post(f"{service.url}/filter", json={"Pod": pod, "NodeNames": names}).raise_for_status()
        yield service
