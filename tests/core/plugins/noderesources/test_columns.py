"""Columns of amounts by slot: right from the start, and after any events."""

from random import Random
from typing import Final

import numpy as np
import pytest

from core.events import Action
from core.mirror.cluster import ClusterMirror
from core.objects.node import Node
from core.plugins.noderesources.columns import AmountColumn, ResourceColumns
from tests.core.plugins.noderesources.values import DISK, GPU, asking, mirror_of, offering, tell

DENSE_FROM: Final = 64
"""The number of slots with an amount up to which a column is a dict."""
MAX_INT64: Final = 2**63 - 1

ACTIONS: Final[tuple[Action, ...]] = ("Add", "Add", "Add", "Update", "Delete")
RESOURCES: Final = ("cpu", "memory", DISK, GPU, "example.com/rare")


def columns_of(mirror: ClusterMirror) -> ResourceColumns:
    return mirror.derived(ResourceColumns)


def amounts_of(columns: ResourceColumns, mirror: ClusterMirror, names: list[str]) -> dict[str, list[int]]:
    batch = mirror.batch(names)
    return {
        **{f"allocatable {each}": columns.allocatable_of(each, batch).tolist() for each in (*RESOURCES, "pods")},
        **{f"requested {each}": columns.requested_of(each, batch).tolist() for each in (*RESOURCES, "pods")},
        **{f"non-zero {each}": columns.non_zero_requested.at(each, batch).tolist() for each in ("cpu", "memory")},
    }


def test_a_resource_has_a_column_only_while_anything_of_it_is_there() -> None:
    mirror = mirror_of(
        offering("a", {}), asking("p", {"example.com/x": 1}, "a"), asking("q", {"example.com/y": 0}, "a")
    )
    columns = columns_of(mirror)
    assert set(columns.requested.of) == {"pods", "example.com/x"}
    tell(mirror, "Add", asking("r", {"example.com/y": 0, "example.com/z": 1}, "a"))
    assert set(columns.requested.of) == {"pods", "example.com/x", "example.com/z"}
    tell(mirror, "Delete", *(asking(name, {}, "a") for name in "pqr"))
    tell(mirror, "Delete", offering("a", {}))
    assert (columns.requested.of, columns.allocatable.of) == ({}, {})


def test_a_sum_overflows_as_in_go() -> None:
    mirror = mirror_of(offering("a", {}), asking("p", {"memory": MAX_INT64}, "a"))
    kept = columns_of(mirror)
    tell(mirror, "Add", asking("q", {"memory": MAX_INT64}, "a"))
    for columns in (kept, ResourceColumns(mirror)):
        assert columns.requested_of("memory", mirror.batch(["a"])).tolist() == [-2]
    tell(mirror, "Delete", asking("q", {}, "a"))
    assert kept.requested_of("memory", mirror.batch(["a"])).tolist() == [MAX_INT64]


def test_strangers_offer_what_they_say_and_have_no_pods() -> None:
    mirror = mirror_of(offering("a", {"cpu": 4000}), asking("p", {"cpu": 100}, "a"))
    # The last slot, which NO_SLOT looks up, has amounts of its own.
    for number in range(mirror.nodes.capacity - 1):
        tell(mirror, "Add", offering(f"n{number}", {"cpu": 5}), asking(f"q{number}", {"cpu": 3}, f"n{number}"))
    batch = mirror.batch(["strange", "a", "nobody"], {0: offering("strange", {"cpu": 9})})
    columns = columns_of(mirror)
    assert columns.allocatable_of("cpu", batch).tolist() == [9, 4000, 0]
    assert columns.requested_of("cpu", batch).tolist() == [0, 100, 0]
    assert columns.non_zero_requested.at("cpu", batch).tolist() == [0, 100, 0]
    assert columns.requested_of("pods", batch).tolist() == [0, 1, 0]


def test_an_answer_is_the_asker_s_own() -> None:
    mirror = mirror_of(offering("a", {"cpu": 4000}))
    columns, batch = columns_of(mirror), mirror.batch(["a"])
    columns.allocatable_of("cpu", batch)[0] = 1
    assert columns.allocatable_of("cpu", batch).tolist() == [4000]


@pytest.mark.parametrize("filled", [0, 1, DENSE_FROM, DENSE_FROM + 1, 3 * DENSE_FROM])
def test_a_column_made_at_once_is_as_one_made_bit_by_bit(filled: int) -> None:
    slots = [slot % (filled or 1) for slot in range(2 * filled)]
    amounts = [slot + 1 for slot in slots]
    at_once, bit_by_bit = AmountColumn(slots, amounts, 256), AmountColumn()
    for slot, amount in zip(slots, amounts, strict=True):
        bit_by_bit.add(slot, amount, 256)
    expected = [2 * (slot + 1) if slot < filled else 0 for slot in range(256)]
    assert expected == at_once.by_slot(256).tolist() == bit_by_bit.by_slot(256).tolist()
    assert filled == at_once.nonzero == bit_by_bit.nonzero


@pytest.mark.parametrize("filled", [1, 2 * DENSE_FROM], ids=["sparse", "dense"])
def test_a_column_grows_with_the_slots(filled: int) -> None:
    column = AmountColumn(range(filled), [1] * filled, 2 * DENSE_FROM)
    assert np.flatnonzero(column.by_slot(1000)).tolist() == list(range(filled))
    column.add(1500, 7, 2000)
    assert (column.by_slot(2000)[1500], column.nonzero) == (7, filled + 1)


class Cluster:
    """Random events over few names, so that everything happens to everyone."""

    def __init__(self, seed: int, nodes: int) -> None:
        self._random = Random(seed)  # noqa: S311 - a test that can be repeated
        self._nodes = [f"n{number}" for number in range(nodes)]
        self.mirror = ClusterMirror()

    @property
    def known(self) -> list[str]:
        return sorted(self.mirror.nodes.slots)

    def step(self) -> None:
        action = self._random.choice(ACTIONS)
        name = self._random.choice(self._nodes)
        if self._random.random() < 0.3:
            tell(self.mirror, action, Node(name, allocatable=self._amounts()))
            return
        uid = f"p{self._random.randrange(3 * len(self._nodes))}"
        amounts = self._amounts()
        pod = asking(uid, amounts, name, (amounts.get("cpu", 100), amounts.get("memory", 200)))
        if action == "Add" and not self.mirror.is_mirrored(uid) and self._random.random() < 0.5:
            self.mirror.assume(pod, name, 0.0)
        elif self.mirror.is_assumed(uid) and self._random.random() < 0.5:
            self.mirror.forget(uid)
        else:
            tell(self.mirror, action, pod)

    def _amounts(self) -> dict[str, int]:
        chosen = self._random.sample(RESOURCES, self._random.randrange(len(RESOURCES)))
        return {resource: self._random.choice((0, 1, 7, 2**62)) for resource in chosen}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("nodes", [5, 200], ids=["few-nodes", "many-nodes"])
def test_columns_kept_by_any_events_are_as_those_made_anew(seed: int, nodes: int) -> None:
    cluster = Cluster(seed, nodes)
    kept = columns_of(cluster.mirror)
    for number in range(1200):
        cluster.step()
        if number % 100 == 99:
            fresh = ResourceColumns(cluster.mirror)
            assert amounts_of(fresh, cluster.mirror, cluster.known) == amounts_of(kept, cluster.mirror, cluster.known)
            for one, other in ((fresh.requested, kept.requested), (fresh.allocatable, kept.allocatable)):
                assert {name: column.nonzero for name, column in one.of.items()} == {
                    name: column.nonzero for name, column in other.of.items()
                }
