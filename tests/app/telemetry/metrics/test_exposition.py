"""The text of a scrape as a whole. tests/test_observability.py has the metrics of a service with all features on."""

import time

from app.feeds.freshness import Freshness, ResourceState
from app.objects.resources import RESOURCES
from app.telemetry.metrics import Metrics, watch_metrics
from app.verbs.request import Request
from core.events import ClusterEvent
from core.mirror.cluster import ClusterMirror
from core.objects.node import Node
from tests.app.telemetry.metrics.scraped import families, values
from tests.core.mirror.audit import audit


def clock() -> float:
    return 1000.0


def metrics_of(mirror: ClusterMirror, *states: ResourceState) -> Metrics:
    metrics = Metrics(mirror, clock)
    metrics.register(lambda: watch_metrics(Freshness(states, 180.0, clock), clock))
    return metrics


def test_a_scrape_is_what_is_collected() -> None:
    metrics = metrics_of(ClusterMirror())
    found, collected = values(families(metrics).values()), values(metrics.collect())
    assert found.keys() == collected.keys()
    for name in (
        "kindred_ready",
        "kindred_mirror_nodes",
        "kindred_requests_total",
        "kindred_request_queue_seconds_sum",
    ):
        assert found[name] == collected[name]
    assert found["process_resident_memory_bytes"][()] > 1_000_000


def test_two_services_in_one_process_share_nothing() -> None:
    one, other = metrics_of(ClusterMirror()), metrics_of(ClusterMirror())
    one.requests.observe(Request(verb="filter", is_fresh=False))
    counts = [values(each.collect())["kindred_stale_requests_total"]["filter",] for each in (one, other)]
    assert counts == [1, 0]


def test_confirmations_are_a_histogram_from_milliseconds_to_a_minute() -> None:
    metrics = metrics_of(ClusterMirror())
    for seconds in (0.004, 0.02, 0.02, 59.0, 61.0):
        metrics.confirmations.observe(seconds)
    family = families(metrics)["kindred_mirror_to_watch_delay_seconds"]
    assert family.type == "histogram"
    buckets = {sample.labels["le"]: sample.value for sample in family.samples if sample.name.endswith("_bucket")}
    assert (buckets["0.005"], buckets["0.025"], buckets["30.0"], buckets["60.0"], buckets["+Inf"]) == (1, 3, 3, 4, 5)
    assert values([family])["kindred_mirror_to_watch_delay_seconds_sum"] == {(): 120.044}


def large(nodes: int) -> Metrics:
    """Return the metrics of a service for a cluster with three zones, and ten resources on each node."""
    mirror = ClusterMirror()
    resources = {"cpu": 16_000, "memory": 2**36, "pods": 110, **{f"example.com/device-{k}": 8 for k in range(7)}}
    for number in range(nodes):
        zone = {"topology.kubernetes.io/zone": f"zone-{number % 3}"}
        mirror.apply(ClusterEvent("Add", Node(f"node-{number}", zone, allocatable=resources)))
    return metrics_of(mirror, *(ResourceState(resource) for resource in RESOURCES.values()))


def test_a_scrape_of_5000_nodes_has_at_most_1000_series_and_a_quarter_of_a_megabyte() -> None:
    small, grown = (b"".join(large(nodes).pieces()) for nodes in (10, 5000))
    series = [sum(not line.startswith(b"#") for line in text.splitlines()) for text in (small, grown)]
    assert series[0] == series[1], "no series is of a node"
    assert series[1] < 500  # and at most as many of the other components of a service, see tests/exported_metrics.py
    assert len(grown) < 125_000


def test_a_scrape_of_5000_nodes_takes_at_most_20_milliseconds_of_cpu() -> None:
    metrics = large(5000)
    spent = []
    for _ in range(5):  # 2 ms each; the fastest one, as other processes share the caches of the CPU
        began = time.process_time()
        list(metrics.pieces())
        spent.append(time.process_time() - began)
    assert min(spent) < 0.02


def test_a_scrape_changes_nothing_in_the_mirror() -> None:
    mirror = ClusterMirror()
    mirror.apply(ClusterEvent("Add", Node("n1", allocatable={"cpu": 4000})))
    before = mirror.generation
    metrics = metrics_of(mirror)
    assert families(metrics).keys() == families(metrics).keys()
    assert mirror.generation == before
    assert audit(mirror) == []
