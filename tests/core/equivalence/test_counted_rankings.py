"""What a ranking looks at again after a change of counters, with InterPodAffinity and with a plugin that states it."""

import gc
from collections.abc import Collection, Sequence
from random import Random
from typing import Any, Final

import pytest
from msgspec.structs import replace

from core.equivalence.cache import EquivalenceCache
from core.events import ClusterEvent
from core.framework.evaluation import FreshEvaluation
from core.framework.interface import SUCCESS, Code, Status, Versions
from core.framework.invalidation import Scope
from core.mirror.affinity_counts import MatchTerms
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.topology import DomainCounts, Int64Array
from core.mirror.work import WorkLimitError
from core.objects.kinds import Namespace
from core.objects.node import Node
from core.objects.pod import Pod, SpreadConstraint
from core.plugins.interpodaffinity.plugin import InterPodAffinity
from core.plugins.podtopologyspread.plugin import PodTopologySpread
from core.profile import Profile
from core.scheduling_cycle import choose_nodes
from tests.builders import PodBuilder, labelled, make_node, make_pod, term
from tests.core.decoded import matcher_of, node_of, pod_of
from tests.core.equivalence.said_plugin import StatedPlugin, failing, when
from tests.core.mirror.values import mirror_of, node, pod, replica_set, selecting, tell
from tests.core.plugins.podtopologyspread.spreading import must, should

HOST: Final = "kubernetes.io/hostname"
WEB: Final = labelled(app="web")
DB: Final = labelled(app="db")
WEIGHT: Final = 10
NAMES: Final = "abc"
TERMS: Final = 20


def _web(name: str, namespace: str = "default") -> PodBuilder:
    return make_pod(name).in_namespace(namespace).label("app", "web")


def _node(name: str, zone: str, host: str = "") -> Node:
    return node_of(make_node(name).label("zone", zone).label(HOST, host or name))


class _Cluster:
    """Four nodes in two zones. Every choice for a class is compared with a fresh one."""

    def __init__(self, requested: PodBuilder | Pod, scope: Scope = Scope.ALL) -> None:
        self.mirror = ClusterMirror()
        for name, zone in zip("abcd", "xxyy", strict=True):
            self.mirror.apply(ClusterEvent("Add", _node(name, zone)))
        plugin, spread = InterPodAffinity(), PodTopologySpread()
        self.other = StatedPlugin("Another", invalidated_by=(when(Node, scope),))
        self.profile = Profile((plugin, StatedPlugin("Other")), ((plugin, 2), (self.other, 1), (spread, 2)))
        self.cache = EquivalenceCache(self.mirror, self.profile.plugins)
        self.requested = requested if isinstance(requested, Pod) else pod_of(requested)
        for _ in range(3):  # after the second, the class has a ranking
            self.choice()

    def choice(self) -> str:
        """Return the nodes to choose from."""
        batch = self.mirror.all_nodes()
        cached, _ = choose_nodes(self.profile, self.cache.evaluation(self.requested), batch)
        fresh, _ = choose_nodes(self.profile, FreshEvaluation(self.mirror, self.requested), batch)
        assert cached.tolist() == fresh.tolist()
        return "".join(batch.names[position] for position in fresh.tolist())

    def place(self, node: str, placed: PodBuilder) -> Pod:
        """Assume a pod on a node."""
        return self.mirror.assume(pod_of(placed), node, 0.0)


def test_pods_that_repel_each_other_by_host_leave_one_node_after_the_other() -> None:
    cluster = _Cluster(_web("p").required_anti_affinity(term(HOST, WEB)))
    choices = []
    for name in "abc":
        cluster.place(name, _web(name).required_anti_affinity(term(HOST, WEB)))
        choices.append(cluster.choice())
    assert choices == ["bcd", "cd", "d"]
    cluster.mirror.forget("default/b")
    assert cluster.choice() == "bd"


def test_a_term_by_host_that_comes_counts_in_the_domain_of_two_nodes() -> None:
    cluster = _Cluster(_web("p").required_anti_affinity(term(HOST, WEB)))
    cluster.place("a", _web("a"))
    cluster.mirror.apply(ClusterEvent("Update", _node("d", "y", host="c")))
    assert cluster.choice() == "bcd"
    assert cluster.choice() == "bcd"
    cluster.place("c", _web("c"))
    assert cluster.choice() == "b", "c and d have the same host"


def test_a_node_that_leaves_a_domain_with_pods_changes_the_other_nodes_there() -> None:
    cluster = _Cluster(_web("p").required_anti_affinity(term(HOST, WEB)))
    cluster.mirror.apply(ClusterEvent("Update", _node("d", "y", host="c")))
    cluster.place("a", _web("a"))
    cluster.place("d", _web("d"))
    assert [cluster.choice(), cluster.choice()] == ["b", "b"]
    cluster.mirror.apply(ClusterEvent("Update", _node("d", "y")))
    assert cluster.choice() == "bc"


@pytest.mark.parametrize("key", [HOST, "zone"])
def test_a_lowest_score_that_no_node_has_any_more_changes_all_scores(key: str) -> None:
    cluster = _Cluster(_web("p").preferred_anti_affinity(WEIGHT, term(key, WEB)))
    choices = []
    for number, name in enumerate("abcdabdcab"):
        cluster.place(name, _web(f"{number}"))
        choices.append(cluster.choice())
    by_host = ["bcd", "cd", "d", "abcd", "bcd", "cd", "c", "abcd", "bcd", "cd"]
    assert choices == by_host if key == HOST else choices[0] == "cd"


def test_scores_are_spread_over_a_narrower_range_once_the_best_one_is_gone() -> None:
    cluster = _Cluster(_web("p").preferred_anti_affinity(WEIGHT, term(HOST, WEB)))
    cluster.other.raw["b"] = 150
    tell(cluster.mirror, "Add", _node("e", "z"))  # so that all is scored again
    for number, name in enumerate("eebbcd"):
        cluster.place(name, _web(f"{number}"))
        cluster.choice()
    assert cluster.choice() == "a"
    cluster.place("a", _web("last"))
    assert cluster.choice() == "acd", "b has 150 and half of the range no more"


def test_a_namespace_that_a_term_begins_to_select_repels_on_all_its_nodes() -> None:
    cluster = _Cluster(_web("p").required_anti_affinity(term(HOST, WEB, namespace_selector=labelled(team="x"))))
    cluster.place("a", _web("a", "other"))
    cluster.place("b", _web("b", "other"))
    assert [cluster.choice(), cluster.choice()] == ["abcd", "abcd"]
    tell(cluster.mirror, "Add", Namespace("other", {"team": "x"}))
    cluster.place("c", _web("c", "other"))
    assert cluster.choice() == "d"


_OWN: Final = (
    pytest.param(
        _web("p").required_anti_affinity(term(HOST, WEB)).required_anti_affinity(term("zone", DB)), id="required"
    ),
    pytest.param(
        _web("p").preferred_anti_affinity(1, term(HOST, WEB)).preferred_anti_affinity(1, term("zone", DB)),
        id="preferred",
    ),
)
"""Pods that one of two counters keeps off the nodes of others like them."""


@pytest.mark.parametrize("requested", _OWN)
def test_a_counter_that_was_dropped_since_the_last_decision_is_made_again(
    requested: PodBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.mirror.affinity_counts.MAX_MATCH_COUNTERS", 2)
    cluster = _Cluster(requested)
    cluster.place("a", _web("a"))
    assert [cluster.choice(), cluster.choice()] == ["bcd", "bcd"]
    others = [MatchTerms((matcher_of(term(HOST, labelled(app=app))),), HOST) for app in "xy"]
    cluster.mirror.affinity.matches.of(others, "spec.affinity")
    cluster.place("b", _web("b"))
    assert cluster.choice() == "cd"


@pytest.mark.parametrize("requested", _OWN)
def test_counters_that_no_event_updates_are_made_for_each_decision(
    requested: PodBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.mirror.affinity_counts.MAX_MATCHERS", 1)
    cluster = _Cluster(requested)
    for placed, best in (("a", "bcd"), ("b", "cd"), ("c", "d")):
        cluster.place(placed, _web(placed))
        assert cluster.choice() == best


def test_classes_with_many_terms_keep_no_counter_that_the_mirror_has_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.mirror.affinity_counts.MAX_MATCH_COUNTERS", TERMS)
    gc.collect()
    before, cluster = _live_counters(), _Cluster(_web("p"))
    for of_class in range(4):
        requested, placed = make_pod("p"), make_pod(f"placed{of_class}")
        for number in range(TERMS):
            key = f"{of_class}-{number}"
            requested = requested.required_anti_affinity(term(HOST, labelled(**{key: "yes"})))
            placed = placed.label(key, "yes")
        cluster.place("a", placed)
        cluster.requested = pod_of(requested)
        assert [cluster.choice() for _ in range(3)] == ["bcd"] * 3
    gc.collect()
    assert _live_counters() - before <= TERMS


def _live_counters() -> int:
    return sum(type(each) is DomainCounts for each in gc.get_objects())


@pytest.mark.parametrize("weight", [0, WEIGHT])
def test_a_known_term_repels_from_its_first_pod_on_a_known_node_on(weight: int) -> None:
    def guard(name: str) -> PodBuilder:
        made, by_host = make_pod(name), term(HOST, WEB)
        return made.preferred_anti_affinity(weight, by_host) if weight else made.required_anti_affinity(by_host)

    cluster = _Cluster(_web("p"))
    cluster.place("unknown", guard("first"))
    assert [cluster.choice(), cluster.choice()] == ["abcd", "abcd"]
    cluster.place("a", guard("second"))
    assert cluster.choice() == "bcd"
    cluster.mirror.forget("default/second")
    assert cluster.choice() == "abcd"


def test_after_the_first_pod_of_a_domain_further_ones_change_no_verdict() -> None:
    cluster = _Cluster(_web("p").required_affinity(term("zone", WEB)))
    cluster.place("a", _web("a"))
    assert cluster.choice() == "ab"
    cluster.place("b", _web("b"))
    assert cluster.choice() == "ab"
    cluster.place("c", _web("c"))
    assert cluster.choice() == "abcd"
    cluster.mirror.forget("default/a")
    cluster.mirror.forget("default/b")
    assert cluster.choice() == "cd"


def test_a_score_beyond_the_range_on_a_node_that_does_not_fit_changes_no_other() -> None:
    requested = _web("p").preferred_affinity(WEIGHT, term(HOST, WEB))
    cluster = _Cluster(requested.required_anti_affinity(term(HOST, labelled(app="db"))))
    cluster.other.raw["a"] = 100
    cluster.mirror.apply(ClusterEvent("Update", _node("c", "z")))
    cluster.place("b", make_pod("db").label("app", "db"))
    for number, name in enumerate("ddddaa"):
        cluster.place(name, _web(f"{name}{number}"))
        cluster.choice()
    cluster.place("a", _web("another"))
    for number in range(8):
        cluster.place("b", _web(f"b{number}"))
    assert cluster.choice() == "a", "three of four, and the other score"


class _Counting(StatedPlugin):
    """States whether other nodes have changed."""

    normalizes_alone = False
    by_traits = True
    alike = True

    def passes_alike(self, _state: Pod, _before: Versions, _slots: Collection[int]) -> bool:
        """Return what the test says."""
        return self.alike

    def pre_score(self, _mirror: ClusterMirror, _pod: Pod, _batch: NodeBatch) -> tuple[Status, Any]:
        """Return the plugin itself as the state."""
        return SUCCESS, self

    # What the ranking asks a state.

    def of_all(self, batch: NodeBatch) -> Sequence[Int64Array]:
        """Return the scores."""
        return [self.score(Pod("", "", ""), batch)]

    def on(self, _position: int, slot: int) -> Sequence[int]:
        """Return the score."""
        self.requested.append([NAMES[slot]])
        return (self.raw.get(NAMES[slot], 0),)

    def follows(self, _earlier: object, _slots: Collection[int]) -> bool:
        """Return what the test says."""
        return self.alike

    def scores(self, traits: Sequence[Int64Array], _nodes: Int64Array) -> Int64Array:
        """Return the scores."""
        return traits[0]


class _Stated:
    """Three nodes, and a plugin whose counters change with every pod."""

    def __init__(self) -> None:
        self.mirror = mirror_of(*map(node, NAMES))
        rules = when(Pod, Scope.COUNTERS), when(Node, Scope.NODE), when(Namespace, Scope.COUNTERS)
        self.plugin = _Counting("Counting", invalidated_by=rules)
        self.plugin.raw.update(a=1, b=2, c=3)
        self.profile = Profile((self.plugin, StatedPlugin("Other")), ((self.plugin, 1),))
        self.cache = EquivalenceCache(self.mirror, self.profile.plugins)
        for number in range(3):
            self.ask(f"before-{number}")

    def ask(self, placed: str, on: str = "b") -> list[str] | None:
        """Place a pod, and return the best nodes by the ranking."""
        self.mirror.assume(pod(placed), on, 0.0)
        self.plugin.version = placed
        self.plugin.requested.clear()
        batch = self.mirror.all_nodes()
        best = self.cache.evaluation(pod("p")).best(self.profile.filters, self.profile.scores, batch)
        return None if best is None else [batch.names[position] for position in best.tolist()]


def test_only_the_node_of_the_pod_is_judged_and_scored_again_where_no_other_has_changed() -> None:
    stated = _Stated()
    stated.plugin.raw["b"] = 4
    assert stated.ask("q") == ["b"], "above the highest score until now"
    assert stated.plugin.requested == [["b"], ["b"]]
    stated.plugin.stated["b"] = failing("full")
    stated.plugin.raw["c"] = 0  # which nobody hears of
    assert stated.ask("r") == ["c"]
    assert stated.plugin.requested == [["b"], ["b"]]


def test_all_nodes_are_judged_and_scored_again_where_others_may_have_changed() -> None:
    stated = _Stated()
    stated.plugin.alike = False
    stated.plugin.raw["a"] = 5
    assert stated.ask("q") == ["a"]
    assert stated.plugin.requested == [["a", "b", "c"], ["a", "b", "c"]]


def test_all_nodes_are_judged_again_after_another_event_than_of_a_pod_that_a_rule_names() -> None:
    stated = _Stated()
    tell(stated.mirror, "Add", replica_set("default/new"))
    stated.plugin.raw["c"] = 0  # which nobody hears of
    assert stated.ask("another") == ["c"]
    assert stated.plugin.requested == [["b"], ["b"]]
    tell(stated.mirror, "Add", Namespace("new"))
    assert stated.ask("q") == ["b"]
    assert stated.plugin.requested == [["a", "b", "c"], ["a", "b", "c"]]


def test_what_changed_before_an_error_is_looked_at_after_it() -> None:
    stated = _Stated()
    stated.plugin.stated["b"], stated.plugin.raw["b"] = failing("broken", code=Code.ERROR), 4
    assert stated.ask("q") is None
    del stated.plugin.stated["b"]
    assert stated.ask("r", on="c") == ["b"]


@pytest.mark.parametrize("repels", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_soft_spread_constraints_choose_after_each_decision_as_if_all_were_scored_anew(
    seed: int, *, repels: bool
) -> None:
    random = Random(seed)  # noqa: S311 - no secret
    web = _web("p").required_anti_affinity(term(HOST, WEB)) if repels else _web("p")
    cluster = _Cluster(replace(pod_of(web), spread=(should(HOST, 3), should("zone", 5))), Scope.NODE)
    cluster.other.raw |= {name: random.randrange(4) * WEIGHT for name in "abcd"}
    tell(cluster.mirror, "Update", *[_node(name, "z") for name in "abcd"])  # so that they are scored again
    tell(cluster.mirror, "Add", _node("e", random.choice("xyz")), _node("f", "x"), _node("g", "y"))
    assert cluster.choice()
    for number, name in enumerate(random.choices("abcdefg", k=12)):
        if number in {5, 8}:
            tell(cluster.mirror, "Update", _node(random.choice("abcdefg"), random.choice("xyz")))
        cluster.place(name, _web(f"{number}"))
        cluster.choice()


def test_nodes_that_a_zone_repelled_fit_again_once_its_last_such_pod_is_gone() -> None:
    cluster = _Cluster(_web("p"))
    cluster.place("a", make_pod("db").required_anti_affinity(term("zone", WEB)))
    assert [cluster.choice(), cluster.choice()] == ["cd", "cd"]
    cluster.mirror.forget("default/db")
    assert cluster.choice() == "abcd", "no filter is left that b failed"


def _spreading(*constraints: SpreadConstraint) -> Pod:
    return replace(pod_of(_web("p")), spread=constraints)


def test_a_changed_node_without_the_hostname_is_still_not_scored() -> None:
    cluster = _Cluster(_spreading(should(HOST)))
    tell(cluster.mirror, "Add", node_of(make_node("e")))
    assert [cluster.choice() for _ in range(3)] == ["abcd"] * 3
    cluster.place("e", make_pod("db"))
    assert cluster.choice() == "abcd"


def test_nodes_that_are_not_scored_add_no_weight() -> None:
    cluster = _Cluster(_spreading(should(HOST), should("zone")))
    tell(cluster.mirror, "Add", *[node_of(make_node(name).label(HOST, name)) for name in "efghijkl"])
    for number, name in enumerate("aabbccccccc"):
        cluster.place(name, _web(f"{number}"))
        cluster.choice()
    assert cluster.choice() == "ab"


def test_the_pods_of_a_host_weigh_less_the_fewer_nodes_fit() -> None:
    cluster, judge = _Cluster(_spreading(should(HOST), should("zone"))), StatedPlugin("Judge")
    judge.invalidated_by = (when(Pod, Scope.NODE),)
    cluster.profile = Profile((*cluster.profile.filters, judge), cluster.profile.scores)
    cluster.cache = EquivalenceCache(cluster.mirror, cluster.profile.plugins)
    tell(cluster.mirror, "Add", *[_node(name, zone) for name, zone in zip("efghij", "yzzyyz", strict=True)])
    for name in "afcib":
        cluster.place(name, _web(name))
    choices = [cluster.choice() for _ in range(3)]
    for name in "gedjba":
        judge.stated[name] = failing("full")
        cluster.place(name, make_pod(f"on-{name}"))
        choices.append(cluster.choice())
    assert " ".join(choices) == "gj gj gj j j j h h fh"


def test_with_a_label_that_no_node_has_all_nodes_stay_alike() -> None:
    cluster = _Cluster(_spreading(should(HOST), should("rack")))
    cluster.place("a", _web("a"))
    assert [cluster.choice(), cluster.choice()] == ["abcd", "abcd"]


def test_a_decision_without_groups_is_charged_for_its_work_once() -> None:
    cluster = _Cluster(_spreading(*[should(HOST, 1, selecting(app=f"app-{number}")) for number in range(9)]))
    cluster.mirror.work.spent = 0
    assert cluster.choice() == "abcd"
    cluster.mirror.work.limit = cluster.mirror.work.spent
    cluster.cache = EquivalenceCache(cluster.mirror, cluster.profile.plugins)
    assert [cluster.choice() for _ in range(4)] == ["abcd"] * 4


def test_a_pod_that_fits_no_more_is_charged_for_its_work_once() -> None:
    cluster = _Cluster(_spreading(*[must(HOST, 1, selecting(app=f"app-{number}")) for number in range(9)]))
    cluster.profile = Profile((PodTopologySpread(), StatedPlugin("Other")), ((cluster.other, 1),))
    cluster.cache = EquivalenceCache(cluster.mirror, cluster.profile.plugins)
    assert [cluster.choice() for _ in range(3)] == ["abcd"] * 3
    cluster.mirror.work.limit = cluster.mirror.work.spent
    for name in "abcd":
        cluster.place(name, make_pod(name).label("app", "app-1"))
    tell(cluster.mirror, "Update", *[node_of(make_node(name).label("zone", "x")) for name in "abcd"])
    assert cluster.choice() == ""


def test_no_score_is_charged_where_only_one_node_fits() -> None:
    judge, plugin = StatedPlugin("Judge", invalidated_by=(when(Pod, Scope.NODE),)), InterPodAffinity()
    judge.stated.update(dict.fromkeys("bcd", failing("full")))
    profile = Profile((judge,), ((plugin, 2),))
    mirror = mirror_of(*(_node(name, "x") for name in "abcd"))
    mirror.work.limit = 1
    cache, requested = (
        EquivalenceCache(mirror, profile.plugins),
        pod_of(_web("p").preferred_affinity(1, term("zone", DB))),
    )
    for number in range(4):
        best, _ = choose_nodes(profile, cache.evaluation(requested), mirror.all_nodes())
        assert best.tolist() == [0]
        mirror.assume(pod(str(number)), "b", 0.0)
    del judge.stated["b"]
    mirror.assume(pod("last"), "b", 0.0)
    with pytest.raises(WorkLimitError):
        choose_nodes(profile, cache.evaluation(requested), mirror.all_nodes())
