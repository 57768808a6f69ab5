"""Pods whose claims wait: what is left of a driver's capacity, and replicas with volumes of their own tried again."""

from collections.abc import Sequence
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from core.events import ClusterEvent, Object
from core.mirror.cluster import ClusterMirror
from core.mirror.fork import Fork
from core.objects.affinity import NodeSelector, NodeSelectorTerm
from core.objects.labels import Operator, Requirement, Selector
from core.objects.pod import Pod
from core.objects.volumes import CSIDriver, CSIStorageCapacity, PersistentVolume
from core.simulation.orders import FIRST, ties
from core.simulation.placing import Fate, Outcome, Placing, finished
from tests.builders import labelled, make_pod, term
from tests.core.decoded import mirror_of, pod_of
from tests.core.simulation.setting import HOSTNAME, ZONE, node, placed, replica, schedulers, within
from tests.core.simulation.test_placing import LATE, claim, nodes_of, with_claim


def room(name: str, capacity: int, limit: int | None = None, **topology: str) -> CSIStorageCapacity:
    """Return what a driver can make in class "late" on the nodes with some labels."""
    of = Selector(
        tuple(
            Requirement(HOSTNAME if key == "host" else ZONE, Operator.IN, (value,)) for key, value in topology.items()
        )
    )
    limit = capacity if limit is None else limit
    return CSIStorageCapacity(
        namespace="d", name=name, storage_class="late", topology=of, capacity=capacity, limit=limit
    )


def with_rooms(rooms: Sequence[CSIStorageCapacity], sizes: Sequence[int], *, publishes: bool = True) -> ClusterMirror:
    """Return two nodes of zone a and one of zone b, and the claims c0, c1 and so on."""
    mirror = mirror_of(node("n1"), node("n2"), node("n3", zone="b"))
    claims = [replace(claim(f"c{at}"), requested=size) for at, size in enumerate(sizes)]
    objects: list[Object] = [LATE, CSIDriver(name="d", storage_capacity=publishes), *rooms, *claims]
    for each in objects:
        mirror.apply(ClusterEvent("Add", each))
    return mirror


@pytest.mark.parametrize(
    ("rooms", "sizes", "places"),
    [
        pytest.param([room("x", 5, host="n1")], [3, 3], ["n1", "unschedulable"], id="of a node"),
        pytest.param([room("x", 6, host="n1")], [3, 3], ["n1", "n1"], id="to the last byte"),
        pytest.param([room("x", 5, zone="a")], [3, 3], ["n1", "unschedulable"], id="of all nodes of a zone"),
        pytest.param([room("x", 5, zone="a"), room("y", 4, zone="b")], [3, 3], ["n1", "n3"], id="in another zone"),
        pytest.param(
            [room("x", 9, 3, host="n1")], [3, 3, 3, 3], ["n1"] * 3 + ["unschedulable"], id="of a largest size"
        ),
        pytest.param([room("x", 0, 3, host="n1")], [3, 3], ["n1", "n1"], id="only a largest size is known"),
        pytest.param([room("x", 4, host="n1"), room("y", 5, zone="a")], [4, 4], ["n1", "n1"], id="two of one node"),
    ],
)
def test_what_a_volume_takes_of_a_capacity_is_not_there_for_the_next_one(
    rooms: Sequence[CSIStorageCapacity], sizes: Sequence[int], places: Sequence[str]
) -> None:
    """kube-scheduler places the next pod once more when its volume could not be made, and the driver has published."""
    pods = [with_claim(pod_of(make_pod(f"p{at}")), f"c{at}") for at in range(len(sizes))]
    outcomes = placed(mirror := with_rooms(rooms, sizes), *pods)
    assert nodes_of(outcomes) == places
    assert nodes_of(placed(mirror, *pods)) == places  # nothing is left of the first time
    if outcomes[-1].rejection is not None:
        assert "node(s) did not have enough free storage" in outcomes[-1].rejection.reasons


def test_a_driver_without_capacities_makes_any_volume() -> None:
    pods = [with_claim(pod_of(make_pod(f"p{at}")), f"c{at}") for at in range(2)]
    assert nodes_of(placed(with_rooms([room("x", 5, host="n1")], [4, 4], publishes=False), *pods)) == ["n1", "n1"]


def test_a_volume_that_is_being_made_takes_its_capacity_once() -> None:
    """A second pod of the claim goes to the same node, and leaves the rest of the capacity to others."""
    mirror = with_rooms([room("x", 5, host="n1")], [3, 2])
    pods = [with_claim(pod_of(make_pod(f"p{at}")), name) for at, name in enumerate(("c0", "c0", "c1"))]
    assert nodes_of(placed(mirror, *pods)) == ["n1"] * 3


@pytest.mark.parametrize("rooms", [[room("x", 5, host="n1")], []], ids=["made", "there"])
def test_a_claim_that_a_pod_names_twice_has_one_volume(rooms: Sequence[CSIStorageCapacity]) -> None:
    """The scheduler looks for two (FindPodVolumes), and the controller of volumes keeps one of them."""
    mirror = with_rooms(rooms, [3, 2])
    for name in () if rooms else ("a", "b"):
        volume = replace(local(name, "n1"), capacity=9, phase="Available")
        mirror.apply(ClusterEvent("Add", volume))
    pods = [with_claim(pod_of(make_pod(f"p{at}")), f"c{at}") for at in range(2)]
    assert nodes_of(placed(mirror, replace(pods[0], volumes=pods[0].volumes * 2), pods[1])) == ["n1", "n1"]


def local(name: str, of: str, **bound: str) -> PersistentVolume:
    """Return a volume of a node or zone."""
    key = HOSTNAME if of.startswith("n") else ZONE
    there = NodeSelector((NodeSelectorTerm((Requirement(key, Operator.IN, (of,)),)),))
    return PersistentVolume(name=name, storage_class="late", capacity=1, node_affinity=there, **bound)  # type: ignore[arg-type]


def stateful(mirror: ClusterMirror, number: int, of: str, cpu: int = 1) -> Pod:
    """Return a replica that waits with a volume of its own, which is of a node or zone. Empty: made for it."""
    own = claim(f"s{number}")
    if of:
        own = replace(own, volume=f"v{number}", bind_completed=True)
        mirror.apply(ClusterEvent("Add", local(f"v{number}", of)))
    mirror.apply(ClusterEvent("Add", own))
    pod = make_pod(f"s-{number}").label("app", "s").owned_by("StatefulSet", "s", "s").requests(cpu=cpu)
    return with_claim(pod_of(pod.required_affinity(term(ZONE, labelled(app="b")))), own.name)


def test_a_pod_without_volumes_is_tried_after_one_whose_volume_no_node_reaches() -> None:
    mirror = mirror_of(node("n1"), replica("b", "b").on("n1"))
    mirror.apply(ClusterEvent("Add", LATE))
    first, second = (stateful(mirror, number, "nowhere") for number in range(2))
    assert _again(mirror, [first, second, replace(second, name="free", uid="free", volumes=())]) == [
        "unschedulable",
        "unschedulable",
        "n1",
    ]


def test_a_pod_is_tried_after_those_whose_volumes_leave_them_other_nodes() -> None:
    mirror = mirror_of(
        node("n1"), node("n3", cpu=9, zone="b"), *(replica(f"b-{on}", "b").on(on) for on in ("n1", "n3"))
    )
    mirror.apply(ClusterEvent("Add", LATE))
    waiting = [stateful(mirror, number, of, cpu=3) for number, of in enumerate("aabb")]
    assert _again(mirror, waiting) == ["unschedulable", "unschedulable", "n3", "n3"]


def _again(mirror: ClusterMirror, waiting: Sequence[Pod]) -> list[str]:
    """Return where pods are once they are tried again, of which none has found a place before."""

    def again(fork: Fork) -> list[Outcome]:
        placing = Placing(mirror, fork, schedulers(mirror), ties(mirror, FIRST))
        return finished(placing.again([Outcome(pod, Fate.UNSCHEDULABLE) for pod in waiting]))

    return nodes_of(within(mirror, again))


CLUSTERS = st.lists(st.tuples(st.sampled_from(["a", "b", "n1", "n2", ""]), st.integers(1, 3)), min_size=1, max_size=7)


@given(CLUSTERS, st.lists(st.sampled_from("nab"), max_size=3), st.lists(st.integers(1, 4), min_size=3, max_size=3))
def test_replicas_that_are_tried_again_get_what_each_would_alone(
    replicas: list[tuple[str, int]], others: list[str], cpus: list[int]
) -> None:
    """Others that help are placed in between, and pods that leave make room, as in the rounds of a drain."""
    nodes = [node(f"n{at}", cpu=cpu, zone="aab"[at]) for at, cpu in enumerate(cpus)]
    leaves = replica("leaves", "l").on("n1")
    found = []
    for by_kind in (True, False):
        mirror = mirror_of(*nodes, leaves)
        for each in (LATE, CSIDriver(name="d", storage_capacity=True), room("x", 2, zone="a")):
            mirror.apply(ClusterEvent("Add", each))
        waiting = [stateful(mirror, at, of, cpu) for at, (of, cpu) in enumerate(replicas)]
        found.append(within(mirror, partial(_rounds, mirror, waiting, others, pod_of(leaves), by_kind=by_kind)))
    assert found[0] == found[1]


def _rounds(  # noqa: PLR0913  # the cluster, and what happens in it
    mirror: ClusterMirror, waiting: list[Pod], others: list[str], leaves: Pod, fork: Fork, *, by_kind: bool
) -> list[list[str]]:
    placing = Placing(mirror, fork, schedulers(mirror), ties(mirror, FIRST))
    outcomes, found = finished(placing.place(waiting)), []
    for number, other in enumerate(others):
        finished(placing.place([pod_of(replica(f"{other}{number}", other, cpu="100m").node_selector({ZONE: "a"}))]))
        if number == 1:
            fork.remove(leaves)
        left = [at for at, each in enumerate(outcomes) if not each.is_placed]
        for part in [left] if by_kind else [[at] for at in left]:
            for at, outcome in zip(part, finished(placing.again([outcomes[at] for at in part])), strict=True):
                outcomes[at] = outcome
        found.append(nodes_of(outcomes))
    return found
