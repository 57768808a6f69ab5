"""The text of a scrape as a whole."""

import gc
import platform
import re
import time

from prometheus_client import REGISTRY

from app import __version__
from app.api_server.client import ApiClient
from app.api_server.cluster_access import ClusterAccess
from app.api_server.credentials import Credentials
from app.objects.resources import RESOURCES
from app.telemetry.metrics import Metrics
from app.telemetry.metrics.watch_collector import WatchCollector
from app.watch.feed import MirrorFeed
from app.watch.freshness import Freshness, ResourceState
from app.watch.reflector import Reflector
from app.watch.retry import Retries, Timing
from core.events import ClusterEvent
from core.mirror.cluster import ClusterMirror
from core.objects.node import Node
from core.objects.pod import Pod
from tests.app.telemetry.metrics.scraped import families, samples

NODE = Node("n1", allocatable={"cpu": 4000})
OURS = "kindred_"
THE_LIBRARYS = re.compile(r"process_\w+|python_info")


def clock() -> float:
    return 1000.0


def metrics_of(mirror: ClusterMirror, *states: ResourceState, node_figures: bool = False) -> Metrics:
    metrics = Metrics(mirror, clock, node_figures=node_figures)
    metrics.register(WatchCollector(Freshness(states, 180.0, clock), clock, clock))
    return metrics


def busy() -> Metrics:
    """Return the metrics of a service of which everything is known that can be."""
    mirror = ClusterMirror()
    mirror.apply(ClusterEvent("Add", NODE))
    state = ResourceState(RESOURCES[Pod])
    state.synced, state.last_event_at = True, 999.0
    for counts in (state.requests, state.relists, state.events, state.failures):
        counts["some"] += 1
    metrics = metrics_of(mirror, state)
    metrics.observe_confirmation(0.02)
    metrics.count_stale_answer("filter")
    return metrics


def test_names_and_units_are_as_prometheus_wants_them() -> None:
    found = families(busy())
    assert len(found) > 30
    for name, family in found.items():
        assert name.startswith(OURS) or THE_LIBRARYS.fullmatch(name)
        assert family.documentation
        assert re.fullmatch(r"[a-z][a-z_]*", name)
        assert not re.search(r"milli|micro|nano|minutes|kilo|mega|percent", name)
        assert not re.search(r"_(age|since|until)(_seconds)?$", name), "a time is exported as a Unix timestamp"
        assert name.endswith("_timestamp_seconds") == ("since 1970" in family.documentation)
        if family.type == "counter":
            assert all(sample.name == f"{name}_total" for sample in family.samples)
        elif family.type == "gauge":
            assert not name.endswith(("_total", "_count", "_sum"))


def test_the_process_and_the_platform_tell_of_themselves() -> None:
    found = families(metrics_of(ClusterMirror()))
    assert found["process_resident_memory_bytes"].samples[0].value > 1_000_000
    assert found["python_info"].samples[0].labels["implementation"]


def test_two_services_in_one_process_share_nothing() -> None:
    one, other = metrics_of(ClusterMirror()), metrics_of(ClusterMirror())
    one.count_stale_answer("filter")
    assert samples(one, "kindred_stale_requests_total")["filter",] == 1
    assert samples(other, "kindred_stale_requests_total")["filter",] == 0
    assert not [name for family in REGISTRY.collect() for name in [family.name] if name.startswith(OURS)]


def test_stale_answers_are_counted_by_verb() -> None:
    metrics = metrics_of(ClusterMirror())
    for verb in ("filter", "prioritize", "filter"):
        metrics.count_stale_answer(verb)
    assert samples(metrics, "kindred_stale_requests_total") == {
        ("filter",): 2,
        ("prioritize",): 1,
        ("bind",): 0,
        ("preempt",): 0,
    }


def test_confirmations_are_a_histogram_from_milliseconds_to_a_minute() -> None:
    metrics = metrics_of(ClusterMirror())
    for seconds in (0.004, 0.02, 0.02, 59.0, 61.0):
        metrics.observe_confirmation(seconds)
    (family,) = (found for name, found in families(metrics).items() if name == "kindred_mirror_to_watch_delay_seconds")
    assert family.type == "histogram"
    buckets = {sample.labels["le"]: sample.value for sample in family.samples if sample.name.endswith("_bucket")}
    assert (buckets["0.005"], buckets["0.025"], buckets["30.0"], buckets["60.0"], buckets["+Inf"]) == (1, 3, 3, 4, 5)
    values = {sample.name: sample.value for sample in family.samples if not sample.labels}
    assert values["kindred_mirror_to_watch_delay_seconds_sum"] == 120.044


def test_the_feed_tells_how_long_a_confirmation_took() -> None:
    mirror = ClusterMirror()
    metrics = metrics_of(mirror)
    pod = Pod("u", "shop", "web", node_name="n1")
    mirror.assume(pod, "n1", clock() - 0.2)
    MirrorFeed(mirror, clock, metrics.observe_confirmation).apply(ClusterEvent("Update", pod))
    found = families(metrics)["kindred_mirror_to_watch_delay_seconds"]
    assert {sample.value for sample in found.samples if sample.name.endswith("_count")} == {1}


def test_what_a_reflector_knows_is_counted() -> None:
    mirror = ClusterMirror()
    state = ResourceState(RESOURCES[Pod])
    metrics = Metrics(mirror, clock)
    client = ApiClient(Credentials(ClusterAccess("test", "http://127.0.0.1:1", None), None))
    feed = MirrorFeed(mirror, clock, metrics.observe_confirmation)
    reflector = Reflector(state, client, feed, Retries(client, Timing()))
    metrics.register(WatchCollector(Freshness([state], 180.0, clock), clock, clock, {"pods": reflector.known}))
    assert samples(metrics, "kindred_watch_known_objects") == {("pods",): 0}
    reflector.known.put(Pod("u", "shop", "web"))
    assert samples(metrics, "kindred_watch_known_objects") == {("pods",): 1}


def test_pauses_of_the_garbage_collector_are_told() -> None:
    metrics = metrics_of(ClusterMirror())
    with metrics.gc_pauses.observing():
        gc.collect(1)
    name = "kindred_gc_pause_seconds"
    (count,) = (
        sample.value
        for sample in families(metrics)[name].samples
        if (sample.name, sample.labels["generation"]) == (f"{name}_count", "1")
    )
    assert count >= 1


def test_figures_of_nodes_are_exported_only_on_request() -> None:
    mirror = ClusterMirror()
    mirror.apply(ClusterEvent("Add", NODE))
    without = families(metrics_of(mirror))
    assert "kindred_node_resource" not in without
    assert "kindred_cluster_resource" in without
    assert "kindred_node_resource" in families(metrics_of(mirror, node_figures=True))


def large(nodes: int) -> Metrics:
    """Return the metrics of a service for a cluster with three zones, and ten resources on each node."""
    mirror = ClusterMirror()
    resources = {"cpu": 16_000, "memory": 2**36, "pods": 110, **{f"example.com/device-{k}": 8 for k in range(7)}}
    for number in range(nodes):
        zone = {"topology.kubernetes.io/zone": f"zone-{number % 3}"}
        mirror.apply(ClusterEvent("Add", Node(f"node-{number}", zone, allocatable=resources)))
    return metrics_of(mirror, *(ResourceState(resource) for resource in RESOURCES.values()))


def test_a_scrape_of_5000_nodes_has_at_most_2000_series_and_half_a_megabyte() -> None:
    small, grown = (b"".join(large(nodes).pieces()) for nodes in (10, 5000))
    series = [sum(not line.startswith(b"#") for line in text.splitlines()) for text in (small, grown)]
    assert series[0] == series[1], "no series is of a node"
    assert series[1] < 1000  # and at most as many by the other collectors of a service, see tests/exported_metrics.py
    assert len(grown) < 250_000


def test_a_scrape_of_5000_nodes_takes_at_most_30_milliseconds_of_cpu() -> None:
    metrics = large(5000)
    list(metrics.pieces())
    spent = []
    for _ in range(5):  # 4 ms each; the fastest one, as other processes share the caches of the CPU
        began = time.process_time()
        list(metrics.pieces())
        spent.append(time.process_time() - began)
    assert min(spent) < 0.03


def test_a_scrape_changes_nothing_in_the_mirror() -> None:
    mirror = ClusterMirror()
    mirror.apply(ClusterEvent("Add", NODE))
    before = mirror.generation
    metrics = metrics_of(mirror)
    assert families(metrics).keys() == families(metrics).keys()
    assert mirror.generation == before
    assert mirror.audit() == []


def test_the_program_says_which_it_is() -> None:
    (sample,) = families(metrics_of(ClusterMirror()))["kindred_build_info"].samples
    assert (sample.labels, sample.value) == ({"version": __version__, "python": platform.python_version()}, 1)
