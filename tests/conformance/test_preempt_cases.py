"""The golden preemption cases held against the engine, and the runner held against cases that were tampered with."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from tests.conformance import preempt_cases
from tests.conformance.golden_files import Kind, Line, read
from tests.conformance.results import Results

CASES: Final = Path(__file__).parent / "data" / "preempt.jsonl.gz"
Case = dict[str, Any]


def first_line_with_victims() -> Line:
    return next(line for line in read(CASES) if line.content["expected"]["candidates"])


def results_of(*lines: Line) -> Results:
    results = Results()
    preempt_cases.run(lines, results)
    return results


def set_victims(case: Case) -> None:
    for candidate in case["expected"]["candidates"].values():
        candidate["victims"] = ["a/falsified"]


def set_violations(case: Case) -> None:
    for candidate in case["expected"]["candidates"].values():
        candidate["num_pdb_violations"] = 77


def set_filter_failure(case: Case) -> None:
    case["expected"]["filter_failed"]["falsified"] = {"code": "Error", "plugin": "P", "reasons": []}


def set_failure(case: Case) -> None:
    case["expected"]["failed"]["falsified"] = {"code": "Error", "reasons": []}


def set_potential(case: Case) -> None:
    case["expected"]["potential_nodes"] = ["falsified"]


def set_chosen(case: Case) -> None:
    case["expected"]["chosen"] = ["falsified"]


def set_chosen_of_all(case: Case) -> None:
    case["expected"]["chosen_all_nodes"] = ["falsified"]


def set_eligible(case: Case) -> None:
    case["expected"].update(eligible=False, not_eligible_reason="falsified")


def break_a_pod(case: Case) -> None:
    case["pods"][0]["spec"]["priority"] = "not a number"


@pytest.mark.parametrize(
    ("falsify", "named"),
    [
        pytest.param(set_victims, "'victims': ['a/falsified']", id="victims"),
        pytest.param(set_violations, "'num_pdb_violations': 77", id="violations"),
        pytest.param(set_filter_failure, "filter_failed[falsified]", id="filter"),
        pytest.param(set_failure, "  failed[falsified]", id="failed"),
        pytest.param(set_potential, "potential_nodes\n    expected ['falsified']", id="potential-nodes"),
        pytest.param(set_chosen, "chosen\n    expected ['falsified']", id="chosen"),
        pytest.param(set_chosen_of_all, "chosen_all_nodes\n    expected ['falsified']", id="chosen-of-all"),
        pytest.param(set_eligible, "not_eligible_reason\n    expected 'falsified'", id="eligible"),
        pytest.param(break_a_pod, "DecodeError", id="what-the-engine-raises"),
    ],
)
def test_a_falsified_case_fails_and_is_reported_with_its_place(falsify: Callable[[Case], None], named: str) -> None:
    case: Case = json.loads(json.dumps(first_line_with_victims().content))
    falsify(case)
    results = results_of(Line(Kind.PREEMPTION, case, "cases.jsonl:1"))
    assert results.failed == {preempt_cases.NAME: 1}
    assert any("(cases.jsonl:1)" in failure and named in failure for failure in results.failures)
