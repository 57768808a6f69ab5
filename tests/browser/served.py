"""Services for a browser to look at: the demo cluster, the bench cluster with 5,000 and 15,000 nodes, and odd nodes."""

import asyncio
import json
import signal
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path
from typing import Final

import httpx

from tests.app.serving import ANY_PORT, PATIENCE, ROOT, Service, kindred, until
from tests.bench import cluster
from tests.bench.cluster import HOST, ZONE
from tests.builders import NodeBuilder, Object, make_node, make_pod

NODES: Final = 5_000
PODS: Final = 25_000
HUGE: Final = 15_000
"""Nodes of the largest cluster that is supported."""
REQUESTS: Final = ROOT / "app" / "demo" / "requests"
REASONS: Final = 15
"""For which odd nodes are refused, a taint each; the first one is on most nodes, and so on."""
ROW: Final = "datacentre.example.com/row"


def bench_dump(nodes: int = NODES, pods: int = PODS) -> str:
    """Return what `kubectl get nodes,pods,namespaces -A -o json` would print of the bench cluster."""
    kinds = (
        ("Node", cluster.nodes(nodes)),
        ("Pod", cluster.pods(pods, nodes)),
        ("Namespace", cluster.namespaces()),
    )
    return listed(kinds)


def odd_node(number: int) -> NodeBuilder:
    """Return a node with something in all that plugins read of it, and a name as clouds give them."""
    node = make_node(f"production-pool-{number:02}-0a1b2c3d.europe-west1-b.c.company-name.internal")
    return (
        node.label(HOST, node.name.partition(".")[0])
        .label(ZONE, f"europe-west1-{'bc'[number % 2]}")
        .label(ROW, f"row-{number % 4}")
        .allocatable(cpu="3920m", memory="12Gi", pods=110, **{"nvidia.com/gpu": 2})
        .image(1_000_000_000, "registry.example.com/web:1", "registry.example.com/web@sha256:1")
        .condition("Ready", "True")
    )


def odd_nodes() -> list[NodeBuilder]:
    """Return nodes that each lack something else, one that is closed, and one on which pods fit."""
    tainted = [kind for kind in range(1, REASONS + 1) for _ in range(max(1, 5 - kind))]
    nodes = [
        odd_node(number).taint(f"company-name.example.com/team-{kind:02}", "", "NoSchedule")
        for number, kind in enumerate(tainted)
    ]
    closed = odd_node(len(nodes)).taint("example.com/old", "yes", "PreferNoSchedule").unschedulable()
    return [*nodes, closed, odd_node(len(nodes) + 1)]


def odd_dump() -> str:
    """Return what `kubectl get nodes,pods -A -o json` would print of them."""
    pod = make_pod("web-0").in_namespace("shop").uid("1").on(odd_nodes()[-1].name)
    return listed((("Node", [each.obj() for each in odd_nodes()]), ("Pod", [pod.obj()])))


def listed(kinds: Iterable[tuple[str, Iterable[Object]]]) -> str:
    """Return what kubectl prints of some objects."""
    items = [{"apiVersion": "v1", "kind": kind, **each} for kind, objects in kinds for each in objects]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


def bench_pod(kind: str) -> str:
    """Return the name of the pod of a kind that a scheduler has asked about."""
    about = cluster.incoming(kind, 1, cluster.app_count(PODS))["metadata"]
    return f"{about['namespace']}/{about['name']}"


@contextmanager
def serving(folder: Path, *arguments: str, **settings: str) -> Iterator[Service]:
    """Run a service with an admin port; it must end with status 0."""
    environment = {"KINDRED_ADMIN": "127.0.0.1:0", "KINDRED_LOG_LEVEL": "warning", **settings}
    with kindred(folder, "serve", *arguments, *ANY_PORT, environment=environment) as service:
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


@contextmanager
def huge(folder: Path) -> Iterator[Service]:
    """Serve as many nodes as there may be, with two pods each."""
    (folder / "cluster.json").write_text(bench_dump(HUGE, 2 * HUGE))
    with serving(folder, "--snapshot", str(folder / "cluster.json")) as service:
        yield service


@contextmanager
def odd(folder: Path) -> Iterator[Service]:
    """Serve the odd nodes, with all plugins."""
    (folder / "cluster.json").write_text(odd_dump())
    with serving(folder, "--snapshot", str(folder / "cluster.json"), "--profile", "full") as service:
        yield service


@contextmanager
def in_thread(served: AbstractAsyncContextManager[str]) -> Iterator[str]:
    """Run what serves a URL in a thread with a loop of its own; this one waits for the browser."""
    began: Future[tuple[str, asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def main() -> None:
        async with served as found:
            ended = asyncio.Event()
            began.set_result((found, asyncio.get_running_loop(), ended))
            await ended.wait()

    thread = threading.Thread(target=lambda: asyncio.run(main()))
    thread.start()
    found, loop, ended = began.result(PATIENCE)
    try:
        yield found
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(PATIENCE)
