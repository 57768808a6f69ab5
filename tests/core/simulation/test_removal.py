"""Nodes that could go: what keeps one, proofs without a simulation, and sets of nodes."""

import dataclasses
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.events import ClusterEvent
from core.mirror.cluster import ClusterMirror
from core.mirror.fork import Fork, ForkError
from core.objects.kinds import PodDisruptionBudget
from core.objects.labels import parse_selector
from core.objects.pod import Pod
from core.simulation import removal
from core.simulation.drain import TWO_BUDGETS
from core.simulation.facts import UNMANAGED, Again, BudgetFacts, PodFacts, leave
from core.simulation.lost_nodes import NodeState, cordoned, lose
from core.simulation.moves import Basis
from core.simulation.orders import Chance, arrival
from core.simulation.placing import Fate, Placing, finished
from core.simulation.removal import BUDGET, DO_NOT_DISRUPT, NODE_DATA, NOT_SAFE, Removal, remove_each
from tests.builders import NodeBuilder, PodBuilder, labelled, make_pod, term
from tests.core.decoded import mirror_of
from tests.core.simulation.setting import HOSTNAME, NOTHING_MORE, ZONE, Known, node, replica, result_of, schedulers
from tests.core.simulation.test_drain import Refusing
from tests.depth import tries


def removed(
    mirror: ClusterMirror,
    *names: str,
    facts: Known = NOTHING_MORE,
    most: int = 0,
    failures: int = 20,
    orders: int = 1,
) -> Removal:
    """Ask; nothing is left of it."""
    basis = Basis(mirror, schedulers(mirror), facts, orders)
    return result_of(mirror, remove_each(basis, names, tries=most, failures=failures))


def why(mirror: ClusterMirror, facts: Known = NOTHING_MORE) -> tuple[bool, str, str]:
    (found,) = removed(mirror, "n1", facts=facts).nodes
    return found.can_go, found.pod, found.why


def test_a_node_can_go_if_its_pods_have_another_place() -> None:
    mirror = mirror_of(node("n1"), node("n2", cpu=1), node("n3", cpu="500m"), replica("r").on("n1"))
    found = removed(mirror)
    assert [(each.node, each.can_go, each.pods) for each in found.nodes] == [
        ("n1", True, 1),
        ("n2", True, 0),
        ("n3", True, 0),
    ]
    (full,) = removed(mirror_of(node("n1"), node("n2", cpu=1), replica("r", cpu=2).on("n1")), "n1").nodes
    assert (full.can_go, full.pod, full.state) == (False, "default/r", NodeState.OUT)
    assert full.rejected is not None
    assert (full.rejected.fate, full.rejected.reasons) == (Fate.UNSCHEDULABLE, {"Insufficient cpu": 1})
    with pytest.raises(ForkError, match="node none is not there"):
        removed(mirror, "none")


def test_what_keeps_a_node() -> None:
    nodes = node("n1"), node("n2")
    mirror = mirror_of(*nodes, replica("r").on("n1"))
    assert why(mirror, Refusing()) == (False, "default/r", "violates PodSecurity")
    assert why(mirror, Refusing({"r": PodFacts(safe_to_evict=True)})) == (False, "default/r", "violates PodSecurity")
    assert why(mirror, Known({"r": PodFacts(do_not_disrupt=True)})) == (False, "default/r", DO_NOT_DISRUPT)
    assert why(mirror, Known({"r": PodFacts(safe_to_evict=False)})) == (False, "default/r", NOT_SAFE)
    assert why(mirror, Known({"r": PodFacts(node_data=True)})) == (False, "default/r", NODE_DATA)
    assert why(mirror, Known({"r": PodFacts(node_data=True, safe_to_evict=True)})) == (True, "", "")
    assert why(mirror, Known({"r": PodFacts(local_data=True)})) == (True, "", "")  # in memory
    bare = mirror_of(*nodes, make_pod("b").on("n1"))
    assert why(bare) == (False, "default/b", UNMANAGED)
    assert why(bare, Known({"b": PodFacts(safe_to_evict=True)})) == (True, "", "")


def test_budgets_keep_a_node() -> None:
    mirror = mirror_of(node("n1", cpu=4), node("n2", cpu=4), replica("a").on("n1"), replica("b").on("n1"))
    selector = parse_selector({"app": "web"}, ())
    budget = PodDisruptionBudget(namespace="default", name="one", selector=selector, disruptions_allowed=1)
    mirror.apply(ClusterEvent("Add", budget))
    assert why(mirror) == (False, "default/b", f"{BUDGET}: default/one")
    mirror.apply(ClusterEvent("Add", PodDisruptionBudget(namespace="default", name="two", selector=selector)))
    assert why(mirror) == (False, "default/a", TWO_BUDGETS)


def test_pods_that_need_no_place_are_left_out() -> None:
    pods = [replica("low").priority(-20), replica("t").terminating(), make_pod("d").owned_by("DaemonSet", "d", "d")]
    found = removed(mirror_of(node("n1"), *[each.on("n1") for each in pods])).nodes
    assert [(each.can_go, each.pods) for each in found] == [(True, 0)]


def test_a_terminating_replica_of_a_stateful_set_needs_a_place() -> None:
    """It comes again once it has ended, so nothing keeps it, but that it fits nowhere."""
    ends = make_pod("s-0").label("app", "web").owned_by("StatefulSet", "s", "s").requests(cpu=2).terminating().on("n1")
    mirror = mirror_of(node("n1"), node("n2", cpu=1), ends)
    marked = Known({"s-0": PodFacts(do_not_disrupt=True, node_data=True)})
    for facts in (NOTHING_MORE, marked):
        (found,) = removed(mirror, "n1", facts=facts, most=9).nodes
        assert (found.goes, found.pod, found.pods, found.why) == (Chance.NEVER, "default/s-0", 1, "")
    roomy = mirror_of(node("n1"), node("n2"), ends)
    selector = parse_selector({"app": "web"}, ())
    roomy.apply(ClusterEvent("Add", PodDisruptionBudget(namespace="default", name="one", selector=selector)))
    assert why(roomy, marked) == (True, "", "")
    low = make_pod("s-0").owned_by("StatefulSet", "s", "s").priority(-20).terminating().on("n1")
    assert removed(mirror_of(node("n1"), low), facts=marked).nodes[0].can_go


def test_a_pod_that_needs_no_place_may_still_forbid_that_its_node_goes() -> None:
    """Karpenter's do-not-disrupt holds for DaemonSets, too (statenode.go, ValidatePodsDisruptable)."""
    marked = Known({"p": PodFacts(do_not_disrupt=True)})
    pods = make_pod("p").owned_by("DaemonSet", "d", "d"), replica("p").priority(-20), replica("p").terminating()
    clusters = [mirror_of(node("n1"), node("n2"), each.on("n1")) for each in pods]
    stays = (False, "default/p", DO_NOT_DISRUPT)
    assert [why(each, marked) for each in clusters] == [stays, stays, (True, "", "")]
    assert [why(each)[0] for each in clusters] == [True] * 3


def test_a_budget_keeps_no_pod_whose_eviction_takes_nothing_from_it() -> None:
    mirror = mirror_of(node("n1"), node("n2"), replica("r").on("n1"))
    selector = parse_selector({"app": "web"}, ())
    mirror.apply(ClusterEvent("Add", PodDisruptionBudget(namespace="default", name="one", selector=selector)))
    unready, pending = {"r": PodFacts(is_ready=False)}, {"r": PodFacts(is_ready=False, has_started=False)}
    assert why(mirror, Known(unready, BudgetFacts(lacks=1)))[0] is False
    assert why(mirror, Known(unready, BudgetFacts(lacks=1, always_allows_unhealthy=True))) == (True, "", "")
    assert why(mirror, Known(unready, BudgetFacts())) == (True, "", "")
    assert why(mirror, Known(pending, BudgetFacts(lacks=1))) == (True, "", "")
    assert why(mirror, Known({}, BudgetFacts(always_allows_unhealthy=True)))[0] is False


def test_a_pod_that_tolerates_the_cordon_does_not_come_back() -> None:
    pod = replica("r").toleration(operator="Exists").node_selector({HOSTNAME: "n1"}).on("n1")
    (found,) = removed(mirror_of(node("n1"), node("n2"), pod), "n1").nodes
    assert (found.can_go, found.pod) == (False, "default/r")


def test_both_states_are_tried() -> None:
    spread = [replica(f"r{number}").spread(ZONE, labelled(app="web")) for number in range(4)]
    placed = [each.on(name) for each, name in zip(spread, ("n1", "n1", "n2", "n2"), strict=True)]
    (found,) = removed(mirror_of(node("n1", cpu=4), node("n2", cpu=4, zone="b"), *placed), "n1").nodes
    assert (found.can_go, found.state) == (False, NodeState.OUT)
    foreign = replica("r").scheduler("other").on("n1")
    (unknown,) = removed(mirror_of(node("n1"), node("n2"), foreign), "n1").nodes
    assert unknown.rejected is not None
    assert (unknown.can_go, unknown.rejected.fate) == (False, Fate.UNKNOWN)


def test_the_emptiest_nodes_go_together_while_their_pods_have_places() -> None:
    nodes = [node("n1", cpu=4), node("n2", cpu=4), node("n3", cpu=4), node("n4", cpu=4)]
    requested = {"n1": 1, "n2": 2, "n3": 3, "n4": 3}
    pods = [replica(f"of-{name}", cpu=cpu).on(name) for name, cpu in requested.items()]
    found = removed(mirror_of(*nodes, *pods), most=9)
    assert list(found.together) == ["n1"]
    assert found.saved == {"cpu": 4000, "memory": 8 * 2**30}
    assert list(removed(mirror_of(*nodes, *pods), "n1", "n1", most=9).together) == ["n1"]
    assert removed(mirror_of(*nodes, *pods), most=0).together == []
    assert list(removed(mirror_of(*nodes, *pods), most=9, failures=1).together) == ["n1"]
    assert list(removed(mirror_of(*nodes, *pods), most=9, failures=0).together) == []


class OneRetry(Known):
    """None comes again of several pods that leave together."""

    def prepare(self, pods: Sequence[Pod]) -> None:
        """Hear of pods that leave together."""
        self._several = len(pods) > 1

    def comes_again(self, pod: Pod) -> Again | str:
        """Return a copy of the pod, or why none comes."""
        return "its Job fails" if self._several else super().comes_again(pod)


def test_pods_that_come_again_only_alone_keep_one_of_their_nodes() -> None:
    mirror = mirror_of(*[node(name, cpu=4) for name in ("n1", "n2", "n3")], *[replica(n).on(n) for n in ("n1", "n2")])
    found = removed(mirror, "n1", "n2", facts=OneRetry(), most=9)
    assert ([each.can_go for each in found.nodes], list(found.together)) == ([True, True], ["n1"])
    safe = OneRetry({name: PodFacts(safe_to_evict=True) for name in ("n1", "n2")})
    assert list(removed(mirror, "n1", "n2", facts=safe, most=9).together) == ["n1", "n2"]
    both = mirror_of(node("n1"), node("n2"), *[replica(name).on("n1") for name in "ab"])
    assert why(both, OneRetry()) == (False, "default/a", "its Job fails")


def test_budgets_count_over_all_nodes_that_go_together() -> None:
    pods = [replica("a").on("n1"), replica("b").on("n2"), make_pod("bare").on("n3")]
    mirror = mirror_of(node("n1"), node("n2"), node("n3", cpu=9), *pods)
    assert list(removed(mirror, most=9).together) == ["n1", "n2"]
    selector = parse_selector({"app": "web"}, ())
    budget = PodDisruptionBudget(namespace="default", name="one", selector=selector, disruptions_allowed=1)
    mirror.apply(ClusterEvent("Add", budget))
    assert list(removed(mirror, most=9).together) == ["n1"]


def test_it_is_not_known_whether_a_node_goes_whose_pod_is_placed_with_others() -> None:
    mirror = mirror_of(*(node(f"n{number}") for number in range(9)), replica("r").in_scheduling_group("g").on("n1"))
    (found,) = removed(mirror, "n1").nodes
    assert found.rejected is not None
    assert (found.goes, found.rejected.fate) == (Chance.NEVER, Fate.UNKNOWN)


def test_pods_that_are_attracted_to_each_other_need_one_zone_for_all_of_them() -> None:
    others = [node(f"n-{zone}", 1, zone) for zone in "abdefg"]
    attracted = [replica(name).required_affinity(term(ZONE, labelled(app="web"))).on("n1") for name in ("p", "q")]
    (found,) = removed(mirror_of(node("n1", zone="c"), *others, *attracted), "n1").nodes
    assert (found.can_go, found.pod) == (False, "default/q")
    (towards,) = removed(mirror_of(node("n1", zone="c"), *others, attracted[0]), "n1").nodes
    assert towards.can_go


def contended(small: str, large: str) -> ClusterMirror:
    """Return a cluster in which the pods of n1 find places only if the larger one comes before the smaller one."""
    nodes = node("n1", cpu=3), node("n2", cpu=2), node("n3", cpu=1)
    return mirror_of(*nodes, replica("s", small).on("n1"), replica("l", large, cpu=2).on("n1"))


@pytest.mark.parametrize(("small", "large"), [("b", "a"), ("a", "b")], ids=["first order fits", "first order does not"])
def test_a_node_whose_pods_find_places_in_some_orders_goes_sometimes(small: str, large: str) -> None:
    mirror = contended(small, large)
    (alone,) = removed(mirror, "n1").nodes
    assert alone.goes is (Chance.ALWAYS if large < small else Chance.NEVER)
    found = removed(mirror, "n1", orders=9, most=9)
    (of_node,) = found.nodes
    assert (of_node.goes, of_node.can_go, of_node.pod) == (Chance.SOMETIMES, False, "default/l")
    assert found.together == []


def placings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list of the orders in which pods are placed, from now on."""
    seen: list[int] = []
    made = Basis.placing

    def placing(basis: Basis, fork: Fork, order: int, *, barred: Iterable[str] = ()) -> Placing:
        seen.append(order)
        return made(basis, fork, order, barred=barred)

    monkeypatch.setattr(Basis, "placing", placing)
    return seen


def test_no_order_is_tried_that_cannot_change_what_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = placings(monkeypatch)
    (hopeless,) = removed(mirror_of(node("n1"), node("n2", cpu=1), replica("r", cpu=2).on("n1")), "n1", orders=9).nodes
    assert (hopeless.goes, seen) == (Chance.NEVER, [0])  # it fits nowhere, whichever pods come before it
    seen.clear()
    removed(contended("a", "b"), "n1", orders=100)
    assert len(seen) < 20  # until one order fits, and not all of them


def test_a_pod_that_others_may_help_is_tried_in_every_order() -> None:
    near = replica("n", "near").required_affinity(term(HOSTNAME, labelled(app="web"))).node_selector({ZONE: "b"})
    mirror = mirror_of(node("n1"), node("n2"), node("n3", zone="b"), replica("w").on("n1"), near.on("n1"))
    assert removed(mirror, "n1").nodes[0].goes is Chance.NEVER  # the first order has `w` on n2
    (found,) = removed(mirror, "n1", orders=9).nodes
    assert (found.goes, found.pod) == (Chance.SOMETIMES, "default/n")


def test_nodes_go_together_only_if_their_pods_have_places_in_every_order() -> None:
    nodes = node("n1"), node("n2", cpu=8), node("n3"), node("n4", cpu=1)
    mirror = mirror_of(*nodes, replica("s", "b").on("n1"), replica("l", "a", cpu=2).on("n2"))
    assert list(removed(mirror, "n1", "n2", most=9).together) == ["n2", "n1"]
    found = removed(mirror, "n1", "n2", most=9, orders=9)
    assert [each.goes for each in found.nodes] == [Chance.ALWAYS, Chance.ALWAYS]
    assert list(found.together) == ["n1"]  # the pod of n1 may take the only place for that of n2


_A: Final = labelled(app="web")
TEMPLATES: Final[Sequence[PodBuilder]] = (
    replica("t"),
    replica("t", cpu=2),
    replica("t", "other").required_anti_affinity(term(HOSTNAME, labelled(app="other"))),
    replica("t", "wide").required_anti_affinity(term(ZONE, labelled(app="wide"))),
    replica("t", "near").required_affinity(term(ZONE, _A)),
    replica("t", "self").required_affinity(term(ZONE, labelled(app="self"))),
    replica("t", "spread").spread(ZONE, labelled(app="spread")),
    replica("t", "port").host_port(80),
    replica("t", "picky").node_selector({ZONE: "b"}),
)


@st.composite
def clusters(draw: st.DrawFn) -> list[NodeBuilder | PodBuilder]:
    """Draw a cluster with some room."""
    number = draw(st.integers(2, 7))
    nodes = [node(f"n{at}", draw(st.integers(1, 6)), draw(st.sampled_from("ab"))) for at in range(number)]
    pods = []
    for number in range(draw(st.integers(1, 9))):
        template, place = draw(st.sampled_from(TEMPLATES)), draw(st.sampled_from(nodes)).name
        pods.append(named(template, f"p{number}").on(place))
    return [*nodes, *pods]


def named(template: PodBuilder, name: str) -> PodBuilder:
    """Return a pod with another name."""
    return dataclasses.replace(template, name=name)


@settings(max_examples=tries(default=150, full=500))
@given(clusters())
def test_what_is_proved_without_a_simulation_is_so(objects: list[NodeBuilder | PodBuilder]) -> None:
    mirror = mirror_of(*objects)
    proved = {each.node: each.goes for each in removed(mirror, orders=3).nodes}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(removal._Each, "_surely_fit", lambda *_: False)  # noqa: SLF001  # so that every node is simulated
        simulated = {each.node: each.goes for each in removed(mirror, orders=3).nodes}
    assert proved == simulated


def _placed_by(basis: Basis, names: Sequence[str], order: int, state: NodeState) -> bool:
    """Return whether all pods of some nodes find other places, in the most obvious way."""
    mirror = basis.mirror
    with mirror.fork(cache_follows=True) as fork:
        pods = [pod for name in names for pod in mirror.pods_on(name)]
        coming = [new for each in leave(mirror, fork, pods, basis.facts) if (new := each.coming) is not None]
        lose(mirror, fork, names, state, cordoned)
        steps = basis.placing(fork, order, barred=names).place(arrival(coming, order))
        return all(each.is_placed for each in finished(steps))


@settings(max_examples=tries(default=100, full=500))
@given(clusters())
def test_what_is_said_holds_in_every_order_and_state(objects: list[NodeBuilder | PodBuilder]) -> None:
    mirror = mirror_of(*objects)
    basis = Basis(mirror, schedulers(mirror), NOTHING_MORE, 4)
    found = removed(mirror, orders=basis.orders, most=99)
    for each in found.nodes:
        fits = [all(_placed_by(basis, [each.node], order, state) for state in NodeState) for order in range(4)]
        assert each.goes is (Chance.ALWAYS if all(fits) else Chance.SOMETIMES if any(fits) else Chance.NEVER)
    for order, state in product(range(4), NodeState):
        assert _placed_by(basis, found.together, order, state)
