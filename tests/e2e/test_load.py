"""Load: of two halves of the nodes that request the same, the one that is measured to be busy gets hardly a pod."""

import ssl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.api import NODES, Manifest
from tests.e2e.cluster import Cluster
from tests.e2e.conftest import Note
from tests.e2e.kindred import Kindred
from tests.e2e.programs import wait_until
from tests.e2e.shapes import node, pod
from tests.e2e.usage_server import aggregated, usage_server
from tests.fake_apiserver.usage import FakeUsage
from tests.throughput.modes import LISTED_NODES, MODES

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
    wait_until(lambda: kindred.samples().get(state, 0) == known, 30.0, f"{known} nodes measured")
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
            lambda: kindred.samples()['kindred_node_usage_nodes{state="too_old"}'] == NUMBER, 10.0, "all are too old"
        )
    assert on_busy > PODS // 3
    assert log_of(cluster)[before:].count("nodes measured more than 180 s ago, ignored") == 1


def log_of(cluster: Cluster) -> str:
    """Return what all Kindreds of the module have logged."""
    file = Path(cluster.plane.folder / "kindred.log")
    return file.read_text("utf-8") if file.exists() else ""
