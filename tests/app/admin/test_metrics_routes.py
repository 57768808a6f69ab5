"""What Prometheus scrapes."""

import asyncio
from collections.abc import Iterator

import httpx
import pytest
from fastapi import FastAPI
from prometheus_client.parser import text_string_to_metric_families
from starlette.types import Message

from app.admin import shared_copy
from app.admin.metrics_routes import metrics_router
from app.long_work import LongWork
from app.telemetry.metrics import Metrics
from core.events import ClusterEvent
from core.mirror.cluster import ClusterMirror
from core.objects.node import Node
from tests.app.asgi import ASGI_REQUEST, ask


def served(nodes: int) -> FastAPI:
    mirror = ClusterMirror()
    for number in range(nodes):
        mirror.apply(ClusterEvent("Add", Node(f"n{number}", allocatable={"cpu": 4000, "memory": 2**33, "pods": 110})))
    app = FastAPI()
    app.include_router(metrics_router(Metrics(mirror, lambda: 0.0, node_figures=True), LongWork()))
    return app


def test_a_scrape_is_the_text_format_whatever_is_asked_for() -> None:
    app = served(2)
    for accept in ("", "application/openmetrics-text; version=1.0.0", "text/plain;version=1.0.0;escaping=allow-utf-8"):
        response = ask(app, "GET", "/metrics", headers={"accept": accept})
        assert response.status_code == 200
        assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
        found = {family.name: family for family in text_string_to_metric_families(response.text)}
        assert found["kindred_mirror_nodes"].samples[0].value == 2
        assert len(found["kindred_node_resource"].samples) == 2 * 12


def test_a_large_scrape_is_sent_in_chunks() -> None:
    bodies: list[bytes] = []
    lengths: list[int] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            lengths.extend(int(value) for name, value in message["headers"] if name == b"content-length")
        if message["type"] == "http.response.body":
            bodies.append(message["body"])

    scope = {**ASGI_REQUEST, "method": "GET", "path": "/metrics", "asgi": {"version": "3.0", "spec_version": "2.4"}}
    asyncio.run(served(1000)(scope, receive, send))
    assert len(bodies) > 10
    assert max(map(len, bodies)) < 80_000
    assert b"".join(bodies).count(b'node="') == 12_000
    assert lengths == [len(b"".join(bodies))]


def test_many_scrapes_at_once_share_one_text(monkeypatch: pytest.MonkeyPatch) -> None:
    made = 0
    pieces = Metrics.pieces

    def counted(metrics: Metrics) -> Iterator[bytes]:
        nonlocal made
        made += 1
        return pieces(metrics)

    monkeypatch.setattr(Metrics, "pieces", counted)
    monkeypatch.setattr(shared_copy, "_CHEAP", 0.0)
    app = served(500)

    async def scrape_all() -> list[httpx.Response]:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://kindred") as client:
            return list(await asyncio.gather(*(client.get("/metrics") for _ in range(8))))

    answers = asyncio.run(scrape_all())
    assert len({answer.content for answer in answers}) == 1
    assert answers[0].content.count(b'node="') == 6_000
    assert made == 1


def test_metrics_are_only_read() -> None:
    assert ask(served(0), "POST", "/metrics").status_code == 405
