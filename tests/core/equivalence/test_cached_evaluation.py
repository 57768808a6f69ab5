"""Answers from the rows of a class: what is asked of the plugin, what is kept, and what the caller gets."""

import numpy as np
import pytest
from msgspec.structs import replace

from core.equivalence.cache import CacheOptions, EquivalenceCache
from core.framework.interface import SKIP, SUCCESS, Code, Scope, Status, Verdicts
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.objects.kinds import Namespace
from core.objects.node import Node
from core.objects.pod import Pod
from tests.core.equivalence.asked import Asked
from tests.core.equivalence.said_plugin import SaidPlugin, failing, scores, statuses, when, whole
from tests.core.mirror.values import mirror_of, node, pod, tell

FULL, TAINTED = failing("Insufficient cpu"), failing("tainted", "twice")


def test_a_node_is_asked_about_once_whoever_of_the_class_asks() -> None:
    asked = Asked()
    asked.plugin.said = {"b": FULL}
    for name in ("p", "q"):
        found = statuses(asked.cache.evaluation(pod(name)), asked.plugin, whole(asked.mirror))
        assert found == [SUCCESS, FULL, SUCCESS]

    assert asked.plugin.asked == [["a", "b", "c"]]
    assert len(asked.plugin.prepared) == 1


def test_a_raw_score_is_asked_for_once() -> None:
    asked = Asked()
    asked.plugin.raw = {"a": -5, "c": 2**40}
    for _ in range(2):
        assert asked.scores() == [-5, 0, 2**40]

    assert asked.plugin.asked == [["a", "b", "c"]]


def test_only_nodes_that_are_missing_are_asked_about_in_the_order_of_the_question() -> None:
    asked = Asked()
    asked.plugin.said = {"a": FULL, "c": TAINTED}
    assert asked.statuses("b") == [SUCCESS]
    assert asked.statuses("c", "b", "a") == [TAINTED, SUCCESS, FULL]
    assert asked.statuses("a", "c") == [FULL, TAINTED]

    assert asked.plugin.asked == [["b"], ["c", "a"]]


def test_only_nodes_that_changed_are_asked_about_again() -> None:
    asked = Asked()
    asked.statuses()
    tell(asked.mirror, "Add", pod("x", "b"))
    asked.plugin.said = {"b": FULL}

    assert asked.statuses() == [SUCCESS, FULL, SUCCESS]
    assert asked.plugin.asked == [["a", "b", "c"], ["b"]]


def test_a_node_may_stand_twice_in_a_question() -> None:
    asked = Asked()
    asked.plugin.said = {"b": FULL}
    for _ in range(2):
        assert asked.statuses("b", "a", "b") == [FULL, SUCCESS, FULL]


def test_no_nodes_are_no_question() -> None:
    asked = Asked()

    assert statuses(asked.evaluation(), asked.plugin, asked.mirror.batch([])) == []
    assert scores(asked.evaluation(), asked.plugin, asked.mirror.batch([])) == []


def test_results_stay_where_an_event_touches_nothing() -> None:
    asked = Asked(SaidPlugin(invalidated_by=(when(Pod, Scope.NODE, touches=lambda *_: False),)))
    asked.statuses()
    tell(asked.mirror, "Add", pod("x", "b"))
    asked.statuses()

    assert asked.plugin.asked == [["a", "b", "c"]]


def test_a_change_for_all_nodes_drops_all_cells_and_the_outcome() -> None:
    asked = Asked()
    for outcome in (None, SKIP):
        asked.plugin.outcome = outcome
        tell(asked.mirror, "Update", Namespace("n", {"outcome": str(outcome)}))
        asked.statuses()
        asked.statuses()

    assert asked.plugin.asked == [["a", "b", "c"]]
    assert len(asked.plugin.prepared) == 2


# One status for all nodes.


@pytest.mark.parametrize("outcome", [SKIP, FULL, failing("a", "b", code=Code.UNSCHEDULABLE_AND_UNRESOLVABLE)])
def test_the_outcome_of_pre_filter_is_kept_for_nodes_that_were_not_asked_about(outcome: Status) -> None:
    asked = Asked()
    asked.plugin.outcome = outcome
    expected = SUCCESS if outcome == SKIP else outcome
    asked.statuses("a")
    tell(asked.mirror, "Add", pod("x", "b"), node("d"))

    assert asked.statuses() == [expected] * 4
    assert len(asked.plugin.prepared) == 1


def test_a_skipped_filter_answers_nothing_and_a_skipped_score_has_none() -> None:
    asked = Asked()
    asked.plugin.outcome = SKIP
    for _ in range(2):
        assert asked.evaluation().verdicts(asked.plugin, whole(asked.mirror)) is None
        assert asked.evaluation().raw_scores(asked.plugin, whole(asked.mirror)) is None


def test_an_outcome_gives_way_to_cells_and_back_when_counters_change() -> None:
    asked = Asked(SaidPlugin(invalidated_by=(when(Pod, Scope.COUNTERS),)))
    for number, outcome in enumerate((FULL, None, SKIP, None, FULL)):
        asked.plugin.outcome, asked.plugin.said = outcome, {"a": TAINTED}
        tell(asked.mirror, "Add", pod(f"x{number}", "b"))
        expected = [TAINTED, SUCCESS, SUCCESS] if outcome is None else [SUCCESS if outcome == SKIP else outcome] * 3
        assert asked.statuses() == expected
        assert asked.statuses() == expected


# Counters.


def test_counters_are_looked_at_after_any_event_and_not_before() -> None:
    asked = Asked(SaidPlugin(invalidated_by=(when(Pod, Scope.COUNTERS),)))
    asked.statuses()
    asked.plugin.version, asked.plugin.said = 1, {"a": FULL}
    assert asked.statuses() == [SUCCESS] * 3

    tell(asked.mirror, "Add", Namespace("n"))
    assert asked.statuses() == [FULL, SUCCESS, SUCCESS]
    assert len(asked.plugin.asked) == 2


def test_versions_that_stay_keep_all_cells() -> None:
    asked = Asked(SaidPlugin(invalidated_by=(when(Pod, Scope.COUNTERS),)))
    asked.plugin.said = {"a": FULL}
    asked.statuses()
    for number in range(3):
        tell(asked.mirror, "Add", pod(f"x{number}", "b"))
        assert asked.statuses() == [FULL, SUCCESS, SUCCESS]

    assert len(asked.plugin.asked) == 1
    assert len(asked.plugin.prepared) == 4


def test_without_a_rule_by_counters_versions_are_not_looked_at() -> None:
    asked = Asked()
    asked.statuses()
    asked.plugin.version = 1
    tell(asked.mirror, "Add", Namespace("n"))
    tell(asked.mirror, "Add", pod("x", "b"))
    asked.statuses("a")
    asked.plugin.version = 2
    tell(asked.mirror, "Update", pod("x", "b", version="2"))
    asked.statuses("a")

    assert asked.plugin.asked == [["a", "b", "c"], ["a"]]


# Strangers.


def test_strangers_are_never_kept() -> None:
    asked = Asked()
    batch = asked.mirror.batch(["s", "a", "t"], {0: Node("s")})
    for said in ({"s": FULL, "a": TAINTED}, {"s": TAINTED, "t": FULL}):
        asked.plugin.said = said
        found = statuses(asked.evaluation(), asked.plugin, batch)
        assert found == [said["s"], TAINTED, said.get("t", SUCCESS)]

    assert asked.plugin.asked == [["s", "a", "t"], ["s", "t"]]
    assert asked.cache.statistics.misses == {"NEW_CLASS": 1}
    assert asked.cache.statistics.hits == 1


def test_a_stranger_that_becomes_known_is_asked_about() -> None:
    asked = Asked()
    asked.plugin.said = {"s": FULL}
    statuses(asked.evaluation(), asked.plugin, asked.mirror.batch(["s"], {0: Node("s")}))
    tell(asked.mirror, "Add", node("s"))
    asked.plugin.said = {"s": TAINTED}

    assert asked.statuses("s") == [TAINTED]


def test_what_was_said_of_a_stranger_does_not_reach_the_last_slot() -> None:
    """NO_SLOT is -1, which in numpy is the last one."""
    mirror = mirror_of(*(node(f"n{number:02}") for number in range(16)))
    plugin = SaidPlugin()
    plugin.said = {"s": FULL}
    cache = EquivalenceCache(mirror, [plugin], CacheOptions(mode="spec"))
    statuses(cache.evaluation(pod("p")), plugin, mirror.batch(["s", "n00"], {0: Node("s")}))

    assert statuses(cache.evaluation(pod("p")), plugin, whole(mirror)) == [SUCCESS] * 16


# Where the answers were from.


def test_the_source_is_partial_where_one_plugin_hits_and_another_does_not() -> None:
    one, other = SaidPlugin("One"), SaidPlugin("Other")
    mirror = mirror_of(node("a"))
    cache = EquivalenceCache(mirror, [one, other], CacheOptions(mode="spec"))
    statuses(cache.evaluation(pod("p")), one, whole(mirror))

    evaluation = cache.evaluation(pod("p"))
    statuses(evaluation, one, whole(mirror))
    assert evaluation.source.startswith("hit ")
    scores(evaluation, other, whole(mirror))
    assert evaluation.source.startswith("partial ")


def test_verdicts_and_scores_of_a_plugin_are_kept_apart() -> None:
    asked = Asked()
    asked.plugin.said, asked.plugin.raw = {"a": FULL}, {"a": 7}

    for _ in range(2):
        assert asked.statuses() == [FULL, SUCCESS, SUCCESS]
        assert asked.scores() == [7, 0, 0]
    assert len(asked.plugin.asked) == 2


def test_scores_that_depend_on_the_other_nodes_are_never_kept() -> None:
    asked = Asked()
    asked.plugin.scores_alone = False
    for number in range(3):
        asked.plugin.raw = {"a": number}
        assert asked.scores() == [number, 0, 0]

    assert asked.cache.statistics.hits == 0
    assert not any(entry.scores for entry in asked.cache)


def test_a_plugin_that_no_event_would_invalidate_fails_at_once() -> None:
    """An unknown predicate key must fail loudly, not pass (hole 8)."""
    asked = Asked()

    with pytest.raises(KeyError, match="Unknown"):
        statuses(asked.evaluation(), SaidPlugin("Unknown"), whole(asked.mirror))
    with pytest.raises(KeyError, match="Unknown"):
        scores(asked.evaluation(), SaidPlugin("Unknown"), whole(asked.mirror))


def test_an_evaluation_from_before_an_event_does_not_answer_from_before_it() -> None:
    asked = Asked()
    asked.statuses()
    evaluation = asked.evaluation()
    tell(asked.mirror, "Add", pod("x", "b"))
    asked.plugin.said = {"b": FULL}

    assert statuses(evaluation, asked.plugin, whole(asked.mirror)) == [SUCCESS, FULL, SUCCESS]
    assert asked.statuses() == [SUCCESS, FULL, SUCCESS]


@pytest.mark.parametrize("scope", [Scope.NODE, Scope.ALL, Scope.COUNTERS])
def test_cells_grow_with_the_nodes_whatever_an_event_makes_invalid(scope: Scope) -> None:
    plugin = SaidPlugin(invalidated_by=(when(Node, scope),))
    asked = Asked(plugin)
    asked.statuses()
    asked.scores()
    tell(asked.mirror, "Add", *(node(f"n{number}") for number in range(40)))
    plugin.said, plugin.raw = {"n39": FULL}, {"n39": 5}

    assert asked.statuses("a", "n39", "n0") == [SUCCESS, FULL, SUCCESS]
    assert asked.scores("n39", "a") == [5, 0]


def test_a_state_from_before_an_event_is_not_used_after_it() -> None:
    """A result computed before an event and written after it, by an evaluation that outlives its question."""

    class Remembering(SaidPlugin):
        def pre_filter(self, _mirror: ClusterMirror, pod: Pod) -> tuple[Status, Pod]:
            return SUCCESS, replace(pod, labels={name: status.message for name, status in self.said.items()})

        def filter(self, state: Pod, batch: NodeBatch) -> Verdicts:
            codes = [1 if name in state.labels else 0 for name in batch.names]
            return Verdicts(np.array(codes, np.uint8), (SUCCESS, FULL))

    asked = Asked(Remembering(invalidated_by=(when(Pod, Scope.COUNTERS),)))
    asked.statuses("a")
    tell(asked.mirror, "Add", pod("x", "a"))
    early = asked.evaluation()
    assert statuses(early, asked.plugin, asked.batch("a")) == [SUCCESS]

    tell(asked.mirror, "Add", pod("y", "b"))
    asked.plugin.said, asked.plugin.version = {"b": FULL}, 1
    assert asked.statuses("a") == [SUCCESS]
    assert statuses(early, asked.plugin, asked.batch("b")) == [FULL]
    assert asked.statuses() == [SUCCESS, FULL, SUCCESS]
