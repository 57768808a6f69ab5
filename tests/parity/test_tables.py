"""Recording calls of upstream's plugins, and making cases from them."""

import json
from pathlib import Path

from tests.parity.random_nodes import V1
from tests.parity.recording import instrumented
from tests.parity.tables import case_of, cases

PLUGIN = """\
package nodename

import (
\t"context"
)

func (pl *NodeName) EventsToRegister(_ context.Context) ([]fwk.ClusterEventWithHint, error) {
}

func (pl *NodeName) Filter(ctx context.Context, _ fwk.CycleState, pod *v1.Pod, nodeInfo fwk.NodeInfo) *fwk.Status {
\treturn nil
}

func (pl *NodeName) PreFilter(ctx context.Context, p *v1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
}

func (pl *NodeName) PreScore(
\tpCtx context.Context,
\tincoming *v1.Pod,
\tfiltered []fwk.NodeInfo,
) *fwk.Status {
}
"""


def call(**members: object) -> V1:
    return {
        "package": "nodename",
        "pod": {"metadata": {}, "spec": {}},
        "nodes": [{"metadata": {}}],
        "pods": None,
        **members,
    }


def test_each_extension_point_records_its_call_and_nothing_else_does() -> None:
    changed = instrumented(PLUGIN, "nodename")
    assert [line.partition(" tables.")[2] for line in changed.splitlines() if " tables." in line] == [
        'Record(pl, "nodename", pod, nodeInfo)',
        'Record(pl, "nodename", p)',
        'Record(pl, "nodename", incoming, filtered)',
    ]
    assert changed.count('"kindred.test/e2e/tables"') == 1


def test_lines_stay_where_they_are_but_for_the_import() -> None:
    assert len(instrumented(PLUGIN, "nodename").splitlines()) == len(PLUGIN.splitlines()) + 1


def test_a_file_without_an_extension_point_stays_as_it_is() -> None:
    assert instrumented("package x\n", "x") == "package x\n"


def test_what_a_test_left_out_is_there() -> None:
    made = case_of(call(pods=[{"metadata": {}, "spec": {}}], namespaces=[{"metadata": {}}]))
    pod = made["pods"][0]
    assert (made["nodes"][0]["metadata"]["name"], made["namespaces"][0]["metadata"]["name"]) == ("nodes-0", "default")
    assert pod["spec"]["nodeName"] == "nodes-0"
    assert pod["metadata"] == {"name": "pod-1", "namespace": "default", "uid": "uid-1"}
    assert made["pod"]["spec"]["containers"] == [{"name": "c"}]


def test_what_a_test_gave_stays() -> None:
    given = {"metadata": {"name": "p", "namespace": "a", "uid": "u"}, "spec": {"containers": [{"name": "x"}]}}
    assert case_of(call(pod=given))["pod"] == given


def test_pods_that_are_done_are_left_out_as_an_informer_leaves_them_out() -> None:
    done = {"metadata": {}, "spec": {}, "status": {"phase": "Succeeded"}}
    assert case_of(call(pods=[done]))["pods"] == []


def test_a_package_of_volumes_makes_volume_cases_and_preemption_makes_those_with_budgets() -> None:
    assert "storageclasses" in case_of(call(package="volumezone"))
    made = case_of(call(package="defaultpreemption", pods=[{"metadata": {}, "spec": {}}]))
    assert made["pdbs"] == []
    assert made["pods"][0]["status"]["startTime"]


def test_the_same_call_makes_one_case(tmp_path: Path) -> None:
    other = call(nodes=[{"metadata": {"name": "other"}}])
    (tmp_path / "calls.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in (call(), call(), other)))
    found = [*cases(tmp_path / "calls.jsonl")]
    assert [(kind, case["name"]) for kind, case in found] == [
        ("nodename", "table/nodename/1"),
        ("nodename", "table/nodename/2"),
    ]
