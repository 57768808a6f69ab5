"""Defects that a review of the cache found by random lives of clusters, each by what went wrong."""

from typing import Final

import pytest
from msgspec.structs import replace

from core.equivalence.cache import CacheOptions, EquivalenceCache
from core.equivalence.cells import Miss
from core.framework.evaluation import FreshEvaluation
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.objects.affinity import PodMatcher
from core.objects.labels import parse_selector
from core.objects.namespace import Namespace
from core.plugins.noderesources.balanced_allocation import NodeResourcesBalancedAllocation
from tests.core.equivalence.asked import Asked
from tests.core.equivalence.said_plugin import SaidPlugin, failing, scores, statuses, whole
from tests.core.mirror.values import mirror_of, node, pod, tell

STRANGERS: Final = {0: node("s"), 1: node("t")}
LOWEST: Final = -(2**63)
RED: Final = {"team": "red"}
IN_RED: Final = PodMatcher(frozenset(), parse_selector(RED, ()), parse_selector({"app": "web"}, ()))
"""Pods `app=web` of all namespaces of a team."""


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


@pytest.mark.parametrize(
    "score",
    [
        pytest.param(LOWEST, id="lowest-int64"),
        pytest.param(LOWEST + len(Miss) - 1, id="last-that-is-a-reason"),
    ],
)
def test_a_score_that_would_be_a_reason_in_int64_is_given_but_not_kept(score: int) -> None:
    # There is no wider type, which was a StopIteration out of the question.
    asked = Asked()
    asked.plugin.raw.update(a=1, b=score, c=2)

    assert asked.scores() == [1, score, 2]
    asked.plugin.asked.clear()
    assert asked.scores() == [1, score, 2]
    assert asked.plugin.asked == [["b"]]


def test_the_lowest_score_that_is_no_reason_is_kept() -> None:
    asked = Asked()
    asked.plugin.raw["b"] = LOWEST + len(Miss)

    assert asked.scores() == asked.scores() == [0, LOWEST + len(Miss), 0]
    assert len(asked.plugin.asked) == 1


def test_requests_whose_sum_overflows_do_not_end_a_question() -> None:
    # Two pods that nobody could run, put on a node by name: the share of what it offers is no number that int64 has.
    mirror = mirror_of(node("a", cpu=1, memory=1), pod("x", "a", cpu=2**62), pod("y", "a", cpu=2**62))
    plugin = NodeResourcesBalancedAllocation()
    cache = EquivalenceCache(mirror, [plugin], CacheOptions(mode="spec"))
    asking = pod("p", cpu=1, memory=1)
    fresh = scores(FreshEvaluation(mirror, asking), plugin, whole(mirror))

    assert fresh == [LOWEST]
    assert scores(cache.evaluation(asking), plugin, whole(mirror)) == fresh


def test_a_class_weighs_as_much_more_as_the_fields_of_its_pod_are_longer() -> None:
    # A pod may have a megabyte of affinity; each counted as 2.5 KB, so that the budget held for rows alone.
    asked = Asked()
    short = pod("p")
    asked.cache.evaluation(short)
    little = asked.cache.nbytes
    asked.cache.evaluation(replace(short, labels={f"key-{number:04d}": "x" * 50 for number in range(1000)}))

    assert asked.cache.nbytes - 2 * little > 4 * 50_000


def test_long_keys_make_room_by_evicting_classes() -> None:
    asked = Asked()
    asked.cache = EquivalenceCache(asked.mirror, [asked.plugin], CacheOptions(mode="spec", max_bytes=500_000))

    for number in range(20):
        labels = {"app": f"{number}", **{f"key-{each:04d}": "x" * 20 for each in range(1000)}}
        asked.cache.evaluation(replace(pod("p"), labels=labels))

    assert 0 < len(asked.cache) < 10
    assert asked.cache.nbytes <= 500_000


@pytest.mark.parametrize(
    "was_there", [pytest.param(False, id="never-had-pods"), pytest.param(True, id="has-no-pods-any-more")]
)
def test_a_namespace_without_pods_that_a_term_begins_to_select_recounts_nothing(was_there: bool) -> None:  # noqa: FBT001 - a case
    # Each counter whose namespaceSelector met a new namespace looked at all pods: 150 ms for 500 counters, 30,000 pods.
    mirror = mirror_of(node("a", labels={"zone": "z"}), Namespace("default", RED), pod("x", "a"))
    gone = replace(pod("y", "a"), namespace="new")
    if was_there:
        tell(mirror, "Add", gone)
        tell(mirror, "Delete", gone)
    counter = mirror.affinity.matched((IN_RED,), "zone")
    version = counter.version

    tell(mirror, "Add", Namespace("new", RED))
    assert counter.version == version
    tell(mirror, "Add", gone)
    assert counter.by_value() == {"z": 2}
    tell(mirror, "Update", Namespace("new", {}))
    assert counter.by_value() == {"z": 1}
    assert mirror.audit() == []


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
