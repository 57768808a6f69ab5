"""The victims on a node (upstream default_preemption.go, SelectVictimsOnNode), beyond what the golden cases reach."""

from typing import Final

import numpy as np
import pytest
from msgspec.structs import replace

from core.equivalence.cache import CacheOptions, EquivalenceCache
from core.events import ClusterEvent, Kind
from core.framework.evaluation import Failure, FitChecks
from core.framework.interface import SUCCESS, Code, FilterPlugin, InvalidationRule, Operation, Scope, Status, Verdicts
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.objects.groups import SchedulingGroup
from core.objects.kinds import PodDisruptionBudget
from core.objects.labels import parse_selector
from core.objects.pod import Pod
from core.preemption import NO_VICTIMS_FOUND, Victims, dry_run
from core.profile import Profile, full_profile
from tests.builders import PodBuilder, labelled, make_node, make_pod, term
from tests.core.decoded import mirror_of, pod_of
from tests.core.mirror.audit import audit
from tests.core.plain_plugin import PlainPlugin

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


def test_victims_whose_eviction_violates_a_budget_are_spared_before_others_and_counted() -> None:
    mirror = mirror_of(N1, on_n1("covered", 2, 1).label("app", "web"), on_n1("free", 2, 9))
    budget = PodDisruptionBudget("default", "web", parse_selector({"app": "web"}, ()))
    mirror.apply(ClusterEvent("Add", budget))
    found = on_node(mirror, INCOMING)
    assert (names(found), isinstance(found, Victims) and found.pdb_violations) == (["free"], 0)

    found = on_node(mirror, INCOMING.requests(cpu=4))
    assert (names(found), isinstance(found, Victims) and found.pdb_violations) == (["free", "covered"], 1)


def test_where_nobody_has_a_lower_priority_there_are_no_victims() -> None:
    mirror = mirror_of(N1, on_n1("equal", 4, 100), on_n1("higher", 0, 101))
    assert on_node(mirror, INCOMING) is NO_VICTIMS_FOUND


def test_where_the_pod_fits_with_all_there_it_is_an_error_as_upstream_has_it() -> None:
    found = on_node(mirror_of(N1, on_n1("small", 1)), INCOMING)
    assert found == Failure(Status(Code.ERROR, ('expected at least one victim pod on node "n1"',)))


def test_where_it_does_not_fit_with_all_of_them_gone_the_first_predicate_tells_why() -> None:
    found = on_node(mirror_of(N1.taint("t", "v", "NoSchedule"), on_n1("a", 4)), INCOMING.requests(cpu=9))
    assert isinstance(found, Failure)
    assert (found.plugin, found.status.reasons) == ("TaintToleration", ("node(s) had untolerated taint {t: v}",))


def test_victims_make_room_for_the_nominated_pods_of_the_node_too() -> None:
    nominated = make_pod("waits").priority(100).image("i").requests(cpu=1).nominated("n1")
    pods = (on_n1("a", 2, 1), on_n1("b", 1, 2), on_n1("c", 1, 3))
    assert names(on_node(mirror_of(N1, *pods), INCOMING)) == ["a"]
    assert names(on_node(mirror_of(N1, *pods, nominated), INCOMING)) == ["b", "a"]
    assert names(on_node(mirror_of(N1, *pods, nominated.priority(99)), INCOMING)) == ["a"]
    full = on_node(mirror_of(N1, *pods, nominated.requests(cpu=4)), INCOMING)
    assert isinstance(full, Failure)
    assert full.status.reasons == ("Insufficient cpu",)


def test_a_blocker_on_another_node_of_the_domain_stays() -> None:
    repelled = INCOMING.required_anti_affinity(term(ZONE, labelled(app="web")))
    blocker = make_pod("blocker").label("app", "web")
    mirror = mirror_of(N1, N2, blocker.on("n2"), on_n1("a", 1))
    found = on_node(mirror, repelled)
    assert isinstance(found, Failure)
    assert found.plugin == "InterPodAffinity"
    assert names(on_node(mirror, repelled, "n2")) == ["blocker"]


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
