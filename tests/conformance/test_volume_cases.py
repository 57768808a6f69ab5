"""The golden volume cases held against the engine, and the runner held against cases that were tampered with."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from core.plugins.volumezone import VolumeZone
from tests.conformance import volume_cases
from tests.conformance.golden_files import Kind, Line, read
from tests.conformance.results import Results

CASES: Final = Path(__file__).parent / "data" / "volumes.jsonl.gz"
Case = dict[str, Any]


def first_line() -> Line:
    return next(iter(read(CASES)))


def results_of(*lines: Line) -> Results:
    results = Results()
    volume_cases.run(lines, results)
    return results


def falsified(falsify: Callable[[Case], None]) -> Line:
    case: Case = json.loads(json.dumps(first_line().content))
    falsify(case)
    return Line(Kind.VOLUME, case, "cases.jsonl:1")


def test_all_golden_cases_pass() -> None:
    results = results_of(*read(CASES))
    assert results.failures == []
    assert set(results.passed) == {*volume_cases.VOLUME_PLUGINS, "all volume plugins"}
    assert set(results.passed.values()) == {400}


def set_verdict(case: Case) -> None:
    node = case["nodes"][0]["metadata"]["name"]
    case["expected"]["plugins"]["VolumeZone"]["filter_failed"] = {node: {"code": "Error", "reasons": ["falsified"]}}


def set_prefilter(case: Case) -> None:
    case["expected"]["plugins"]["VolumeZone"] = {"prefilter": "Error", "prefilter_reasons": ["falsified"]}


def break_a_volume(case: Case) -> None:
    case["pvs"] = [{"metadata": {"name": "pv", "labels": "not a mapping"}}]


@pytest.mark.parametrize(
    ("falsify", "named"),
    [
        pytest.param(set_verdict, "expected {'code': 'Error', 'reasons': ['falsified']}\n", id="verdict"),
        pytest.param(set_prefilter, "prefilter\n    expected 'Error'\n", id="prefilter"),
        pytest.param(break_a_volume, "DecodeError", id="what-the-engine-raises"),
    ],
)
def test_a_falsified_case_fails_and_is_reported_with_its_place(falsify: Callable[[Case], None], named: str) -> None:
    results = results_of(falsified(falsify))
    assert results.failed["VolumeZone"] == 1
    assert any("(cases.jsonl:1)" in failure and named in failure for failure in results.failures)


def test_a_plugin_without_a_runner_is_left_out_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(volume_cases, "VOLUME_PLUGINS", {"VolumeZone": VolumeZone})
    results = results_of(first_line())
    assert set(results.left_out) == {
        f"{name} (no runner)" for name in ("VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding")
    }
    assert list(results.passed) == ["VolumeZone"]


def test_the_nodes_that_pass_all_plugins_are_compared_where_all_were_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(volume_cases, "VOLUME_PLUGINS", {"VolumeZone": VolumeZone})

    def one_plugin(case: Case) -> None:
        case["expected"]["plugins"] = {"VolumeZone": case["expected"]["plugins"]["VolumeZone"]}
        case["expected"]["feasible"] = ["no such node"]

    assert results_of(falsified(one_plugin)).failed == {"all volume plugins": 1}
