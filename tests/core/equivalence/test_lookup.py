"""What the cache says that it has is what the next question gets from it, and saying it changes nothing."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

import pytest

from core.equivalence.cache import CacheOptions, EquivalenceCache
from core.equivalence.classes import CellLookup, PredicateCell, ScoreCell
from core.framework.interface import SUCCESS, AnyFilter, AnyScore
from core.mirror.cluster import ClusterMirror
from core.objects.pod import Pod
from core.plugins.imagelocality import ImageLocality
from core.plugins.interpodaffinity.plugin import InterPodAffinity
from core.plugins.noderesources.fit import NodeResourcesFit
from core.plugins.nodeunschedulable import NodeUnschedulable
from core.plugins.podtopologyspread.plugin import PodTopologySpread
from core.plugins.tainttoleration import TaintToleration
from core.plugins.volumezone import VolumeZone
from tests.builders import NodeBuilder, labelled, make_node, make_pod, term
from tests.core.decoded import mirror_of, pod_of, tell
from tests.core.plugins.values import random_events
from tests.properties import scheduling_pool as pool

FILTERS: Final[tuple[AnyFilter, ...]] = (
    NodeUnschedulable(),
    TaintToleration(),
    NodeResourcesFit(),
    VolumeZone(),
    InterPodAffinity(),
)
SCORES: Final[tuple[AnyScore, ...]] = (TaintToleration(), InterPodAffinity(), ImageLocality())
ZONE: Final = "zone"
NEAR_WEB: Final = term(ZONE, labelled(app="web"))


def cache_of(mirror: ClusterMirror, *plugins: AnyFilter | AnyScore, max_bytes: int = 2**27) -> EquivalenceCache:
    return EquivalenceCache(mirror, plugins, CacheOptions(mode="spec", max_bytes=max_bytes))


def ask(cache: EquivalenceCache, mirror: ClusterMirror, pod: Pod, *names: str) -> None:
    """Ask as a service would that has the plugins of this file."""
    evaluation = cache.evaluation(pod)
    batch = mirror.batch(names or list(mirror.nodes.slots))
    for plugin in FILTERS:
        evaluation.verdicts(plugin, batch)
    for scorer in SCORES:
        evaluation.raw_scores(scorer, batch)


def looked_up(cache: EquivalenceCache, node: str) -> CellLookup:
    """Look up the cells of the class that was asked about last."""
    *_, entry = cache
    lookup = cache.lookup(entry, node)
    assert lookup is not None
    return lookup


def tainted(name: str, zone: str) -> NodeBuilder:
    return make_node(name).label(ZONE, zone).taint("gpu", "x", "NoSchedule")


# The law.


def results(
    cache: EquivalenceCache, mirror: ClusterMirror, pod: Pod, node: str
) -> Sequence[tuple[PredicateCell | ScoreCell, Counter[str]]]:
    """Ask about one node, and give the cells as the cache has them then, with the misses of each on the way."""
    evaluation = cache.evaluation(pod)
    batch = mirror.batch([node])
    found: list[tuple[PredicateCell | ScoreCell, Counter[str]]] = []
    for plugin in FILTERS:
        before = cache.statistics.misses.copy()
        verdicts = evaluation.verdicts(plugin, batch)
        status = SUCCESS if verdicts is None else verdicts.status(0)
        cell = PredicateCell(plugin.name, status == SUCCESS, status.reasons, invalid=False, miss=None)
        found.append((cell, cache.statistics.misses - before))
    for scorer in SCORES:
        before = cache.statistics.misses.copy()
        raw = evaluation.raw_scores(scorer, batch)
        score = ScoreCell(scorer.name, None if raw is None else int(raw[0]), invalid=False, miss=None)
        found.append((score, cache.statistics.misses - before))
    return found


@pytest.mark.parametrize("seed", range(3))
def test_what_is_valid_is_what_the_next_question_gets_and_what_is_invalid_it_evaluates(seed: int) -> None:
    placed = [pool.placed(pool.PODS[at], (f"p{at}", f"p{at}"), pool.NODE_NAMES[at % 4]) for at in range(20)]
    requested = [pool.incoming(pool.PODS[at], f"q{at}", "") for at in (4, 5, 9)]
    mirror = ClusterMirror()
    cache = cache_of(mirror, *FILTERS, *SCORES)
    seen: Counter[str] = Counter()
    life = random_events(seed, [*pool.NODES, *placed, *pool.NAMESPACE_STATES, *pool.OTHERS], 150)
    for number, event in enumerate(life):
        mirror.apply(event)
        for pod in requested:
            if number % 4 == 0:  # as a service asks, which goes to the plugins' rows only where it has to
                cache.evaluation(pod).filtered(FILTERS, mirror.batch(list(mirror.nodes.slots)))
            for node in list(mirror.nodes.slots):
                cache.evaluation(pod)  # so that it is the class asked about last
                lookup = looked_up(cache, node)
                cells: list[PredicateCell | ScoreCell] = [lookup.predicate(plugin) for plugin in FILTERS]
                cells += [lookup.score(scorer) for scorer in SCORES]
                for cell, (response, misses) in zip(cells, results(cache, mirror, pod, node), strict=True):
                    assert cell.invalid == bool(misses)
                    # A row that is dropped as a whole is missed for that reason, whatever its cells lacked before.
                    assert misses.keys() <= {str(cell.miss).upper(), "COUNTERS_CHANGED", "CLUSTER_CHANGED"}
                    assert cell.invalid or cell == response
                    seen[cell.miss or "valid"] += 1
    assert seen.keys() == {"valid", "new_class", "node_changed", "cluster_changed", "counters_changed"}


def test_looking_changes_nothing() -> None:
    mirror = mirror_of(tainted("a", "1"), make_node("b").label(ZONE, "2"), make_pod("w").label("app", "web").on("b"))
    cache = cache_of(mirror, *FILTERS, *SCORES)
    pod = pod_of(make_pod("p").required_affinity(NEAR_WEB))
    ask(cache, mirror, pod)
    tell(mirror, "Add", make_pod("w2").label("app", "web").on("a"))
    tell(mirror, "Update", make_node("b").label(ZONE, "1"))
    (entry,) = cache
    known = (entry.hits, entry.misses, entry.nbytes, entry.questions, cache.statistics.hits, cache.nbytes)
    rows = [(row.as_of, row.versions, row.outcome) for row in (*entry.filters.values(), *entry.scores.values())]
    lookup = looked_up(cache, "b")
    first = [*map(lookup.predicate, FILTERS), *map(lookup.score, SCORES)]
    assert first == [*map(lookup.predicate, FILTERS), *map(lookup.score, SCORES)]
    assert known == (entry.hits, entry.misses, entry.nbytes, entry.questions, cache.statistics.hits, cache.nbytes)
    assert rows == [(row.as_of, row.versions, row.outcome) for row in (*entry.filters.values(), *entry.scores.values())]


# The cells.


def test_a_score_that_depends_on_the_other_nodes_is_never_there() -> None:
    mirror = mirror_of(make_node("a"))
    plugin = PodTopologySpread()
    cache = cache_of(mirror, plugin)
    cache.evaluation(pod_of(make_pod("p")))
    expected = ScoreCell("PodTopologySpread", raw=None, invalid=True, miss=None)
    assert expected == looked_up(cache, "a").score(plugin)


# Why there is none.


# What is unknown.


def test_a_node_that_the_mirror_does_not_know_has_no_cells() -> None:
    mirror = mirror_of(make_node("a"))
    cache = cache_of(mirror, *FILTERS, *SCORES)
    ask(cache, mirror, pod_of(make_pod("p")))
    (entry,) = cache
    assert cache.lookup(entry, "b") is None
