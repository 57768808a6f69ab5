"""Rows: the results of one plugin for one class, and what of a plugin's answer may be kept."""

import numpy as np
import pytest

from core.equivalence.rows import ROW_BYTES, Cells, FilterRow, Miss, Row, counters_unchanged
from core.framework.interface import SKIP, SUCCESS, Code, Status
from tests.core.equivalence.said_plugin import SaidPlugin, failing
from tests.core.mirror.values import mirror_of, pod

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


def test_a_settled_row_has_no_cells() -> None:
    row = Row(Miss.NEW_CLASS)
    row.cells = Cells(4, Miss.NEW_CLASS)
    row.settle(SKIP)

    assert row.outcome == SKIP
    assert row.nbytes == ROW_BYTES


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
    row = FilterRow(plugin, Miss.NEW_CLASS)
    row.outcome, row.versions = outcome, versions

    prepared = plugin.pre_filter(mirror_of(), pod("p"))

    assert counters_unchanged(row, prepared) is unchanged
