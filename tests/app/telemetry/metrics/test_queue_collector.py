"""The metrics of the questions that wait."""

from collections.abc import Mapping

import msgspec

from app.telemetry.metrics import Metrics
from app.telemetry.metrics.queue_collector import QueueCollector
from core.mirror.cluster import ClusterMirror
from tests.app.telemetry.metrics.scraped import collected, families


class Waiting(msgspec.Struct):
    """A queue as it was at some time."""

    in_flight: int
    waiting: int
    bytes_held: int
    shed: Mapping[str, int]


def test_the_queue_is_told_as_it_is_at_the_scrape() -> None:
    queue = Waiting(0, 0, 0, {"deadline": 0, "queue_full": 0, "bytes": 0})
    collector = QueueCollector(queue)
    assert collected(collector)["kindred_requests_shed_total"] == {("deadline",): 0, ("queue_full",): 0, ("bytes",): 0}
    queue.in_flight, queue.waiting, queue.bytes_held = 1, 7, 4096
    queue.shed = {"deadline": 2, "queue_full": 3, "bytes": 0}
    assert collected(collector) == {
        "kindred_requests_in_flight": {(): 1},
        "kindred_queue_length": {(): 7},
        "kindred_queue_bytes": {(): 4096},
        "kindred_requests_shed_total": {("deadline",): 2, ("queue_full",): 3, ("bytes",): 0},
    }


def test_a_scrape_has_it_once_it_is_known() -> None:
    metrics = Metrics(ClusterMirror(), lambda: 0.0)
    assert "kindred_queue_length" not in families(metrics)
    metrics.register(QueueCollector(Waiting(0, 0, 0, {})))
    assert "kindred_queue_length" in families(metrics)
