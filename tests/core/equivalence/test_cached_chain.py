"""The verdict of the first filter that fails, of all filters together, kept for a class."""

from collections.abc import Sequence
from typing import Final

import pytest

from core.equivalence.cache import CacheOptions, EquivalenceCache
from core.framework.evaluation import FreshEvaluation
from core.framework.interface import SKIP, SUCCESS, Code, Scope, Status
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.objects.kinds import Namespace
from core.objects.node import Node
from core.objects.pod import Pod
from tests.core.equivalence.said_plugin import SaidPlugin, failing, scores, statuses, when, whole
from tests.core.mirror.values import mirror_of, node, pod, tell

FULL, TAINTED, BROKEN = failing("Insufficient cpu"), failing("tainted", "twice"), failing("broken", code=Code.ERROR)


class Chain:
    """Nodes `a`, `b` and `c`, and two filters, the first of which is invalid by pods, the second by namespaces."""

    def __init__(self, first: Scope = Scope.NODE) -> None:
        self.mirror = mirror_of(node("a"), node("b"), node("c"))
        self.first = SaidPlugin("First", invalidated_by=(when(Pod, first),))
        self.second = SaidPlugin("Second", invalidated_by=(when(Namespace, Scope.ALL),))
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

    def asked(self) -> list[list[str]]:
        return [*self.first.asked, *self.second.asked]


def test_the_first_filter_that_fails_gives_the_status() -> None:
    chain = Chain()
    chain.first.said, chain.second.said = {"a": FULL, "b": FULL}, {"b": TAINTED, "c": TAINTED}
    for _ in range(3):
        assert chain.statuses() == [FULL, FULL, TAINTED] == chain.fresh()
    assert chain.statuses("c", "a") == [TAINTED, FULL]


def test_a_pre_filter_that_fails_comes_before_all_filters() -> None:
    chain = Chain()
    chain.first.said = {"a": FULL, "b": FULL}
    chain.second.outcome = TAINTED
    for _ in range(3):
        assert chain.statuses() == [TAINTED] * 3 == chain.fresh()
    chain.first.outcome = FULL
    tell(chain.mirror, "Update", pod("x", "a"))
    assert chain.fresh() == [FULL] * 3


def test_filters_are_asked_once() -> None:
    chain = Chain()
    for _ in range(4):
        chain.statuses()

    assert chain.asked() == [["a", "b", "c"]] * 2


@pytest.mark.parametrize("scope", [Scope.NODE, Scope.ALL, Scope.COUNTERS])
def test_a_change_for_either_filter_is_seen(scope: Scope) -> None:
    chain = Chain(scope)
    for number in range(4):
        tell(chain.mirror, "Update", pod("x", "b", cpu=number, version=str(number)))
        chain.first.said, chain.first.version = {"b": failing(f"pod {number}")}, number
        for _ in range(3):
            assert chain.statuses() == chain.fresh()

        tell(chain.mirror, "Update", Namespace("n", {"number": str(number)}))
        chain.second.said = {"a": failing(f"namespace {number}")}
        for _ in range(3):
            assert (
                chain.statuses()
                == chain.fresh()
                == [
                    failing(f"namespace {number}"),
                    failing(f"pod {number}"),
                    SUCCESS,
                ]
            )


def test_a_row_that_was_brought_up_to_date_does_not_hide_the_change() -> None:
    chain = Chain(Scope.COUNTERS)
    for _ in range(3):
        chain.statuses()
    tell(chain.mirror, "Add", pod("x", "b"))
    chain.first.version, chain.first.said = 1, {"c": FULL}
    statuses(chain.cache.evaluation(pod("p")), chain.first, whole(chain.mirror))

    assert chain.statuses() == [SUCCESS, SUCCESS, FULL]


def test_a_change_of_a_node_is_seen_though_the_filter_reads_counters_as_well() -> None:
    chain = Chain()
    chain.first.invalidated_by = (when(Pod, Scope.COUNTERS), when(Node, Scope.NODE))
    chain.cache = EquivalenceCache(chain.mirror, [chain.first, chain.second], CacheOptions(mode="spec"))
    for _ in range(3):
        chain.statuses()
    tell(chain.mirror, "Update", node("b", version="2"))
    chain.first.said = {"b": FULL}

    assert chain.statuses() == [SUCCESS, FULL, SUCCESS]


@pytest.mark.parametrize("scope", [Scope.NODE, Scope.ALL, Scope.COUNTERS])
def test_the_chain_grows_with_the_nodes(scope: Scope) -> None:
    chain = Chain()
    chain.first.invalidated_by = (when(Node, scope),)
    chain.cache = EquivalenceCache(chain.mirror, [chain.first, chain.second], CacheOptions(mode="spec"))
    for _ in range(3):
        chain.statuses()
    tell(chain.mirror, "Add", *(node(f"n{number}") for number in range(40)))
    chain.second.said, chain.first.version = {"n39": FULL}, 1

    for _ in range(3):
        assert chain.statuses("a", "n39", "n0") == [SUCCESS, FULL, SUCCESS]


def test_an_outcome_of_either_filter_comes_and_goes() -> None:
    chain = Chain(Scope.COUNTERS)
    for number, outcome in enumerate((None, FULL, SKIP, None, FULL)):
        chain.first.outcome, chain.second.said = outcome, {"a": TAINTED}
        tell(chain.mirror, "Update", pod("x", "b", cpu=number, version=str(number)))
        for _ in range(3):
            assert chain.statuses() == chain.fresh()


def test_an_error_is_not_kept_and_one_behind_a_failure_is_not_seen() -> None:
    chain = Chain()
    chain.first.said, chain.second.said = {"b": BROKEN, "c": FULL}, {"c": BROKEN}
    for _ in range(3):
        assert chain.statuses() == [SUCCESS, BROKEN, FULL]

    chain.first.said = {"c": FULL}
    assert chain.statuses() == [SUCCESS, SUCCESS, FULL]


def test_strangers_are_never_kept() -> None:
    chain = Chain()
    for said in (FULL, TAINTED, SUCCESS):
        chain.first.said = {"s": said}
        for _ in range(2):
            assert chain.of_batch(chain.mirror.batch(["s", "a"], {0: Node("s")})) == [said, SUCCESS]


def test_a_caller_who_changes_his_verdicts_changes_no_others() -> None:
    chain = Chain()
    chain.first.said = {"b": FULL}
    for _ in range(4):
        verdicts = chain.cache.evaluation(pod("p")).filtered((chain.first, chain.second), whole(chain.mirror))
        assert [verdicts.status(position) for position in range(3)] == [SUCCESS, FULL, SUCCESS]
        verdicts.codes[:] = 0
        verdicts.statuses = (FULL, FULL)


def test_the_chain_is_weighed() -> None:
    chain = Chain()
    for _ in range(4):
        chain.first.said = {"b": FULL}
        chain.statuses()
        assert chain.cache.nbytes == sum(entry.weigh() for entry in chain.cache)


def test_a_filter_that_raises_leaves_the_chain_to_be_looked_at_again() -> None:
    class Raising(SaidPlugin):
        raises = False

        def pre_filter(self, mirror: ClusterMirror, pod: Pod) -> tuple[Status, Pod | None]:
            if self.raises:
                raise RuntimeError("for a moment")
            return super().pre_filter(mirror, pod)

    chain = Chain()
    chain.first = plugin = Raising("First", invalidated_by=(when(Pod, Scope.COUNTERS),))
    chain.cache = EquivalenceCache(chain.mirror, [chain.first, chain.second], CacheOptions(mode="spec"))
    for _ in range(3):
        chain.statuses()
    tell(chain.mirror, "Add", pod("x", "b"))
    plugin.raises, plugin.version, plugin.said = True, 1, {"c": FULL}
    with pytest.raises(RuntimeError, match="for a moment"):
        chain.statuses()

    plugin.raises = False
    assert chain.statuses() == [SUCCESS, SUCCESS, FULL]


def test_no_filters_and_no_nodes_are_no_question() -> None:
    chain = Chain()
    evaluation = chain.cache.evaluation(pod("p"))

    assert evaluation.filtered((), whole(chain.mirror)).codes.tolist() == [0, 0, 0]
    assert chain.of_batch(chain.mirror.batch([])) == []


STRANGERS: Final = {0: node("s"), 1: node("t")}


class Unknown:
    """A mirror that knows no node, and two filters that are asked about nodes that come as whole objects."""

    def __init__(self) -> None:
        self.mirror = ClusterMirror()
        self.filters = (SaidPlugin("First"), SaidPlugin("Second"))
        self.cache = EquivalenceCache(self.mirror, self.filters, CacheOptions(mode="spec"))

    @property
    def batch(self) -> NodeBatch:
        return self.mirror.batch(["s", "t"], STRANGERS)


def test_nodes_come_as_objects_before_the_mirror_knows_any_and_are_asked_about_again() -> None:
    # The cells had no slot at all, and looking up NO_SLOT in them was an IndexError from the second question on.
    asked = Unknown()
    first, second = asked.filters
    first.said["t"] = failing("first")
    second.said["s"] = failing("second")
    second.raw["s"] = 7

    for _ in range(3):
        evaluation = asked.cache.evaluation(pod("p"))
        assert statuses(evaluation, first, asked.batch)[1] == failing("first")
        assert scores(evaluation, second, asked.batch) == [7, 0]
        chain = evaluation.filtered(asked.filters, asked.batch)
        assert [chain.status(at) for at in range(2)] == [failing("second"), failing("first")]


@pytest.mark.parametrize("statuses_each", [3, 100, 126, 127, 200, 254])
def test_many_statuses_of_one_filter_do_not_shift_those_of_the_next_out_of_their_type(statuses_each: int) -> None:
    # A taint of its own on each of 128 nodes was an OverflowError, or another verdict: 2 + 254 was 0 in uint8, a fit.
    names = [f"n{number:03d}" for number in range(2 * statuses_each)]
    mirror = mirror_of(*map(node, names))
    filters = (SaidPlugin("First"), SaidPlugin("Second"))
    filters[0].said = {name: failing(f"first {name}") for name in names[:statuses_each]}
    filters[1].said = {name: failing(f"second {name}") for name in names[statuses_each:]}
    expected = [*filters[0].said.values(), *filters[1].said.values()]
    cache = EquivalenceCache(mirror, filters, CacheOptions(mode="spec"))

    for _ in range(3):
        for evaluation in (FreshEvaluation(mirror, pod("p")), cache.evaluation(pod("p"))):
            chain = evaluation.filtered(filters, whole(mirror))
            assert [chain.status(at) for at in range(len(names))] == expected
