"""When a class gets a ranking, what is looked at again, and what is not kept."""

from core.equivalence.cache import CacheOptions, EquivalenceCache
from core.equivalence.classes import ClassEntry
from core.framework.interface import Code, Status
from core.framework.invalidation import Scope
from core.mirror.node_info import NodeBatch
from core.objects.kinds import Namespace
from core.objects.node import Node
from core.objects.pod import Pod
from tests.core.equivalence.said_plugin import SaidPlugin, failing, when
from tests.core.mirror.values import mirror_of, node, pod

SKIP = Status(Code.SKIP, ())


class _Asked:
    """Nodes `a`, `b` and `c`, of which one plugin says which fit, and another which is best."""

    def __init__(self, *, max_bytes: int = 10**6) -> None:
        rules = (when(Pod, Scope.NODE), when(Namespace, Scope.ALL))
        self.mirror = mirror_of(node("a"), node("b"), node("c"))
        self.judge, self.scorer = (SaidPlugin(name, invalidated_by=rules) for name in ("Judge", "Scorer"))
        self.labels_scorer = SaidPlugin("Labels", invalidated_by=(when(Node, Scope.NODE),))  # pods do not concern it
        self.filters: tuple[SaidPlugin, ...] = (self.judge,)
        self.scores = ((self.scorer, 2), (self.labels_scorer, 3))
        plugins = (self.judge, self.scorer, self.labels_scorer)
        self.cache = EquivalenceCache(self.mirror, plugins, CacheOptions(max_bytes=max_bytes))

    def best(self, batch: NodeBatch | None = None) -> list[str] | None:
        """Name the best of a batch, else of all nodes, as far as the ranking tells."""
        batch = self.mirror.all_nodes() if batch is None else batch
        best = self.cache.evaluation(pod("p")).best(self.filters, self.scores, batch)
        return None if best is None else [batch.names[position] for position in best.tolist()]

    def ranked(self) -> "_Asked":
        """Ask until there is a ranking."""
        assert self.best() is None
        assert self.best() is not None
        for plugin in (self.judge, self.scorer, self.labels_scorer):
            plugin.asked.clear()
        return self

    @property
    def entry(self) -> ClassEntry:
        """The only class."""
        (entry,) = self.cache
        return entry


def test_a_class_that_is_decided_for_once_gets_no_ranking() -> None:
    asked = _Asked()
    assert asked.best() is None
    assert asked.entry.ranking is None
    assert asked.best() == ["a", "b", "c"]


def test_only_the_node_that_has_changed_is_looked_at_again() -> None:
    asked = _Asked().ranked()
    asked.judge.said["b"] = failing("full")
    asked.scorer.raw["c"] = 7  # which nobody hears of
    asked.mirror.assume(pod("q"), "b", 0.0)
    assert asked.best() == ["a", "c"]
    assert asked.judge.asked == asked.scorer.asked == [["b"]]


def test_only_the_scores_that_an_event_concerns_are_asked_again() -> None:
    asked = _Asked()
    asked.labels_scorer.raw["b"] = 1  # which counts three times
    asked.ranked()
    assert asked.best() == ["b"]
    asked.scorer.raw["a"] = 2  # twice
    asked.mirror.assume(pod("q"), "a", 0.0)
    assert asked.best() == ["a"]
    assert (asked.scorer.asked, asked.labels_scorer.asked) == ([["a"]], [])


def test_a_plugin_that_begins_or_ends_to_score_is_counted_so() -> None:
    asked = _Asked()
    asked.scorer.outcome = SKIP
    asked.ranked()
    asked.mirror.assume(pod("other"), "b", 0.0)
    assert asked.best() == ["a", "b", "c"]
    asked.scorer.outcome, asked.scorer.raw["a"] = None, 1
    asked.mirror.assume(pod("q"), "a", 0.0)
    assert asked.best() == ["a"]
    asked.scorer.outcome = SKIP
    asked.mirror.forget(pod("q").uid)
    assert asked.best() == ["a", "b", "c"]


def test_a_node_that_one_filter_refused_stays_unfit_when_only_another_is_asked_again() -> None:
    asked = _Asked()
    asked.filters = (asked.judge, asked.labels_scorer)
    asked.labels_scorer.said["b"] = failing("label")
    asked.ranked()
    asked.mirror.assume(pod("q"), "b", 0.0)
    assert asked.best() == ["a", "c"]


def test_a_ranking_outlives_a_question_about_other_nodes() -> None:
    asked = _Asked().ranked()
    assert asked.best(asked.mirror.batch(["b", "a"])) is None
    assert asked.best() is None
    assert asked.best() == ["a", "b", "c"]
    assert asked.judge.asked == asked.scorer.asked == []


def test_other_nodes_or_another_order_have_a_ranking_of_their_own() -> None:
    asked = _Asked().ranked()
    asked.scorer.raw["a"] = 1
    asked.mirror.assume(pod("q"), "a", 0.0)
    for names, best in ((("c", "a"), ["a"]), (("c", "b"), ["c", "b"]), (("b", "a", "c"), ["a"])):
        batch = asked.mirror.batch(names)
        assert asked.best(batch) is None
        assert asked.best(batch) == best


def test_after_very_many_changes_the_ranking_is_made_again() -> None:
    asked = _Asked().ranked()
    for number in range(300):
        asked.mirror.assume(pod(f"q{number}"), "b", 0.0)
    asked.scorer.raw["b"] = 1
    asked.mirror.assume(pod("q"), "b", 0.0)
    assert asked.best() == ["b"]


def test_an_error_is_not_kept() -> None:
    asked = _Asked().ranked()
    asked.judge.said["b"] = failing("broken", code=Code.ERROR)
    asked.mirror.assume(pod("q"), "b", 0.0)
    assert asked.best() is None
    assert asked.entry.ranking is None
    del asked.judge.said["b"]
    assert asked.best() == ["a", "b", "c"]


def test_a_ranking_counts_for_the_size_of_the_cache() -> None:
    asked = _Asked()
    asked.best()
    before = asked.cache.nbytes
    asked.best()
    ranking = asked.entry.ranking
    assert ranking is not None
    assert asked.cache.nbytes == before + ranking.nbytes + sum(
        row.nbytes for row in (asked.entry.filters["Judge"], *asked.entry.scores.values())
    )


def test_a_batch_with_strangers_or_without_nodes_is_not_ranked() -> None:
    asked = _Asked()
    for batch in (asked.mirror.batch(["a", "unknown"]), asked.mirror.batch([])):
        assert asked.best(batch) is None
        assert asked.best(batch) is None
