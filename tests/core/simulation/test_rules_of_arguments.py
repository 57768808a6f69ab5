"""Rules about pods that follow from the arguments of plugins count as those of a pod do: no shortcut forgets them."""

from collections.abc import Mapping

from core.equivalence.cache import CacheOptions, EquivalenceCache
from core.events import ClusterEvent
from core.framework.evaluation import FreshEvaluation
from core.gangs.attempts import Shortfall
from core.gangs.placing import Gang, Placer
from core.mirror.cluster import ClusterMirror
from core.objects.kinds import Service
from core.objects.labels import parse_selector
from core.objects.pod import DO_NOT_SCHEDULE, SpreadConstraint
from core.profile import Profile, full_profile, parse_profile
from core.simulation.capacity import Template, capacity
from core.simulation.loss import lose_each
from core.simulation.lost_nodes import NodeState
from core.simulation.moves import Basis
from core.simulation.orders import FIRST, Chance, ties
from core.simulation.placing import DEFAULT_SCHEDULER, Placing, Scheduler, Schedulers, finished
from core.simulation.removal import remove_each
from tests.core.decoded import Builder, mirror_of, pod_of
from tests.core.gangs.gang_setting import member, place_gang
from tests.core.simulation.setting import NOTHING_MORE, ZONE, node, replica, result_of


def spreading() -> Profile:
    """Return a profile that spreads all pods over zones."""
    by_zone = SpreadConstraint(max_skew=1, topology_key=ZONE, when_unsatisfiable=DO_NOT_SCHEDULE)
    return full_profile({"PodTopologySpread": {"defaulting_type": "List", "default_constraints": (by_zone,)}})


def schedulers(mirror: ClusterMirror) -> Schedulers:
    profile = spreading()
    cache = EquivalenceCache(mirror, profile.plugins, CacheOptions(mode="spec"))
    return {DEFAULT_SCHEDULER: Scheduler(profile, cache.evaluation)}


def cluster(*objects: Builder) -> ClusterMirror:
    """Return a cluster with a Service of all pods that have a label."""
    mirror = mirror_of(*objects)
    selector = parse_selector({"of": "x"}, ())
    mirror.apply(ClusterEvent("Add", Service(namespace="default", name="s", selector=selector)))
    return mirror


def basis(mirror: ClusterMirror) -> Basis:
    return Basis(mirror, schedulers(mirror), NOTHING_MORE)


def two_zones() -> ClusterMirror:
    nodes = [node("a1", 4), *[node(f"b{number}", 4, "b") for number in range(9)]]
    pods = [replica(f"r{number}").label("of", "x") for number in range(4)]
    return cluster(*nodes, *[pod.on(name) for pod, name in zip(pods, ("a1", "a1", "b1", "b2"), strict=True)])


def test_a_node_whose_domain_would_be_empty_cannot_go() -> None:
    mirror = two_zones()
    (found,) = result_of(mirror, remove_each(basis(mirror), ["a1"])).nodes
    assert (found.goes, found.pod, found.state) == (Chance.NEVER, "default/r0", NodeState.OUT)


def test_a_dead_zone_is_a_domain_and_a_removed_one_is_none() -> None:
    mirror = two_zones()
    (found,) = result_of(mirror, lose_each(basis(mirror), ZONE, ["a"])).domains
    assert found.other is not None
    assert (found.worse.state, found.worse.without_place, found.other.without_place) == (NodeState.OUT, 2, 0)


def test_a_pod_is_tried_again_after_one_that_evens_out_its_spread() -> None:
    running = replica("r", "r").label("of", "x").on("n1")
    even = replica("s", "s", cpu=2).label("of", "x")
    other = replica("o", "o").label("of", "x").node_selector({ZONE: "b"})
    nodes = node("n1", cpu=4), node("n2", cpu=1, zone="b")
    mirror = cluster(*nodes, running)
    with mirror.fork(cache_follows=True) as fork:
        placing = Placing(mirror, fork, schedulers(mirror), ties(mirror, FIRST))
        assert [each.node for each in finished(placing.place([pod_of(even), pod_of(other)]))] == ["n1", "n2"]
    waiting = cluster(*nodes, running, even)
    found = result_of(waiting, capacity(basis(waiting), [Template(pod_of(other))], 1))
    assert (found.placed, found.pending_placed) == (1, 1)


def gang_of_two(mirror: ClusterMirror, profile: Profile, max_steps: int) -> Mapping[str, str] | Shortfall:
    placer = Placer(mirror, profile, lambda pod: FreshEvaluation(mirror, pod), lambda _, best: int(best[0]))
    return place_gang(placer, Gang([pod_of(member(name).label("of", "x")) for name in "ab"], max_steps=max_steps))


def test_nothing_is_proved_of_a_gang_without_a_search() -> None:
    mirror = cluster(node("n1", cpu=4), node("n2", cpu=1, zone="b").unschedulable())
    found = gang_of_two(mirror, spreading(), max_steps=0)
    assert isinstance(found, Shortfall)
    assert (found.placed, found.is_proved, found.may_need_others) == (1, False, True)


def test_a_service_that_stays_together_may_begin_in_another_zone() -> None:
    for keys, expected in ((ZONE,), ["n2", "n3"]), ((), ["n1", "n2"]):
        mirror = cluster(node("n1", cpu=1), node("n2", cpu=1, zone="b"), node("n3", cpu=1, zone="b"))
        profile = parse_profile("full,ServiceAffinity", {"ServiceAffinity": {"affinity_labels": keys}})
        found = gang_of_two(mirror, profile, max_steps=100)
        assert isinstance(found, Mapping)
        assert sorted(found.values()) == expected
