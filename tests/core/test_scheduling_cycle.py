"""One request: answers of several plugins that become one, samples of nodes, and the states that plugins derive."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, cast

import numpy as np
import pytest

from core.events import ClusterEvent, Kind
from core.framework.evaluation import FreshEvaluation
from core.framework.interface import SKIP, SUCCESS, Code, FilterPlugin, ScorePlugin, Status, Verdicts
from core.mirror.changes import Listener
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.topology import Int64Array
from core.objects.labels import EVERYTHING, parse_selector
from core.objects.pod import Pod
from core.plugins import PLUGINS
from core.profile import Profile, full_profile, parse_profile
from core.scheduling_cycle import (
    ADAPTIVE,
    ALL,
    OUT_OF_PARTITION,
    UNKNOWN_NODE,
    NodeSample,
    filter_nodes,
    nodes_to_score,
    score_nodes,
)
from tests.builders import NodeBuilder, PodBuilder, labelled, make_node, make_pod, term
from tests.core.decoded import mirror_of, node_of, pod_of
from tests.core.plain_plugin import PlainPlugin
from tests.core.profile_parts import affinity_profile, derive_states
from tests.properties import scheduling_pool as pool

POD: Final = pod_of(make_pod("p"))
DISK: Final = Status(Code.UNSCHEDULABLE, ("disk",))
TAINT: Final = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("taint",))
TWO: Final = Status(Code.UNSCHEDULABLE, ("one", "two"))


@dataclass(frozen=True)
class FakeFilter(PlainPlugin, FilterPlugin[Pod]):
    """Fails nodes by name, or where `ends` is given ends before it judges any."""

    fails: Mapping[str, Status] = field(default_factory=dict)
    ends: Status | None = None
    name: str = "Fake"
    kinds: tuple[Kind, ...] = ()

    def pre_filter(self, _mirror: ClusterMirror, pod: Pod) -> tuple[Status, Pod | None]:
        """Return the pod as the state."""
        return (SUCCESS, pod) if self.ends is None else (self.ends, None)

    def filter(self, state: Pod, batch: NodeBatch) -> Verdicts:
        """Look the names up."""
        assert state is POD
        statuses = (SUCCESS, *dict.fromkeys(self.fails.values()))
        codes = [statuses.index(self.fails.get(name, SUCCESS)) for name in batch.names]
        return Verdicts(np.array(codes, np.uint8), statuses)


@dataclass(frozen=True)
class FakeScore(PlainPlugin, ScorePlugin[Pod]):
    """Scores nodes by name; normalises by taking the lowest from all, so that it shows which were normalised."""

    raw: Mapping[str, int] | None = None
    ends: Status = SKIP
    name: str = "Fake"
    kinds: tuple[Kind, ...] = ()

    def pre_score(self, _mirror: ClusterMirror, pod: Pod, _batch: NodeBatch) -> tuple[Status, Pod | None]:
        """Return the pod as the state."""
        return (self.ends, None) if self.raw is None else (SUCCESS, pod)

    def score(self, state: Pod, batch: NodeBatch) -> Int64Array:
        """Look the names up."""
        assert state is POD
        assert self.raw is not None
        return np.array([self.raw.get(name, 0) for name in batch.names], np.int64)

    def normalize(self, raw: Int64Array) -> Int64Array:
        """Take the lowest from all."""
        normalized: Int64Array = raw - raw.min(initial=10**6)
        return normalized


def batch_of(mirror: ClusterMirror, *names: str) -> NodeBatch:
    return mirror.batch(names)


def statuses(filters: Sequence[FakeFilter], *names: str, unknown: Sequence[str] = ()) -> list[Status]:
    """Filter nodes that the mirror knows, but for those said to be unknown."""
    mirror = mirror_of(*(make_node(name) for name in names if name not in unknown))
    verdicts = filter_nodes(Profile(tuple(filters), ()), FreshEvaluation(mirror, POD), batch_of(mirror, *names))
    return [verdicts.status(position) for position in range(len(names))]


def scores(weighted: Sequence[tuple[FakeScore, int]], *names: str, unknown: Sequence[str] = ()) -> list[int]:
    """Score nodes that the mirror knows, but for those said to be unknown."""
    mirror = mirror_of(*(make_node(name) for name in names if name not in unknown))
    found: list[int] = score_nodes(
        Profile((), tuple(weighted)), FreshEvaluation(mirror, POD), batch_of(mirror, *names)
    ).tolist()
    return found


def test_the_first_predicate_that_fails_gives_a_node_its_status() -> None:
    filters = [FakeFilter({"a": DISK}), FakeFilter({"a": TAINT, "b": TAINT}), FakeFilter({"b": TWO, "c": TWO})]
    assert statuses(filters, "a", "b", "c", "d") == [DISK, TAINT, TWO, SUCCESS]


def test_each_status_of_a_predicate_is_kept_behind_those_of_others() -> None:
    filters = [FakeFilter({"a": DISK, "b": TAINT}), FakeFilter(), FakeFilter({"c": TAINT, "d": TWO, "e": DISK})]
    assert statuses(filters, *"abcdef") == [DISK, TAINT, TAINT, TWO, DISK, SUCCESS]


def test_without_predicates_every_known_node_passes() -> None:
    assert statuses([], "a", "b", unknown=["b"]) == [SUCCESS, UNKNOWN_NODE]


def test_a_predicate_that_ends_early_fails_every_node_with_its_reasons() -> None:
    assert statuses([FakeFilter(ends=TWO), FakeFilter({"a": DISK})], "a", "b") == [TWO, TWO]


def test_the_first_predicate_that_ends_early_comes_before_all_that_look_at_nodes() -> None:
    filters = [FakeFilter({"a": DISK}), FakeFilter(ends=TWO), FakeFilter(ends=TAINT)]
    assert statuses(filters, "a", "b") == [TWO, TWO]


def test_a_predicate_that_skips_fails_no_node() -> None:
    assert statuses([FakeFilter(ends=SKIP), FakeFilter({"b": DISK})], "a", "b") == [SUCCESS, DISK]


def test_an_error_of_a_predicate_is_every_node_s_status() -> None:
    error = Status(Code.ERROR, ("broken",))
    assert [error, error] == statuses([FakeFilter(ends=error)], "a", "b")


@pytest.mark.parametrize(
    "filters",
    [
        pytest.param([FakeFilter({"b": DISK})], id="that-fails-there"),
        pytest.param([FakeFilter(ends=TWO)], id="that-ends-early"),
        pytest.param([FakeFilter(ends=SKIP)], id="that-skips"),
        pytest.param([FakeFilter(), FakeFilter()], id="that-passes"),
    ],
)
def test_an_unknown_node_is_unknown_whatever_a_predicate_says(filters: Sequence[FakeFilter]) -> None:
    known, unknown = statuses(filters, "a", "b", unknown=["b"])
    assert known != UNKNOWN_NODE
    assert unknown == UNKNOWN_NODE


def test_an_unknown_node_is_beyond_the_help_of_preemption() -> None:
    assert UNKNOWN_NODE.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert UNKNOWN_NODE.message == "node(s) unknown to the extender"


def test_a_node_given_as_an_object_is_not_unknown() -> None:
    mirror = mirror_of(make_node("a"))
    batch = mirror.batch(["a", "new", "b"], {1: node_of(make_node("new"))})
    verdicts = filter_nodes(Profile((FakeFilter({"new": DISK}),), ()), FreshEvaluation(mirror, POD), batch)
    assert [verdicts.status(position) for position in range(3)] == [SUCCESS, DISK, UNKNOWN_NODE]
    found = score_nodes(
        Profile((), ((FakeScore({"a": 1, "new": 5, "b": -9}), 1),)), FreshEvaluation(mirror, POD), batch
    )
    assert found.tolist() == [0, 4, 0]


def test_a_question_about_no_nodes_has_an_empty_answer() -> None:
    assert statuses([FakeFilter(), FakeFilter(ends=TWO)]) == []
    assert scores([(FakeScore({}), 1)]) == []


def test_one_score_is_the_plugin_s_whatever_its_weight() -> None:
    for weight in (1, 3):
        assert scores([(FakeScore({"a": 0, "b": 50, "c": 100}), weight)], *"abc") == [0, 50, 100]


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        pytest.param((1, 1), [50, 49], id="equal-weights"),
        pytest.param((3, 1), [75, 24], id="three-to-one"),
        pytest.param((1, 2), [33, 66], id="rounded-down"),
    ],
)
def test_several_scores_are_their_weighted_mean_rounded_down(weights: tuple[int, int], expected: list[int]) -> None:
    plugins = FakeScore({"a": 100, "b": 0, "zero": 0}), FakeScore({"a": 0, "b": 99, "zero": 0})
    assert [*expected, 0] == scores(list(zip(plugins, weights, strict=True)), "a", "b", "zero")


@pytest.mark.parametrize("ends", [SKIP, TWO], ids=["skips", "fails"])
def test_a_score_without_a_state_counts_as_zero_in_the_mean(ends: Status) -> None:
    plugins = [(FakeScore(ends=ends), 1), (FakeScore({"a": 100, "b": 0}), 1)]
    assert scores(plugins, "a", "b") == [50, 0]


def test_without_scores_every_node_gets_zero() -> None:
    assert scores([], "a", "b", unknown=["b"]) == [0, 0]


def test_unknown_nodes_get_zero_and_have_no_part_in_the_normalisation() -> None:
    plugin = FakeScore({"low": -1000, "a": 10, "high": 1000, "b": 30})
    assert scores([(plugin, 1)], "low", "a", "high", "b", unknown=["low", "high"]) == [0, 0, 0, 20]


def test_where_all_nodes_are_unknown_there_is_nothing_to_normalise() -> None:
    assert scores([(FakeScore({"a": 10, "b": 30}), 1)], "a", "b", unknown=["a", "b"]) == [0, 0]


def test_a_score_that_skips_is_not_asked_about_unknown_nodes() -> None:
    assert scores([(FakeScore(), 1)], "a", "b", unknown=["a"]) == [0, 0]


# The partition.

IN: Final = make_node("in").label("ours", "yes")
OUT: Final = make_node("out")
OURS: Final = parse_selector({"ours": "yes"}, ())


def partitioned(*builders: NodeBuilder) -> ClusterMirror:
    mirror = mirror_of(*builders)
    mirror.set_partition_selector(OURS)
    return mirror


def judged(mirror: ClusterMirror, batch: NodeBatch, *filters: FakeFilter) -> list[Status]:
    verdicts = filter_nodes(Profile(filters, ()), FreshEvaluation(mirror, POD), batch)
    return [verdicts.status(position) for position in range(len(batch))]


def scored(mirror: ClusterMirror, batch: NodeBatch, plugin: FakeScore) -> list[int]:
    found: list[int] = score_nodes(Profile((), ((plugin, 1),)), FreshEvaluation(mirror, POD), batch).tolist()
    return found


@pytest.mark.parametrize(
    "filters",
    [
        pytest.param([], id="without-predicates"),
        pytest.param([FakeFilter({"out": DISK})], id="that-fails-there"),
        pytest.param([FakeFilter(ends=TWO)], id="that-ends-early"),
        pytest.param([FakeFilter(ends=SKIP)], id="that-skips"),
        pytest.param([FakeFilter({"in": DISK}), FakeFilter({"out": TAINT})], id="that-fails-elsewhere-first"),
    ],
)
def test_a_node_out_of_the_partition_is_that_whatever_a_predicate_says(filters: Sequence[FakeFilter]) -> None:
    mirror = partitioned(IN, OUT)
    inside, outside = judged(mirror, mirror.batch(["in", "out"]), *filters)
    assert inside != OUT_OF_PARTITION
    assert outside == OUT_OF_PARTITION


def test_a_node_out_of_the_partition_is_beyond_the_help_of_preemption() -> None:
    assert OUT_OF_PARTITION.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert OUT_OF_PARTITION.message == "node(s) out of the scheduler's partition"


def test_whole_objects_are_judged_by_their_labels_and_unknown_nodes_stay_unknown() -> None:
    mirror = partitioned(IN)
    mirror.set_node_out_of_partition("unknown")
    objects = {1: node_of(make_node("new")), 2: node_of(make_node("ours").label("ours", "yes"))}
    batch = mirror.batch(["in", "new", "ours", "unknown"], objects)
    assert judged(mirror, batch) == [SUCCESS, OUT_OF_PARTITION, SUCCESS, UNKNOWN_NODE]


def test_the_partition_may_change_between_two_questions() -> None:
    mirror = mirror_of(IN, OUT)
    batch = mirror.batch(["in", "out"])
    assert judged(mirror, batch) == [SUCCESS, SUCCESS]
    mirror.set_partition_selector(OURS)
    assert judged(mirror, batch) == [SUCCESS, OUT_OF_PARTITION]
    mirror.set_node_in_partition("out")
    mirror.set_node_out_of_partition("in")
    assert judged(mirror, batch) == [OUT_OF_PARTITION, SUCCESS]
    mirror.set_partition_selector(EVERYTHING)
    mirror.set_node_in_partition("in")
    assert judged(mirror, batch) == [SUCCESS, SUCCESS]


def test_nodes_out_of_the_partition_get_zero_and_have_no_part_in_the_normalisation() -> None:
    mirror = partitioned(IN, OUT, make_node("also-in").label("ours", "yes"))
    plugin = FakeScore({"in": 10, "out": -1000, "also-in": 30, "unknown": 2000, "new": -500})
    batch = mirror.batch(["out", "in", "also-in"])
    assert scored(mirror, batch, plugin) == [0, 0, 20]
    batch = mirror.batch(["unknown", "also-in", "new", "in", "out"], {2: node_of(make_node("new"))})
    assert scored(mirror, batch, plugin) == [0, 20, 0, 0, 0]


def test_where_all_nodes_are_out_of_the_partition_there_is_nothing_to_normalise() -> None:
    mirror = partitioned(OUT)
    assert scored(mirror, mirror.batch(["out"]), FakeScore({"out": 10})) == [0]


HOSTNAME = "kubernetes.io/hostname"
NODES = 200
NAMES = [f"n{number}" for number in range(NODES)]


@pytest.mark.parametrize(
    ("percentage", "nodes", "expected"),
    [
        # schedule_one_test.go, Test_numFeasibleNodesToFind
        pytest.param(ADAPTIVE, 10, 100, id="few-nodes"),
        pytest.param(40, 10, 100, id="few-nodes-and-a-percentage"),
        pytest.param(ADAPTIVE, 1000, 420, id="adaptive"),
        pytest.param(40, 1000, 400, id="a-percentage"),
        pytest.param(ADAPTIVE, 6000, 300, id="adaptive-in-a-large-cluster"),
        pytest.param(40, 6000, 2400, id="a-percentage-of-a-large-cluster"),
        pytest.param(1, 5000, 100, id="never-fewer-than-a-hundred"),
        pytest.param(ALL, 5000, 5000, id="all"),
    ],
)
def test_as_many_as_kube_scheduler_wants(percentage: int, nodes: int, expected: int) -> None:
    assert nodes_to_score(percentage, nodes) == expected


class Sampling:
    """Samples of 200 nodes, of which two have a web pod."""

    def __init__(self, percentage: int) -> None:
        web = [make_pod(f"web-{name}").label("app", "web").on(name) for name in ("n150", "n3")]
        self._mirror = mirror_of(*(make_node(name).label(HOSTNAME, name) for name in NAMES), *web)
        self._sample = NodeSample(percentage)
        self._start = 0

    def names(self, pod: PodBuilder, fitting: Sequence[int] = range(NODES)) -> list[str]:
        """Return the names that are passed on, where those at some positions fit."""
        evaluation = FreshEvaluation(self._mirror, pod_of(pod))
        batch = self._mirror.batch(NAMES)
        found = np.array(fitting)
        positions = self._sample.of(affinity_profile(), evaluation, batch, found, nodes=NODES, start=self._start)
        self._start += len(positions)
        return [NAMES[position] for position in positions.tolist()]


def test_all_that_fit_are_passed_on_where_they_are_no_more_than_wanted() -> None:
    fitting = range(0, NODES, 2)
    assert Sampling(ADAPTIVE).names(make_pod("p"), fitting) == [NAMES[position] for position in fitting]


def test_with_a_hundred_percent_all_that_fit_are_passed_on() -> None:
    assert Sampling(ALL).names(make_pod("p")) == NAMES


def test_samples_of_equals_follow_one_another() -> None:
    sampling = Sampling(ADAPTIVE)
    assert sampling.names(make_pod("p")) == NAMES[:100]
    assert sampling.names(make_pod("p")) == NAMES[100:]
    assert sampling.names(make_pod("p"), range(150)) == NAMES[50:150]
    assert sampling.names(make_pod("p"), range(150)) == NAMES[:100]


def test_the_best_are_always_among_them_and_the_order_stays() -> None:
    near_web = make_pod("p").preferred_affinity(1, term(HOSTNAME, labelled(app="web")))
    sampling = Sampling(ADAPTIVE)
    assert sampling.names(near_web) == [*NAMES[:99], "n150"]
    assert sampling.names(near_web) == ["n3", *NAMES[100:199]]


OF_NODES_ALONE: Final = frozenset({"_taints", "_cordoned_nodes", "_reports", "LabelColumns", "LabelProjections"})
"""Made in milliseconds, when they are asked for."""
OF_SERVICES: Final = frozenset({"Services"})


class Recording(ClusterMirror):
    """Remembers what was derived."""

    def __init__(self) -> None:
        super().__init__()
        self.made: list[str] = []

    def derived(self, make: Callable[[ClusterMirror], Listener]) -> Listener:  # type: ignore[override]  # any state will do
        def recorded(mirror: ClusterMirror) -> Listener:
            self.made.append(f"{getattr(make, '__module__', '')}.{getattr(make, '__qualname__', '')}")
            return make(mirror)

        known = self._recorders.setdefault(make, recorded)
        return super().derived(known)

    @property
    def _recorders(self) -> dict[object, Callable[[ClusterMirror], Listener]]:
        return cast("dict[object, Callable[[ClusterMirror], Listener]]", self.__dict__.setdefault("recorders", {}))


def test_no_question_derives_what_is_read_from_pods() -> None:
    profile = parse_profile(",".join((*PLUGINS, "GeneralPredicates")))
    mirror = Recording()
    derive_states(profile, mirror)
    before = len(mirror.made)
    for each in (*pool.NODES[:4], *pool.NAMESPACE_STATES, *pool.OTHERS):
        mirror.apply(ClusterEvent("Add", each))
    for number, template in enumerate(pool.PODS):
        evaluation = FreshEvaluation(mirror, pool.incoming(template, f"q{number}", "rs-1"))
        batch = mirror.batch(list(mirror.nodes.slots))
        evaluation.filtered(profile.filters, batch)
        for plugin, _ in profile.scores:
            evaluation.raw_scores(plugin, batch)
    late = {made.rpartition(".")[2] for made in mirror.made[before:]}
    assert late <= OF_NODES_ALONE | OF_SERVICES


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        pytest.param(affinity_profile(), 0, id="affinity"),
        pytest.param(parse_profile("GeneralPredicates"), 2, id="a-composite-stands-for-its-parts"),
        pytest.param(full_profile(), 9, id="full"),
    ],
)
def test_only_what_a_profile_asks_for_is_made(profile: Profile, expected: int) -> None:
    mirror = Recording()
    derive_states(profile, mirror)
    assert len([made for made in mirror.made if made.rpartition(".")[2] not in OF_NODES_ALONE]) == expected
