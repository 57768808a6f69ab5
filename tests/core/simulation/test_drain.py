"""A drain: what is evicted in which round, what stays or is refused, and where the pods go."""

import json
from typing import Any

import pytest

from app.objects.decode_pod import decode_pod
from core.events import ClusterEvent
from core.framework.interface import Verdicts
from core.mirror.cluster import ClusterMirror
from core.mirror.fork import Fork, ForkError
from core.objects.kinds import PodDisruptionBudget
from core.objects.labels import EVERYTHING, parse_selector
from core.objects.pod import Pod
from core.simulation import one_pod, placing
from core.simulation.drain import NO_BUDGET_LEFT, TWO_BUDGETS, Drain, DrainedPod, drain
from core.simulation.facts import OF_NODE, Again, BudgetFacts, PodFacts
from core.simulation.moves import Basis
from core.simulation.orders import Chance
from core.simulation.placing import Fate
from tests.builders import labelled, make_pod, term
from tests.core.decoded import mirror_of, pod_of, tell
from tests.core.simulation.setting import HOSTNAME, NOTHING_MORE, ZONE, Known, node, replica, result_of, schedulers


def drained(mirror: ClusterMirror, *names: str, facts: Known = NOTHING_MORE, orders: int = 1) -> Drain:
    """Drain nodes; nothing is left of it."""
    return result_of(mirror, drain(Basis(mirror, schedulers(mirror), facts, orders), names))


def by_name(found: Drain) -> dict[str, DrainedPod]:
    return {each.move.pod.partition("/")[2]: each for each in found.pods}


def budget(name: str, allowed: int, **labels: str) -> PodDisruptionBudget:
    selector = parse_selector(labels, ()) if labels else EVERYTHING
    return PodDisruptionBudget(namespace="default", name=name, selector=selector, disruptions_allowed=allowed)


def with_budgets(*budgets: PodDisruptionBudget, replicas: int = 3, room: int = 4) -> ClusterMirror:
    pods = [replica(f"r{number}").on("n1") for number in range(replicas)]
    mirror = mirror_of(node("n1", cpu=8), node("n2", cpu=room), *pods)
    for each in budgets:
        mirror.apply(ClusterEvent("Add", each))
    return mirror


def test_what_stays_what_needs_a_flag_and_what_goes_where() -> None:
    daemon, static = make_pod("d").owned_by("DaemonSet", "d", "d"), make_pod("s-n1")
    pods = [each.on("n1") for each in (daemon, static, make_pod("bare"), replica("r"), replica("huge", cpu=7))]
    mirror = mirror_of(node("n1", cpu=9), node("n2", cpu=2), *pods)
    found = drained(mirror, "n1", facts=Known({"r": PodFacts(local_data=True)}))
    pods_found = by_name(found)
    assert [each.move.pod for each in found.pods] == [
        "default/huge",
        "default/bare",
        "default/r",
        "default/d",
        "default/s-n1",
    ]
    assert found.needs == ["--delete-emptydir-data", "--force", "--ignore-daemonsets"]
    assert {name for name, each in pods_found.items() if each.stays} == {"d", "s-n1"}
    assert (pods_found["r"].move.node, pods_found["r"].move.is_copy, pods_found["r"].round) == ("n2", True, 1)
    assert pods_found["bare"].move.stays_away == "no controller makes it again"
    (huge,) = found.unplaced
    assert huge.move.rejected is not None
    assert (huge.move.rejected.fate, huge.move.rejected.nodes) == (Fate.UNSCHEDULABLE, 2)
    assert huge.move.rejected.reasons == {"Insufficient cpu": 1, "node(s) were unschedulable": 1}
    assert [(each.owner, each.replicas, each.left, each.again, each.remaining) for each in found.workloads] == [
        ("Deployment default/web", 2, 2, 1, 1),
    ]
    assert not found.blocked


def test_daemon_sets_of_other_groups_are_evicted_as_kubectl_does() -> None:
    """In kubectl's filters.go, isControllerRefDaemonSet wants apps/v1. OpenKruise's controller makes the pod again."""
    owner = [{"kind": "DaemonSet", "name": "d", "uid": "d", "controller": True}]
    pods = {name: make_pod(name).label("app", "web").on("n1").obj() for name in ("kruise", "apps", "odd")}
    for name, version in {"kruise": "apps.kruise.io/v1alpha1", "apps": "apps/v1", "odd": ""}.items():
        pods[name]["metadata"]["ownerReferences"] = [{**each, "apiVersion": version} for each in owner]
    mirror = mirror_of(node("n1"), node("n2"))
    for each in pods.values():
        mirror.apply(ClusterEvent("Add", decode_pod(json.dumps(each).encode())))
    found = drained(mirror, "n1", facts=Known({"kruise": PodFacts(local_data=True)}))
    assert {name: (each.stays, each.round, list(each.needs)) for name, each in by_name(found).items()} == {
        "kruise": (False, 1, ["--delete-emptydir-data"]),
        "apps": (True, 0, ["--ignore-daemonsets"]),
        "odd": (True, 0, ["--ignore-daemonsets"]),
    }
    assert (by_name(found)["kruise"].move.stays_away, found.workloads) == (OF_NODE, [])
    mirror.apply(ClusterEvent("Add", budget("web", 0, app="web")))
    assert [each.move.pod for each in drained(mirror, "n1").blocked] == ["default/kruise"]


def test_a_pod_that_its_daemon_set_makes_again_on_its_node_counts_for_its_budget_again() -> None:
    owner = {"apiVersion": "apps.kruise.io/v1beta1", "kind": "DaemonSet", "name": "d", "uid": "d", "controller": True}
    mirror = mirror_of(node("n1"), node("n2"))
    for name in ("n1", "n2"):
        pod = make_pod(f"d-{name}").label("app", "web").on(name).obj()
        pod["metadata"]["ownerReferences"] = [owner]
        mirror.apply(ClusterEvent("Add", decode_pod(json.dumps(pod).encode())))
    mirror.apply(ClusterEvent("Add", budget("web", 1, app="web")))
    found = drained(mirror, "n1", "n2")
    assert (found.ends, [each.round for each in found.pods]) == (Chance.ALWAYS, [1, 1])


def test_budgets_let_pods_go_in_rounds_while_others_make_up_for_them() -> None:
    found = drained(with_budgets(budget("web", 1, app="web")), "n1")
    assert sorted(each.round for each in found.pods) == [1, 2, 3]
    assert (found.rounds, found.blocked) == (3, [])
    assert [each.budgets for each in found.pods] == [["default/web"]] * 3
    assert drained(with_budgets(budget("web", 3, app="web")), "n1").rounds == 1


def test_which_replica_of_a_stateful_set_its_budget_keeps_is_chance() -> None:
    pods = [
        make_pod(f"s-{at}").label("app", "web").owned_by("StatefulSet", "s", "s").requests(cpu=2) for at in range(2)
    ]
    mirror = mirror_of(node("n1", cpu=8), node("n2", cpu=1), *[each.on("n1") for each in pods])
    mirror.apply(ClusterEvent("Add", budget("web", 1, app="web")))
    assert [each.blocked for each in drained(mirror, "n1").pods] == [NO_BUDGET_LEFT, ""]
    found = drained(mirror, "n1", orders=9)
    assert [each.blocked for each in found.pods] == [NO_BUDGET_LEFT] * 2
    assert [each.evicted for each in found.pods] == [Chance.SOMETIMES] * 2
    assert found.ends is Chance.NEVER
    first = drained(mirror, "n1")
    assert [each.evicted for each in first.pods] == [Chance.NEVER, Chance.ALWAYS]


def test_in_how_many_orders_a_drain_ends() -> None:
    """Of two pods of a budget that allows one, only the small one has a successor: it must go first."""
    pods = [replica("small"), replica("large", cpu=3), make_pod("d").owned_by("DaemonSet", "d", "d")]
    mirror = mirror_of(node("n1", cpu=8), node("n2", cpu=2), *(each.on("n1") for each in pods))
    mirror.apply(ClusterEvent("Add", budget("web", 1, app="web")))
    found = drained(mirror, "n1", orders=9)
    assert found.ends is Chance.SOMETIMES
    assert {name: each.evicted for name, each in by_name(found).items()} == {
        "small": Chance.SOMETIMES,
        "large": Chance.ALWAYS,
        "d": Chance.NEVER,
    }


def test_a_pod_without_a_place_ends_the_rounds_of_its_budget() -> None:
    found = drained(with_budgets(budget("web", 1, app="web"), room=1), "n1")
    assert [(each.round, each.blocked) for each in sorted(found.pods, key=lambda each: each.move.pod)] == [
        (1, ""),
        (2, ""),
        (0, NO_BUDGET_LEFT),
    ]
    assert len(found.unplaced) == 1
    assert [each.blocked for each in drained(with_budgets(budget("web", 0)), "n1").pods] == [NO_BUDGET_LEFT] * 3


def test_the_successor_of_an_unready_pod_makes_up_for_a_ready_one() -> None:
    """In disruption.go, countHealthyPods: the budget lost none with the unready pod."""
    facts = Known({"r0": PodFacts(is_ready=False)})
    found = by_name(drained(with_budgets(budget("web", 0, app="web")), "n1", facts=facts))
    assert [each.round for each in found.values()] == [1, 2, 3]
    lacking = Known({"r0": PodFacts(is_ready=False)}, BudgetFacts(lacks=1, always_allows_unhealthy=True))
    found = by_name(drained(with_budgets(budget("web", 0, app="web")), "n1", facts=lacking))
    assert {name: each.blocked for name, each in found.items()} == {
        "r0": "",
        "r1": NO_BUDGET_LEFT,
        "r2": NO_BUDGET_LEFT,
    }


def test_a_budget_that_cannot_be_counted_allows_nothing_whatever_comes() -> None:
    """In disruption.go, failSafe sets disruptionsAllowed to 0, as for pods whose controller has no scale."""
    facts = Known({"r0": PodFacts(is_ready=False)}, BudgetFacts(sync_failed=True))
    found = by_name(drained(with_budgets(budget("web", 0, app="web")), "n1", facts=facts))
    assert [name for name, each in found.items() if each.blocked] == ["r1", "r2"]


def test_a_budget_that_is_whole_again_lets_unready_pods_go() -> None:
    """eviction.go compares status.currentHealthy, which the disruption controller has counted again."""
    facts = Known({"r0": PodFacts(is_ready=False), "s": PodFacts(is_ready=False)}, BudgetFacts(lacks=1))
    pods = [replica("r0").on("n1"), make_pod("s").label("app", "web").on("n1").owned_by("StatefulSet", "s", "s")]
    mirror = mirror_of(node("n1", cpu=8), node("n2", cpu=8), *pods, replica("gone").on("n1").terminating())
    mirror.apply(ClusterEvent("Add", budget("web", 0, app="web")))
    found = by_name(drained(mirror, "n1", facts=facts))
    assert {name: each.blocked for name, each in found.items() if each.blocked} == {
        "r0": NO_BUDGET_LEFT,
        "s": NO_BUDGET_LEFT,
    }
    terminating = make_pod("t-0").label("app", "web").owned_by("StatefulSet", "t", "t").on("n1").terminating()
    tell(mirror, "Add", terminating)
    assert [each.round for each in sorted(drained(mirror, "n1", facts=facts).pods, key=lambda each: each.move.pod)] == [
        1,
        2,
        2,
        1,
    ]


@pytest.mark.parametrize("theirs", [True, False])
def test_a_pod_without_a_place_gets_one_when_the_pod_in_its_way_has_gone(*, theirs: bool) -> None:
    waits, repels = replica("a", "a").node_selector({ZONE: "a"}).on("n1"), replica("b", "b", cpu=2).on("n2")
    if theirs:
        repels = repels.required_anti_affinity(term(ZONE, labelled(app="a")))
    else:
        waits = waits.required_anti_affinity(term(ZONE, labelled(app="b")))
    mirror = mirror_of(node("n1"), node("n2"), node("n3", cpu=1), node("n4", zone="b"), waits, repels)
    assert {name: each.move.node for name, each in by_name(drained(mirror, "n1")).items()} == {"a": ""}
    found = by_name(drained(mirror, "n1", "n2"))
    assert {name: each.move.node for name, each in found.items()} == {"a": "n3", "b": "n4"}


def test_of_pods_that_are_tried_again_the_most_important_one_comes_first() -> None:
    away = term(ZONE, labelled(app="x"))
    waits = [replica("low", "low").on("n1"), replica("high", "high").priority(10).on("n2")]
    waits = [each.node_selector({ZONE: "a"}).required_anti_affinity(away) for each in waits]
    nodes = [node("n1"), node("n2"), node("n3"), node("n4", cpu=1), node("n5", zone="b")]
    mirror = mirror_of(*nodes, *waits, replica("x", "x").node_selector({ZONE: "b"}).on("n3"))
    found = by_name(drained(mirror, "n1", "n2", "n3"))
    assert {name: each.move.node for name, each in found.items()} == {"low": "", "high": "n4", "x": "n5"}


def test_of_alike_pods_without_a_place_one_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []

    def place_best(fork: Fork, pod: Pod, *rest: Any, **more: Any) -> str | Verdicts:  # noqa: ANN401  # as they are
        tried.append(pod.name)
        return one_pod.place_best(fork, pod, *rest, **more)

    monkeypatch.setattr(placing, "place_best", place_best)
    names = [f"n{number}" for number in range(8)]
    pods = [replica(f"{owner}-{name}", owner).on(name) for name in names for owner in "ab"]
    found = drained(mirror_of(*map(node, names), *pods), *names)
    assert len(found.unplaced) == len(pods)
    assert len(tried) == 2 * len(names) + 2 * (len(names) - 1)  # at first, and in each later round one of an owner


def test_two_budgets_are_an_error_and_one_of_another_namespace_is_none() -> None:
    both = with_budgets(budget("one", 9, app="web"), budget("two", 9))
    assert {each.blocked for each in drained(both, "n1").pods} == {TWO_BUDGETS}
    elsewhere = PodDisruptionBudget(namespace="other", name="web", selector=EVERYTHING)
    assert drained(with_budgets(elsewhere), "n1").rounds == 1


@pytest.mark.parametrize(
    ("about", "of_budget", "goes"),
    [
        (PodFacts(), BudgetFacts(), False),
        (PodFacts(has_started=False), BudgetFacts(lacks=1), True),
        (PodFacts(is_ready=False), BudgetFacts(), True),
        (PodFacts(is_ready=False), BudgetFacts(lacks=1), False),
        (PodFacts(is_ready=False), BudgetFacts(wants_any=False), False),
        (PodFacts(is_ready=False), BudgetFacts(lacks=1, always_allows_unhealthy=True), True),
    ],
)
def test_a_pod_that_is_not_ready_may_go_without_its_budget(
    about: PodFacts, of_budget: BudgetFacts, *, goes: bool
) -> None:
    mirror = with_budgets(budget("web", 0, app="web"), replicas=1)
    (found,) = drained(mirror, "n1", facts=Known({"r0": about}, of_budget)).pods
    assert (found.round, found.blocked) == ((1, "") if goes else (0, NO_BUDGET_LEFT))


def test_a_terminating_pod_goes_without_its_budget_and_its_successor_is_there_already() -> None:
    mirror = mirror_of(node("n1"), node("n2"), replica("r").on("n1").terminating())
    mirror.apply(ClusterEvent("Add", budget("web", 0, app="web")))
    (found,) = drained(mirror, "n1").pods
    assert (found.round, found.move.node) == (1, "")
    assert "made another one" in found.move.stays_away
    assert drained(mirror, "n1").workloads == []


def test_the_nodes_are_all_cordoned_and_emptied_one_after_the_other() -> None:
    pods = [replica("a").on("n1"), replica("b").on("n2")]
    found = drained(mirror_of(node("n1"), node("n2"), node("n3", cpu=1), *pods), "n1", "n2")
    assert [(each.move.pod, each.move.node) for each in found.pods] == [("default/a", "n3"), ("default/b", "")]
    with pytest.raises(ForkError, match="node none is not there"):
        drained(mirror_of(node("n1")), "none")


def test_a_caller_that_goes_leaves_nothing_behind() -> None:
    mirror = mirror_of(node("n1"), node("n2"), replica("a").on("n1"), replica("b").on("n1"))
    before = mirror.dump()
    steps = drain(Basis(mirror, schedulers(mirror), NOTHING_MORE), ["n1", "n1"])
    next(steps)
    assert mirror.dump() != before
    steps.close()
    assert mirror.dump() == before
    assert len(drained(mirror, "n1", "n1").pods) == 2


class Refusing(Known):
    """No pod is made again, because the API server refuses it."""

    def comes_again(self, _: Pod) -> Again | str:
        """Return a pod that is denied."""
        return Again(denied="violates PodSecurity")


def test_a_pod_that_the_api_server_refuses_has_no_place() -> None:
    found = drained(mirror_of(node("n1"), node("n2"), replica("r").on("n1")), "n1", facts=Refusing(), orders=2)
    (pod,) = found.unplaced
    assert pod.move.rejected is not None
    assert (pod.round, pod.move.placed, pod.move.stays_away) == (1, Chance.NEVER, "")
    assert (pod.move.rejected.fate, pod.move.rejected.why) == (Fate.DENIED, "violates PodSecurity")
    assert [each.remaining for each in found.workloads] == [0]


def test_a_pod_that_tolerates_the_cordon_comes_back_and_has_no_other_place() -> None:
    pod = replica("r").toleration("node.kubernetes.io/unschedulable", "Exists").node_selector({HOSTNAME: "n1"}).on("n1")
    whole = drained(mirror_of(node("n1"), node("n2"), pod), "n1")
    (found,) = whole.pods
    assert (found.move.node, found.move.returns, found.move.rejected) == ("n1", True, None)
    assert whole.unplaced == [found]


def test_replicas_that_end_on_one_node_are_named() -> None:
    pods = [replica("a").on("n1"), replica("b").on("n2"), replica("c", "alone").on("n1"), make_pod("bare").on("n1")]
    mirror = mirror_of(node("n1", cpu=4), node("n2", cpu=4), *pods, replica("d", "more").on("n2").terminating())
    assert drained(mirror, "n1").together == ["Deployment default/web"]


def test_over_several_orders_chance_is_shown() -> None:
    pods = [replica("small", "small").on("n1"), replica("large", "large", cpu=2).on("n1")]
    found = drained(mirror_of(node("n1", cpu=4), node("n2", cpu=2), *pods), "n1", orders=8)
    assert {each.move.placed for each in found.pods} == {Chance.SOMETIMES}
    assert (found.orders, len(found.unplaced)) == (8, 2)


def test_the_owners_template_is_what_comes_again() -> None:
    class Templates(Known):
        """The owner's template asks for more than the running pod."""

        def comes_again(self, pod: Pod) -> Again | str:
            """Return a pod of the template."""
            return Again(pod_of(replica(pod.name, cpu=3)))

    pod = replica("r").on("n1").spread(HOSTNAME, labelled(app="web"))
    mirror = mirror_of(node("n1"), node("n2", cpu=2), pod)
    (found,) = drained(mirror, "n1", facts=Templates()).pods
    assert found.move.rejected is not None
    assert not found.move.is_copy
    assert found.move.rejected.reasons["Insufficient cpu"] == 1
