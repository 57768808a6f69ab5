"""The metrics of a real service with all features on, after events of every kind; the table of docs/metrics.md."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import httpx
from prometheus_client.parser import text_string_to_metric_families

from core.objects.node import NodeMetrics
from tests.app.verbs.binding.binding_setting import N1, N2, Scheduler, loner, scheduling, until
from tests.builders import make_pod
from tests.fake_apiserver import Behaviour, FakeApiServer
from tests.fake_apiserver.faults import overloaded
from tests.fake_apiserver.resources import NODES, PODS
from tests.fake_apiserver.usage import FakeUsage
from tests.markdown import table
from tests.openssl import Authority

_OF_THE_FORMAT: Final = {"le", "quantile"}


class Exported(NamedTuple):
    """One metric."""

    name: str
    type: str
    labels: tuple[str, ...]
    documentation: str
    samples: frozenset[str]
    """Names of its samples. A histogram has several."""


def exported_metrics() -> list[Exported]:
    """Run a service, and give its metrics in the order of their names."""
    return sorted(_read(asyncio.run(_scraped())))


def blocks() -> dict[str, str]:
    """Return the table, a line for each metric but those of the process, which every Python client has."""
    rows = [
        (f"`{metric.name}`", metric.type, ", ".join(f"`{label}`" for label in metric.labels), metric.documentation)
        for metric in exported_metrics()
        if not metric.name.startswith("process_")
    ]
    return {"metrics": table(("metric", "type", "labels", "meaning"), rows)}


def _read(text: str) -> list[Exported]:
    metrics = []
    for family in text_string_to_metric_families(text):
        assert family.samples, f"{family.name}: nothing has happened that would show its labels"
        labels = {label for sample in family.samples for label in sample.labels} - _OF_THE_FORMAT
        name = f"{family.name}_total" if family.type == "counter" else family.name
        names = frozenset(sample.name for sample in family.samples)
        metrics.append(Exported(name, family.type, tuple(sorted(labels)), family.documentation, names))
    return metrics


async def _scraped() -> str:
    with TemporaryDirectory() as folder:
        authority = Authority(Path(folder))
        authority.make("server", "subjectAltName=DNS:localhost")
        settings: dict[str, Any] = {
            "preempt": "evict",
            # For a scheduler that no request names here, so that `filter` returns all nodes below.
            "decide": "listed-nodes",
            "decide_schedulers": ["kindred"],
            "leader_election": "kindred",
            "pod": "kindred/kindred-1",
            "admin": "127.0.0.1:0",
            "usage_source": "metrics-api",
            "usage_interval": 1.0,
            "tls_directory": authority.directory(),
        }
        async with FakeApiServer(Behaviour(other_apis=FakeUsage(cpu={"n1": 100}).apis)) as server:
            server.faults.add(overloaded(), NODES.path)
            async with scheduling(server, N1, N2, **settings) as scheduler:
                await _use(scheduler)
                transport = httpx.ASGITransport(scheduler.service.app)
                async with httpx.AsyncClient(transport=transport, base_url="http://kindred") as client:
                    return (await client.get("/metrics")).text


async def _use(scheduler: Scheduler) -> None:
    """Send requests, bind, change objects at the API server, and make it drop its history."""
    await until(lambda: bool(scheduler.mirror.objects(NodeMetrics)))
    first = scheduler.create(loner("first"))
    assert await scheduler.decide(first, "n1") == ""
    await until(lambda: scheduler.is_added(first, "n1"))
    replica = make_pod("web").owned_by("ReplicaSet", "web", "rs")
    await scheduler.filter(scheduler.create(replica), "n1", "n2")
    server, mirror = scheduler.server, scheduler.mirror
    before = mirror.generation
    server.delete(NODES.path, "n2")
    await until(lambda: mirror.generation > before)
    lists = len(server.requests.of(PODS.path, "list", "watch-list"))
    server.end_watches(PODS.path)
    scheduler.create(make_pod("late"))
    server.compact(PODS.path)
    await until(lambda: len(server.requests.of(PODS.path, "list", "watch-list")) > lists)
