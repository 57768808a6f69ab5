"""The law of the cache for one plugin: after every event of a life, the cached answers are the fresh ones."""

from collections.abc import Iterable, Sequence
from random import Random

from core.equivalence.cache import CacheOptions, EquivalenceCache
from core.events import ClusterEvent, Object
from core.framework.evaluation import Evaluation, FreshEvaluation
from core.framework.interface import SUCCESS, AnyFilter, AnyScore, Status
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.objects.pod import Pod


def random_events(seed: int, pool: Sequence[Object], length: int) -> list[ClusterEvent]:
    """Return a life in which the objects of a pool come, turn into others of their name, and go."""
    random = Random(seed)  # noqa: S311 - no secret; the same in every run
    return [ClusterEvent(random.choice(("Update", "Update", "Delete")), random.choice(pool)) for _ in range(length)]


def assert_cached_verdicts_are_fresh(plugin: AnyFilter, events: Iterable[ClusterEvent], pods: Sequence[Pod]) -> None:
    """Ask about the pods after every event, over all nodes; some answer must have been cached, and some must fail."""
    mirror = ClusterMirror()
    cache = EquivalenceCache(mirror, [plugin], CacheOptions(mode="spec"))
    failures = 0
    for event in events:
        mirror.apply(event)
        batch = mirror.batch(list(mirror.nodes.slots))
        for pod in pods:
            fresh = _statuses(plugin, FreshEvaluation(mirror, pod), batch)
            assert fresh == _statuses(plugin, cache.evaluation(pod), batch)
            failures += len(fresh) - fresh.count(SUCCESS)
    assert cache.statistics.hits
    assert failures


def assert_cached_scores_are_fresh(plugin: AnyScore, events: Iterable[ClusterEvent], pods: Sequence[Pod]) -> None:
    """Ask about the pods after every event, over all nodes; some answer must have been cached, and not all be 0."""
    mirror = ClusterMirror()
    cache = EquivalenceCache(mirror, [plugin], CacheOptions(mode="spec"))
    total = 0
    for event in events:
        mirror.apply(event)
        batch = mirror.batch(list(mirror.nodes.slots))
        for pod in pods:
            fresh = _scores(plugin, FreshEvaluation(mirror, pod), batch)
            assert fresh == _scores(plugin, cache.evaluation(pod), batch)
            total += sum(fresh)
    assert cache.statistics.hits
    assert total


def _statuses(plugin: AnyFilter, evaluation: Evaluation, batch: NodeBatch) -> list[Status]:
    verdicts = evaluation.verdicts(plugin, batch)
    return [SUCCESS if verdicts is None else verdicts.status(position) for position in range(len(batch))]


def _scores(plugin: AnyScore, evaluation: Evaluation, batch: NodeBatch) -> list[int]:
    raw = evaluation.raw_scores(plugin, batch)
    return [0] * len(batch) if raw is None else raw.tolist()
