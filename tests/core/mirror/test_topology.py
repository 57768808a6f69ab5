"""Topology columns and counts: ids of label values over slots, and numbers over ids, sparse and dense."""

import tracemalloc
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.mirror.topology import (
    ABSENT,
    MAX_UNUSED_COLUMNS,
    UNSEEN,
    TopologyColumn,
    TopologyColumns,
    TopologyCounts,
    grown,
)
from core.objects.node import Node

DENSE_FROM = 256
"""The number of domains up to which counts are sparse."""


def column_of(*values: str | None) -> TopologyColumn:
    column = TopologyColumn("zone", len(values))
    for slot, value in enumerate(values):
        column.assign(slot, value)
    return column


def values_of(column: TopologyColumn) -> list[str | None]:
    return [None if value_id == ABSENT else column.values[value_id] for value_id in column.of_slot.tolist()]


def counts_of(value_ids: Iterable[int]) -> TopologyCounts:
    return TopologyCounts.of(np.array(list(value_ids), np.int32))


def numbered_column(values: int) -> TopologyColumn:
    return column_of(*(str(number) for number in range(values)))


def test_labels_are_told_by_id_or_as_unseen_or_absent() -> None:
    column = column_of("a", "b")
    column.assign(1, None)
    assert column.of_slot[0] == column.id_of({"zone": "a", "host": "b"})
    assert column.id_of({"zone": "b"}) == UNSEEN
    assert column.id_of({"host": "a"}) == ABSENT


def test_growth_keeps_values_and_fills_with_absence() -> None:
    column = column_of("a", "b")
    column.grow(40)
    assert len(column.of_slot) >= 40
    assert values_of(column) == ["a", "b", *[None] * (len(column.of_slot) - 2)]


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from([None, "", "a", "b", "c", "d"])), max_size=40))
def test_after_any_assignments_every_slot_has_its_last_value(told: list[tuple[int, str | None]]) -> None:
    column = column_of(*[None] * 6)
    expected: list[str | None] = [None] * 6
    for slot, value in told:
        column.assign(slot, value)
        expected[slot] = value
        assert expected == values_of(column)
    assert {value for value in expected if value is not None} == set(column.ids)
    assert len(column.values) <= 6, "ids of values that are gone are reused"


@pytest.mark.parametrize("domains", [0, 1, DENSE_FROM - 1, DENSE_FROM, DENSE_FROM + 1, 600])
def test_counting_one_by_one_or_at_once_is_the_same(domains: int) -> None:
    one_by_one = TopologyCounts()
    for value_id in range(domains):
        one_by_one.add(value_id, 1 + value_id % 3)
    at_once = counts_of(value_id for value_id in range(domains) for _ in range(1 + value_id % 3))
    expected = {value_id: 1 + value_id % 3 for value_id in range(domains)}
    assert expected == dict(one_by_one.items()) == dict(at_once.items())
    assert (domains, domains) == (one_by_one.nonzero, at_once.nonzero)


@pytest.mark.parametrize("how", ["one-by-one", "at-once"])
def test_counts_of_many_domains_take_a_small_part_of_what_a_dict_takes(how: str) -> None:
    value_ids = np.arange(5000, dtype=np.int32)
    tracemalloc.start()
    try:
        counts = TopologyCounts.of(value_ids) if how == "at-once" else TopologyCounts()
        for value_id in value_ids.tolist() if how == "one-by-one" else ():
            counts.add(value_id, 1)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert counts.nonzero == 5000
    assert held < 50_000


@settings(deadline=None)
@given(
    st.sampled_from([0, DENSE_FROM - 2, DENSE_FROM - 1, DENSE_FROM, DENSE_FROM + 1]),
    st.lists(st.tuples(st.integers(0, 700), st.booleans()), max_size=30),
    st.integers(-100, 100),
)
def test_counts_equal_a_plain_counter(domains: int, told: list[tuple[int, bool]], weight: int) -> None:
    counts, expected = counts_of(range(domains)), Counter(range(domains))
    for value_id, arrives in told:
        delta = 1 if arrives else -1
        if expected[value_id] + delta >= 0:
            counts.add(value_id, delta)
            expected[value_id] += delta
    expected = +expected
    sums = numbered_column(701).sums()
    counts.add_into(sums, weight)
    assert (expected, len(expected)) == (Counter(dict(counts.items())), counts.nonzero)
    assert [weight * expected[value_id] for value_id in range(701)] == sums[:701].tolist()


@pytest.mark.parametrize("domains", [3, DENSE_FROM + 1])
def test_unseen_and_absent_look_up_zero(domains: int) -> None:
    sums = numbered_column(domains).sums()
    counts = counts_of(range(domains))
    counts.add_into(sums)
    assert (sums[UNSEEN], sums[ABSENT]) == (0, 0)
    assert [1] * domains == sums[:domains].tolist()


def test_dense_counts_with_spare_room_stay_clear_of_unseen_and_absent() -> None:
    counts = counts_of(range(DENSE_FROM + 1))
    counts.add(DENSE_FROM + 1, 5)  # makes room for twice as many domains as there are
    sums = numbered_column(DENSE_FROM + 2).sums()
    counts.add_into(sums)
    assert (sums[DENSE_FROM + 1], sums[UNSEEN], sums[ABSENT]) == (5, 0, 0)


@pytest.mark.parametrize("domains", [1, DENSE_FROM + 1])
def test_weighted_sums_do_not_overflow_32_bits(domains: int) -> None:
    counts = counts_of(range(domains))
    counts.add(0, 30_000_000)
    sums = numbered_column(domains).sums()
    counts.add_into(sums, 100)
    assert sums[0] == 3_000_000_100


class Nodes:
    """Nodes by slot; how often somebody went through them is counted."""

    def __init__(self, nodes: Iterable[tuple[int, Node]]) -> None:
        self._nodes = [*nodes]
        self.label_keys = Counter(key for _, node in self._nodes for key in node.labels)
        self.passes = 0

    def __iter__(self) -> Iterator[tuple[int, Node]]:
        self.passes += 1
        return iter(self._nodes)


NODES: Final = Nodes([(0, Node("n0", {"zone": "a", "host": "n0"})), (2, Node("n2", {"zone": "b"}))])


def columns_in_use() -> TopologyColumns:
    columns = TopologyColumns()
    columns.grow(4)
    return columns


def test_a_column_made_late_is_filled_from_the_nodes() -> None:
    column = columns_in_use().acquire("zone", NODES)
    assert (column.key, values_of(column)) == ("zone", ["a", None, "b", None])


def test_users_of_a_key_share_its_column() -> None:
    columns = columns_in_use()
    zone, host = columns.acquire("zone", NODES), columns.acquire("host", NODES)
    assert zone is columns.acquire("zone", NODES)
    assert zone is not host


def test_keys_that_no_node_has_cost_no_pass_over_the_nodes_and_no_array() -> None:
    columns, nodes = columns_in_use(), Nodes(NODES)
    keys = [columns.acquire(f"key-{number}", nodes) for number in range(1000)]
    assert nodes.passes == 0
    assert len({id(column.of_slot) for column in keys}) == 1
    columns.acquire("zone", nodes)
    assert nodes.passes == 1


def test_a_key_that_a_node_gets_later_has_an_array_of_its_own() -> None:
    columns = columns_in_use()
    rack, other = columns.acquire("rack", NODES), columns.acquire("other", NODES)
    rack.assign(2, "r1")
    assert (values_of(rack), values_of(other)) == ([None, None, "r1", None], [None] * 4)
    columns.grow(100)
    assert (values_of(rack)[2], values_of(other)) == ("r1", [None] * 100)


def test_a_column_whose_last_user_goes_is_kept_and_followed_for_a_while() -> None:
    columns, nodes = columns_in_use(), Nodes(NODES)
    column = columns.acquire("zone", nodes)
    columns.release(column)
    assert [column] == columns.changed_by(0, {"zone": "a"}, {"zone": "c"})
    assert column is columns.acquire("zone", nodes)
    assert columns.changed_by(0, {"zone": "a"}, {"zone": "a"}) == []


def test_of_columns_without_users_the_oldest_goes() -> None:
    columns = columns_in_use()
    keys = [f"key-{number}" for number in range(MAX_UNUSED_COLUMNS + 1)]
    nodes = Nodes([(0, Node("n0", dict.fromkeys(keys, "x")))])
    held = [columns.acquire(key, nodes) for key in keys]
    for column in held:
        columns.release(column)
    assert [columns.acquire(key, nodes) is column for key, column in zip(keys, held, strict=True)] == [
        False,
        *[True] * MAX_UNUSED_COLUMNS,
    ]


def test_a_column_that_is_used_again_does_not_go_with_those_without_users() -> None:
    columns = columns_in_use()
    keys = [f"key-{number}" for number in range(MAX_UNUSED_COLUMNS + 1)]
    nodes = Nodes([(0, Node("n0", dict.fromkeys(["zone", *keys], "x")))])
    columns.release(columns.acquire("zone", nodes))
    used = columns.acquire("zone", nodes)
    for key in keys:
        columns.release(columns.acquire(key, nodes))
    assert [used] == columns.changed_by(0, {"zone": "x"}, {"zone": "y"})


def test_a_column_of_a_key_that_no_node_has_goes_with_its_last_user() -> None:
    columns = columns_in_use()
    column = columns.acquire("rack", NODES)
    columns.acquire("rack", NODES)
    columns.release(column)
    assert column is columns.acquire("rack", NODES)
    columns.release(column)
    columns.release(column)
    assert column is not columns.acquire("rack", NODES)


def test_growth_reaches_present_and_future_columns() -> None:
    columns = columns_in_use()
    zone = columns.acquire("zone", NODES)
    columns.grow(100)
    zone.assign(99, "c")
    host = columns.acquire("host", Nodes([(99, Node("n99", {"host": "n99"}))]))
    assert (values_of(zone)[99], values_of(host)[99]) == ("c", "n99")


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        pytest.param({"zone": "a", "host": "n0"}, [], id="nothing-changed"),
        pytest.param({"zone": "a", "host": "n0", "disk": "ssd"}, [], id="a-key-without-a-column"),
        pytest.param({"zone": "b", "host": "n0"}, ["zone"], id="value-of-another-node"),
        pytest.param({"zone": "c", "host": "n0"}, ["zone"], id="value-never-seen"),
        pytest.param({"zone": "", "host": "n0"}, ["zone"], id="value-became-empty"),
        pytest.param({"zone": "a"}, ["host"], id="key-lost"),
        pytest.param({"zone": "a", "host": "n0", "rack": "r"}, ["rack"], id="key-won"),
        pytest.param({}, ["zone", "host"], id="all-keys-lost"),
    ],
)
def test_the_columns_changed_by_labels_are_those_with_another_value(
    labels: dict[str, str], expected: list[str]
) -> None:
    columns = columns_in_use()
    for key in ("zone", "host", "rack"):
        columns.acquire(key, NODES)
    assert expected == [column.key for column in columns.changed_by(0, {"zone": "a", "host": "n0"}, labels)]


@pytest.mark.parametrize(
    ("length", "needed", "expected"),
    [
        pytest.param(10, 11, 20, id="one-more"),
        pytest.param(10, 20, 20, id="twice-as-many"),
        pytest.param(10, 25, 25, id="more-than-twice-as-many"),
    ],
)
def test_a_grown_array_at_least_doubles(length: int, needed: int, expected: int) -> None:
    array = np.arange(length, dtype=np.int32)
    assert [*range(length), *[-7] * (expected - length)] == grown(array, needed, -7).tolist()
