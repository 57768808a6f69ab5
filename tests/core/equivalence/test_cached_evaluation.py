"""Answers from the rows of a class: what is asked of the plugin, what is kept, and what the caller gets."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import pytest
from msgspec.structs import replace

from core.equivalence.cache import CacheOptions, EquivalenceCache
from core.equivalence.rows import Miss
from core.framework.evaluation import Evaluation, FreshEvaluation
from core.framework.interface import SKIP, SUCCESS, Code, Status, Verdicts
from core.framework.invalidation import Scope
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.topology import Int64Array
from core.objects.kinds import Namespace
from core.objects.node import Node
from core.objects.pod import Pod
from tests.core.equivalence.said_plugin import StatedPlugin, failing, scores, statuses, when, whole
from tests.core.mirror.values import mirror_of, node, pod, tell

POD_RULE, NAMESPACE_RULE = when(Pod, Scope.NODE), when(Namespace, Scope.ALL)


class Requested:
    """Nodes `a`, `b` and `c`, a plugin, and a cache that is asked about one class of pods."""

    def __init__(self, plugin: StatedPlugin | None = None) -> None:
        self.mirror = mirror_of(node("a"), node("b"), node("c"))
        self.plugin = plugin or StatedPlugin(invalidated_by=(POD_RULE, NAMESPACE_RULE))
        self.cache = EquivalenceCache(self.mirror, [self.plugin], CacheOptions(mode="spec"))

    def evaluation(self) -> Evaluation:
        return self.cache.evaluation(pod("p"))

    def statuses(self, *names: str) -> list[Status]:
        return statuses(self.evaluation(), self.plugin, self.batch(*names))

    def scores(self, *names: str) -> Sequence[int | None]:
        return scores(self.evaluation(), self.plugin, self.batch(*names))

    def batch(self, *names: str) -> NodeBatch:
        return self.mirror.batch(names) if names else whole(self.mirror)


FULL, TAINTED, BROKEN = failing("Insufficient cpu"), failing("tainted", "twice"), failing("broken", code=Code.ERROR)


def test_a_node_is_asked_about_once_whoever_of_the_class_asks() -> None:
    requested = Requested()
    requested.plugin.stated = {"b": FULL}
    for name in ("p", "q"):
        found = statuses(requested.cache.evaluation(pod(name)), requested.plugin, whole(requested.mirror))
        assert found == [SUCCESS, FULL, SUCCESS]

    assert requested.plugin.requested == [["a", "b", "c"]]
    assert len(requested.plugin.prepared) == 1


def test_only_nodes_that_are_missing_are_asked_about_in_the_order_of_the_question() -> None:
    requested = Requested()
    requested.plugin.stated = {"a": FULL, "c": TAINTED}
    assert requested.statuses("b") == [SUCCESS]
    assert requested.statuses("c", "b", "a") == [TAINTED, SUCCESS, FULL]
    assert requested.statuses("a", "c") == [FULL, TAINTED]

    assert requested.plugin.requested == [["b"], ["c", "a"]]


def test_only_nodes_that_changed_are_asked_about_again() -> None:
    requested = Requested()
    requested.statuses()
    tell(requested.mirror, "Add", pod("x", "b"))
    requested.plugin.stated = {"b": FULL}

    assert requested.statuses() == [SUCCESS, FULL, SUCCESS]
    assert requested.plugin.requested == [["a", "b", "c"], ["b"]]


# One status for all nodes.


@pytest.mark.parametrize("outcome", [SKIP, FULL, failing("a", "b", code=Code.UNSCHEDULABLE_AND_UNRESOLVABLE)])
def test_the_outcome_of_pre_filter_is_kept_for_nodes_that_were_not_asked_about(outcome: Status) -> None:
    requested = Requested()
    requested.plugin.outcome = outcome
    expected = SUCCESS if outcome == SKIP else outcome
    requested.statuses("a")
    tell(requested.mirror, "Add", pod("x", "b"), node("d"))

    assert requested.statuses() == [expected] * 4
    assert len(requested.plugin.prepared) == 1


# Counters.


def test_counters_are_looked_at_after_any_event_and_not_before() -> None:
    requested = Requested(StatedPlugin(invalidated_by=(when(Pod, Scope.COUNTERS),)))
    requested.statuses()
    requested.plugin.version, requested.plugin.stated = 1, {"a": FULL}
    assert requested.statuses() == [SUCCESS] * 3

    tell(requested.mirror, "Add", Namespace("n"))
    assert requested.statuses() == [FULL, SUCCESS, SUCCESS]
    assert len(requested.plugin.requested) == 2


def test_versions_that_stay_keep_all_cells() -> None:
    requested = Requested(StatedPlugin(invalidated_by=(when(Pod, Scope.COUNTERS),)))
    requested.plugin.stated = {"a": FULL}
    requested.statuses()
    for number in range(3):
        tell(requested.mirror, "Add", pod(f"x{number}", "b"))
        assert requested.statuses() == [FULL, SUCCESS, SUCCESS]

    assert len(requested.plugin.requested) == 1
    assert len(requested.plugin.prepared) == 4


# Strangers.


def test_strangers_are_never_kept() -> None:
    requested = Requested()
    batch = requested.mirror.batch(["s", "a", "t"], {0: Node("s")})
    for stated in ({"s": FULL, "a": TAINTED}, {"s": TAINTED, "t": FULL}):
        requested.plugin.stated = stated
        found = statuses(requested.evaluation(), requested.plugin, batch)
        assert found == [stated["s"], TAINTED, stated.get("t", SUCCESS)]

    assert requested.plugin.requested == [["s", "a", "t"], ["s", "t"]]
    assert requested.cache.statistics.misses == {"NEW_CLASS": 1}
    assert requested.cache.statistics.hits == 1


def test_what_was_said_of_a_stranger_does_not_reach_the_last_slot() -> None:
    """NO_SLOT is -1, which in numpy is the last one."""
    mirror = mirror_of(*(node(f"n{number:02}") for number in range(16)))
    plugin = StatedPlugin()
    plugin.stated = {"s": FULL}
    cache = EquivalenceCache(mirror, [plugin], CacheOptions(mode="spec"))
    statuses(cache.evaluation(pod("p")), plugin, mirror.batch(["s", "n00"], {0: Node("s")}))

    assert statuses(cache.evaluation(pod("p")), plugin, whole(mirror)) == [SUCCESS] * 16


# Where the answers were from.


def test_scores_that_depend_on_the_other_nodes_are_never_kept() -> None:
    requested = Requested()
    requested.plugin.scores_alone = False
    for number in range(3):
        requested.plugin.raw = {"a": number}
        assert requested.scores() == [number, 0, 0]

    assert requested.cache.statistics.hits == 0
    assert not any(entry.scores for entry in requested.cache)


def test_a_plugin_that_no_event_would_invalidate_fails_at_once() -> None:
    """An unknown predicate key must fail loudly, not pass (hole 8)."""
    requested = Requested()

    with pytest.raises(KeyError, match="Unknown"):
        statuses(requested.evaluation(), StatedPlugin("Unknown"), whole(requested.mirror))
    with pytest.raises(KeyError, match="Unknown"):
        scores(requested.evaluation(), StatedPlugin("Unknown"), whole(requested.mirror))


def test_an_evaluation_from_before_an_event_does_not_answer_from_before_it() -> None:
    requested = Requested()
    requested.statuses()
    evaluation = requested.evaluation()
    tell(requested.mirror, "Add", pod("x", "b"))
    requested.plugin.stated = {"b": FULL}

    assert statuses(evaluation, requested.plugin, whole(requested.mirror)) == [SUCCESS, FULL, SUCCESS]
    assert requested.statuses() == [SUCCESS, FULL, SUCCESS]


def test_a_state_from_before_an_event_is_not_used_after_it() -> None:
    """A result computed before an event and written after it, by an evaluation that outlives its question."""

    class Remembering(StatedPlugin):
        def pre_filter(self, _mirror: ClusterMirror, pod: Pod) -> tuple[Status, Pod]:
            return SUCCESS, replace(pod, labels={name: status.message for name, status in self.stated.items()})

        def filter(self, state: Pod, batch: NodeBatch) -> Verdicts:
            codes = [1 if name in state.labels else 0 for name in batch.names]
            return Verdicts(np.array(codes, np.uint8), (SUCCESS, FULL))

    requested = Requested(Remembering(invalidated_by=(when(Pod, Scope.COUNTERS),)))
    requested.statuses("a")
    tell(requested.mirror, "Add", pod("x", "a"))
    early = requested.evaluation()
    assert statuses(early, requested.plugin, requested.batch("a")) == [SUCCESS]

    tell(requested.mirror, "Add", pod("y", "b"))
    requested.plugin.stated, requested.plugin.version = {"b": FULL}, 1
    assert requested.statuses("a") == [SUCCESS]
    assert statuses(early, requested.plugin, requested.batch("b")) == [FULL]
    assert requested.statuses() == [SUCCESS, FULL, SUCCESS]


_LOWEST: Final = -(2**63)


def test_an_error_of_pre_filter_is_asked_for_again() -> None:
    requested = Requested()
    requested.plugin.outcome = BROKEN
    assert requested.statuses() == [BROKEN] * 3
    assert requested.statuses() == [BROKEN] * 3
    assert len(requested.plugin.prepared) == 2

    requested.plugin.outcome = None
    assert requested.statuses() == [SUCCESS] * 3


def test_an_error_of_one_node_is_asked_for_again_and_the_others_are_kept() -> None:
    requested = Requested()
    requested.plugin.stated = {"a": FULL, "b": BROKEN}
    assert requested.statuses() == [FULL, BROKEN, SUCCESS]
    assert requested.statuses() == [FULL, BROKEN, SUCCESS]

    requested.plugin.stated = {}
    assert requested.statuses() == [FULL, SUCCESS, SUCCESS]
    assert requested.plugin.requested == [["a", "b", "c"], ["b"], ["b"]]


class Raising(StatedPlugin):
    """Fails while it `raises`."""

    raises = False

    def pre_filter(self, mirror: ClusterMirror, pod: Pod) -> tuple[Status, Pod | None]:
        if self.raises:
            raise RuntimeError("for a moment")
        return super().pre_filter(mirror, pod)


def test_a_plugin_that_raises_leaves_its_row_to_be_looked_at_again() -> None:
    plugin = Raising(invalidated_by=(when(Pod, Scope.COUNTERS),))
    requested = Requested(plugin)
    requested.statuses()
    tell(requested.mirror, "Add", pod("x", "b"))
    plugin.raises, plugin.version, plugin.stated = True, 1, {"c": FULL}
    with pytest.raises(RuntimeError, match="for a moment"):
        requested.statuses()

    plugin.raises = False
    assert requested.statuses() == [SUCCESS, SUCCESS, FULL]


# What the caller gets is his.


def test_a_caller_who_changes_his_verdicts_changes_no_others() -> None:
    requested = Requested()
    requested.plugin.stated = {"b": FULL}
    for _ in range(3):  # a miss, then hits
        verdicts = requested.evaluation().verdicts(requested.plugin, whole(requested.mirror))
        assert verdicts is not None
        assert [verdicts.status(position) for position in range(3)] == [SUCCESS, FULL, SUCCESS]
        verdicts.codes[:] = 0
        verdicts.statuses = (FULL, FULL)


@pytest.mark.parametrize("number", [1, 1000, 2**40])
def test_a_caller_who_changes_his_scores_changes_no_others(number: int) -> None:
    requested = Requested()
    requested.plugin.raw = {"a": number}
    for _ in range(3):
        raw = requested.evaluation().raw_scores(requested.plugin, whole(requested.mirror))
        assert raw is not None
        assert raw.tolist() == [number, 0, 0]
        raw[:] = 9


def test_an_array_that_a_plugin_keeps_is_not_the_one_that_is_kept_here() -> None:
    class Keeping(StatedPlugin):
        column: Int64Array = np.array([1, 2, 3], np.int64)

        def score(self, _state: Pod, _batch: NodeBatch) -> Int64Array:
            return self.column

    plugin = Keeping()
    requested = Requested(plugin)
    requested.scores()
    plugin.column[:] = 0

    assert requested.scores() == [1, 2, 3]


@pytest.mark.parametrize(
    "score",
    [
        pytest.param(_LOWEST, id="lowest-int64"),
        pytest.param(_LOWEST + len(Miss) - 1, id="last-that-is-a-reason"),
    ],
)
def test_a_score_that_would_be_a_reason_in_int64_is_given_but_not_kept(score: int) -> None:
    # There is no wider type, which was a StopIteration out of the question.
    requested = Requested()
    requested.plugin.raw.update(a=1, b=score, c=2)

    assert requested.scores() == [1, score, 2]
    requested.plugin.requested.clear()
    assert requested.scores() == [1, score, 2]
    assert requested.plugin.requested == [["b"]]


class Chain:
    """Nodes `a`, `b` and `c`, and two filters, the first of which is invalid by pods, the second by namespaces."""

    def __init__(self, first: Scope = Scope.NODE) -> None:
        self.mirror = mirror_of(node("a"), node("b"), node("c"))
        self.first = StatedPlugin("First", invalidated_by=(when(Pod, first),))
        self.second = StatedPlugin("Second", invalidated_by=(when(Namespace, Scope.ALL),))
        self.cache = EquivalenceCache(self.mirror, [self.first, self.second], CacheOptions(mode="spec"))

    def statuses(self, *names: str) -> Sequence[Status]:
        return self.of_batch(self.mirror.batch(names) if names else whole(self.mirror))

    def of_batch(self, batch: NodeBatch) -> Sequence[Status]:
        verdicts = self.cache.evaluation(pod("p")).filtered((self.first, self.second), batch)
        return [verdicts.status(position) for position in range(len(batch))]

    def fresh(self) -> Sequence[Status]:
        batch = whole(self.mirror)
        verdicts = FreshEvaluation(self.mirror, pod("p")).filtered((self.first, self.second), batch)
        return [verdicts.status(position) for position in range(len(batch))]

    def requested(self) -> list[list[str]]:
        return [*self.first.requested, *self.second.requested]


def test_the_first_filter_that_fails_gives_the_status() -> None:
    chain = Chain()
    chain.first.stated, chain.second.stated = {"a": FULL, "b": FULL}, {"b": TAINTED, "c": TAINTED}
    for _ in range(3):
        assert chain.statuses() == [FULL, FULL, TAINTED] == chain.fresh()
    assert chain.statuses("c", "a") == [TAINTED, FULL]


def test_a_change_of_a_node_is_seen_though_the_filter_reads_counters_as_well() -> None:
    chain = Chain()
    chain.first.invalidated_by = (when(Pod, Scope.COUNTERS), when(Node, Scope.NODE))
    chain.cache = EquivalenceCache(chain.mirror, [chain.first, chain.second], CacheOptions(mode="spec"))
    for _ in range(3):
        chain.statuses()
    tell(chain.mirror, "Update", node("b", version="2"))
    chain.first.stated = {"b": FULL}

    assert chain.statuses() == [SUCCESS, FULL, SUCCESS]


def test_an_error_is_not_kept_and_one_behind_a_failure_is_not_seen() -> None:
    chain = Chain()
    chain.first.stated, chain.second.stated = {"b": BROKEN, "c": FULL}, {"c": BROKEN}
    for _ in range(3):
        assert chain.statuses() == [SUCCESS, BROKEN, FULL]

    chain.first.stated = {"c": FULL}
    assert chain.statuses() == [SUCCESS, SUCCESS, FULL]


def test_the_chain_is_weighed() -> None:
    chain = Chain()
    for _ in range(4):
        chain.first.stated = {"b": FULL}
        chain.statuses()
        assert chain.cache.nbytes == sum(entry.update_size() for entry in chain.cache)


def test_a_filter_that_raises_leaves_the_chain_to_be_looked_at_again() -> None:
    chain = Chain()
    chain.first = plugin = Raising("First", invalidated_by=(when(Pod, Scope.COUNTERS),))
    chain.cache = EquivalenceCache(chain.mirror, [chain.first, chain.second], CacheOptions(mode="spec"))
    for _ in range(3):
        chain.statuses()
    tell(chain.mirror, "Add", pod("x", "b"))
    plugin.raises, plugin.version, plugin.stated = True, 1, {"c": FULL}
    with pytest.raises(RuntimeError, match="for a moment"):
        chain.statuses()

    plugin.raises = False
    assert chain.statuses() == [SUCCESS, SUCCESS, FULL]


UNMIRRORED: Final = {0: node("s"), 1: node("t")}


class Unknown:
    """A mirror that knows no node, and two filters that are asked about nodes that come as whole objects."""

    def __init__(self) -> None:
        self.mirror = ClusterMirror()
        self.filters = (StatedPlugin("First"), StatedPlugin("Second"))
        self.cache = EquivalenceCache(self.mirror, self.filters, CacheOptions(mode="spec"))

    @property
    def batch(self) -> NodeBatch:
        return self.mirror.batch(["s", "t"], UNMIRRORED)


def test_nodes_come_as_objects_before_the_mirror_knows_any_and_are_asked_about_again() -> None:
    # The cells had no slot at all, and looking up NO_SLOT in them was an IndexError from the second question on.
    requested = Unknown()
    first, second = requested.filters
    first.stated["t"] = failing("first")
    second.stated["s"] = failing("second")
    second.raw["s"] = 7

    for _ in range(3):
        evaluation = requested.cache.evaluation(pod("p"))
        assert statuses(evaluation, first, requested.batch)[1] == failing("first")
        assert scores(evaluation, second, requested.batch) == [7, 0]
        chain = evaluation.filtered(requested.filters, requested.batch)
        assert [chain.status(at) for at in range(2)] == [failing("second"), failing("first")]


@pytest.mark.parametrize("statuses_each", [3, 100, 126, 127, 200, 254])
def test_many_statuses_of_one_filter_do_not_shift_those_of_the_next_out_of_their_type(statuses_each: int) -> None:
    # A taint of its own on each of 128 nodes was an OverflowError, or another verdict: 2 + 254 was 0 in uint8, a fit.
    names = [f"n{number:03d}" for number in range(2 * statuses_each)]
    mirror = mirror_of(*map(node, names))
    filters = (StatedPlugin("First"), StatedPlugin("Second"))
    filters[0].stated = {name: failing(f"first {name}") for name in names[:statuses_each]}
    filters[1].stated = {name: failing(f"second {name}") for name in names[statuses_each:]}
    expected = [*filters[0].stated.values(), *filters[1].stated.values()]
    cache = EquivalenceCache(mirror, filters, CacheOptions(mode="spec"))

    for _ in range(3):
        for evaluation in (FreshEvaluation(mirror, pod("p")), cache.evaluation(pod("p"))):
            chain = evaluation.filtered(filters, whole(mirror))
            assert [chain.status(at) for at in range(len(names))] == expected
