"""When a class gets a ranking, what is looked at again, and what is not kept."""

from core.equivalence.cache import CacheOptions, EquivalenceCache
from core.equivalence.classes import ClassEntry
from core.framework.interface import Code, Status
from core.framework.invalidation import Scope
from core.mirror.node_info import NodeBatch
from core.objects.kinds import Namespace
from core.objects.node import Node
from core.objects.pod import Pod
from tests.core.equivalence.said_plugin import StatedPlugin, failing, when
from tests.core.mirror.values import mirror_of, node, pod, tell

SKIP = Status(Code.SKIP, ())


class _Requested:
    """Nodes `a`, `b` and `c`, of which one plugin says which fit, and another which is best."""

    def __init__(self, *, max_bytes: int = 10**6) -> None:
        rules = (when(Pod, Scope.NODE), when(Namespace, Scope.ALL))
        self.mirror = mirror_of(node("a"), node("b"), node("c"))
        self.judge, self.scorer = (StatedPlugin(name, invalidated_by=rules) for name in ("Judge", "Scorer"))
        self.labels_scorer = StatedPlugin("Labels", invalidated_by=(when(Node, Scope.NODE),))  # pods do not concern it
        self.filters: tuple[StatedPlugin, ...] = (self.judge,)
        self.scores = ((self.scorer, 2), (self.labels_scorer, 3))
        plugins = (self.judge, self.scorer, self.labels_scorer)
        self.cache = EquivalenceCache(self.mirror, plugins, CacheOptions(max_bytes=max_bytes))

    def best(self, batch: NodeBatch | None = None) -> list[str] | None:
        """Name the best of a batch, else of all nodes, as far as the ranking tells."""
        batch = self.mirror.all_nodes() if batch is None else batch
        best = self.cache.evaluation(pod("p")).best(self.filters, self.scores, batch)
        return None if best is None else [batch.names[position] for position in best.tolist()]

    def ranked(self) -> "_Requested":
        """Ask until there is a ranking."""
        assert self.best() is None
        assert self.best() is not None
        for plugin in (self.judge, self.scorer, self.labels_scorer):
            plugin.requested.clear()
        return self

    @property
    def entry(self) -> ClassEntry:
        """The only class."""
        (entry,) = self.cache
        return entry


def test_a_class_that_is_decided_for_once_gets_no_ranking() -> None:
    requested = _Requested()
    assert requested.best() is None
    assert requested.entry.ranking is None
    assert requested.best() == ["a", "b", "c"]


def test_only_the_node_that_has_changed_is_looked_at_again() -> None:
    requested = _Requested().ranked()
    requested.judge.stated["b"] = failing("full")
    requested.scorer.raw["c"] = 7  # which nobody hears of
    requested.mirror.assume(pod("q"), "b", 0.0)
    assert requested.best() == ["a", "c"]
    assert requested.judge.requested == requested.scorer.requested == [["b"]]


def test_only_the_scores_that_an_event_concerns_are_asked_again() -> None:
    requested = _Requested()
    requested.labels_scorer.raw["b"] = 1  # which counts three times
    requested.ranked()
    assert requested.best() == ["b"]
    requested.scorer.raw["a"] = 2  # twice
    requested.mirror.assume(pod("q"), "a", 0.0)
    assert requested.best() == ["a"]
    assert (requested.scorer.requested, requested.labels_scorer.requested) == ([["a"]], [])


def test_a_plugin_that_begins_or_ends_to_score_is_counted_so() -> None:
    requested = _Requested()
    requested.scorer.outcome = SKIP
    requested.ranked()
    requested.mirror.assume(pod("other"), "b", 0.0)
    assert requested.best() == ["a", "b", "c"]
    requested.scorer.outcome, requested.scorer.raw["a"] = None, 1
    requested.mirror.assume(pod("q"), "a", 0.0)
    assert requested.best() == ["a"]
    requested.scorer.outcome = SKIP
    requested.mirror.forget(pod("q").uid)
    assert requested.best() == ["a", "b", "c"]


def test_a_node_that_one_filter_refused_stays_unfit_when_only_another_is_asked_again() -> None:
    requested = _Requested()
    requested.filters = (requested.judge, requested.labels_scorer)
    requested.labels_scorer.stated["b"] = failing("label")
    requested.ranked()
    requested.mirror.assume(pod("q"), "b", 0.0)
    assert requested.best() == ["a", "c"]


def test_a_ranking_outlives_a_question_about_other_nodes() -> None:
    requested = _Requested().ranked()
    assert requested.best(requested.mirror.batch(["b", "a"])) is None
    assert requested.best() is None
    assert requested.best() == ["a", "b", "c"]
    assert requested.judge.requested == requested.scorer.requested == []


def test_other_nodes_or_another_order_have_a_ranking_of_their_own() -> None:
    requested = _Requested().ranked()
    requested.scorer.raw["a"] = 1
    requested.mirror.assume(pod("q"), "a", 0.0)
    for names, best in ((("c", "a"), ["a"]), (("c", "b"), ["c", "b"]), (("b", "a", "c"), ["a"])):
        batch = requested.mirror.batch(names)
        assert requested.best(batch) is None
        assert requested.best(batch) == best


def test_after_very_many_changes_the_ranking_is_made_again() -> None:
    requested = _Requested().ranked()
    for number in range(300):
        requested.mirror.assume(pod(f"q{number}"), "b", 0.0)
    requested.scorer.raw["b"] = 1
    requested.mirror.assume(pod("q"), "b", 0.0)
    assert requested.best() == ["b"]


def test_an_error_is_not_kept() -> None:
    requested = _Requested().ranked()
    requested.judge.stated["b"] = failing("broken", code=Code.ERROR)
    requested.mirror.assume(pod("q"), "b", 0.0)
    assert requested.best() is None
    assert requested.entry.ranking is None
    del requested.judge.stated["b"]
    assert requested.best() == ["a", "b", "c"]


def test_a_ranking_counts_for_the_size_of_the_cache() -> None:
    requested = _Requested()
    requested.best()
    before = requested.cache.nbytes
    requested.best()
    ranking = requested.entry.ranking
    assert ranking is not None
    assert requested.cache.nbytes == before + ranking.nbytes + sum(
        row.nbytes for row in (requested.entry.filters["Judge"], *requested.entry.scores.values())
    )


def test_scores_that_differ_only_later_count_for_the_size_of_the_cache() -> None:
    requested = _Requested()
    requested.scorer.normalizes_alone = False
    requested.ranked()
    before = requested.entry.nbytes
    requested.scorer.raw["b"] = 7
    requested.mirror.assume(pod("q"), "b", 0.0)
    assert requested.best() == ["b"]
    assert requested.entry.ranking is not None
    groups = requested.entry.ranking.groups
    assert groups is not None
    assert requested.entry.nbytes == before + 3 * 8 + groups.nbytes, "the raw scores, and the groups"
    requested.scorer.raw["c"] = 8
    requested.mirror.assume(pod("another"), "c", 0.0)
    assert requested.best() == ["c"]


def test_weights_of_any_int32_choose_by_exact_sums() -> None:
    requested = _Requested()
    requested.scores = ((requested.scorer, 2**31 - 1), (requested.labels_scorer, 3))
    requested.scorer.raw = {"a": 40, "b": 100, "c": 99}
    assert requested.ranked().best() == ["b"]
    requested.scorer.raw["b"] = 98
    tell(requested.mirror, "Add", pod("x", "b"))
    assert requested.best() == ["c"]


def test_a_batch_with_strangers_or_without_nodes_is_not_ranked() -> None:
    requested = _Requested()
    for batch in (requested.mirror.batch(["a", "unknown"]), requested.mirror.batch([])):
        assert requested.best(batch) is None
        assert requested.best(batch) is None
