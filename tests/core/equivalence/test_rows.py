"""Rows: the results of one plugin for one class, and what of a plugin's answer may be kept."""

import numpy as np
import pytest

from core.equivalence.rows import Cells, Miss, Row
from core.mirror.topology import BoolArray, Int64Array, IntpArray
from tests.core.equivalence.said_plugin import failing


def test_a_reason_per_event_does_not_let_the_statuses_grow_for_ever() -> None:
    row = Row(Miss.NEW_CLASS)
    row.cells = Cells(16, Miss.NEW_CLASS)
    first = slots(0)
    longest = 0
    for number in range(5000):
        row.cells.put(np.arange(2), row.codes_of((failing("stays"), failing(f"of event {number}"))))
        longest = max(longest, len(row.statuses))
        row.drop_some(first, Miss.NODE_CHANGED)
        cached = row.cells.at(1)
        assert isinstance(cached, Miss) or row.statuses[cached] == failing(f"of event {number}")

    assert 16 < longest < 2000


def test_a_cluster_with_a_reason_for_each_node_keeps_them() -> None:
    row = Row(Miss.NEW_CLASS)
    row.cells = Cells(4000, Miss.NEW_CLASS)
    row.cells.put(np.arange(4000), row.codes_of(tuple(failing(f"of node {number}") for number in range(4000))))
    row.drop_some(slots(7), Miss.NODE_CHANGED)

    assert row.cells.cached == 3999


def slots(*numbers: int) -> IntpArray:
    return np.array(numbers, np.intp)


def numbers(*values: int) -> Int64Array:
    return np.array(values, np.int64)


def which(*chosen: bool) -> BoolArray:
    return np.array(chosen, np.bool_)


def rendered(cells: Cells) -> list[Miss | int]:
    return [cells.at(slot) for slot in range(len(cells.values))]


def test_verdicts_of_5000_nodes_take_5_kb() -> None:
    cells = Cells(5000, Miss.NEW_CLASS)
    cells.put(np.arange(5000, dtype=np.intp), np.ones(5000, np.int64))

    assert cells.nbytes == 5000


@pytest.mark.parametrize(
    ("number", "width"),
    [
        pytest.param(127, np.int8, id="highest-int8"),
        pytest.param(-128 + len(Miss), np.int8, id="lowest-int8-that-is-no-reason"),
        pytest.param(-128 + len(Miss) - 1, np.int16, id="would-be-a-reason-in-int8"),
        pytest.param(-128, np.int16, id="would-be-the-first-reason-in-int8"),
        pytest.param(128, np.int16, id="above-int8"),
        pytest.param(2**15 - 1, np.int16, id="highest-int16"),
        pytest.param(2**15, np.int32, id="above-int16"),
        pytest.param(-(2**15), np.int32, id="would-be-the-first-reason-in-int16"),
        pytest.param(2**31, np.int64, id="above-int32"),
        pytest.param(-(2**31), np.int64, id="would-be-the-first-reason-in-int32"),
        pytest.param(-(2**62), np.int64, id="not-scored"),
        pytest.param(2**63 - 1, np.int64, id="highest-int64"),
    ],
)
def test_cells_are_as_wide_as_their_widest_number(number: int, width: type[np.signedinteger]) -> None:
    cells = Cells(8, Miss.NEW_CLASS)
    cells.put(slots(0, 1, 2, 3, 4, 5), numbers(-3, 100, 0, 1, 2, 3))
    for slot, reason in zip((2, 3, 4, 5), list(Miss)[1:], strict=True):
        cells.drop(slots(slot), reason)

    cells.put(slots(7), numbers(number))

    assert cells.values.dtype == width
    assert rendered(cells) == [-3, 100, *list(Miss)[1:], Miss.NEW_CLASS, number]


def test_a_dropped_cell_keeps_the_reason_that_it_has_already() -> None:
    cells = Cells(3, Miss.NEW_CLASS)
    cells.put(slots(1, 2), numbers(4, 5))
    cells.drop(slots(0, 1), Miss.NODE_CHANGED)
    assert rendered(cells) == [Miss.NEW_CLASS, Miss.NODE_CHANGED, 5]

    cells.drop(slots(0, 1, 2, 7), Miss.COUNTERS_CHANGED)  # there is no slot 7 yet
    assert rendered(cells) == [Miss.NEW_CLASS, Miss.NODE_CHANGED, Miss.COUNTERS_CHANGED]

    cells.drop_all(Miss.CLUSTER_CHANGED)
    assert rendered(cells) == [Miss.NEW_CLASS, Miss.NODE_CHANGED, Miss.COUNTERS_CHANGED]


@pytest.mark.parametrize("number", [1, 2**40])
def test_nobody_has_asked_for_the_slots_that_are_new(number: int) -> None:
    cells = Cells(2, Miss.EVICTED)
    cells.put(slots(0), numbers(number))
    cells.grow(4)

    assert rendered(cells) == [number, Miss.EVICTED, Miss.NEW_CLASS, Miss.NEW_CLASS]
    assert cells.at(4) == Miss.NEW_CLASS
