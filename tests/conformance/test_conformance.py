"""The golden data held against the engine, and the runner held against golden data that was tampered with."""

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conformance import plugin_cases
from tests.conformance.__main__ import main
from tests.conformance.golden_files import read

DATA = Path(__file__).parent / "data"
CASES = DATA / "cases.jsonl.gz"
CHECKS = DATA / "bench_checks_1000.jsonl.gz"
NEWEST = DATA / "v1.37"
NOMINATED = NEWEST / "nominated.jsonl.gz"
PREEMPTION = DATA / "preempt.jsonl.gz"
Case = dict[str, Any]


def first(path: Path) -> Case:
    with gzip.open(path) as file:
        case: Case = json.loads(next(file))
    return case


def first_case() -> Case:
    return first(CASES)


def write(path: Path, *lines: Case | str) -> str:
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return str(path)


def last_lines(output: str, count: int = 1) -> list[str]:
    return output.splitlines()[-count:]


@pytest.mark.parametrize(("file", "cases", "plugins"), [(CASES, 600, 9), (NEWEST / "cases.jsonl.gz", 736, 10)])
def test_every_plugin_and_all_together_pass_all_golden_cases(
    capsys: pytest.CaptureFixture[str], file: Path, cases: int, plugins: int
) -> None:
    assert main([str(file)]) == 0
    output = capsys.readouterr().out
    names = ["InterPodAffinity", *first(file)["expected"]["plugins"], "combined"]
    assert len(names) == plugins + 2
    assert last_lines(output, len(names)) == [f"{name}: {cases} passed, 0 failed" for name in names]
    assert "left out" not in output


@pytest.mark.parametrize(("directory", "cases"), [(DATA, 400), (NEWEST, 442)])
def test_every_volume_plugin_passes_all_golden_cases(
    capsys: pytest.CaptureFixture[str], directory: Path, cases: int
) -> None:
    assert main([str(directory / "volumes.jsonl.gz")]) == 0
    names = ("NodeVolumeLimits", "VolumeBinding", "VolumeRestrictions", "VolumeZone", "all volume plugins")
    assert last_lines(capsys.readouterr().out, 5) == [f"{name}: {cases} passed, 0 failed" for name in names]


@pytest.mark.parametrize(("directory", "cases"), [(DATA, 300), (NEWEST, 322)])
def test_preemption_passes_all_golden_cases(capsys: pytest.CaptureFixture[str], directory: Path, cases: int) -> None:
    assert main([str(directory / "preempt.jsonl.gz")]) == 0
    assert last_lines(capsys.readouterr().out) == [f"preemption: {cases} passed, 0 failed"]


@pytest.mark.parametrize("group", ["balanced", "resize", "imagevolume", "dra", "ndf"])
def test_cases_of_what_changed_fail_by_the_rules_of_another_release(tmp_path: Path, group: str) -> None:
    cases = [line.content for line in read(NEWEST / "cases.jsonl.gz") if group in line.content.get("tags", ())]
    assert len(cases) > 5
    assert main([write(tmp_path / "cases.jsonl", *[{**case, "kubernetes": "1.34"} for case in cases])]) == 1


def test_nominated_pods_pass_all_golden_cases(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(NOMINATED)]) == 0
    assert last_lines(capsys.readouterr().out) == ["nominated pods: 300 passed, 0 failed"]


@pytest.mark.parametrize(
    ("file", "cases"),
    [
        (NEWEST / "devices.jsonl.gz", 303),  # and one whose selector may not be evaluated
        (DATA / "devices_random.jsonl.gz", 100),
        (DATA / "v1.35" / "devices_random.jsonl.gz", 100),
        (DATA / "v1.36" / "devices_random.jsonl.gz", 100),
        (NEWEST / "devices_random.jsonl.gz", 100),
    ],
    ids=lambda each: "-".join(each.parts[-2:]) if isinstance(each, Path) else "",
)
def test_devices_pass_all_golden_cases(capsys: pytest.CaptureFixture[str], file: Path, cases: int) -> None:
    assert main([str(file)]) == 0
    (passed,) = re.findall(r"^DynamicResources: (\d+) passed, 0 failed$", capsys.readouterr().out, re.MULTILINE)
    assert int(passed) >= cases


def test_bench_checks_of_one_thousand_nodes_all_pass_and_a_falsified_one_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    false = write(tmp_path / "checks.jsonl", {**first(CHECKS), "feasible": 999})
    assert main([str(CHECKS), false]) == 1
    output = capsys.readouterr().out
    assert "feasible\n    expected 999\n    got      1000\n" in output
    assert last_lines(output) == ["InterPodAffinity bench checks, 1000 nodes / 30000 pods: 400 passed, 1 failed"]


def test_plugins_without_a_runner_are_left_out_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {name: runner for name, runner in plugin_cases.RUNNERS.items() if name != "NodePorts"}
    monkeypatch.setattr(plugin_cases, "RUNNERS", known)
    assert main([write(tmp_path / "cases.jsonl", first_case())]) == 0
    assert "left out: NodePorts (no runner): 1\n" in capsys.readouterr().out


def set_raw_score(case: Case) -> None:
    case["expected"].update(prescore_all="Success", raw_scores_all={"n0": 7}, normalized_all={"n0": 100})


def set_verdict(case: Case) -> None:
    case["expected"]["filter"]["n1"] = {"code": "Unschedulable", "reasons": ["a falsified reason"]}


def set_prefilter(case: Case) -> None:
    case["expected"].update(prefilter="Error", prefilter_reasons=["a falsified reason"])


def take_node_away(case: Case) -> None:
    del case["expected"]["filter"]["n2"]


@pytest.mark.parametrize(
    ("falsify", "named"),
    [
        pytest.param(set_raw_score, "raw_scores_all[n0]\n    expected 7\n    got      None\n", id="score"),
        pytest.param(set_verdict, "filter[n1]\n    expected ('Unschedulable', ('a falsified", id="verdict"),
        pytest.param(set_prefilter, "prefilter\n    expected 'Error'\n    got      'Success'\n", id="prefilter"),
        pytest.param(take_node_away, "filter[n2]\n    expected None\n    got      ('Success', ())\n", id="node"),
    ],
)
def test_a_falsified_case_is_reported_in_full_and_fails_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], falsify: Callable[[Case], None], named: str
) -> None:
    false = first_case()
    falsify(false)
    path = write(tmp_path / "cases.jsonl", first_case(), false)
    assert main([path]) == 1
    output = capsys.readouterr().out
    assert f"FAILED {false['name']} ({path}:2): InterPodAffinity\n" in output
    assert named in output
    assert "InterPodAffinity: 1 passed, 1 failed\n" in output


def test_only_the_first_three_failures_are_shown_and_the_others_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    false = first_case()
    set_verdict(false)
    assert main([write(tmp_path / "cases.jsonl", *[false] * 5)]) == 1
    output = capsys.readouterr().out
    assert output.count("FAILED") == 3
    assert "2 more failed\n" in output


def test_a_case_on_which_the_engine_raises_is_a_failed_case(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = first_case()
    broken["nodes"][0]["metadata"]["labels"] = "not a mapping"
    assert main([write(tmp_path / "cases.jsonl", broken)]) == 1
    assert "DecodeError" in capsys.readouterr().out


def test_cases_of_several_kinds_in_one_file_are_all_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([write(tmp_path / "cases.jsonl", first(PREEMPTION), first_case())]) == 0
    output = capsys.readouterr().out
    assert "cases.jsonl: 1 preemption cases\n" in output
    assert "preemption: 1 passed, 0 failed\n" in output
    assert "InterPodAffinity: 1 passed, 0 failed\n" in output


@pytest.mark.parametrize(
    ("line", "why"),
    [
        pytest.param('{"name": "cut off', "not JSON", id="malformed"),
        pytest.param("[]", "not a JSON object", id="not-an-object"),
        pytest.param('{"name": "x"}', "no known kind of case: lacks namespaces, nodes", id="no-inputs"),
        pytest.param(
            json.dumps({**first_case(), "expected": {"feasible": []}}),
            "no known kind of case: expected holds feasible",
            id="unknown-expectation",
        ),
    ],
)
def test_a_line_of_no_known_kind_ends_the_run_with_its_place_and_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, why: str
) -> None:
    path = write(tmp_path / "cases.jsonl", first_case(), line)
    assert main([path]) == 2
    assert capsys.readouterr().err.startswith(f"{path}:2: {why}")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        pytest.param("absent.jsonl", None, id="absent"),
        pytest.param("plain.jsonl.gz", b"{}", id="not-gzip"),
        pytest.param("cut.jsonl.gz", CASES.read_bytes()[:5000], id="cut-off-gzip"),
        pytest.param("empty.jsonl", b"\n", id="no-cases"),
    ],
)
def test_a_file_that_cannot_be_read_ends_the_run_with_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, content: bytes | None
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    assert main([str(path)]) == 2
    assert str(path) in capsys.readouterr().err
