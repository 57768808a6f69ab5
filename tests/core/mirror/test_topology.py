"""Topology columns and counts: ids of label values over slots, and numbers over ids, sparse and dense."""

import tracemalloc
from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.mirror.node_info import NodeTable
from core.mirror.topology import (
    ABSENT,
    MAX_UNUSED_COLUMNS,
    TopologyColumn,
    TopologyColumns,
    TopologyCounts,
)
from tests.core.mirror.values import mirror_of, node

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


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from([None, "", "a", "b", "c", "d"])), max_size=40))
def test_after_any_assignments_every_slot_has_its_last_value(reported: list[tuple[int, str | None]]) -> None:
    column = column_of(*[None] * 6)
    expected: list[str | None] = [None] * 6
    for slot, value in reported:
        column.assign(slot, value)
        expected[slot] = value
        assert expected == values_of(column)
    assert {value for value in expected if value is not None} == set(column.ids)
    assert len(column.values) <= 6, "ids of values that are gone are reused"


@pytest.mark.parametrize("how", ["one-by-one", "at-once"])
def test_counts_of_many_domains_take_a_small_part_of_what_a_dict_takes(how: str) -> None:
    value_ids = np.arange(5000, dtype=np.int32)
    tracemalloc.start()
    try:
        counts = TopologyCounts.of(value_ids) if how == "at-once" else TopologyCounts()
        for value_id in value_ids.tolist() if how == "one-by-one" else ():
            counts.add(value_id, 1)
        stored, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert counts.nonzero == 5000
    assert stored < 50_000


@settings(deadline=None)
@given(
    st.sampled_from([0, DENSE_FROM - 2, DENSE_FROM - 1, DENSE_FROM, DENSE_FROM + 1]),
    st.lists(st.tuples(st.integers(0, 700), st.booleans()), max_size=30),
    st.integers(-100, 100),
)
def test_counts_equal_a_plain_counter(domains: int, reported: list[tuple[int, bool]], weight: int) -> None:
    counts, expected = counts_of(range(domains)), Counter(range(domains))
    for value_id, arrives in reported:
        delta = 1 if arrives else -1
        if expected[value_id] + delta >= 0:
            counts.add(value_id, delta)
            expected[value_id] += delta
    expected = +expected
    sums = numbered_column(701).sums()
    counts.add_into(sums, weight)
    ids, numbers = (each.tolist() for each in counts.arrays())
    assert (expected, len(expected)) == (Counter(dict(zip(ids, numbers, strict=True))), counts.nonzero)
    assert [weight * expected[value_id] for value_id in range(701)] == sums[:701].tolist()


@pytest.mark.parametrize("domains", [1, DENSE_FROM + 1])
def test_weighted_sums_do_not_overflow_32_bits(domains: int) -> None:
    counts = counts_of(range(domains))
    counts.add(0, 30_000_000)
    sums = numbered_column(domains).sums()
    counts.add_into(sums, 100)
    assert sums[0] == 3_000_000_100


def nodes_of(*labels: Mapping[str, str]) -> NodeTable:
    return mirror_of(*(node(f"n{number}", labels=each) for number, each in enumerate(labels))).nodes


def columns_in_use() -> TopologyColumns:
    columns = TopologyColumns()
    columns.grow(16)
    return columns


def test_keys_that_no_node_has_cost_no_array() -> None:
    columns, nodes = columns_in_use(), nodes_of({"zone": "a"})
    keys = [columns.acquire(f"key-{number}", nodes) for number in range(1000)]
    assert len({id(column.of_slot) for column in keys}) == 1


def test_of_columns_without_users_the_oldest_goes() -> None:
    columns = columns_in_use()
    keys = [f"key-{number}" for number in range(MAX_UNUSED_COLUMNS + 1)]
    nodes = nodes_of(dict.fromkeys(keys, "x"))
    stored = [columns.acquire(key, nodes) for key in keys]
    for column in stored:
        columns.release(column)
    assert [columns.acquire(key, nodes) is column for key, column in zip(keys, stored, strict=True)] == [
        False,
        *[True] * MAX_UNUSED_COLUMNS,
    ]


def test_a_column_that_is_used_again_does_not_go_with_those_without_users() -> None:
    columns = columns_in_use()
    keys = [f"key-{number}" for number in range(MAX_UNUSED_COLUMNS + 1)]
    nodes = nodes_of(dict.fromkeys(["zone", *keys], "x"))
    columns.release(columns.acquire("zone", nodes))
    used = columns.acquire("zone", nodes)
    for key in keys:
        columns.release(columns.acquire(key, nodes))
    assert [used] == columns.changed_by(0, {"zone": "x"}, {"zone": "y"})


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
    columns, nodes = columns_in_use(), nodes_of({"zone": "a", "host": "n0"}, {"zone": "b"})
    for key in ("zone", "host", "rack"):
        columns.acquire(key, nodes)
    assert expected == [column.key for column in columns.changed_by(0, {"zone": "a", "host": "n0"}, labels)]
