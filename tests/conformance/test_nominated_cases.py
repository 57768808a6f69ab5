"""The golden cases with nominated pods against the engine, and the runner against cases that were tampered with."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from tests.conformance import nominated_cases
from tests.conformance.golden_files import Kind, Line, read
from tests.conformance.results import Results

CASES: Final = Path(__file__).parent / "data" / "v1.37" / "nominated.jsonl.gz"
Case = dict[str, Any]


def lines_with(member: str) -> list[Line]:
    return [line for line in read(CASES) if line.content["expected"][member]]


def results_of(*lines: Line) -> Results:
    results = Results()
    nominated_cases.run(lines, results)
    return results


def copy_of(line: Line) -> Case:
    case: Case = json.loads(json.dumps(line.content))
    return case


@pytest.mark.parametrize("member", ["refused_by_nominated", "only_with_nominated", "other_refusal"])
def test_cases_in_which_nominations_matter_pass(member: str) -> None:
    lines = lines_with(member)
    assert len(lines) > 10
    assert results_of(*lines).passed == {nominated_cases.NAME: len(lines)}


def test_a_case_whose_nominated_pods_refuse_a_node_fails_without_them() -> None:
    case = copy_of(lines_with("refused_by_nominated")[0])
    refused = case["expected"]["refused_by_nominated"][0]
    results = results_of(Line(Kind.NOMINATED, {**case, "nominated": []}, "cases.jsonl:1"))
    assert results.failed == {nominated_cases.NAME: 1}
    for way in nominated_cases.WAYS:
        assert f"{way} failed[{refused}]" in results.failures[0]


def set_code(case: Case) -> None:
    next(iter(case["expected"]["filter_failed"].values()))["code"] = "falsified"


def set_reasons(case: Case) -> None:
    next(iter(case["expected"]["filter_failed"].values()))["reasons"] = ["falsified"]


def set_plugin(case: Case) -> None:
    next(iter(case["expected"]["filter_failed"].values()))["plugin"] = "Falsified"


def set_feasible(case: Case) -> None:
    case["expected"]["feasible"] = ["falsified"]


def break_a_pod(case: Case) -> None:
    case["nominated"][0]["spec"]["priority"] = "not a number"


@pytest.mark.parametrize(
    ("falsify", "named"),
    [
        pytest.param(set_code, "expected ('falsified', [", id="code"),
        pytest.param(set_reasons, "['falsified']", id="reasons"),
        pytest.param(set_plugin, "expected 'Falsified'", id="plugin"),
        pytest.param(set_feasible, "cached feasible\n    expected ['falsified']", id="feasible"),
        pytest.param(break_a_pod, "DecodeError", id="what-the-engine-raises"),
    ],
)
def test_a_falsified_case_fails_and_is_reported_with_its_place(falsify: Callable[[Case], None], named: str) -> None:
    case = copy_of(lines_with("refused_by_nominated")[0])
    falsify(case)
    results = results_of(Line(Kind.NOMINATED, case, "cases.jsonl:1"))
    assert results.failed == {nominated_cases.NAME: 1}
    assert any("(cases.jsonl:1)" in failure and named in failure for failure in results.failures)
