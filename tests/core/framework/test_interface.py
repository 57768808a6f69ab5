"""Codes and statuses in the words of upstream, and the normalisation that most scores share."""

import numpy as np
import pytest

from core.framework.interface import SUCCESS, Code, Status, Verdicts, reasons_text
from core.framework.scores import FEW, default_normalize, mapped
from core.mirror.topology import Int64Array


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


def test_a_long_message_is_cut_short_as_each_node_of_an_answer_gets_it() -> None:
    status = Status(Code.UNSCHEDULABLE, tuple(f"Insufficient example.com/{number}" for number in range(10_000)))
    assert len(status.message) == len("...") + 1024
    assert status.message.startswith("Insufficient example.com/0, Insufficient example.com/1, ")


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param([1, 2, 3, 4], [25, 50, 75, 100], id="upstream-0"),
        pytest.param([1000, 10, 20, 30], [100, 1, 2, 3], id="upstream-2"),
        pytest.param([1, 1, 1, 1], [100, 100, 100, 100], id="upstream-4"),
        pytest.param([1000, 1, 1, 1], [100, 0, 0, 0], id="upstream-5"),
        pytest.param([0, 0, 0, 0], [0, 0, 0, 0], id="upstream-7"),
        pytest.param([2, 3], [66, 100], id="rounded-down"),
        pytest.param([2**50, 2**51], [50, 100], id="beyond-what-a-float-divides-exactly"),
        pytest.param([], [], id="no-nodes"),
    ],
)
def test_the_highest_score_becomes_100_and_the_others_in_proportion(raw: list[int], expected: list[int]) -> None:
    assert expected == default_normalize(np.array(raw, np.int64)).tolist()


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param([1, 2, 3, 4], [75, 50, 25, 0], id="upstream-1"),
        pytest.param([1000, 10, 20, 30], [0, 99, 98, 97], id="upstream-3"),
        pytest.param([0, 1, 1, 1], [100, 0, 0, 0], id="upstream-6"),
        pytest.param([0, 0, 0, 0], [100, 100, 100, 100], id="upstream-8"),
        pytest.param([2, 3], [34, 0], id="rounded-down-before-it-is-subtracted"),
        pytest.param([], [], id="no-nodes"),
    ],
)
def test_in_reverse_the_highest_score_becomes_0(raw: list[int], expected: list[int]) -> None:
    assert expected == default_normalize(np.array(raw, np.int64), reverse=True).tolist()


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param([-7, 3], [-233, 100], id="truncated-towards-zero"),
        pytest.param([-7, -3], [-7, -3], id="none-is-above-0"),
    ],
)
def test_negative_scores_come_out_as_the_arithmetic_of_upstream_has_them(raw: list[int], expected: list[int]) -> None:
    assert expected == default_normalize(np.array(raw, np.int64)).tolist()


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("highest", "step"), [(1, 1), (3, 1), (255, 5), (5000, 1), (5000, 2)])
def test_dense_scores_and_sparse_ones_are_scaled_alike(
    highest: int,
    step: int,
    reverse: bool,  # noqa: FBT001 - one of two cases
) -> None:
    raw = np.arange(0, highest + 1, step)
    expected = [100 * each // highest for each in range(0, highest + 1, step)]
    found = default_normalize(raw, reverse=reverse).tolist()
    assert found == ([100 - each for each in expected] if reverse else expected)


@pytest.mark.parametrize(
    ("raw", "scaled"),
    [
        pytest.param([7, 5, 7, 5, 5] * FEW, [5, 6, 7], id="fewer-possible-scores-than-nodes"),
        pytest.param([-1, 1, 1, 0, 0] * FEW, [-1, 0, 1], id="negative-scores"),
        pytest.param([5, 5 * FEW, 5] * FEW, [5, 5 * FEW, 5] * FEW, id="more-possible-scores-than-nodes"),
        pytest.param([7, 5, 7, 5, 5], [7, 5, 7, 5, 5], id="few-nodes"),
    ],
)
def test_each_possible_score_is_scaled_once_if_that_is_less(raw: list[int], scaled: list[int]) -> None:
    seen: list[int] = []

    def tripled(scores: Int64Array) -> Int64Array:
        seen.extend(scores.tolist())
        return scores * 3

    assert [score * 3 for score in raw] == mapped(np.array(raw, np.int64), min(raw), max(raw), tripled).tolist()
    assert scaled == seen


def test_the_reasons_of_a_refusal_are_those_of_some_node_once_each_without_counts() -> None:
    cpu, both = Status(Code.UNSCHEDULABLE, ("no cpu",)), Status(Code.UNSCHEDULABLE, ("no memory", "no cpu"))
    absent = Status(Code.UNSCHEDULABLE, ("of no node",))
    statuses = (SUCCESS, both, absent, cpu)
    few, many = (Verdicts(np.array(codes), statuses) for codes in ([3, 1, 3], [1] * 50 + [3] * 7))
    assert reasons_text(few) == reasons_text(many) == "no cpu, no memory"


def test_of_very_many_reasons_the_first_are_named() -> None:
    statuses = (SUCCESS, *(Status(Code.UNSCHEDULABLE, (f"reason {number:02}",)) for number in range(22)))
    text = reasons_text(Verdicts(np.arange(1, 23), statuses))
    assert text.split(", ") == [*(f"reason {number:02}" for number in range(20)), "and 2 reasons more"]
