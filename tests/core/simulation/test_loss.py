"""The loss of each domain: both states, the worse one first, and what workloads keep."""

from collections.abc import Iterable

from core.simulation.loss import Loss, lose_each
from core.simulation.lost_nodes import NodeState
from core.simulation.moves import Basis, Move
from core.simulation.placing import Fate, finished
from tests.builders import NodeBuilder, PodBuilder, labelled, make_pod
from tests.core.decoded import mirror_of
from tests.core.simulation.setting import HOSTNAME, NOTHING_MORE, ZONE, Known, node, replica, result_of, schedulers
from tests.core.simulation.test_drain import Refusing


def lost(
    *objects: NodeBuilder | PodBuilder,
    key: str = ZONE,
    only: tuple[str, ...] = (),
    orders: int = 1,
    facts: Known = NOTHING_MORE,
) -> Loss:
    """Lose each domain of a cluster; nothing is left of it."""
    mirror = mirror_of(*objects)
    return result_of(mirror, lose_each(Basis(mirror, schedulers(mirror), facts, orders), key, only))


def test_the_worst_domain_is_first_and_workloads_keep_what_finds_a_place() -> None:
    nodes = [node("a1", cpu=3), node("b1", cpu=2, zone="b"), node("c1", cpu=1, zone="c")]
    pods = [replica("r0").on("a1"), replica("r1").on("a1"), replica("x", "db").on("b1"), replica("y", "db").on("c1")]
    found = lost(*nodes, *pods, make_pod("bare").on("a1"), make_pod("d").owned_by("DaemonSet", "d", "d").on("a1"))
    assert [each.value for each in found.domains] == ["a", "b", "c"]
    assert [each.is_survived for each in found.domains] == [False, True, True]
    assert not found.is_survived
    worst = found.domains[0]
    assert (worst.nodes, worst.worse.state, worst.other) == (["a1"], NodeState.OUT, None)
    (keeps,) = worst.worse.workloads
    assert (keeps.owner, keeps.replicas, keeps.left, keeps.again, keeps.surely_again) == (
        "Deployment default/web",
        2,
        2,
        1,
        1,
    )
    assert (worst.worse.coming, worst.worse.without_place, worst.worse.unknown) == (2, 1, 0)
    assert [(each.pod, each.node, each.stays_away) for each in worst.worse.moves] == [
        ("default/r1", "", ""),
        ("default/r0", "b1", ""),
        ("default/bare", "", "no controller makes it again"),
        ("default/d", "", "it belongs to its node"),
    ]
    (move,) = worst.worse.unplaced
    assert move.rejected is not None
    assert (move.rejected.fate, move.rejected.nodes) == (Fate.UNSCHEDULABLE, 3)


def test_a_pod_that_the_api_server_refuses_is_lost() -> None:
    found = lost(node("a1"), node("b1", zone="b"), replica("r").on("a1"), facts=Refusing())
    assert [(each.value, each.is_survived) for each in found.domains] == [("a", False), ("b", True)]
    (move,) = found.domains[0].worse.unplaced
    assert move.rejected is not None
    assert (move.rejected.fate, move.rejected.why) == (Fate.DENIED, "violates PodSecurity")


def test_a_dead_zone_is_a_domain_of_spread_and_a_removed_one_is_none() -> None:
    spread = [replica(f"r{number}").spread(ZONE, labelled(app="web")) for number in range(4)]
    nodes = [node("a1", cpu=4), node("b1", cpu=4, zone="b")]
    found = lost(*nodes, *[each.on(name) for each, name in zip(spread, ("a1", "a1", "b1", "b1"), strict=True)])
    first = found.domains[0]
    assert first.other is not None
    assert (first.worse.state, len(first.worse.unplaced)) == (NodeState.OUT, 2)
    assert (first.other.state, len(first.other.unplaced)) == (NodeState.REMOVED, 0)
    assert not first.is_survived


def test_scores_of_images_count_removed_nodes_no_more_so_both_states_are_tried() -> None:
    with_image = node("b1", zone="b").image(500_000_000, "i:1")
    found = lost(node("a1"), with_image, replica("r").on("a1"), only=("a",))
    (domain,) = found.domains
    assert domain.other is not None
    assert domain.other.state is NodeState.REMOVED
    assert domain.is_survived


def test_a_pod_that_tolerates_a_dead_node_is_not_kept() -> None:
    pod = replica("r").toleration("node.kubernetes.io/unreachable", "Exists").node_selector({HOSTNAME: "a1"})
    found = lost(node("a1"), node("b1", zone="b"), pod.on("a1"))
    lost_zone = next(each for each in found.domains if each.value == "a")
    states = {each.state: next(iter(each.moves)) for each in (lost_zone.worse, lost_zone.other) if each is not None}
    assert (states[NodeState.OUT].node, states[NodeState.OUT].returns) == ("a1", True)
    assert states[NodeState.REMOVED].node == ""
    assert not lost_zone.is_survived
    assert [each.remaining for each in lost_zone.worse.workloads] == [0]


def test_nodes_without_the_key_are_counted_and_each_node_may_be_a_domain() -> None:
    found = lost(node("a1"), node("b1").without_label(ZONE), replica("r").on("b1"))
    assert (found.nodes_without_key, [each.value for each in found.domains]) == (1, ["a"])
    assert found.is_survived
    of_hosts = lost(node("a1"), node("b1"), replica("r").on("b1"), key=HOSTNAME, orders=3)
    assert [(each.value, len(each.worse.moves)) for each in of_hosts.domains] == [("a1", 0), ("b1", 1)]
    assert lost(node("a1"), only=("none",)).domains == []


def test_a_pod_that_is_replaced_already_is_no_replica_that_is_lost() -> None:
    waiting = make_pod("s-0").owned_by("StatefulSet", "s", "s").terminating().on("a1")
    pods = [replica("old").terminating().on("a1"), replica("new").on("b1"), waiting]
    found = lost(node("a1"), node("b1", zone="b"), *pods)
    keep = {each.value: each.worse.workloads for each in found.domains}
    assert {zone: [(of.owner, of.replicas, of.left, of.remaining) for of in each] for zone, each in keep.items()} == {
        "a": [("StatefulSet default/s", 1, 1, 1)],
        "b": [("Deployment default/web", 1, 1, 1)],
    }


def test_moves_come_by_place_and_name_and_are_kept_as_told() -> None:
    tolerant = replica("c").toleration("node.kubernetes.io/unreachable", "Exists").node_selector({HOSTNAME: "a1"})
    pods = [replica("b"), replica("d", cpu=9), replica("a"), tolerant, make_pod("z"), make_pod("y")]
    other = replica("e").scheduler("mine")
    mirror = mirror_of(node("a1", cpu=20), node("b1", zone="b"), *(each.on("a1") for each in (*pods, other)))
    taken: list[list[str]] = []

    def keep(moves: Iterable[Move]) -> tuple[Move, ...]:
        found = (*moves,)
        taken.append([each.pod for each in found])
        return found

    basis = Basis(mirror, schedulers(mirror), NOTHING_MORE, orders=2)
    (domain,) = finished(lose_each(basis, ZONE, ["a"], keep=keep)).domains
    of_out = domain.worse
    assert isinstance(of_out.moves, tuple)
    assert [each.pod for each in of_out.moves] == [f"default/{name}" for name in "cdeabyz"]
    assert taken[0] == [each.pod for each in of_out.moves]
    assert [each.pod for each in of_out.unplaced] == ["default/c", "default/d", "default/e"]
    assert (of_out.coming, of_out.without_place, of_out.unknown) == (5, 3, 1)
