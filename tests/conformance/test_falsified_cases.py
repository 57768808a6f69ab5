"""The runners against golden cases that were tampered with: each is reported in full, with its place."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from core.plugins.volumezone import VolumeZone
from tests.conformance import nominated_cases, volume_cases
from tests.conformance.golden_files import Kind, Line, read
from tests.conformance.kinds import RUN
from tests.conformance.results import Results

DATA: Final = Path(__file__).parent / "data"
FILES: Final = {
    Kind.NOMINATED: (DATA / "v1.37" / "nominated.jsonl.gz", "refused_by_nominated"),
    Kind.PREEMPTION: (DATA / "preempt.jsonl.gz", "candidates"),
    Kind.VOLUME: (DATA / "volumes.jsonl.gz", "plugins"),
}
"""The file of a kind, and what its case has to expect."""
Case = dict[str, Any]


def lines_with(kind: Kind, member: str) -> list[Line]:
    return [line for line in read(FILES[kind][0]) if line.content["expected"][member]]


def results_of(*lines: Line) -> Results:
    results = Results()
    RUN[lines[0].kind](lines, results)
    return results


def tampered(kind: Kind, changes: Mapping[str, object]) -> Line:
    """Return the first case of a kind with other values, by their places. `*` is every member."""
    case: Case = json.loads(json.dumps(lines_with(kind, FILES[kind][1])[0].content))
    for place, value in changes.items():
        *way, last = place.split(".")
        found: list[Any] = [case]
        for step in way:
            if step == "*":
                found = [each for inner in found for each in inner.values()]
            else:
                found = [inner[int(step)] if isinstance(inner, list) else inner[step] for inner in found]
        for each in found:
            each[last] = value
    return Line(kind, case, "cases.jsonl:1")


N, P, V = Kind.NOMINATED, Kind.PREEMPTION, Kind.VOLUME
ERROR: Final = {"code": "Error", "reasons": ["falsified"]}
NO_NUMBER: Final = "not a number"
ZONE: Final = "expected.plugins.VolumeZone"


@pytest.mark.parametrize(
    ("kind", "changes", "named"),
    [
        (N, {"expected.filter_failed.*.code": "falsified"}, "expected ('falsified', ["),
        (N, {"expected.filter_failed.*.reasons": ["falsified"]}, "['falsified']"),
        (N, {"expected.filter_failed.*.plugin": "Falsified"}, "expected 'Falsified'"),
        (N, {"expected.feasible": ["falsified"]}, "cached feasible\n    expected ['falsified']"),
        (N, {"nominated.0.spec.priority": NO_NUMBER}, "DecodeError"),
        (P, {"expected.candidates.*.victims": ["a/falsified"]}, "'victims': ['a/falsified']"),
        (P, {"expected.candidates.*.num_pdb_violations": 77}, "'num_pdb_violations': 77"),
        (P, {"expected.filter_failed.falsified": {**ERROR, "plugin": "P"}}, "filter_failed[falsified]"),
        (P, {"expected.failed.falsified": ERROR}, "  failed[falsified]"),
        (P, {"expected.potential_nodes": ["falsified"]}, "potential_nodes\n    expected ['falsified']"),
        (P, {"expected.chosen": ["falsified"]}, "chosen\n    expected ['falsified']"),
        (P, {"expected.chosen_all_nodes": ["falsified"]}, "chosen_all_nodes\n    expected ['falsified']"),
        (
            P,
            {"expected.eligible": False, "expected.not_eligible_reason": "falsified"},
            "not_eligible_reason\n    expected 'falsified'",
        ),
        (P, {"pods.0.spec.priority": NO_NUMBER}, "DecodeError"),
        (V, {f"{ZONE}.filter_failed": {"n": ERROR}}, f"expected {ERROR}\n"),
        (V, {ZONE: {"prefilter": "Error", "prefilter_reasons": ["falsified"]}}, "prefilter\n    expected 'Error'\n"),
        (V, {"pvs": [{"metadata": {"name": "pv", "labels": "not a mapping"}}]}, "DecodeError"),
    ],
    ids=lambda value: "" if isinstance(value, Kind | str) else ",".join(value),
)
def test_a_falsified_case_fails_and_is_reported_with_its_place(
    kind: Kind, changes: Mapping[str, object], named: str
) -> None:
    results = results_of(tampered(kind, changes))
    assert results.failed["VolumeZone"] == 1 if kind is V else list(results.failed.values()) == [1]
    assert any("(cases.jsonl:1)" in failure and named in failure for failure in results.failures)


@pytest.mark.parametrize("member", ["refused_by_nominated", "only_with_nominated", "other_refusal"])
def test_there_are_cases_in_which_nominations_matter(member: str) -> None:
    assert len(lines_with(N, member)) > 10


def test_a_case_whose_nominated_pods_refuse_a_node_fails_without_them() -> None:
    line = tampered(N, {"nominated": []})
    results = results_of(line)
    assert results.failed == {nominated_cases.NAME: 1}
    for way in nominated_cases.WAYS:
        assert f"{way} failed[{line.content['expected']['refused_by_nominated'][0]}]" in results.failures[0]


def test_a_volume_plugin_without_a_runner_is_left_out_by_name_and_all_are_compared_where_all_were_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(volume_cases, "VOLUME_PLUGINS", {"VolumeZone": VolumeZone})
    line = tampered(V, {})
    results = results_of(line)
    assert set(results.left_out) == {
        f"{name} (no runner)" for name in ("VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding")
    }
    assert list(results.passed) == ["VolumeZone"]
    of_zone = {"VolumeZone": line.content["expected"]["plugins"]["VolumeZone"]}
    changes = {"expected.plugins": of_zone, "expected.feasible": ["no such node"]}
    assert results_of(tampered(V, changes)).failed == {"all volume plugins": 1}
