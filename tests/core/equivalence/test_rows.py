"""Rows: the results of one plugin for one class, and what of a plugin's answer may be kept."""

import numpy as np
import pytest

from core.equivalence.cells import Cells, Miss
from core.equivalence.rows import ROW_BYTES, STATUS_BYTES, FilterAspect, Row, ScoreAspect, counters_unchanged
from core.framework.status import SKIP, SUCCESS, Code, Status
from tests.core.equivalence.said_plugin import SaidPlugin, failing
from tests.core.mirror.values import mirror_of, node, pod

FULL, TAINTED = failing("Insufficient cpu"), failing("tainted")


def test_a_status_has_one_code_in_a_row_and_success_is_0() -> None:
    row = Row(Miss.NEW_CLASS)

    assert row.codes_of((SUCCESS, FULL)).tolist() == [0, 1]
    assert row.codes_of((SUCCESS, TAINTED, FULL)).tolist() == [0, 2, 1]
    assert row.statuses == [SUCCESS, FULL, TAINTED]


def test_statuses_with_other_reasons_or_in_another_order_are_others() -> None:
    row = Row(Miss.NEW_CLASS)

    codes = row.codes_of((failing("a", "b"), failing("b", "a"), failing("a"), failing("a", code=Code.ERROR)))

    assert len(set(codes.tolist())) == 4


def test_a_row_that_is_dropped_forgets_its_outcome_and_keeps_the_reason() -> None:
    row = Row(Miss.NEW_CLASS)
    row.settle(FULL)
    row.drop(Miss.COUNTERS_CHANGED)

    assert row.outcome is None
    assert row.miss is Miss.COUNTERS_CHANGED


def test_a_settled_row_has_no_cells() -> None:
    row = Row(Miss.NEW_CLASS)
    row.cells = Cells(4, Miss.NEW_CLASS)
    row.settle(SKIP)

    assert row.outcome == SKIP
    assert row.nbytes == ROW_BYTES


def test_a_row_weighs_its_cells_and_its_statuses() -> None:
    row = Row(Miss.NEW_CLASS)
    assert row.nbytes == ROW_BYTES

    row.cells = Cells(100, Miss.NEW_CLASS)
    row.codes_of((SUCCESS, FULL, TAINTED))
    assert row.nbytes == ROW_BYTES + 100 + 2 * STATUS_BYTES


def test_only_cells_can_grow() -> None:
    row = Row(Miss.NEW_CLASS)
    row.grow(32)
    assert row.nbytes == ROW_BYTES

    row.cells = Cells(16, Miss.NEW_CLASS)
    row.grow(32)
    assert len(row.cells.values) == 32


def test_dropping_some_cells_leaves_the_outcome_of_all_nodes() -> None:
    row = Row(Miss.NEW_CLASS)
    row.settle(FULL)
    row.drop_some(np.ones(4, np.bool_), Miss.NODE_CHANGED)

    assert row.outcome == FULL


def test_a_reason_per_event_does_not_let_the_statuses_grow_for_ever() -> None:
    row = Row(Miss.NEW_CLASS)
    row.cells = Cells(16, Miss.NEW_CLASS)
    first = np.arange(16) == 0
    longest = 0
    for number in range(5000):
        row.cells.put(np.arange(2), row.codes_of((failing("stays"), failing(f"of event {number}"))))
        longest = max(longest, len(row.statuses))
        row.drop_some(first, Miss.NODE_CHANGED)
        kept = row.cells.at(1)
        assert isinstance(kept, Miss) or row.statuses[kept] == failing(f"of event {number}")

    assert 16 < longest < 2000


def test_a_cluster_with_a_reason_for_each_node_keeps_them() -> None:
    row = Row(Miss.NEW_CLASS)
    row.cells = Cells(4000, Miss.NEW_CLASS)
    row.cells.put(np.arange(4000), row.codes_of(tuple(failing(f"of node {number}") for number in range(4000))))
    row.drop_some(np.arange(4000) == 7, Miss.NODE_CHANGED)

    assert row.cells.kept == 3999


def test_an_error_of_a_node_is_not_kept() -> None:
    plugin = SaidPlugin()
    broken = failing("broken", code=Code.ERROR)
    plugin.said = {"a": broken, "b": FULL}
    batch = mirror_of(node("a"), node("b"), node("c")).batch(["a", "b", "c"])
    row = Row(Miss.NEW_CLASS)

    numbers, kept = FilterAspect(plugin).results(row, pod("p"), batch)

    assert [row.statuses[number] for number in numbers] == [broken, FULL, SUCCESS]
    assert kept is not None
    assert kept.tolist() == [False, True, True]


def test_without_errors_all_verdicts_are_kept() -> None:
    batch = mirror_of(node("a")).batch(["a"])

    _, kept = FilterAspect(SaidPlugin()).results(Row(Miss.NEW_CLASS), pod("p"), batch)

    assert kept is None


def test_all_scores_are_kept_as_they_are() -> None:
    plugin = SaidPlugin()
    plugin.raw = {"a": -(2**62)}
    batch = mirror_of(node("a"), node("b")).batch(["a", "b"])

    numbers, kept = ScoreAspect(plugin).results(Row(Miss.NEW_CLASS), pod("p"), batch)

    assert (numbers.tolist(), kept) == ([-(2**62), 0], None)


@pytest.mark.parametrize(
    ("outcome", "versions", "status", "version", "unchanged"),
    [
        pytest.param(None, (1,), None, 1, True, id="same-versions"),
        pytest.param(None, (1,), None, 2, False, id="another-version"),
        pytest.param(SKIP, (), SKIP, 1, True, id="skipped-still"),
        pytest.param(SKIP, (), FULL, 1, False, id="another-outcome"),
        pytest.param(SKIP, (), None, 1, False, id="skipped-no-more"),
        pytest.param(None, (1,), SKIP, 1, False, id="skipped-now"),
    ],
)
def test_counters_are_told_by_versions_or_by_the_outcome(
    outcome: Status | None,
    versions: tuple[int, ...],
    status: Status | None,
    version: int,
    unchanged: bool,  # noqa: FBT001 - the expected answer
) -> None:
    plugin = SaidPlugin()
    plugin.outcome, plugin.version = status, version
    row = Row(Miss.NEW_CLASS)
    row.outcome, row.versions = outcome, versions

    prepared = plugin.pre_filter(mirror_of(), pod("p"))

    assert counters_unchanged(row, FilterAspect(plugin), prepared) is unchanged
