"""What finds differences finds them: with a program that replies from golden data instead of the real plugins.

Each run of `python -m tests.parity` first compares the plugins with the golden data of their release.
"""

import json
import sys
from collections.abc import Iterator
from copy import deepcopy
from itertools import islice
from pathlib import Path
from random import Random

import pytest

from tests.conformance.golden_files import read
from tests.parity import comparison
from tests.parity.__main__ import Turns
from tests.parity.comparison import compared, confirmed, newest, not_returned, smallest
from tests.parity.generator import KINDS, case_of
from tests.parity.intree import InTree, Reply
from tests.parity.mutation import Mutator
from tests.parity.random_nodes import V1
from tests.parity.recording import allocator, instrumented
from tests.parity.report import biting
from tests.parity.sequences import PLACED, places
from tests.parity.tables import cases

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


def falsified(case: V1) -> V1:
    """Return a case whose `expected` is wrong for the first node."""
    wrong = deepcopy(case)
    expected, node = wrong["expected"], wrong["nodes"][0]["metadata"]["name"]
    if "full" in expected:
        expected = expected["plugins"]["DynamicResources"]
    if "filter" in expected:
        expected["filter"][node] = {"code": "Error", "reasons": ["made up"]}
    else:
        expected.get("plugins", {}).get("VolumeZone", expected)["filter_failed"] = {
            node: {"code": "Error", "plugin": "None", "reasons": ["made up"]}
        }
    return wrong


def test_only_a_wrong_reply_that_comes_again_is_a_difference_and_it_is_counted(case: V1, intree: InTree) -> None:
    wrong, right = falsified(case), Reply(expected=case["expected"])
    assert compared(case, right, negative_selectors=True).failed == frozenset()
    found = compared(wrong, Reply(expected=wrong["expected"]), negative_selectors=True)
    assert "made up" in found.text
    again = confirmed({**case, "reply": {"expected": case["expected"]}}, found, intree, negative_selectors=True)
    assert (again.failed, again.left_out) == (frozenset(), "upstream takes the order of a map")
    requested = [{**each, "reply": {"expected": each["expected"]}} for each in (case, wrong)]
    turns = Turns("1.37", intree, (("golden", each) for each in [*requested, {**case, "reply": {"panic": "index"}}]))
    turns.turn(5)
    assert (turns.report.cases["golden"], turns.report.differing["golden"]) == (2, 1)
    assert turns.report.left_out["golden", "upstream panics"] == 1
    assert turns.report.biting["golden"] >= 1


def device_case(kubernetes: str) -> V1:
    """Return a case with a device on each of two nodes, and what DynamicResources says of them."""
    device = {"driver": "gpu.x.io", "devices": [{"name": "d"}]}
    return {
        "name": "devices",
        "kubernetes": kubernetes,
        "namespaces": [],
        "nodes": [{"metadata": {"name": name}, "status": {}} for name in "ab"],
        "pods": [],
        "pod": {
            "metadata": {"name": "p", "namespace": "x", "uid": "p"},
            "spec": {"containers": [{"name": "c"}], "resourceClaims": [{"name": "c", "resourceClaimName": "k"}]},
        },
        "deviceclasses": [{"metadata": {"name": "any"}, "spec": {}}],
        "resourceslices": [
            {
                "metadata": {"name": name},
                "spec": {**device, "nodeName": name, "pool": {"name": name, "generation": 1, "resourceSliceCount": 1}},
            }
            for name in "ab"
        ],
        "resourceclaims": [
            {
                "metadata": {"name": "k", "namespace": "x", "uid": "k"},
                "spec": {
                    "devices": {
                        "requests": [
                            {
                                "name": "r",
                                "exactly": {"deviceClassName": "any", "allocationMode": "ExactCount", "count": 1},
                            }
                        ]
                    }
                },
            }
        ],
    }


def rejected(*nodes: str) -> V1:
    """Return an `expected` of that case, in which some nodes are rejected."""
    verdict = {"code": "UnschedulableAndUnresolvable", "reasons": ["cannot allocate all claims"]}
    members = {"prefilter": "Success", "filter_failed": dict.fromkeys(nodes, verdict)}
    feasible = [name for name in "ab" if name not in nodes]
    return {"plugins": {"DynamicResources": members}, "feasible": feasible, "full": {}}


WEIGHT = "dev/edge/hard-weight-100"


def with_settings(**settings: object) -> V1:
    """Return a golden case with settings instead of its arguments."""
    case = next(dict(line.content) for line in read(newest()[0]) if line.content["name"] == WEIGHT)
    return {"kubernetes": "1.37", **{name: value for name, value in case.items() if name != "args"}, **settings}


def config(weight: int) -> list[V1]:
    return [
        {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": weight}},
        {"name": "PodTopologySpread", "args": {"defaultingType": "List"}},
    ]


@pytest.mark.parametrize(
    ("settings", "refuses", "differs"),
    [
        ({"pluginConfig": config(100)}, False, False),
        ({"pluginConfig": config(1)}, False, True),  # other scores
        ({"pluginConfig": config(101)}, False, True),  # Kindred alone refuses it
        ({"pluginConfig": config(101)}, True, False),
        ({"pluginConfig": config(100)}, True, True),
        ({"pluginConfig": config(100), "featureGates": {"DRAExtendedResource": False}}, True, False),  # it is locked
        ({"pluginConfig": config(100), "featureGates": {"VolumeLimitScaling": False}}, True, True),
    ],
)
def test_settings_hold_for_the_engine_and_what_one_side_alone_refuses_is_a_difference(
    settings: V1, *, refuses: bool, differs: bool
) -> None:
    case = with_settings(**settings)
    reply = Reply(rejected="featureGates: locked") if refuses else Reply(expected=case["expected"])
    assert bool(compared(case, reply, negative_selectors=True).failed) is differs


def test_a_score_with_which_a_scheduler_fails_tells_nothing() -> None:
    case = with_settings(pluginConfig=config(100))
    members = {**case["expected"]["plugins"]["NodeResourcesFit"], "normalized_all": {"n0": 101}}
    expected = {**case["expected"], "plugins": {**case["expected"]["plugins"], "NodeResourcesFit": members}}
    assert "overflow" in compared(case, Reply(expected=expected), negative_selectors=True).left_out


ALTERNATING = """\
import json, sys
for number, line in enumerate(sys.stdin):
    print(json.dumps({"expected": json.loads(line)["replies"][number % 2]}), flush=True)
"""


@pytest.mark.parametrize(
    ("kubernetes", "replies", "differs"),
    [
        ("1.35", [rejected("a"), rejected("b")], False),  # some order has each node as the engine
        ("1.37", [rejected("a"), rejected("b")], True),  # no order has both
        ("1.35", [rejected("a"), rejected("a", "b")], True),
    ],
)
def test_before_136_each_node_may_be_of_another_order_of_pools(
    kubernetes: str, replies: list[V1], *, differs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison, "_DRAWINGS", 4)
    case = {**device_case(kubernetes), "replies": replies}
    with InTree([sys.executable, "-c", ALTERNATING]) as intree:
        found = compared(case, intree.reply(case), negative_selectors=True)
        assert found.failed
        assert bool(confirmed(case, found, intree, negative_selectors=True).failed) is differs


def test_a_difference_is_shown_by_a_smaller_case(intree: InTree) -> None:
    wrong = falsified(next(dict(line.content) for line in read(newest()[1]) if line.content["pods"]))
    plugins = {"VolumeZone": wrong["expected"]["plugins"]["VolumeZone"]}
    wrong |= {"kubernetes": "1.34", "reply": {"expected": {"plugins": plugins, "feasible": []}}}
    found = compared(wrong, Reply(expected=wrong["reply"]["expected"]), negative_selectors=True)
    small = smallest(wrong, found, intree, negative_selectors=True)
    assert len(json.dumps(small)) < len(json.dumps(wrong))
    assert compared(small, Reply(expected=small["expected"]), negative_selectors=True).failed == found.failed


def test_a_program_that_ends_is_started_again_for_the_next_case(intree: InTree) -> None:
    good = {"name": "good", "reply": {"expected": {}}}
    replies = [*intree.replies([good, {"name": "bad", "ends": True}, good, good])]
    assert [reply.panic for reply in replies] == ["", "the program ended", "", ""]


def test_plugins_that_do_not_return_golden_data_are_no_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "_FILES", ("nominated",))
    # Replies with the `expected` of each golden case except the first one.
    echo = "import json, sys\nfor n, line in enumerate(sys.stdin):\n    e = json.loads(line)['expected']\n"
    echo += "    print(json.dumps({'expected': e if n else {}}), flush=True)"
    with InTree([sys.executable, "-c", echo]) as intree:
        count, wrong = not_returned("1.37", intree)
    assert count > len(wrong) == 1


def made(kind: str) -> list[V1]:
    return [case_of(7, kind, number) for number in range(30)]


def mutated(cases: list[V1]) -> list[V1]:
    mutator = Mutator(cases)
    return [mutator.case(Random(number)) for number in range(30)]  # noqa: S311  # no secret


@pytest.mark.parametrize("kind", [*KINDS, *newest()], ids=str)
def test_cases_are_the_same_for_a_seed_and_an_api_server_would_accept_their_objects(kind: str | Path) -> None:
    if isinstance(kind, str):
        found = made(kind)
        assert made(kind) == found
        assert len({str({**case, "name": ""}) for case in found}) == 30
    else:
        given = [dict(line.content) for line in islice(read(kind), 40)]
        before = str(given)
        found = mutated(given)
        assert str(given) == before
    for case in found:
        nodes = {each["metadata"]["name"] for each in case["nodes"]}
        assert all(each["spec"]["nodeName"] in nodes for each in case["pods"])
        incoming = case["queue"] if "queue" in case else [case["pod"]]
        pods = [*case["pods"], *case.get("nominated", ()), *incoming]
        assert len({(each["metadata"].get("namespace"), each["metadata"]["name"]) for each in pods}) == len(pods)


PLUGIN = """\
import (
\t"context"
)

func (pl *NodeName) EventsToRegister(_ context.Context) ([]fwk.ClusterEventWithHint, error) {
}

func (pl *NodeName) Filter(ctx context.Context, _ fwk.CycleState, pod *v1.Pod, nodeInfo fwk.NodeInfo) *fwk.Status {
}

func (pl *NodeName) PreScore(
\tpCtx context.Context,
\tincoming *v1.Pod,
\tfiltered []fwk.NodeInfo,
) *fwk.Status {
}
"""


def test_each_extension_point_of_upstreams_plugins_records_its_call() -> None:
    changed = instrumented(PLUGIN, "nodename")
    assert [line.partition(" tables.")[2] for line in changed.splitlines() if " tables." in line] == [
        'Record(pl, "nodename", pod, nodeInfo)',
        'Record(pl, "nodename", incoming, filtered)',
    ]
    assert changed.count('"kindred.test/e2e/tables"') == 1


ALLOCATOR = """\
import (
\t"k8s.io/dynamic-resource-allocation/structured/internal/schedulerapi"
)

func (a *Allocator) Allocate(ctx context.Context, node *v1.Node, claims []*Claim) (result []Result, err error) {
\tuse(alloc.allSlices)
}
"""


def test_each_call_of_the_allocator_is_recorded_in_its_copy() -> None:
    changed = allocator(ALLOCATOR)
    assert "{ tables.RecordAllocation(a, node, claims)" in changed
    assert '"kindred.test/e2e/tables/structured/schedulerapi"' in changed
    assert "RecordAllocation" not in allocator(ALLOCATOR.replace("allSlices", "slices"))


def test_slices_and_alternatives_of_a_recorded_call_have_different_names(tmp_path: Path) -> None:
    bare: V1 = {"metadata": {}, "spec": {}}
    request = {"name": "r", "firstAvailable": [{"name": "s"}, {"name": "s"}]}
    claims = [{"metadata": {"name": "k"}, "spec": {"devices": {"requests": [request]}}}]
    call = {"package": "dynamicresources", "pod": bare, "nodes": [{"metadata": {}}], "pods": []}
    slices = [{"metadata": {"name": "a"}}, {"metadata": {"name": "a"}}]
    (tmp_path / "calls.jsonl").write_text(json.dumps({**call, "resourceclaims": claims, "resourceslices": slices}))
    ((_, case),) = cases(tmp_path / "calls.jsonl")
    assert len({each["metadata"]["name"] for each in case["resourceslices"]}) == 2
    (made,) = case["resourceclaims"]
    assert len({each["name"] for each in made["spec"]["devices"]["requests"][0]["firstAvailable"]}) == 2
    assert (made["metadata"]["namespace"], case["devicetaintrules"]) == ("default", [])


def test_a_recorded_call_makes_one_case_with_what_the_test_left_out(tmp_path: Path) -> None:
    bare: V1 = {"metadata": {}, "spec": {}}
    call = {"package": "nodename", "pod": bare, "nodes": [{"metadata": {}}], "pods": [bare]}
    budgets = {**call, "package": "defaultpreemption"}
    (tmp_path / "calls.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in (call, call, budgets)))
    (kind, case), (_, preempting) = cases(tmp_path / "calls.jsonl")
    (pod,) = case["pods"]
    assert (kind, case["nodes"][0]["metadata"]["name"], pod["spec"]["nodeName"]) == ("nodename", "nodes-0", "nodes-0")
    assert pod["metadata"] == {"name": "pod-1", "namespace": "default", "uid": "uid-1"}
    assert case["pod"]["spec"]["containers"] == [{"name": "c"}]
    assert preempting["pdbs"] == []


def test_a_wrong_place_of_one_pod_of_many_is_a_difference() -> None:
    cases = ({**case_of(1, "simulation", number), "kubernetes": "1.37"} for number in range(60))
    found = {case["what"]: (case, places(case)) for case in cases if len(case["queue"]) > 1}
    assert len(found) == 4
    for case, of_pods in found.values():
        placed = [{"pod": pod, "node": node} for pod, node in of_pods.items()]
        right, wrong = {"placed": placed}, {"placed": [{**placed[0], "node": "elsewhere"}, *placed[1:]]}
        assert not compared(case, Reply(expected=right), negative_selectors=True).failed
        result = compared(case, Reply(expected=wrong), negative_selectors=True)
        assert result.failed == frozenset({PLACED})
        assert "'elsewhere'" in result.text
        assert [*biting(case, wrong)] == ["all together"]
        part = {**case, "nodes": case["nodes"][1:]}
        assert compared(part, Reply(expected=wrong), negative_selectors=True).left_out
