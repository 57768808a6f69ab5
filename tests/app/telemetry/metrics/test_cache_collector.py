"""What the equivalence cache was good for, as metrics."""

from collections.abc import Sequence

import pytest

from app.telemetry.metrics import Metrics
from app.telemetry.metrics.cache_collector import CacheCollector
from core.equivalence.cache import CacheOptions, EquivalenceCache
from core.equivalence.cells import Miss
from core.events import ClusterEvent
from core.mirror.cluster import ClusterMirror
from core.objects.node import Node
from core.objects.owner import ControllerRef
from core.objects.pod import Pod
from core.plugins.nodeunschedulable import NodeUnschedulable
from core.plugins.tainttoleration import TaintToleration
from core.profile import Profile
from core.scheduling_cycle import filter_nodes
from tests.app.telemetry.metrics.scraped import collected, families

PROFILE = Profile(filters=(NodeUnschedulable(), TaintToleration()), scores=())
OF_A_CLASS = Pod("u", "shop", "web", controller=ControllerRef("ReplicaSet", "web", "rs"))
OF_NONE = Pod("v", "shop", "alone")


def three_nodes() -> ClusterMirror:
    mirror = ClusterMirror()
    for name in ("n1", "n2", "n3"):
        mirror.apply(ClusterEvent("Add", Node(name)))
    return mirror


def ask(cache: EquivalenceCache, mirror: ClusterMirror, pod: Pod, names: Sequence[str] = ("n1", "n2", "n3")) -> None:
    evaluation = cache.evaluation(pod)
    filter_nodes(PROFILE, evaluation, mirror.batch(names))
    cache.finish(evaluation)


def test_everything_has_its_count_from_the_start() -> None:
    values = collected(CacheCollector(EquivalenceCache(three_nodes(), PROFILE.plugins)))
    assert values == {
        "kindred_equivalence_classes": {(): 0},
        "kindred_equivalence_bytes": {(): 0},
        "kindred_equivalence_requests_total": {("hit",): 0, ("partial",): 0, ("miss",): 0, ("none",): 0},
        "kindred_equivalence_cells_total": {
            ("", "hit"): 0,
            ("new_class", "miss"): 0,
            ("evicted", "miss"): 0,
            ("node_changed", "miss"): 0,
            ("counters_changed", "miss"): 0,
            ("cluster_changed", "miss"): 0,
        },
        "kindred_equivalence_evictions_total": {(): 0},
        "kindred_equivalence_checked_total": {(): 0},
        "kindred_equivalence_mismatches_total": {(): 0},
    }


def test_questions_and_their_cells_are_counted() -> None:
    mirror = three_nodes()
    cache = EquivalenceCache(mirror, PROFILE.plugins, CacheOptions(mode="controller"))
    collector = CacheCollector(cache)
    for pod in (OF_A_CLASS, OF_A_CLASS, OF_NONE):
        ask(cache, mirror, pod)
    mirror.apply(ClusterEvent("Update", Node("n2", unschedulable=True)))
    ask(cache, mirror, OF_A_CLASS)
    values = collected(collector)
    questions = {("hit",): 1, ("partial",): 1, ("miss",): 1, ("none",): 1}
    assert values["kindred_equivalence_requests_total"] == questions
    cells = {labels: count for labels, count in values["kindred_equivalence_cells_total"].items() if count}
    assert cells == {("", "hit"): 6 + 5, ("new_class", "miss"): 6, ("node_changed", "miss"): 1}
    assert values["kindred_equivalence_classes"] == {(): 1}
    assert values["kindred_equivalence_bytes"] == {(): cache.nbytes}
    assert cache.nbytes > 0


def test_invalidations_are_told_by_plugin_and_event() -> None:
    mirror = three_nodes()
    cache = EquivalenceCache(mirror, PROFILE.plugins)
    mirror.apply(ClusterEvent("Update", Node("n2", unschedulable=True)))
    mirror.apply(ClusterEvent("Update", Node("n2", unschedulable=True, labels={"a": "b"})))
    mirror.apply(ClusterEvent("Delete", Node("n3")))
    assert collected(CacheCollector(cache))["kindred_equivalence_invalidations_total"] == {
        # by kind, operation, plugin: in the order of the names of the labels
        ("Node", "UPDATE", "NodeUnschedulable"): 1,
        ("Node", "DELETE", "NodeUnschedulable"): 1,
        ("Node", "DELETE", "TaintToleration"): 1,
    }


def test_evictions_are_counted() -> None:
    mirror = three_nodes()
    cache = EquivalenceCache(mirror, PROFILE.plugins, CacheOptions(mode="spec", max_bytes=1))
    for pod in (OF_A_CLASS, OF_NONE):
        ask(cache, mirror, pod)
    values = collected(CacheCollector(cache))
    assert values["kindred_equivalence_evictions_total"] == {(): cache.statistics.evictions}
    assert cache.statistics.evictions > 0
    assert values["kindred_equivalence_classes"] == {(): 0}


def test_cells_that_were_checked_and_wrong_are_counted() -> None:
    mirror = three_nodes()
    cache = EquivalenceCache(mirror, PROFILE.plugins, CacheOptions(shadow_share=1.0))
    ask(cache, mirror, OF_A_CLASS)
    values = collected(CacheCollector(cache))
    assert values["kindred_equivalence_checked_total"] == {(): cache.statistics.checks}
    assert cache.statistics.checks == 3
    assert values["kindred_equivalence_mismatches_total"] == {(): 0}
    cache.statistics.mismatches = 3
    assert collected(CacheCollector(cache))["kindred_equivalence_mismatches_total"] == {(): 3}


def test_every_reason_of_a_miss_has_its_label() -> None:
    cache = EquivalenceCache(three_nodes(), PROFILE.plugins)
    for count, miss in enumerate(Miss, 1):
        cache.statistics.misses[miss.name] = count
    cells = collected(CacheCollector(cache))["kindred_equivalence_cells_total"]
    assert [cells[miss.label, "miss"] for miss in Miss] == list(range(1, len(Miss) + 1))


@pytest.mark.parametrize("on", [True, False], ids=["on", "off"])
def test_a_scrape_tells_of_the_cache_only_where_there_is_one(on: bool) -> None:  # noqa: FBT001 - one of two cases
    mirror = three_nodes()
    metrics = Metrics(mirror, lambda: 0.0)
    if on:
        metrics.register(CacheCollector(EquivalenceCache(mirror, PROFILE.plugins)))
    told = [name for name in families(metrics) if name.startswith("kindred_equivalence_")]
    assert len(told) == (8 if on else 0)
