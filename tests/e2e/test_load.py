"""Load: of two halves of the nodes that request the same, the one that is measured to be busy gets hardly a pod."""

import json
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, urlsplit

import pytest

from tests.e2e.api import NODES, Api, Manifest
from tests.e2e.cluster import Cluster
from tests.e2e.conftest import Note
from tests.e2e.kindred import Kindred
from tests.e2e.programs import PATIENCE, wait_until
from tests.e2e.shapes import node, pod
from tests.fake_apiserver.usage import METRICS_PATH, FakeUsage
from tests.fake_apiserver.wire import Request
from tests.http_server import Handler, http_server
from tests.throughput.modes import LISTED_NODES, MODES

_GROUP_VERSION: Final = "metrics.k8s.io/v1beta1"
_SERVICES: Final = "/api/v1/namespaces/default/services"
_API_SERVICES: Final = "/apis/apiregistration.k8s.io/v1/apiservices"
_NAME: Final = "fake-metrics"
_DISCOVERY: Final = {
    "kind": "APIResourceList",
    "apiVersion": "v1",
    "groupVersion": _GROUP_VERSION,
    "resources": [{"name": "nodes", "singularName": "", "namespaced": False, "kind": "NodeMetrics", "verbs": ["list"]}],
}


@contextmanager
def usage_server(usage: FakeUsage, tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """Serve the APIs of `usage` until the block ends; give the port."""

    class Usage(Handler):
        def respond(self) -> None:
            split = urlsplit(self.path)
            request = Request("GET", split.path, dict(parse_qsl(split.query)), {}, b"")
            respond = usage.apis.get(split.path)
            status, body = (404, b"{}") if respond is None else respond(request)
            if split.path == METRICS_PATH.removesuffix("/nodes"):  # by which the API server knows that it is there
                status, body = 200, json.dumps(_DISCOVERY).encode()
            self.reply(status, body)

    with http_server(Usage, tls) as port:
        yield port


@contextmanager
def aggregated(api: Api, port: int) -> Iterator[None]:
    """Let the API server pass requests for metrics.k8s.io on to a port of the loopback, until the block ends."""
    service = {
        "metadata": {"name": _NAME},
        "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]},
    }
    api.create(_SERVICES, service)
    name = f"v1beta1.{_GROUP_VERSION.partition('/')[0]}"
    spec = {
        "group": "metrics.k8s.io",
        "version": "v1beta1",
        "service": {"name": _NAME, "namespace": "default", "port": port},
        "insecureSkipTLSVerify": True,
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
    }
    body = {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": name}, "spec": spec}
    api.create(_API_SERVICES, body)
    try:
        yield
    finally:
        api.request("DELETE", f"{_API_SERVICES}/{name}")
        api.request("DELETE", f"{_SERVICES}/{_NAME}")


NUMBER: Final = 20
PODS: Final = 100
"""Each is predicted to use 150m: 15 of the 48 cores that the idle half has up to the target of 40 %."""
BUSY, IDLE = 12_000, 1_600
"""Millicores of 16 cores: 75 % and 10 %."""
MEMORY: Final = 8 * 2**30


def names() -> list[str]:
    return [str(each["metadata"]["name"]) for each in nodes()]


def nodes() -> list[Manifest]:
    amounts = {"cpu": "16", "memory": "64Gi", "pods": "110"}
    return [node(at, allocatable=amounts) for at in range(NUMBER)]


def busy() -> set[str]:
    """Return every second node, so that zones and names are in both halves."""
    return set(names()[::2])


def measured() -> FakeUsage:
    cpu = {name: BUSY if name in busy() else IDLE for name in names()}
    return FakeUsage(cpu=cpu, memory=dict.fromkeys(cpu, MEMORY))


@contextmanager
def source(cluster: Cluster, kind: str, usage: FakeUsage) -> Iterator[dict[str, str]]:
    """Serve what is measured; give Kindred's settings."""
    with ExitStack() as stack:
        if kind == "prometheus":
            port = stack.enter_context(usage_server(usage))
            settings = {"KINDRED_USAGE_PROMETHEUS_URL": f"http://127.0.0.1:{port}"}
        else:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            made_by = cluster.plane.authority
            context.load_cert_chain(made_by.crt("server"), made_by.key("server"))
            stack.enter_context(aggregated(cluster.api, stack.enter_context(usage_server(usage, context))))
            settings = {}
        yield {"KINDRED_USAGE_SOURCE": kind, "KINDRED_USAGE_INTERVAL": "1", **settings}


def placed(cluster: Cluster, settings: dict[str, str], *, known: int = NUMBER) -> tuple[int, Kindred]:
    """Let pods be placed once so many nodes are measured; give how many came to the busy half."""
    cluster.api.create_all(NODES, nodes())
    mode = MODES[LISTED_NODES]
    kindred = cluster.start_kindred({**mode.settings, **settings})
    state = 'kindred_node_usage_nodes{state="measured"}'
    wait_until(lambda: kindred.samples().get(state, 0) == known, PATIENCE, f"{known} nodes measured")
    cluster.start_scheduler(mode.config(kindred.url))
    cluster.create_pods(
        pod(f"p{at}", {"app": "x"}, cpu="100m", schedulerName=mode.scheduler_name) for at in range(PODS)
    )
    cluster.wait_bound(PODS)
    return sum(each["spec"]["nodeName"] in busy() for each in cluster.pods()), kindred


@pytest.mark.parametrize("kind", ["metrics-api", "prometheus"])
@pytest.mark.parametrize(
    "profile",
    [
        "full,TargetLoadPacking=100",
        "full,LoadVariationRiskBalancing=100",
        "full,LoadAware=5",
    ],
)
def test_the_busy_half_gets_at_most_a_tenth_of_the_pods(cluster: Cluster, kind: str, profile: str, note: Note) -> None:
    with source(cluster, kind, measured()) as settings:
        on_busy, _ = placed(cluster, {"KINDRED_PROFILE": profile, **settings})
    note(f"{on_busy} of {PODS} pods on the busy half")
    assert on_busy <= PODS // 10


def test_without_the_load_both_halves_get_pods_so_these_tests_can_fail(cluster: Cluster, note: Note) -> None:
    on_busy, _ = placed(cluster, {"KINDRED_PROFILE": "full"}, known=0)
    note(f"{on_busy} of {PODS} pods on the busy half")
    assert on_busy > PODS // 3


def test_usage_that_is_hours_old_is_passed_over_and_pods_are_placed_all_the_same(cluster: Cluster) -> None:
    usage, before = measured(), len(log_of(cluster))
    usage.age = 7200.0
    with source(cluster, "metrics-api", usage) as settings:
        profile = "full,TargetLoadPacking=100,LoadAware"
        on_busy, kindred = placed(cluster, {"KINDRED_PROFILE": profile, **settings}, known=0)
        wait_until(
            lambda: kindred.samples()['kindred_node_usage_nodes{state="too_old"}'] == NUMBER,
            PATIENCE,
            "all are too old",
        )
    assert on_busy > PODS // 3
    assert log_of(cluster)[before:].count("nodes measured more than 180 s ago, ignored") == 1


def log_of(cluster: Cluster) -> str:
    """Return what all Kindreds of the module have logged."""
    file = Path(cluster.plane.folder / "kindred.log")
    return file.read_text("utf-8") if file.exists() else ""
