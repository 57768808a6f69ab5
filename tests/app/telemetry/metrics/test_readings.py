"""The metrics of each component, as a scrape reads them."""

import gc
import platform
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import Metric

from app import __version__
from app.feeds.freshness import OF_A_DUMP, Freshness, ResourceState
from app.feeds.memory import MemoryLimit, MemoryWatch
from app.feeds.release import ReleaseTracker
from app.objects.resources import RESOURCES
from app.settings.settings import Settings
from app.telemetry.metrics import (
    GcPauses,
    LoopHolds,
    build_metrics,
    cache_metrics,
    leader_metrics,
    memory_metrics,
    mirror_metrics,
    release_metrics,
    tls_metrics,
    usage_metrics,
    watch_metrics,
)
from app.telemetry.request_metrics import decision_metrics, queue_metrics
from app.verbs.request import Decision
from core.equivalence.cache import CacheOptions, EquivalenceCache
from core.equivalence.rows import Miss
from core.events import ClusterEvent
from core.mirror.cluster import ClusterMirror
from core.objects.kinds import ControllerRef
from core.objects.node import Node
from core.objects.pod import Pod
from core.plugins.nodeunschedulable import NodeUnschedulable
from core.plugins.tainttoleration import TaintToleration
from core.profile import Profile
from core.scheduling_cycle import filter_nodes
from tests.app.feeds.test_usage_feed import Setting, Source, good, measured
from tests.app.telemetry.metrics.scraped import values

NOW, UNIX_NOW, STALE_AFTER = 1000.0, 1_700_000_000.0, 180.0
PROFILE = Profile(filters=(NodeUnschedulable(), TaintToleration()), scores=())
OF_A_CLASS = Pod("u", "shop", "web", controller=ControllerRef("ReplicaSet", "web", "rs"))


def mirror_of(*objects: Node | Pod) -> ClusterMirror:
    mirror = ClusterMirror()
    for each in objects:
        mirror.apply(ClusterEvent("Add", each))
    return mirror


def small_cluster() -> ClusterMirror:
    """Two nodes and three pods, of which one is on no known node, and one is assumed."""
    mirror = mirror_of(
        Node("n1"),
        Node("n2"),
        Pod("u1", "shop", "web", node_name="n1"),
        Pod("u2", "shop", "early", node_name="n3"),
    )
    mirror.assume(Pod("u3", "shop", "big"), "n2", 0.0)
    return mirror


def followed() -> ResourceState:
    """Return the pods as they are after a while."""
    state = ResourceState(RESOURCES[Pod])
    state.synced, state.followed_at = True, NOW - 2.5
    state.requests.update({"watch": 3, "list": 2})
    state.relists.update({"expired": 1})
    state.failures.update({"in-stream 500": 1, "ConnectionFailed": 4})
    state.decode_errors = 8
    return state


def watched(*states: ResourceState, known: dict[str, list[str]] | None = None) -> Iterable[Metric]:
    return watch_metrics(Freshness(states, STALE_AFTER, lambda: NOW), lambda: UNIX_NOW, known or {})


def release(reported: str) -> ReleaseTracker:
    responded = ReleaseTracker(Settings(), ClusterMirror())
    responded.take(reported, "server")
    return responded


def usage() -> Setting:
    return Setting(Source(good(measured("n1", age=20), problems=["node n2: usage.cpu: absent"]))).polled(1)


def holds() -> LoopHolds:
    found = LoopHolds()
    for seconds in (0.0005, 0.2, 0.02):
        found.observe(seconds)
    return found


READINGS: dict[str, tuple[Callable[[], Iterable[Metric]], dict[str, dict[tuple[str, ...], float]]]] = {
    "mirror": (
        lambda: mirror_metrics(small_cluster()),
        {
            "kindred_mirror_nodes": {(): 2},
            "kindred_mirror_pods": {(): 3},
            "kindred_mirror_assumed_pods": {(): 1},
        },
    ),
    "watch": (
        lambda: watched(followed(), known={"pods": ["a", "b"]}),
        {
            "kindred_ready": {(): 1},
            "kindred_watch_last_byte_timestamp_seconds": {("pods",): UNIX_NOW - 2.5},
            "kindred_watch_known_objects": {("pods",): 2},
            "kindred_watch_decode_errors_total": {("pods",): 8},
            "kindred_watch_requests_total": {("pods", "watch"): 3, ("pods", "list"): 2},
            "kindred_watch_relists_total": {("expired", "pods"): 1},
            "kindred_watch_failures_total": {("ConnectionFailed", "pods"): 4, ("in-stream 500", "pods"): 1},
        },
    ),
    "a resource that was never synced": (
        lambda: watched(ResourceState(RESOURCES[Node])),
        {
            "kindred_ready": {(): 0},
            "kindred_watch_decode_errors_total": {("nodes",): 0},
        },
    ),
    "a dump": (lambda: watch_metrics(OF_A_DUMP, lambda: UNIX_NOW), {"kindred_ready": {(): 1}}),
    "usage": (
        lambda: usage_metrics(usage().feed),
        {"kindred_node_usage_nodes": {("measured",): 1, ("too_old",): 0, ("not_measured",): 1}},
    ),
    "release": (
        lambda: release_metrics(release("v1.36.3")),
        {"kindred_kubernetes_release_info": {("true", "1.36", "server"): 1}},
    ),
    "another release": (
        lambda: release_metrics(release("v1.38.0")),
        {"kindred_kubernetes_release_info": {("false", "1.37", "server"): 1}},
    ),
    "queue": (
        lambda: queue_metrics(7, {"deadline": 2, "queue_full": 0}),
        {
            "kindred_queue_length": {(): 7},
            "kindred_requests_shed_total": {("deadline",): 2, ("queue_full",): 0},
        },
    ),
    "decisions": (
        lambda: decision_metrics({Decision.ASSUMED: 3, Decision.NO_FIT: 1}),
        {"kindred_decisions_total": {("assumed",): 3, ("no_fit",): 1}},
    ),
    "leader": (lambda: leader_metrics(lambda: True), {"kindred_leader": {(): 1}}),
    "no leader": (lambda: leader_metrics(lambda: False), {"kindred_leader": {(): 0}}),
    "memory": (
        lambda: memory_metrics(MemoryWatch(MemoryLimit(1000, "the test"), 0.9, (), lambda: 0.0)),
        {"kindred_memory_limit_bytes": {(): 1000}},
    ),
    "certificates": (
        lambda: tls_metrics(_ports(extender=UNIX_NOW, admin=UNIX_NOW + 1)),
        {
            "kindred_tls_certificate_not_after_timestamp_seconds": {
                ("extender",): UNIX_NOW,
                ("admin",): UNIX_NOW + 1,
            }
        },
    ),
    "loop": (lambda: holds().collect(), {"kindred_event_loop_longest_hold_seconds": {(): 0.2}}),
    "build": (build_metrics, {"kindred_build_info": {(platform.python_version(), __version__): 1}}),
}


def _ports(**ends: float) -> Any:  # noqa: ANN401  # two attributes of ReloadedTls
    return [SimpleNamespace(port=port, not_after=end) for port, end in ends.items()]


@pytest.mark.parametrize("name", READINGS)
def test_a_component_is_told_as_it_is(name: str) -> None:
    reading, expected = READINGS[name]
    assert values(reading()) == expected


def test_readings_are_of_the_moment() -> None:
    mirror = ClusterMirror()
    reading = partial(mirror_metrics, mirror)
    assert values(reading())["kindred_mirror_nodes"] == {(): 0}
    mirror.apply(ClusterEvent("Add", Node("n1")))
    assert values(reading())["kindred_mirror_nodes"] == {(): 1}


def test_ready_is_what_the_freshness_says() -> None:
    stale = followed()
    stale.followed_at = NOW - STALE_AFTER - 1
    assert values(watched(stale))["kindred_ready"] == {(): 0}
    assert values(watched(followed(), ResourceState(RESOURCES[Node])))["kindred_ready"] == {(): 0}


# The equivalence cache.


def ask(cache: EquivalenceCache, mirror: ClusterMirror, pod: Pod) -> None:
    evaluation = cache.evaluation(pod)
    filter_nodes(PROFILE, evaluation, mirror.batch(("n1", "n2", "n3")))
    cache.finish(evaluation)


def test_cells_of_the_cache_are_counted_by_result_and_reason() -> None:
    mirror = mirror_of(Node("n1"), Node("n2"), Node("n3"))
    cache = EquivalenceCache(mirror, PROFILE.plugins, CacheOptions(shadow_share=0.0))
    for _ in range(2):
        ask(cache, mirror, OF_A_CLASS)
    mirror.apply(ClusterEvent("Update", Node("n2", unschedulable=True)))
    ask(cache, mirror, OF_A_CLASS)
    found = values(cache_metrics(cache))
    cells = {labels: count for labels, count in found["kindred_equivalence_cells_total"].items() if count}
    assert cells == {("", "hit"): 6 + 5, ("new_class", "miss"): 6, ("node_changed", "miss"): 1}
    assert found["kindred_equivalence_bytes"] == {(): cache.nbytes}
    assert cache.nbytes > 0


def test_every_total_of_the_cache_has_its_metric() -> None:
    cache = EquivalenceCache(mirror_of(Node("n1")), PROFILE.plugins)
    totals = cache.statistics
    totals.hits, totals.evictions, totals.checks, totals.mismatches = 10, 20, 30, 40
    for count, miss in enumerate(Miss, 1):
        totals.misses[miss.name] = count
    assert values(cache_metrics(cache)) == {
        "kindred_equivalence_cells_total": {
            ("", "hit"): 10,
            **{(miss.label, "miss"): count for count, miss in enumerate(Miss, 1)},
        },
        "kindred_equivalence_bytes": {(): 0},
        "kindred_equivalence_evictions_total": {(): 20},
        "kindred_equivalence_checked_total": {(): 30},
        "kindred_equivalence_mismatches_total": {(): 40},
    }


# Pauses of the garbage collector.


@pytest.fixture
def _no_collection_but_ours() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("_no_collection_but_ours")
def test_pauses_are_counted_and_summed_by_generation() -> None:
    pauses = GcPauses(iter([1.0, 1.5, 2.0, 2.25, 3.0, 6.0]).__next__)
    with pauses.observing():
        gc.collect(2)
        gc.collect(2)
        gc.collect(0)
    assert values(pauses.collect()) == {
        "kindred_gc_pause_seconds_count": {("0",): 1, ("1",): 0, ("2",): 2},
        "kindred_gc_pause_seconds_sum": {("0",): 3.0, ("1",): 0.0, ("2",): 0.75},
    }


@pytest.mark.usefixtures("_no_collection_but_ours")
def test_nothing_is_measured_after_the_block_even_if_it_raises() -> None:
    callbacks = list(gc.callbacks)
    pauses = GcPauses(iter([1.0, 2.0]).__next__)

    def fail() -> None:
        with pauses.observing():
            gc.collect(1)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    gc.collect(1)
    assert values(pauses.collect())["kindred_gc_pause_seconds_count"]["1",] == 1
    assert gc.callbacks == callbacks
