"""`kindred explain` prints the fact that decides, for dumps of problems that people have published (`data`)."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from app.commands.amounts_text import cluster_amounts_text, node_amounts_text
from app.commands.cli import main
from app.objects.decode_pod import decode_pod
from core.diagnosis.amounts import cluster_amounts
from core.explaining.requirements import AskedOfNode, Source, UnmetRequirement
from core.plugins.amounts import NodeAmounts
from tests.app.feeds.dumps import as_json, listed
from tests.core.diagnosis.deciding import decision_of, roomy

DATA = Path(__file__).parent / "data"


def explained(pod: str, dump: str, *more: str) -> tuple[int, str]:
    """Return the exit status, and what is printed as one line."""
    found = CliRunner().invoke(main, ["explain", f"default/{pod}", "--snapshot", str(DATA / dump), *more])
    assert found.exception is None or isinstance(found.exception, SystemExit)
    return found.exit_code, " ".join(found.output.split())


@pytest.mark.parametrize(
    ("dump", "fact"),
    [
        ("none", "and the driver has reported no capacity for this class"),
        ("zero", "the driver has reported (CSIStorageCapacity): 0 for kubernetes.io/hostname=node-a (1 node)"),
        ("other-topology", "60Gi for pool.example/node=node-a (no node; the nodes have no label pool.example/node)"),
    ],
    ids=["openebs/zfs-localpv#453", "longhorn/longhorn#12807", "openebs/lvm-localpv#265"],
)
def test_the_capacities_of_a_driver_are_told(dump: str, fact: str) -> None:
    code, stated = explained("db", f"capacity-{dump}.json")
    assert code == 1
    assert "did not have enough free storage" in stated
    assert "claim default/data: StorageClass pool is of driver pool.csi.example; it needs 4Gi" in stated
    assert fact in stated


@pytest.mark.parametrize(
    ("pod", "fact"),
    [
        ("gt-float", "\"150.1\": for 'Gt', 'Lt' operators, the value must be an integer"),
        ("empty-term", "only empty terms"),
    ],
    ids=["kubernetes/kubernetes#86488", "kubernetes/kubernetes#126325"],
)
def test_a_node_selector_that_can_match_no_node_is_told(pod: str, fact: str) -> None:
    code, stated = explained(pod, "selector-that-cannot-match.json")
    assert code == 1
    assert fact in stated
    assert "lacks" not in stated


def test_a_label_that_is_no_integer_is_told() -> None:
    """Source: kubernetes/website#39742."""
    unmet = UnmetRequirement(AskedOfNode(Source.NODE_AFFINITY, 0, "cores", "Gt", ("8",)), "8.5")
    (line,) = [*node_amounts_text(NodeAmounts(requirements=[unmet]))][1:]
    assert line == "    lacks cores > 8 (has 8.5, which is no integer)"
    (line,) = [*node_amounts_text(NodeAmounts(requirements=[msgspec.structs.replace(unmet, has="")]))][1:]
    assert line == "    lacks cores > 8 (has '', which is no integer)"


def test_a_request_that_overflows_is_told_although_the_pod_fits() -> None:
    """Source: kubernetes/kubernetes#102134."""
    code, stated = explained("huge", "memory-beyond-int64.json", "--profile", "full")
    assert code == 0
    assert "the request of memory is more than an int64 holds: it overflows, and kube-scheduler counts 0" in stated


def test_the_container_that_decides_an_amount_is_told() -> None:
    migrate = {"name": "migrate", "resources": {"requests": {"cpu": "9"}}}
    pod = decode_pod(as_json({"metadata": {"name": "next"}, "spec": {"initContainers": [migrate]}}))
    (line, *_) = [*cluster_amounts_text(cluster_amounts(decision_of(pod, roomy("n1")), 5), 1)][1:]
    assert str(line).startswith("  needs cpu 9 (init container migrate asks for it); most free on any node: 8")


GONE = "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("pod", "stated"),
    [
        ("ended", "it has ended (phase Succeeded or Failed), so no scheduler places it."),
        ("deleted", "it is being deleted, so no scheduler places it."),
        ("of-another", "so perhaps none with schedulerName my-scheduler runs."),
        ("tried", ""),
        ("gated", ""),
    ],
)
def test_a_pod_that_no_scheduler_tries_is_told_first(tmp_path: Path, pod: str, stated: str) -> None:
    """Source: upstream skipPodSchedule; kubernetes/website#36424, gocrane/crane-scheduler#5, scheduler-plugins#571."""
    failed = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1"}
    other = {"schedulerName": "my-scheduler"}
    pods: list[dict[str, Any]] = [
        {"metadata": {"name": "ended"}, "status": {"phase": "Failed"}},
        {"metadata": {"name": "deleted", "deletionTimestamp": GONE}},
        {"metadata": {"name": "of-another"}, "spec": other},
        {"metadata": {"name": "tried"}, "spec": other, "status": {"conditions": [failed]}},
        {"metadata": {"name": "gated"}, "spec": {**other, "schedulingGates": [{"name": "wait"}]}},
    ]
    items = [{"kind": "Pod", "apiVersion": "v1", **each} for each in pods]
    node = {"kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"pods": "9"}}}
    dump = tmp_path / "dump.json"
    dump.write_bytes(as_json(listed(*items, node, {"kind": "Namespace", "metadata": {"name": "default"}})))
    _, reported = explained(pod, str(dump))
    verdict = f"Pod default/{pod} fits on 1 of 1 node."
    assert reported[: reported.index(verdict)].endswith(stated + " ") if stated else "no scheduler" not in reported
    assert verdict in reported


def test_a_pod_that_has_ended_or_is_on_a_node_has_no_changes_that_would_help(tmp_path: Path) -> None:
    """A bound pod is judged as if it were deleted, so it may fit nowhere: the node was cordoned or tainted later."""
    pods: list[dict[str, Any]] = [
        {"metadata": {"name": "bound"}, "spec": {"nodeName": "n"}},
        {"metadata": {"name": "ended"}, "status": {"phase": "Succeeded"}},
        {"metadata": {"name": "deleted", "deletionTimestamp": GONE}},
        {"metadata": {"name": "waits"}},
    ]
    items = [{"kind": "Pod", "apiVersion": "v1", **each} for each in pods]
    node = {
        "kind": "Node",
        "metadata": {"name": "n"},
        "spec": {"unschedulable": True},
        "status": {"allocatable": {"pods": "9"}},
    }
    dump = tmp_path / "dump.json"
    dump.write_bytes(as_json(listed(*items, node, {"kind": "Namespace", "metadata": {"name": "default"}})))
    reported = {
        each["metadata"]["name"]: explained(each["metadata"]["name"], str(dump), "-o", "wide")[1] for each in pods
    }
    assert (
        "Pod default/bound: it is on n already, and is explained as if it were deleted. Pod default/b"
        in reported["bound"]
    )
    for name, text in reported.items():
        assert f"Pod default/{name} fits on none of 1 node." in text
        assert ("uncordon" in text) == ("tries it again" in text) == (name == "waits")
        assert "No change" not in text
