"""What Prometheus scrapes."""

from fastapi import FastAPI
from prometheus_client.parser import text_string_to_metric_families

from app.admin.health_routes import metrics_router
from app.process.long_work import LongWork
from app.telemetry.metrics import Metrics
from core.events import ClusterEvent
from core.mirror.cluster import ClusterMirror
from core.objects.node import Node
from tests.app.asgi import ask


def served(nodes: int) -> FastAPI:
    mirror = ClusterMirror()
    for number in range(nodes):
        mirror.apply(ClusterEvent("Add", Node(f"n{number}")))
    app = FastAPI()
    app.include_router(metrics_router(Metrics(mirror, lambda: 0.0), LongWork()))
    return app


def test_a_scrape_is_the_text_format_whatever_is_asked_for() -> None:
    app = served(2)
    for accept in ("", "application/openmetrics-text; version=1.0.0", "text/plain;version=1.0.0;escaping=allow-utf-8"):
        response = ask(app, "GET", "/metrics", headers={"accept": accept})
        assert response.status_code == 200
        assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
        assert int(response.headers["content-length"]) == len(response.content)
        found = {family.name: family for family in text_string_to_metric_families(response.text)}
        assert found["kindred_mirror_nodes"].samples[0].value == 2


def test_metrics_are_only_read() -> None:
    assert ask(served(0), "POST", "/metrics").status_code == 405
