"""Pods that are placed one after the other: in order, beside those before, and what is said of those left over."""

import dataclasses
from collections.abc import Iterator
from sys import getrefcount

import numpy as np
import pytest
from msgspec.structs import replace

from core.events import ClusterEvent
from core.explaining.remedy import known
from core.framework.evaluation import FreshEvaluation
from core.mirror.fork import Fork, ForkError
from core.mirror.work import WorkLimitError
from core.objects.affinity import NodeSelector, NodeSelectorTerm
from core.objects.kinds import ControllerRef, DeviceClass
from core.objects.labels import Operator, Requirement
from core.objects.pod import Pod, PodClaim, PodResourceClaim, Taint
from core.objects.volumes import PersistentVolume, PersistentVolumeClaim, StorageClass
from core.profile import full_profile
from core.releases.differences import rules_of
from core.releases.release import Release
from core.simulation.facts import (
    OF_NODE,
    REPLACED,
    UNMANAGED,
    Again,
    bring_claims,
    copied,
    copy_of_pod,
    leave,
    zones_of_volumes,
)
from core.simulation.kinds import alike
from core.simulation.lost_nodes import NodeState, cordoned, dead, lose
from core.simulation.orders import FIRST, Chance, OverOrders, arrival, ties
from core.simulation.placing import DEFAULT_SCHEDULER, Fate, Outcome, Placing, Scheduler, finished
from tests.builders import PodBuilder, labelled, make_pod, term
from tests.core.decoded import mirror_of, pod_of, tell
from tests.core.simulation.setting import HOSTNAME, NOTHING_MORE, ZONE, node, placed, replica, schedulers, within

CPU = "Insufficient cpu"
LATE = StorageClass(name="late", provisioner="d", volume_binding_mode="WaitForFirstConsumer")
STATIC = StorageClass(
    name="static", provisioner="kubernetes.io/no-provisioner", volume_binding_mode="WaitForFirstConsumer"
)


def nodes_of(outcomes: list[Outcome]) -> list[str]:
    return [each.node if each.is_placed else each.fate.value for each in outcomes]


def claim(name: str, storage_class: str = "late") -> PersistentVolumeClaim:
    return PersistentVolumeClaim(namespace="default", name=name, uid=name, storage_class=storage_class, requested=1)


def with_claim(pod: Pod, name: str, *, ephemeral: bool = False) -> Pod:
    return replace(pod, volumes=(PodClaim(name, ephemeral),))


def test_each_pod_counts_for_the_next_one_and_the_first_by_name_is_chosen() -> None:
    mirror = mirror_of(node("n2"), node("n1"))
    outcomes = placed(mirror, *[replica(f"r{number}") for number in range(5)])
    assert nodes_of(outcomes) == ["n1", "n2", "n1", "n2", "unschedulable"]
    rejection = outcomes[-1].rejection
    assert rejection is not None
    assert (rejection.nodes, rejection.reasons) == (2, {CPU: 2})


def test_pods_alike_share_a_rejection_and_another_pod_is_judged_again() -> None:
    mirror = mirror_of(node("n1", cpu=1))
    big, small = [replica(f"big{number}", "big", cpu=2) for number in range(3)], replica("small", cpu=1)
    outcomes = placed(mirror, *big, small, replica("more"))
    assert nodes_of(outcomes) == ["unschedulable", "unschedulable", "unschedulable", "n1", "unschedulable"]
    assert outcomes[0].rejection is outcomes[2].rejection


def test_a_pod_that_waits_for_another_one_is_tried_again() -> None:
    """As the queueing hints of InterPodAffinity and PodTopologySpread do (isSchedulableAfterPodChange)."""
    attracted = replica("a", "a").required_affinity(term(ZONE, labelled(app="b")))
    first, second = attracted.priority(2), replica("b", "b").required_affinity(term(ZONE, labelled(app="c")))
    assert nodes_of(placed(mirror_of(node("n1", cpu=4)), first, second, replica("c", "c"))) == ["n1"] * 3
    even = replica("s", "s", cpu=2).label("of", "x").spread(ZONE, labelled(of="x"))
    other = replica("o", "o").label("of", "x").node_selector({ZONE: "b"})
    mirror = mirror_of(node("n1", cpu=3), node("n2", cpu=1, zone="b"), replica("r", "r").label("of", "x").on("n1"))
    assert nodes_of(placed(mirror, even, other)) == ["n1", "n2"]
    assert nodes_of(placed(mirror, even)) == ["unschedulable"]


def test_an_alike_pod_is_tried_again_after_one_that_may_help_it() -> None:
    """Right after it, before the pods behind it, though the first of the alike ones was tried again in vain."""
    first, second = (replica(name, "a").required_affinity(term(ZONE, labelled(app="b"))) for name in ("a1", "a2"))
    third, fourth = (replica(name, name).required_affinity(term(ZONE, labelled(app="c"))) for name in "bd")
    queue = first, third, second, fourth, replica("c", "c")
    found = nodes_of(placed(mirror_of(node("n1", cpu=3)), *queue))
    assert found == ["unschedulable", "n1", "n1", "unschedulable", "n1"]


def test_a_pod_that_is_tried_again_in_vain_keeps_what_was_said_of_it() -> None:
    low = replica("low", "low", cpu=2).on("n1")
    high = replica("h", "h", cpu=2).priority(5).spread(ZONE, labelled(app="h"))
    outcomes = placed(mirror_of(node("n1"), node("n2", cpu=1), low), high, replica("other", "other"))
    assert nodes_of(outcomes) == ["byPreemption", "n2"]
    assert [each.name for each in outcomes[0].victims] == ["low"]


def test_what_no_scheduler_is_known_for_or_none_tries_is_left_alone() -> None:
    mirror = mirror_of(node("n1"))
    devices = replace(pod_of(make_pod("d")), resource_claims=(PodResourceClaim("r", "c"),))
    member = make_pod("m").in_scheduling_group("g")
    others = make_pod("o").scheduler("other"), make_pod("g").gated("wait"), devices, member
    outcomes = placed(mirror, *others, make_pod("p"))
    assert nodes_of(outcomes) == ["unknown", "gated", "unknown", "unknown", "n1"]
    together = "kube-scheduler places it with the other pods of its group"
    whys = ["its scheduler other has no known profile", "", "it claims devices", together, ""]
    assert [each.why for each in outcomes] == whys


def test_a_pod_whose_resource_is_left_to_devices_is_not_judged() -> None:
    """NodeResourcesFit checks no amount on n1, so that any number of such pods would fit there."""
    with_plugin = node("n2").allocatable(cpu=2, memory="8Gi", pods=20, **{"x.io/gpu": 1})
    pods = [make_pod(name).requests(cpu="100m", **{"x.io/gpu": 1}) for name in ("a", "b")]
    mirror = mirror_of(node("n1"), with_plugin)
    mirror.change_rules(rules_of(Release(1, 37)))
    assert nodes_of(placed(mirror, *pods)) == ["n2", "unschedulable"]
    mirror.apply(ClusterEvent("Add", DeviceClass(name="gpu", extended_resource="x.io/gpu")))
    outcomes = placed(mirror, *pods, make_pod("other"))
    assert nodes_of(outcomes) == ["unknown", "unknown", "n1"]
    assert outcomes[0].why == "it claims devices"


def test_a_pod_that_takes_too_much_work_is_not_judged() -> None:
    mirror = mirror_of(node("n1"), *[make_pod(f"p{number}").label("app", "x").on("n1") for number in range(5)])
    mirror.work.limit = 1
    heavy = make_pod("h").required_affinity(term(ZONE, labelled(app="x")), term(HOSTNAME, labelled(app="x")))
    (outcome,) = placed(mirror, heavy)
    assert outcome.fate is Fate.UNKNOWN
    assert "too much work" in outcome.why


def test_alike_pods_share_an_evaluation_and_not_the_work_that_it_may_take() -> None:
    mirror = mirror_of(node("n1", cpu=20))
    for each in (LATE, replace(claim("c"), volume="v", bind_completed=True), PersistentVolume(name="v")):
        mirror.apply(ClusterEvent("Add", each))
    pods = [with_claim(pod_of(replica(f"r{number}")), "c") for number in range(12)]
    mirror.work.limit = 5_000
    fresh = Scheduler(full_profile(), lambda pod: FreshEvaluation(mirror, pod))

    def place(fork: Fork) -> list[Outcome]:
        return finished(Placing(mirror, fork, {DEFAULT_SCHEDULER: fresh}, ties(mirror, FIRST)).place(pods))

    assert set(nodes_of(within(mirror, place))) == {"n1"}


def test_a_pod_gets_the_node_for_which_it_is_nominated_and_others_leave_it_to_the_pod() -> None:
    mirror = mirror_of(node("n1"), node("n2"))
    nominated = pod_of(replica("z", cpu=2).nominated("n2"))
    mirror.apply(ClusterEvent("Add", nominated))
    others = [pod_of(replica(f"r{number}", cpu=2)) for number in range(2)]
    assert nodes_of(placed(mirror, nominated)) == ["n2"]
    assert nodes_of(placed(mirror, *others, nominated)) == ["n1", "unschedulable", "n2"]
    assert nodes_of(placed(mirror, replace(nominated, nominated_node_name="none"))) == ["n1"]
    full = mirror_of(node("n1"), node("n2", cpu=1))
    assert nodes_of(placed(full, nominated)) == ["n1"]


def test_alike_pods_that_are_nominated_for_one_node_share_it() -> None:
    pods = [replica(name).nominated("n1") for name in "ab"]
    assert nodes_of(placed(mirror_of(node("n1"), node("n2", cpu="500m"), *pods), *pods)) == ["n1", "n1"]


def test_a_dry_run_that_takes_too_much_work_names_no_victims(monkeypatch: pytest.MonkeyPatch) -> None:
    def heavy(*_: object) -> None:
        raise WorkLimitError("spec", 1, 2, 1)

    monkeypatch.setattr("core.preemption.dry_run", heavy)
    mirror = mirror_of(node("n1"), replica("a", cpu=2).on("n1"))
    assert nodes_of(placed(mirror, replica("high", cpu=2).priority(9))) == ["unschedulable"]


def test_barred_nodes_get_no_pod_and_are_still_domains() -> None:
    mirror = mirror_of(node("n1"), node("n2", zone="b"))
    spread = replica("r").spread(ZONE, labelled(app="web"))

    def bar(fork: Fork) -> list[Outcome]:
        bars = Placing(mirror, fork, schedulers(mirror), ties(mirror, FIRST), barred=["n2", "none"])
        return finished(bars.place([pod_of(replace_name(spread, f"r{number}")) for number in range(2)]))

    assert nodes_of(within(mirror, bar)) == ["n1", "unschedulable"]


def replace_name(builder: PodBuilder, name: str) -> PodBuilder:
    return dataclasses.replace(builder, name=name)


def test_victims_are_named_for_a_pod_that_fits_only_by_preemption() -> None:
    mirror = mirror_of(node("n1"), node("n2"), replica("a", cpu=2).on("n1"), replica("b", cpu=2).priority(5).on("n2"))
    high, never = replica("high", cpu=2).priority(9), replica("never", cpu=2).priority(9).preemption_policy("Never")
    by_preemption, without, low = placed(mirror, high, never, replica("low", cpu=2))
    assert (by_preemption.fate, by_preemption.node) == (Fate.BY_PREEMPTION, "n1")
    assert [each.name for each in by_preemption.victims] == ["a"]
    assert (without.fate, low.fate) == (Fate.UNSCHEDULABLE, Fate.UNSCHEDULABLE)
    assert nodes_of(placed(mirror, replica("huge", cpu=20).priority(9))) == ["unschedulable"]
    patient = {name: each._replace(preempts=False) for name, each in schedulers(mirror).items()}

    def place(fork: Fork) -> list[Outcome]:
        return finished(Placing(mirror, fork, patient, ties(mirror, FIRST)).place([pod_of(high)]))

    assert nodes_of(within(mirror, place)) == ["unschedulable"]


def test_a_volume_that_one_claim_takes_is_not_there_for_the_next_one() -> None:
    mirror = mirror_of(node("n1"), node("n2"))
    volume = PersistentVolume(name="v", storage_class="static", capacity=1, phase="Available")
    for each in (STATIC, volume, claim("c0", "static"), claim("c1", "static")):
        mirror.apply(ClusterEvent("Add", each))
    pods = [with_claim(pod_of(make_pod(f"p{number}")), f"c{number}") for number in range(2)]
    assert nodes_of(placed(mirror, *pods)) == ["n1", "unschedulable"]


def test_a_volume_that_is_made_for_a_node_keeps_the_next_pod_of_the_claim_there() -> None:
    mirror = mirror_of(node("n1", cpu=1), node("n2", cpu=1))
    mirror.apply(ClusterEvent("Add", LATE))
    mirror.apply(ClusterEvent("Add", claim("c")))
    pods = [with_claim(pod_of(replica(f"p{number}")), "c") for number in range(2)]
    first, second = placed(mirror, *pods)
    assert (first.node, second.fate) == ("n1", Fate.UNSCHEDULABLE)
    assert second.rejection is not None
    assert "node(s) didn't find available persistent volumes to bind" in second.rejection.reasons


def test_a_pod_whose_claim_is_not_there_reserves_nothing() -> None:
    mirror = mirror_of(node("n1"))
    assert nodes_of(placed(mirror, with_claim(pod_of(make_pod("p")), "none"))) == ["unschedulable"]
    bound = replace(claim("c"), volume="v", bind_completed=True)
    for each in (LATE, bound, PersistentVolume(name="v")):
        mirror.apply(ClusterEvent("Add", each))
    assert nodes_of(placed(mirror, with_claim(pod_of(make_pod("p")), "c"))) == ["n1"]


def test_a_pod_that_comes_again_has_an_ephemeral_claim_of_its_own() -> None:
    mirror = mirror_of(node("n1"), node("n2"))
    running = with_claim(pod_of(replica("db-x").on("n1")), "db-x-data", ephemeral=True)
    owner = ControllerRef("Pod", running.name, running.uid)
    bound = replace(claim("db-x-data"), controller=owner, volume="v", bind_completed=True)
    for each in (LATE, PersistentVolume(name="v"), bound, running):
        mirror.apply(ClusterEvent("Add", each))

    def move(fork: Fork) -> list[Outcome]:
        leaving = leave(mirror, fork, [running], NOTHING_MORE)
        assert not mirror.objects(PersistentVolumeClaim)
        bring_claims(mirror, fork, leaving)
        (made,) = mirror.objects(PersistentVolumeClaim).values()
        assert (made.volume, made.bind_completed) == ("", False)
        again = [pod for each in leaving if (pod := each.coming) is not None]
        return finished(Placing(mirror, fork, schedulers(mirror), ties(mirror, FIRST)).place(again))

    assert nodes_of(within(mirror, move)) == ["n1"]
    renamed = copy_of_pod(running, "-2")
    assert renamed.volumes == (PodClaim("db-x-2-data", ephemeral=True),)
    assert not alike(running, renamed)


def test_who_comes_again() -> None:
    daemon = make_pod("d").owned_by("DaemonSet", "d", "d")
    stateful = make_pod("s-0").owned_by("StatefulSet", "s", "s")
    found = [copied(pod_of(each.on("n"))) for each in (daemon, make_pod("static-n"), make_pod("bare"))]
    assert found == [OF_NODE, OF_NODE, UNMANAGED]
    assert copied(pod_of(replica("r").on("n").terminating())) == REPLACED
    for builder in (replica("r"), stateful, stateful.terminating()):
        running = pod_of(builder.on("n"))
        again = copied(running)
        assert isinstance(again, Again)
        made = again.instead_of(running)
        assert (again.of_template, made.node_name, made.terminating) == (None, "", False)
        assert made.uid != running.uid


def test_a_node_that_is_out_is_a_domain_and_one_that_is_removed_is_none() -> None:
    mirror = mirror_of(node("n1"), node("n2", zone="b"), replica("r0").on("n1"))
    spread = replica("r1").spread(ZONE, labelled(app="web"))

    def outcomes(state: NodeState) -> list[str]:
        def place(fork: Fork) -> list[Outcome]:
            lose(mirror, fork, ["n2"], state, dead)
            return finished(Placing(mirror, fork, schedulers(mirror), ties(mirror, FIRST)).place([pod_of(spread)]))

        return nodes_of(within(mirror, place))

    assert outcomes(NodeState.OUT) == ["unschedulable"]
    assert outcomes(NodeState.REMOVED) == ["n1"]


def test_nodes_are_changed_as_the_control_plane_changes_them() -> None:
    mirror = mirror_of(node("n1").condition("Ready", "False").taint("node.kubernetes.io/not-ready", "", "NoSchedule"))
    n1 = known(mirror, "n1")
    assert [(each.key, each.effect) for each in dead(n1).taints] == [
        ("node.kubernetes.io/unreachable", "NoSchedule"),
        ("node.kubernetes.io/unreachable", "NoExecute"),
    ]
    assert dead(n1).conditions == {"Ready": "Unknown"}
    assert cordoned(cordoned(n1)).taints[1:] == (Taint("node.kubernetes.io/unschedulable", effect="NoSchedule"),)
    assert cordoned(n1).unschedulable
    with pytest.raises(ForkError, match="node none is not there"):
        within(mirror, lambda fork: lose(mirror, fork, ["none"], NodeState.OUT, dead))


def test_zones_of_bound_volumes() -> None:
    mirror = mirror_of(node("n1"))
    pod = with_claim(pod_of(make_pod("p")), "c")
    assert zones_of_volumes(mirror, pod) is None
    mirror.apply(ClusterEvent("Add", replace(claim("c"), volume="v", bind_completed=True)))
    requirement = Requirement("topology.ebs.csi.aws.com/zone", Operator.IN, ("a", "b"))
    anywhere = NodeSelector((NodeSelectorTerm((Requirement("disk", Operator.IN, ("ssd",)),)),))
    for volume, zones in (
        (PersistentVolume(name="v"), None),
        (PersistentVolume(name="v", labels={ZONE: "a"}), {"a"}),
        (PersistentVolume(name="v", node_affinity=NodeSelector((NodeSelectorTerm((requirement,)),))), {"a", "b"}),
        (PersistentVolume(name="v", node_affinity=anywhere), None),
    ):
        mirror.apply(ClusterEvent("Add", volume))
        assert zones_of_volumes(mirror, pod) == zones


def test_orders_keep_priorities_and_over_several_of_them_chance_shows() -> None:
    pods = [pod_of(each) for each in (replica("a0", "a"), replica("b0", "b").priority(1), replica("a1", "a"))]
    assert [each.name for each in arrival(reversed(pods), FIRST)] == ["b0", "a0", "a1"]
    bare = [pod_of(make_pod(name)) for name in ("x", "y")]
    assert {tuple(each.name for each in arrival(bare, order)) for order in range(8)} == {("x", "y"), ("y", "x")}
    for order in range(1, 5):
        assert next(each.name for each in arrival(pods, order)) == "b0"
    mirror = mirror_of(node("n1", cpu=1), node("n2", cpu=2))
    small, large = pod_of(replica("small")), pod_of(replica("large", "big", cpu=2))

    def over_of(*runs: list[Outcome]) -> OverOrders:
        found = OverOrders()
        for each in runs:
            found.add((one.pod.uid, one.node if one.is_placed else one) for one in each)
        return found

    def run(order: int) -> list[Outcome]:
        def place(fork: Fork) -> list[Outcome]:
            queue = [small, large] if order else [large, small]
            return finished(Placing(mirror, fork, schedulers(mirror), ties(mirror, order)).place(queue))

        return within(mirror, place)

    found = over_of(*map(run, range(2)))
    assert (found.of(large.uid).placed, found.of(small.uid).placed) in {
        (Chance.ALWAYS, Chance.ALWAYS),
        (Chance.SOMETIMES, Chance.ALWAYS),
    }
    over = found.of(small.uid)
    assert (over.node in over.nodes, over.rejected) == (True, None)
    assert found.is_always_elsewhere(small.uid, ())
    assert not found.is_always_elsewhere(small.uid, over.nodes.keys())
    (huge,) = placed(mirror, replica("huge", cpu=9))
    never = over_of([huge])
    assert never.of(huge.pod.uid) == (Chance.NEVER, {}, "", huge)
    assert not never.is_always_elsewhere(huge.pod.uid, ())


def test_of_a_placed_pod_only_the_node_is_kept_over_orders() -> None:
    """The loss of a zone has 50,000 of them in each order."""
    mirror, pods = mirror_of(node("n1")), [pod_of(replica("a")), pod_of(replica("b", cpu=99))]
    before = [*map(getrefcount, pods)]

    def place(fork: Fork) -> OverOrders:
        found = OverOrders()
        steps = Placing(mirror, fork, schedulers(mirror), ties(mirror, FIRST)).in_brief(pods)
        found.add(zip((pod.uid for pod in pods), finished(steps), strict=True))
        return found

    found = within(mirror, place)
    assert [*map(getrefcount, pods)] == [before[0], before[1] + 1]
    assert found.of(pods[0].uid) == (Chance.ALWAYS, {"n1": 1}, "n1", None)


def test_a_pod_is_made_at_its_turn_with_the_one_after_it() -> None:
    """50,000 pods at once would take 17 MB beside the service."""
    mirror, made = mirror_of(node("n1")), list[str]()

    def pods() -> Iterator[Pod]:
        for name in "abcd":
            made.append(name)
            yield pod_of(replica(name))

    def numbers_made(fork: Fork) -> list[int]:
        return [len(made) for _ in Placing(mirror, fork, schedulers(mirror), ties(mirror, FIRST)).in_brief(pods())]

    assert within(mirror, numbers_made) == [2, 3, 4, 4]


def test_alike_pods_come_in_their_order_and_those_that_never_preempt_at_last() -> None:
    names = [f"{owner}{number}" for owner in "ab" for number in range(3)]
    pods = [pod_of(replica(name, name[0])) for name in names]
    sets = set[tuple[str, ...]]()
    pods += [pod_of(make_pod(f"s-{number}").owned_by("StatefulSet", "s", "s")) for number in range(2)]
    late = pod_of(replica("late", "late").priority(9).preemption_policy("Never"))
    seen = set()
    for order in range(8):
        found = [each.name for each in arrival([*pods[::-1], late], order)]
        assert [name for name in found if name[0] == "a"] == names[:3]
        sets.add(tuple(name for name in found if name[0] == "s"))
        assert found.index("late") == (0 if order == FIRST or order % 2 else len(pods))
        seen.add(tuple(found))
    assert len(seen) > 4
    assert len(sets) == 2


def test_names_are_ranked_again_when_a_node_comes() -> None:
    mirror = mirror_of(node("n2"))
    choose = ties(mirror, FIRST)
    batch = mirror.all_nodes()
    assert choose(batch, np.array([0])) == 0
    tell(mirror, "Add", node("n1"))
    batch = mirror.all_nodes()
    assert batch.names[choose(batch, np.array([0, 1]))] == "n1"
