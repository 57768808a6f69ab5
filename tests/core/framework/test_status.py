"""Codes and statuses in the words of upstream."""

import numpy as np
import pytest

from core.framework.interface import SKIP, SUCCESS, Code, Status, Verdicts


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        pytest.param(Code.SUCCESS, "Success", id="success"),
        pytest.param(Code.ERROR, "Error", id="error"),
        pytest.param(Code.UNSCHEDULABLE, "Unschedulable", id="unschedulable"),
        pytest.param(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, "UnschedulableAndUnresolvable", id="unresolvable"),
        pytest.param(Code.SKIP, "Skip", id="skip"),
    ],
)
def test_a_code_is_spelt_as_go_spells_it(code: Code, expected: str) -> None:
    assert expected == code.label


def test_every_code_has_its_own_label() -> None:
    assert len(Code) == len({code.label for code in Code})


@pytest.mark.parametrize(
    ("reasons", "expected"),
    [
        pytest.param((), "", id="none"),
        pytest.param(("one",), "one", id="one"),
        pytest.param(("two", "one", "two"), "two, one, two", id="several-in-their-order"),
    ],
)
def test_the_message_joins_the_reasons(reasons: tuple[str, ...], expected: str) -> None:
    assert expected == Status(Code.UNSCHEDULABLE, reasons).message


def test_success_and_skip_have_no_reasons() -> None:
    assert (SUCCESS.code, SUCCESS.message, SKIP.code, SKIP.message) == (Code.SUCCESS, "", Code.SKIP, "")


def test_a_verdict_is_the_status_at_the_index_that_its_code_gives() -> None:
    statuses = (SUCCESS, Status(Code.UNSCHEDULABLE, ("one",)), Status(Code.UNSCHEDULABLE, ("two",)))
    verdicts = Verdicts(np.array([2, 0, 1, 2], np.uint8), statuses)
    expected = [statuses[2], SUCCESS, statuses[1], statuses[2]]
    assert expected == [verdicts.status(position) for position in range(4)]


def test_a_long_message_is_cut_short_as_each_node_of_an_answer_gets_it() -> None:
    status = Status(Code.UNSCHEDULABLE, tuple(f"Insufficient example.com/{number}" for number in range(10_000)))
    assert len(status.message) == len("...") + 1024
    assert status.message.startswith("Insufficient example.com/0, Insufficient example.com/1, ")
