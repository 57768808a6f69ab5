"""Cells: a number or a reason per slot, in as few bytes as the numbers allow."""

import numpy as np
import pytest

from core.equivalence.rows import Cells, Miss
from core.mirror.topology import BoolArray, Int64Array, IntpArray


def slots(*numbers: int) -> IntpArray:
    return np.array(numbers, np.intp)


def numbers(*values: int) -> Int64Array:
    return np.array(values, np.int64)


def which(*chosen: bool) -> BoolArray:
    return np.array(chosen, np.bool_)


def shown(cells: Cells) -> list[Miss | int]:
    return [cells.at(slot) for slot in range(len(cells.values))]


@pytest.mark.parametrize("reason", Miss)
def test_all_cells_are_misses_at_first(reason: Miss) -> None:
    cells = Cells(3, reason)

    found = cells.get(slots(0, 2))

    assert not cells.complete(found)
    assert cells.missing(found).tolist() == [True, True]
    assert shown(cells) == [reason] * 3
    assert cells.kept == 0


def test_numbers_come_back_by_slot() -> None:
    cells = Cells(4, Miss.NEW_CLASS)
    cells.put(slots(3, 1), numbers(7, 0))

    found = cells.get(slots(1, 3))

    assert found.tolist() == [0, 7]
    assert cells.complete(found)
    assert not cells.missing(found).any()
    assert shown(cells) == [Miss.NEW_CLASS, 0, Miss.NEW_CLASS, 7]
    assert cells.kept == 2


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
        cells.drop(np.arange(8) == slot, reason)

    cells.put(slots(7), numbers(number))

    assert cells.values.dtype == width
    assert shown(cells) == [-3, 100, *list(Miss)[1:], Miss.NEW_CLASS, number]


def test_putting_nothing_changes_nothing() -> None:
    cells = Cells(2, Miss.NEW_CLASS)
    cells.put(slots(), numbers())

    assert shown(cells) == [Miss.NEW_CLASS] * 2


def test_a_dropped_cell_keeps_the_reason_that_it_has_already() -> None:
    cells = Cells(3, Miss.NEW_CLASS)
    cells.put(slots(1, 2), numbers(4, 5))
    cells.drop(which(True, True, False), Miss.NODE_CHANGED)  # noqa: FBT003 - a mask
    assert shown(cells) == [Miss.NEW_CLASS, Miss.NODE_CHANGED, 5]

    cells.drop(which(True, True, True), Miss.COUNTERS_CHANGED)  # noqa: FBT003 - a mask
    assert shown(cells) == [Miss.NEW_CLASS, Miss.NODE_CHANGED, Miss.COUNTERS_CHANGED]

    cells.drop_all(Miss.CLUSTER_CHANGED)
    assert shown(cells) == [Miss.NEW_CLASS, Miss.NODE_CHANGED, Miss.COUNTERS_CHANGED]


def test_dropping_all_leaves_no_number() -> None:
    cells = Cells(2, Miss.NEW_CLASS)
    cells.put(slots(0, 1), numbers(300, -300))
    cells.drop_all(Miss.CLUSTER_CHANGED)

    assert shown(cells) == [Miss.CLUSTER_CHANGED] * 2
    assert cells.kept == 0


@pytest.mark.parametrize("number", [1, 2**40])
def test_nobody_has_asked_for_the_slots_that_are_new(number: int) -> None:
    cells = Cells(2, Miss.EVICTED)
    cells.put(slots(0), numbers(number))
    cells.grow(4)

    assert shown(cells) == [number, Miss.EVICTED, Miss.NEW_CLASS, Miss.NEW_CLASS]
    assert cells.at(4) == Miss.NEW_CLASS


def test_cells_do_not_shrink() -> None:
    cells = Cells(3, Miss.NEW_CLASS)
    cells.grow(2)

    assert len(cells.values) == 3


@pytest.mark.parametrize("number", [0, 1000, 2**40])
def test_reasons_are_counted_whatever_the_width(number: int) -> None:
    cells = Cells(4, Miss.NEW_CLASS)
    cells.put(slots(1, 2, 3), numbers(number, number, number))
    cells.drop(which(False, True, True, False), Miss.COUNTERS_CHANGED)  # noqa: FBT003 - a mask

    found = cells.get(slots(0, 1, 2))

    assert dict(zip(Miss, cells.reasons(found).tolist(), strict=True)) == {
        Miss.NEW_CLASS: 1,
        Miss.EVICTED: 0,
        Miss.NODE_CHANGED: 0,
        Miss.COUNTERS_CHANGED: 2,
        Miss.CLUSTER_CHANGED: 0,
    }
