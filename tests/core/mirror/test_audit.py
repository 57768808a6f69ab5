"""The audit sees every kind of damage; one that is blind would let all other tests pass."""

from collections.abc import Callable
from typing import Final

import pytest

from core.mirror.cluster import ClusterMirror
from tests.core.mirror.audit import audit
from tests.core.mirror.values import REPELLING, mirror_of, node, pod, selecting

P: Final = pod("p", "na", affinity=REPELLING, cpu=5)


def cluster() -> ClusterMirror:
    mirror = mirror_of(
        node("na", labels={"zone": "a"}, cpu=10), node("nb", cpu=10), P, pod("q", "nb"), pod("w", "waiting", cpu=1)
    )
    mirror.assume(pod("s", cpu=1), "nb", 0.0)
    return mirror


def set_slot(mirror: ClusterMirror) -> None:
    mirror.pods.slot_of_row[mirror.pods.rows["p"]] = mirror.nodes.slots["nb"]


def swap_generations(mirror: ClusterMirror) -> None:
    one, other = mirror.nodes.infos["na"], mirror.nodes.infos["nb"]
    one.generation, other.generation = other.generation, one.generation


def put_last_first(mirror: ClusterMirror) -> None:
    ordered = mirror.nodes.known._generations  # noqa: SLF001 - damage is done inside
    key = next(iter(ordered))
    ordered[key] = ordered.pop(key)


def drop_known(mirror: ClusterMirror) -> None:
    assert mirror.figures.guaranteed_allocatable == {"cpu": 20}, "looked at, so that the next look does not miss it"
    del mirror.nodes.known._values["na"]  # noqa: SLF001 - damage is done inside


def lose_column(mirror: ClusterMirror) -> None:
    mirror.nodes.in_partition[mirror.nodes.slots["nb"]] = False


def claim_whole(mirror: ClusterMirror) -> None:
    mirror.set_partition_selector(selecting(zone="a"))
    mirror.nodes.partition.whole = True


def count_cluster_twice(mirror: ClusterMirror) -> None:
    assert mirror.figures.guaranteed_requested["cpu"] == 6
    mirror._figures._guaranteed_requested["cpu"] += 1  # noqa: SLF001 - damage is done inside


def miscount_term(mirror: ClusterMirror) -> None:
    mirror.affinity.count(P, mirror.nodes.slots["na"], 1)


def replace_assumed(mirror: ClusterMirror) -> None:
    mirror.pods.replace(pod("s", "nb", cpu=1))


DAMAGE: Final[dict[str, tuple[Callable[[ClusterMirror], object], str]]] = {
    "a-row-on-no-node": (lambda mirror: mirror.nodes.infos["na"].rows.clear(), "na: has the rows"),
    "a-row-on-another-node": (lambda mirror: mirror.nodes.infos["nb"].rows.add(0), "nb: has the rows"),
    "a-pod-in-the-wrong-slot": (set_slot, "na: its slot"),
    "a-node-in-the-wrong-slot": (lambda mirror: mirror.nodes.slots.update(na=5), "na: its slot"),
    "a-name-without-a-reason": (lambda mirror: mirror.nodes.info("x"), "x: neither a known node"),
    "requests-of-a-node": (lambda mirror: mirror.nodes.infos["na"].requested.count(P, 1), "na: guaranteed_requested"),
    "best-effort-requests-of-a-node": (
        lambda mirror: mirror.nodes.infos["nb"].requested.count(pod("q"), -1),
        "nb: best_effort_requested",
    ),
    "requests-of-an-unknown-node": (
        lambda mirror: mirror.nodes.infos["waiting"].requested.guaranteed.clear(),
        "waiting: guaranteed_requested",
    ),
    "figures-of-the-cluster": (count_cluster_twice, "the cluster: guaranteed_requested"),
    "the-partition-s-column": (lose_column, "nb: is in the partition"),
    "a-partition-that-is-not-whole": (claim_whole, "nb: is out of a partition"),
    "generations-of-nodes": (swap_generations, "the nodes have the generations"),
    "the-order-of-generations": (put_last_first, "the nodes are not in the order"),
    "a-known-node-that-is-not-followed": (drop_known, "the nodes have the generations"),
    "a-node-ahead-of-the-mirror": (
        lambda mirror: setattr(mirror.nodes.infos["waiting"], "generation", 10**6),
        "a node is ahead",
    ),
    "an-assumed-pod-held-otherwise": (replace_assumed, "default/s: is assumed as"),
    "a-term-counter": (miscount_term, "counted {'a': 2}, recounted {'a': 1}"),
}


def test_a_sound_mirror_has_nothing_to_tell() -> None:
    mirror = cluster()
    assert audit(mirror) == []


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_told(damage: str) -> None:
    mirror = cluster()
    do, told = DAMAGE[damage]
    do(mirror)
    found = audit(mirror)
    assert any(told in line for line in found), found


def test_an_empty_mirror_whose_figures_are_not_empty_is_told() -> None:
    mirror = ClusterMirror()
    mirror._figures._best_effort_requested["pods"] = 1  # noqa: SLF001 - damage is done inside
    assert audit(mirror) == ["the cluster: best_effort_requested is {'pods': 1}, recounted {}"]
