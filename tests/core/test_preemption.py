"""Preemption: whose eviction is tried, on which node it does the least harm, and what becomes of offers."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import pytest
from msgspec.structs import replace

from core.equivalence.cache import CacheOptions, EquivalenceCache
from core.events import ClusterEvent, Kind
from core.framework.evaluation import Failure, FitChecks
from core.framework.interface import SUCCESS, AnyFilter, Code, FilterPlugin, Status, Verdicts
from core.framework.invalidation import InvalidationRule, Operation, Scope
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.objects.groups import SchedulingGroup
from core.objects.kinds import PodDisruptionBudget
from core.objects.labels import EVERYTHING, parse_selector
from core.objects.pod import Pod
from core.preemption import (
    POLICY_NEVER,
    TERMINATING_VICTIM,
    Offer,
    Victims,
    accepted,
    are_enough,
    best_nodes,
    candidates_needed,
    dry_run,
    most_important_first,
    split_by_violation,
    why_not_eligible,
)
from core.profile import Profile, full_profile
from tests.builders import PodBuilder, labelled, make_node, make_pod, term
from tests.core.decoded import mirror_of, pod_of, tell
from tests.core.mirror.audit import audit
from tests.core.plain_plugin import PlainPlugin
from tests.core.profile_parts import affinity_profile

EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


def started(name: str, priority: int, time: str = "") -> Pod:
    builder = make_pod(name).priority(priority)
    return pod_of(builder.started(time) if time else builder)


@pytest.mark.parametrize(
    ("more", "less"),
    [
        pytest.param(started("a", 2, LATE), started("b", 1, EARLY), id="priority-before-start-time"),
        pytest.param(started("a", 1, EARLY), started("b", 1, LATE), id="the-older-of-equal-priority"),
        pytest.param(started("a", 1, LATE), started("b", 1), id="one-that-has-started"),
    ],
)
def test_the_more_important_pod_comes_first(more: Pod, less: Pod) -> None:
    assert most_important_first([more, less]) == [more, less]
    assert most_important_first([less, more]) == [more, less]


def test_equally_important_pods_stay_in_their_order() -> None:
    pods = [started(name, 1, EARLY) for name in "cab"]
    assert most_important_first(pods) == pods


def victims(*priorities: int, violations: int = 0, time: str = EARLY) -> Victims:
    return Victims(tuple(pod_of(make_pod("p").priority(each).started(time)) for each in priorities), violations)


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        pytest.param(victims(9, 9), victims(1, violations=1), id="violations-before-priorities"),
        pytest.param(victims(1, 1, 1), victims(2), id="most-important-victim-before-the-sum"),
        pytest.param(victims(2, 1), victims(2, 2), id="sum-of-priorities"),
        pytest.param(victims(-1), victims(-1, -1), id="sums-of-negative-priorities"),
        pytest.param(victims(2), victims(2, -(2**31)), id="number-of-victims"),
        pytest.param(victims(1, time=LATE), victims(1, time=EARLY), id="latest-start-time"),
    ],
)
def test_the_node_where_it_does_less_harm_is_chosen(better: Victims, worse: Victims) -> None:
    assert best_nodes({"worse": worse, "better": better}) == ["better"]
    assert best_nodes({"better": better, "worse": worse}) == ["better"]


def test_nodes_that_tie_are_all_returned_in_their_order() -> None:
    assert best_nodes({"n2": victims(1), "n0": victims(1), "n1": victims(2)}) == ["n2", "n0"]


def test_the_start_times_of_less_important_victims_do_not_count() -> None:
    old = pod_of(make_pod("old").priority(1).started(EARLY))
    new = pod_of(make_pod("new").priority(2).started(LATE))
    first = Victims((new, old), 0)
    second = Victims((pod_of(make_pod("other").priority(2).started(EARLY)), old), 0)
    assert best_nodes({"second": second, "first": first}) == ["first"]


WEB = PodDisruptionBudget("default", "web", parse_selector({"app": "web"}, ()))
TIER = PodDisruptionBudget("default", "tier", parse_selector({"tier": "1"}, ()), disruptions_allowed=1)
PODS = [pod_of(make_pod(name).label("app", "web")) for name in ("a", "b", "c")]


def violating(*budgets: PodDisruptionBudget) -> list[str]:
    first, others = split_by_violation(PODS, budgets, stop_at_violation=False)
    assert sorted([*first, *others], key=PODS.index) == PODS
    return [pod.name for pod in first]


@pytest.mark.parametrize(
    ("budget", "expected"),
    [
        pytest.param(replace(WEB, disruptions_allowed=1), ["b", "c"], id="the-first-ones-use-it-up"),
        pytest.param(replace(WEB, disruptions_allowed=3), [], id="enough-allowed"),
        pytest.param(replace(WEB, selector=EVERYTHING), [], id="empty-selector"),
        pytest.param(replace(WEB, disrupted_pods=frozenset({"b"})), ["a", "c"], id="disrupted-already"),
        pytest.param(
            replace(WEB, disruptions_allowed=1, disrupted_pods=frozenset({"a"})), ["c"], id="and-does-not-use-it-up"
        ),
    ],
)
def test_a_pod_violates_a_budget_that_covers_it_and_is_used_up(
    budget: PodDisruptionBudget, expected: list[str]
) -> None:
    assert violating(budget) == expected


def test_a_pod_takes_from_every_budget_and_violates_if_any_is_used_up() -> None:
    tiered = [pod_of(make_pod(name).label("app", "web").label("tier", "1")) for name in ("x", "y")]
    roomy = replace(WEB, disruptions_allowed=9)
    first, others = split_by_violation([tiered[0], PODS[0], tiered[1]], [roomy, TIER], stop_at_violation=False)
    assert (first, others) == ([tiered[1]], [tiered[0], PODS[0]])


def test_since_1_37_a_pod_takes_nothing_from_the_budgets_after_the_one_that_it_violates() -> None:
    both = pod_of(make_pod("both").label("app", "web").label("tier", "1"))
    tier_only = pod_of(make_pod("tier").label("tier", "1"))
    pods, budgets = [both, tier_only], [WEB, TIER]
    assert split_by_violation(pods, budgets, stop_at_violation=False) == ([both, tier_only], [])
    assert split_by_violation(pods, budgets, stop_at_violation=True) == ([both], [tier_only])
    assert split_by_violation(pods, budgets[::-1], stop_at_violation=True) == ([both, tier_only], [])


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        pytest.param(100, 100, id="the-least"),
        pytest.param(1_009, 100, id="rounded-down"),
        pytest.param(5_000, 500, id="a-tenth"),
    ],
)
def test_a_tenth_of_the_nodes_but_at_least_a_hundred_if_there_are_so_many(nodes: int, expected: int) -> None:
    assert candidates_needed(nodes) == expected


@pytest.mark.parametrize(
    ("violations", "expected"),
    [
        pytest.param([0], False, id="too-few"),
        pytest.param([0, 0], True, id="as-many-as-wanted"),
        pytest.param([1, 1, 1], False, id="all-violate-a-budget"),
        pytest.param([1, 1, 0], True, id="one-does-not"),
    ],
)
def test_so_many_are_enough_if_one_of_them_violates_no_budget(violations: list[int], *, expected: bool) -> None:
    victims = (Pod("u", "default", "p"),)
    candidates = {str(number): Victims(victims, each) for number, each in enumerate(violations)}
    assert are_enough(candidates, 2) == expected


POD = make_pod("p").priority(10)
LOW = make_pod("low").on("n1").priority(1)


@pytest.mark.parametrize(
    ("pod", "existing", "expected"),
    [
        pytest.param(POD, LOW, "", id="never-nominated"),
        pytest.param(POD.preemption_policy("Never"), LOW, POLICY_NEVER, id="policy-never"),
        pytest.param(POD.nominated("n1"), LOW, "", id="nobody-goes"),
        pytest.param(POD.nominated("n1"), LOW.terminating(), "", id="terminates-for-another-reason"),
        pytest.param(POD.nominated("n1"), LOW.preempted(), TERMINATING_VICTIM, id="waits-for-its-victim"),
        pytest.param(POD.nominated("n1"), LOW.preempted().priority(10), "", id="no-victim-of-its"),
        pytest.param(POD, LOW.preempted(), "", id="a-victim-of-another"),
        pytest.param(POD.nominated("gone"), LOW.preempted(), "", id="nominated-node-is-gone"),
    ],
)
def test_a_pod_waits_while_its_victims_go_or_if_it_never_preempts(
    pod: PodBuilder, existing: PodBuilder, expected: str
) -> None:
    mirror = mirror_of(make_node("n1"), make_node("n2"), existing)
    assert why_not_eligible(mirror, pod_of(pod), Code.UNSCHEDULABLE) == expected


def test_it_does_not_wait_where_preemption_cannot_help_any_more() -> None:
    mirror = mirror_of(make_node("n1"), LOW.preempted())
    pod = pod_of(POD.nominated("n1"))
    assert why_not_eligible(mirror, pod, Code.UNSCHEDULABLE_AND_UNRESOLVABLE) == ""
    assert why_not_eligible(mirror, pod, Code.SUCCESS) == TERMINATING_VICTIM


FULL: Final = full_profile({"PodTopologySpread": {"defaulting_type": "List"}})
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
N1 = make_node("n1").label(HOST, "n1").label(ZONE, "z").allocatable(cpu=4, memory="8Gi", pods=10)
N2 = make_node("n2").label(HOST, "n2").label(ZONE, "z").allocatable(cpu=4, memory="8Gi", pods=10)
INCOMING = make_pod("p").priority(100).image("i").requests(cpu=2)


def on_n1(name: str, cpu: int, priority: int = 0) -> PodBuilder:
    return make_pod(name).on("n1").priority(priority).image("i").requests(cpu=cpu)


def on_node(mirror: ClusterMirror, pod: PodBuilder, node: str = "n1", profile: Profile = FULL) -> Victims | Failure:
    return dry_run(mirror, profile.filters, pod_of(pod), [node])[0]


def names(found: Victims | Failure) -> list[str]:
    assert isinstance(found, Victims), found
    return [pod.name for pod in found.pods]


def test_an_assumed_pod_may_be_a_victim() -> None:
    mirror = mirror_of(N1)
    mirror.assume(pod_of(make_pod("assumed").image("i").requests(cpu=4)), "n1", now=0)
    assert names(on_node(mirror, INCOMING)) == ["assumed"]


@pytest.mark.parametrize(("whole", "expected"), [(True, ["b"]), (False, ["a"])], ids=["whole", "each"])
def test_no_member_goes_of_a_group_whose_members_go_together(whole: bool, expected: list[str]) -> None:  # noqa: FBT001 - a column of the table
    mirror = mirror_of(N1)
    group = SchedulingGroup(namespace="default", name="g", disrupted_whole=whole)
    member = replace(pod_of(on_n1("a", 2, 1)), scheduling_group="default/g")
    for each in (group, member, pod_of(on_n1("b", 2, 2))):
        mirror.apply(ClusterEvent("Add", each))
    assert names(on_node(mirror, INCOMING)) == expected


def test_where_the_pod_fits_with_all_there_it_is_an_error_as_upstream_has_it() -> None:
    found = on_node(mirror_of(N1, on_n1("small", 1)), INCOMING)
    assert found == Failure(Status(Code.ERROR, ('expected at least one victim pod on node "n1"',)))


def test_victims_make_room_for_the_nominated_pods_of_the_node_too() -> None:
    nominated = make_pod("waits").priority(100).image("i").requests(cpu=1).nominated("n1")
    pods = (on_n1("a", 2, 1), on_n1("b", 1, 2), on_n1("c", 1, 3))
    assert names(on_node(mirror_of(N1, *pods), INCOMING)) == ["a"]
    assert names(on_node(mirror_of(N1, *pods, nominated), INCOMING)) == ["b", "a"]
    assert names(on_node(mirror_of(N1, *pods, nominated.priority(99)), INCOMING)) == ["a"]
    full = on_node(mirror_of(N1, *pods, nominated.requests(cpu=4)), INCOMING)
    assert isinstance(full, Failure)
    assert full.status.reasons == ("Insufficient cpu",)


def test_spreading_takes_a_terminating_pod_away_though_it_was_not_counted() -> None:
    """Upstream podtopologyspread/filtering.go: updateWithPod looks at no deletionTimestamp, the first count does."""
    spread = make_pod("p").priority(100).label("app", "web").spread(HOST, labelled(app="web"))
    pods = [on_n1("stays", 0, 9), on_n1("goes", 0, 1).terminating()]
    mirror = mirror_of(N1, N2, *(pod.label("app", "web") for pod in pods))
    # Counted is "stays" alone: n1 has 1, n2 has 0, and one more on n1 would be a skew of 2. With both gone n1 has -1.
    assert names(on_node(mirror, spread)) == ["goes"]


class RaisesAtLast(PlainPlugin, FilterPlugin[Pod]):
    """Lets all pass, and raises at the question of some number."""

    name = "Raises"
    kinds: tuple[Kind, ...] = (Pod,)
    invalidated_by = (
        InvalidationRule(kind=Pod, operations=(Operation.ADD, Operation.DELETE), scope=Scope.NODE, because="a test"),
    )

    def __init__(self, questions: int) -> None:
        self.questions = questions

    def pre_filter(self, _mirror: ClusterMirror, pod: Pod) -> tuple[Status, Pod | None]:
        """Count the question."""
        self.questions -= 1
        if not self.questions:
            raise RuntimeError("a plugin")
        return SUCCESS, pod

    def filter(self, _state: Pod, batch: NodeBatch) -> Verdicts:
        """Let all pass."""
        return Verdicts(np.zeros(len(batch), np.uint8), (SUCCESS,))


@pytest.mark.parametrize("questions", [2, 3, 4], ids=["with-all-gone", "one-back", "two-back"])
def test_when_a_plugin_raises_midway_the_mirror_is_as_before(questions: int) -> None:
    mirror = mirror_of(N1, on_n1("a", 1), on_n1("b", 1), on_n1("c", 1))
    FitChecks(mirror, FULL.filters, pod_of(INCOMING), ["n1"])  # whatever counters it takes
    before = mirror.dump(), dict(mirror.pods.rows), list(mirror.placed_pods())
    with pytest.raises(RuntimeError, match="a plugin"):
        dry_run(mirror, (*FULL.filters, RaisesAtLast(questions)), pod_of(INCOMING), ["n1"])
    assert (mirror.dump(), dict(mirror.pods.rows), list(mirror.placed_pods())) == before
    assert not audit(mirror)
    assert on_node(mirror, INCOMING) == on_node(mirror_of(N1, on_n1("a", 1), on_n1("b", 1), on_n1("c", 1)), INCOMING)


def test_the_equivalence_cache_keeps_its_cells_and_answers_as_before() -> None:
    mirror = mirror_of(N1, N2, on_n1("a", 3), on_n1("b", 1))
    cache = EquivalenceCache(mirror, FULL.plugins, CacheOptions(mode="spec"))
    pod = pod_of(INCOMING.required_anti_affinity(term(HOST, labelled(app="web"))))

    def ask() -> list[Status]:
        found = cache.evaluation(pod).filtered(FULL.filters, mirror.batch(["n1", "n2"]))
        return [found.status(0), found.status(1)]

    cold = ask()
    assert names(dry_run(mirror, FULL.filters, pod, ["n1"])[0]) == ["a"]
    misses = sum(cache.statistics.misses.values())
    assert ask() == cold
    assert sum(cache.statistics.misses.values()) == misses


AFFINITY: Final = affinity_profile().filters
NODES: Final = [make_node(name).label(HOST, name).label(ZONE, "z").allocatable(cpu=4, pods=10) for name in ("n1", "n2")]
REPELLED: Final = make_pod("p").priority(10).required_anti_affinity(term(HOST, labelled(app="web")))


def web(name: str, priority: int = 0) -> PodBuilder:
    return make_pod(name).on("n1").uid(name).priority(priority).label("app", "web")


def other(name: str, priority: int = 0) -> PodBuilder:
    return make_pod(name).on("n1").uid(name).priority(priority)


def response(
    mirror: ClusterMirror,
    offers: Mapping[str, Offer],
    pod: PodBuilder = REPELLED,
    filters: tuple[AnyFilter, ...] = AFFINITY,
    more: Sequence[str] = (),
) -> dict[str, Offer]:
    return accepted(mirror, filters, pod_of(pod), offers, more)


@pytest.mark.parametrize(
    ("pods", "offered", "expected"),
    [
        pytest.param([web("a")], (), ("a",), id="nobody-offered-victims-found"),
        pytest.param([web("a")], ("a",), ("a",), id="offer-is-enough"),
        pytest.param([web("a"), other("b")], ("b",), ("a", "b"), id="offer-is-completed"),
        pytest.param([web("a", 3), other("b", 5), other("c", 5)], ("b",), ("b", "a"), id="most-important-first"),
        pytest.param([web("a")], ("unknown",), ("a", "unknown"), id="a-victim-unknown-to-us-stays-one"),
        pytest.param([other("b")], ("unknown",), ("unknown",), id="as-it-is-offered"),
        pytest.param([other("b")], (), None, id="nobody-has-to-go"),
        pytest.param([web("a", 10), other("b")], ("b",), None, id="offer-does-not-help"),
        pytest.param([web("a", 10)], ("a",), ("a",), id="whoever-is-offered-goes"),
    ],
)
def test_an_offer_is_taken_completed_or_dropped(
    pods: list[PodBuilder], offered: tuple[str, ...], expected: tuple[str, ...] | None
) -> None:
    found = response(mirror_of(*NODES, *pods), {"n1": Offer(offered)})
    assert found == ({} if expected is None else {"n1": Offer(expected)})


def test_a_pod_that_never_preempts_gets_no_node() -> None:
    assert response(mirror_of(*NODES, web("a")), {"n1": Offer(("a",))}, REPELLED.preemption_policy("Never")) == {}


def test_an_unknown_node_and_one_of_another_scheduler_are_dropped() -> None:
    mirror = mirror_of(*NODES, web("a"), make_pod("b").uid("b").on("n2").label("app", "web"))
    offers = {"unknown": Offer(("x",)), "n1": Offer(("a",)), "n2": Offer()}
    assert response(mirror, offers) == {"n1": Offer(("a",)), "n2": Offer(("b",))}
    mirror.set_node_out_of_partition("n1")
    assert response(mirror, offers) == {"n2": Offer(("b",))}
    assert response(mirror, {}, more=["n1"]) == {}


@pytest.mark.parametrize(
    ("offered", "expected"),
    [
        pytest.param(Offer(), Offer(("a",), 1), id="counted-here"),
        pytest.param(Offer(("b",), 4), Offer(("a", "b"), 4), id="the-scheduler-knows-of-more"),
        pytest.param(Offer(("a",), 0), Offer(("a",), 0), id="not-counted-where-the-offer-is-taken"),
    ],
)
def test_violations_of_budgets_are_counted_anew_where_an_offer_is_completed(offered: Offer, expected: Offer) -> None:
    mirror = mirror_of(*NODES, web("a"), other("b"))
    mirror.apply(ClusterEvent("Add", PodDisruptionBudget("default", "w", parse_selector({"app": "web"}, ()))))
    assert response(mirror, {"n1": offered}) == {"n1": expected}


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        pytest.param(["n2"], {"n1": ("a",), "n2": ("b",)}, id="victims-are-found"),
        pytest.param(["n1", "n2", "n2"], {"n1": ("a",), "n2": ("b",)}, id="offered-too-or-twice"),
    ],
)
def test_nodes_that_are_not_offered_are_looked_at_behind_the_offers(
    more: list[str], expected: Mapping[str, tuple[str, ...]]
) -> None:
    mirror = mirror_of(*NODES, web("a"), make_pod("b").uid("b").on("n2").label("app", "web"))
    found = response(mirror, {"n1": Offer(("a",))}, more=more)
    assert [*found.items()] == [(name, Offer(uids)) for name, uids in expected.items()]


@pytest.mark.parametrize(
    "blocker",
    [
        pytest.param(make_pod("b").uid("b").on("n2").label("app", "web").priority(10), id="of-equal-priority"),
        pytest.param(make_pod("b").uid("b").on("n2"), id="nobody-in-the-way"),
    ],
)
def test_a_node_that_is_not_offered_is_left_out_where_nobody_has_to_go_or_nothing_helps(blocker: PodBuilder) -> None:
    assert response(mirror_of(*NODES, blocker), {}, more=["n2"]) == {}


def many(blocker_priority: int = 0) -> ClusterMirror:
    """Make a mirror of 120 nodes, m0 and so on, with a web pod on each."""
    names = [f"m{number}" for number in range(120)]
    nodes = [make_node(name).label(HOST, name) for name in names]
    return mirror_of(
        *nodes, *(make_pod(name).uid(name).on(name).label("app", "web").priority(blocker_priority) for name in names)
    )


@pytest.mark.parametrize(
    ("offered", "expected"),
    [
        pytest.param(0, range(100), id="no-offers"),
        pytest.param(30, range(100), id="offers-count"),
        pytest.param(110, range(110), id="enough-offers-all-of-which-are-answered"),
    ],
)
def test_others_are_looked_at_until_there_are_as_many_candidates_as_are_wanted(offered: int, expected: range) -> None:
    mirror = many()
    offers = {f"m{number}": Offer() for number in range(offered)}
    found = response(mirror, offers, more=[f"m{number}" for number in range(120)])
    assert [*found] == [f"m{number}" for number in expected]


def test_where_nothing_helps_no_more_others_are_looked_at_than_candidates_are_wanted() -> None:
    mirror = many(blocker_priority=10)
    tell(mirror, "Update", make_pod("m100").uid("m100").on("m100").label("app", "web"))
    names = [f"m{number}" for number in range(120)]
    assert response(mirror, {}, more=names) == {}
    assert response(mirror, {}, more=names[1:]) == {"m100": Offer(("m100",))}
