"""The comparison, with a program that replies from golden data instead of the real plugins."""

import json
import sys
from collections.abc import Iterator
from copy import deepcopy

import pytest

from tests.conformance.golden_files import read
from tests.parity import golden
from tests.parity.__main__ import Turns
from tests.parity.bites import biting
from tests.parity.comparison import compared, confirmed, smallest, sorted_reasons
from tests.parity.golden import newest, not_returned
from tests.parity.intree import InTree, Reply
from tests.parity.random_nodes import V1

REPLYING = """\
import json, sys
for line in sys.stdin:
    case = json.loads(line)
    if case.get("ends"):
        sys.exit(2)
    print(json.dumps(case["reply"]), flush=True)
"""
"""A program that replies with the `reply` of each case."""


@pytest.fixture
def intree() -> Iterator[InTree]:
    with InTree([sys.executable, "-c", REPLYING]) as program:
        yield program


@pytest.fixture(params=newest(), ids=lambda file: str(file.name.partition(".")[0]))
def case(request: pytest.FixtureRequest) -> V1:
    return next(
        found for line in read(request.param) if (found := dict(line.content))["expected"].get("feasible", True)
    )


def replied(case: V1) -> Reply:
    return Reply(expected=case["expected"])


def falsified(case: V1) -> V1:
    """Return a case whose `expected` is wrong for the first node."""
    wrong = deepcopy(case)
    expected, node = wrong["expected"], wrong["nodes"][0]["metadata"]["name"]
    if "filter" in expected:
        expected["filter"][node] = {"code": "Error", "reasons": ["made up"]}
    else:
        expected.get("plugins", {}).get("VolumeZone", expected)["filter_failed"] = {
            node: {"code": "Error", "plugin": "None", "reasons": ["made up"]}
        }
    return wrong


def test_a_golden_case_does_not_differ(case: V1) -> None:
    assert compared(case, replied(case), negative_selectors=True).failed == frozenset()


def test_a_wrong_reply_differs(case: V1) -> None:
    found = compared(case, replied(falsified(case)), negative_selectors=True)
    assert found.failed
    assert "made up" in found.text


def test_a_panic_of_upstream_is_left_out(case: V1) -> None:
    assert compared(case, Reply(panic="index"), negative_selectors=True).left_out == "upstream panics"


def test_a_case_that_cannot_be_decoded_is_left_out(case: V1) -> None:
    assert compared(case, Reply(refused="quantities"), negative_selectors=True).left_out == "upstream refuses it"


def test_a_selector_of_only_negative_requirements_is_left_out_where_the_release_has_the_bug(case: V1) -> None:
    expression = {"key": "team", "operator": "DoesNotExist"}
    term = {"topologyKey": "zone", "namespaceSelector": {"matchExpressions": [expression]}}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    prone = deepcopy(case)
    prone["pod"]["spec"]["affinity"] = {"podAntiAffinity": required}
    assert compared(prone, replied(case), negative_selectors=False).left_out == "kubernetes#141526"
    term["namespaceSelector"] = {"matchLabels": {"team": "a"}, **term["namespaceSelector"]}  # type: ignore[dict-item]
    assert compared(prone, replied(case), negative_selectors=False).left_out == ""


def test_a_difference_that_does_not_come_again_is_none(case: V1, intree: InTree) -> None:
    wrong = compared(case, replied(falsified(case)), negative_selectors=True)
    asked = {**case, "reply": {"expected": case["expected"]}}
    again = confirmed(asked, wrong, intree, negative_selectors=True)
    assert (again.failed, again.left_out) == (frozenset(), "upstream takes the order of a map")


def test_a_difference_that_comes_again_is_one(case: V1, intree: InTree) -> None:
    wrong = falsified(case)
    found = compared(wrong, replied(wrong), negative_selectors=True)
    asked = {**wrong, "reply": {"expected": wrong["expected"]}}
    assert confirmed(asked, found, intree, negative_selectors=True) is found


def test_a_difference_is_shown_by_a_smaller_case(intree: InTree) -> None:
    case = next(dict(line.content) for line in read(newest()[1]) if line.content["pods"])
    wrong = falsified(case)
    wrong["kubernetes"] = "1.34"
    wrong["reply"] = {
        "expected": {"plugins": {"VolumeZone": wrong["expected"]["plugins"]["VolumeZone"]}, "feasible": []}
    }
    found = compared(wrong, Reply(expected=wrong["reply"]["expected"]), negative_selectors=True)
    small = smallest(wrong, found, intree, negative_selectors=True)
    assert len(json.dumps(small)) < len(json.dumps(wrong))
    assert compared(small, Reply(expected=small["expected"]), negative_selectors=True).failed == found.failed


def test_a_program_that_ends_is_started_again_for_the_next_case(intree: InTree) -> None:
    good = {"name": "good", "reply": {"expected": {}}}
    replies = [*intree.replies([good, {"name": "bad", "ends": True}, good, good])]
    assert [reply.panic for reply in replies] == ["", "the program ended", "", ""]


def test_scalar_resources_among_the_reasons_are_in_the_order_of_their_names() -> None:
    reasons = ["Too many pods", "Insufficient example.com/b", "Insufficient example.com/a"]
    assert sorted_reasons({"reasons": reasons}) == {"reasons": [reasons[0], reasons[2], reasons[1]]}
    assert sorted_reasons(["Insufficient memory", "Insufficient a.b/c"]) == [
        "Insufficient memory",
        "Insufficient a.b/c",
    ]


def test_a_case_bites_where_nodes_differ() -> None:
    case: V1 = {"nodes": [{}, {}]}
    refused: V1 = {"filter_failed": {"n0": {}}}
    assert set(biting(case, {"plugins": {"VolumeZone": refused}, "feasible": ["n1"]})) == {"VolumeZone", "all together"}
    assert set(biting(case, {"plugins": {"VolumeZone": {}}, "feasible": ["n0", "n1"]})) == set()
    assert set(biting(case, {"plugins": {"VolumeZone": {"normalized_all": {"n0": 1, "n1": 2}}}, "feasible": []})) == {
        "VolumeZone"
    }


def test_the_report_counts_what_was_compared_and_what_differs(case: V1, intree: InTree) -> None:
    wrong = falsified(case)
    cases = [{**each, "reply": {"expected": each["expected"]}} for each in (case, wrong)]
    cases.append({**case, "reply": {"panic": "index"}})
    turns = Turns("1.37", intree, (("golden", each) for each in cases))
    turns.turn(5)
    report = turns.report
    assert (report.cases["golden"], report.differing["golden"]) == (2, 1)
    assert report.left_out["golden", "upstream panics"] == 1
    assert "2 cases, 1 differ" in report.text()


def test_plugins_that_do_not_return_golden_data_are_no_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(golden, "_FILES", ("nominated",))
    # Replies with the `expected` of each golden case except the first one.
    echo = "import json, sys\nfor n, line in enumerate(sys.stdin):\n    e = json.loads(line)['expected']\n"
    echo += "    print(json.dumps({'expected': e if n else {}}), flush=True)"
    with InTree([sys.executable, "-c", echo]) as intree:
        count, wrong = not_returned("1.37", intree)
        assert not_returned("1.36", intree) == (0, [])
    assert count > len(wrong) == 1


@pytest.mark.parametrize(
    "before", ['running "VolumeBinding" filter plugin', 'running PreFilter plugin "VolumeBinding"']
)
def test_an_error_is_compared_without_what_the_framework_puts_before_it(before: str) -> None:
    assert sorted_reasons([f"{before}: could not translate pv"]) == ["could not translate pv"]
