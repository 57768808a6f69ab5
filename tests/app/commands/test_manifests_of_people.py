"""Manifests that people have published, against the pods that an API server and its controllers make of them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from click.testing import CliRunner, Result

from app.commands.cli import main

DATA: Final = Path(__file__).parent / "data"
PUBLISHED: Final = yaml.safe_load((DATA / "published-manifests.yaml").read_text("utf-8"))
CLUSTER: Final = """
- {kind: Namespace, metadata: {name: default}}
- kind: Node
  metadata: {name: a, labels: {kubernetes.io/hostname: a, zone: a}}
  status: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}, nodeInfo: {kubeletVersion: v1.36.3}}
- kind: Node
  metadata: {name: b, labels: {kubernetes.io/hostname: b, zone: b}}
  status: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}, nodeInfo: {kubeletVersion: v1.36.3}}
"""


KATA: Final = """
- kind: RuntimeClass
  metadata: {name: runsc}
  handler: runsc
  overhead: {podFixed: {cpu: 500m}}
  scheduling: {nodeSelector: {zone: b}, tolerations: [{key: storage, value: slow, effect: NoSchedule}]}
"""
HIGH: Final = "[{kind: PriorityClass, apiVersion: scheduling.k8s.io/v1, metadata: {name: high}, value: 9}]"


def explained(folder: Path, manifest: str, objects: str = "", *arguments: str) -> Result:
    """Explain a manifest in a cluster of the nodes a and b and further objects, all as YAML."""
    dump = {"kind": "List", "apiVersion": "v1", "items": [*yaml.safe_load(CLUSTER), *(yaml.safe_load(objects) or ())]}
    (folder / "cluster.json").write_text(json.dumps(dump), "utf-8")
    (folder / "manifest.yaml").write_text(f"---\n{manifest}", "utf-8")
    files = ["--snapshot", str(folder / "cluster.json"), "-f", str(folder / "manifest.yaml")]
    return CliRunner().invoke(main, ["explain", *files, *arguments])


def reported(result: Result) -> dict[str, Any]:
    assert result.exit_code in {0, 1}, result.output
    explanation: dict[str, Any] = json.loads(result.stdout)
    return explanation


def fitting(explanation: dict[str, Any]) -> list[str]:
    return sorted(each["node"] for each in explanation["summary"]["best"])


def reasons(explanation: dict[str, Any]) -> list[str]:
    return [each["reason"] for each in explanation["summary"]["reasons"]]


@pytest.mark.parametrize(
    ("report", "file", "status", "text"),
    [
        ("01-limits-without-requests", "gpu-pod.json", 1, "Insufficient nvidia.com/gpu"),
        ("01-limits-without-requests", "cpu-deployment.json", 1, "Insufficient cpu"),
        ("01-limits-without-requests", "pod-level.json", 1, "Insufficient cpu"),
        ("03-daemonset-on-cordoned-node", "agent.json", 0, "tolerations of a DaemonSet"),
        ("06-new-revision-of-a-deployment", "web.json", 0, "label pod-template-hash of a new revision"),
        ("27-manifests-as-people-have-them", "web.yaml", 0, "Pod shop/web-0 fits"),
        ("27-manifests-as-people-have-them", "list-of-one.json", 0, "Pod default/waiting fits"),
        ("27-manifests-as-people-have-them", "podtemplate.yaml", 0, "Pod default/base-0 fits"),
        ("27-manifests-as-people-have-them", "jobset.yaml", 0, "Pod default/train-workers-0-0 fits"),
        ("35-runtime-class", "pod.json", 1, "overhead cpu=250m, memory=120Mi of RuntimeClass kata"),
    ],
)
def test_what_was_reported_is_right(report: str, file: str, status: int, text: str) -> None:
    folder = DATA / report
    files = ["-f", str(folder / file), "--snapshot", str(folder / "cluster.json")]
    result = CliRunner().invoke(main, ["explain", *files])
    assert result.exit_code == status, result.output
    assert text in " ".join(result.stdout.split())


def test_filter_judges_the_pod_as_it_would_be_stored() -> None:
    folder = DATA / "01-limits-without-requests"
    files = ["--pod", str(folder / "gpu-pod.json"), "--snapshot", str(folder / "cluster.json")]
    result = CliRunner().invoke(main, ["filter", *files, "--profile", "full"])
    assert json.loads(result.stdout)["NodeNames"] in ([], None)


def test_filter_supposes_the_claims_and_the_end_of_pods_of_a_manifest(tmp_path: Path) -> None:
    stored = """
    - {kind: Pod, metadata: {name: d-x, labels: {d: d}, ownerReferences: [
        {apiVersion: apps/v1, kind: DaemonSet, name: d, uid: u, controller: true}]},
        spec: {nodeName: a, containers: [{name: c, resources: {requests: {cpu: "4"}}}]}}
    - {kind: StorageClass, metadata: {name: wait}, provisioner: x.csi, volumeBindingMode: WaitForFirstConsumer}
    - {kind: StorageClass, metadata: {name: imm}, provisioner: x.csi, volumeBindingMode: Immediate}
    """
    manifest = """
    {kind: DaemonSet, apiVersion: apps/v1, metadata: {name: d}, spec: {template: {metadata: {labels: {d: d}}, spec: {
      containers: [{name: c, resources: {requests: {cpu: "4"}}}], volumes: [
        {name: w, ephemeral: {volumeClaimTemplate: {spec: {storageClassName: wait}}}},
        {name: i, ephemeral: {volumeClaimTemplate: {spec: {storageClassName: imm}}}}]}}}}
    """
    explained(tmp_path, manifest, stored)
    files = ["--snapshot", str(tmp_path / "cluster.json"), "--pod", str(tmp_path / "manifest.yaml")]
    result = CliRunner().invoke(main, ["filter", *files, "--profile", "full"])
    assert json.loads(result.stdout)["NodeNames"] == ["a", "b"]
    assert "Warning: not judged: claim d-0-i: class imm makes its volume" in result.stderr


@pytest.mark.parametrize("case", PUBLISHED, ids=lambda each: each["source"].partition(":")[0])
def test_what_was_published_is_right(case: dict[str, Any], tmp_path: Path) -> None:
    explanation = reported(explained(tmp_path, case["manifest"], case.get("objects", ""), "-o", "json"))
    assert fitting(explanation) == case["nodes"], reasons(explanation)
    assert case["text"] in "; ".join((*explanation["manifest"]["completed"], *explanation["manifest"]["unknown"]))


def test_what_is_not_judged_is_said_before_the_reasons(tmp_path: Path) -> None:
    pod = "{kind: Pod, metadata: {name: p}, spec: {runtimeClassName: kata, containers: [{name: c}]}}"
    lines = explained(tmp_path, pod).stdout.splitlines()
    assert lines[0] == "Pod default/p may fit on 2 of 2 nodes: not every rule was judged."
    assert lines[1].startswith("Not judged: runtimeClassName kata: no RuntimeClass is at hand")


def test_a_new_claim_is_not_judged_while_the_default_class_is_unknown(tmp_path: Path) -> None:
    volume = "{name: d, ephemeral: {volumeClaimTemplate: {spec: {}}}}"
    pod = f"{{kind: Pod, metadata: {{name: p}}, spec: {{containers: [{{name: c}}], volumes: [{volume}]}}}}"
    stored = "[{kind: PersistentVolumeClaim, metadata: {name: x}}, {kind: PersistentVolume, metadata: {name: x}}]"
    lines = explained(tmp_path, pod, stored).stdout.splitlines()
    assert lines[0] == "Pod default/p may fit on 2 of 2 nodes: not every rule was judged."
    assert any(line.startswith("Not judged: ") and "VolumeBinding" in line for line in lines)


@pytest.mark.parametrize(("cpu", "unknown"), [("1", 0), ("9", 1)])
def test_an_unknown_priority_is_said_of_a_pod_that_fits_nowhere(cpu: str, unknown: int, tmp_path: Path) -> None:
    spec = f'{{priorityClassName: high, containers: [{{name: c, resources: {{requests: {{cpu: "{cpu}"}}}}}}]}}'
    explanation = reported(explained(tmp_path, f"{{kind: Pod, metadata: {{name: p}}, spec: {spec}}}", "", "-o", "json"))
    found = (explanation["manifest"] or {"unknown": []})["unknown"]
    assert [each.partition(":")[0] for each in found] == ["priorityClassName high"] * unknown


@pytest.mark.parametrize(
    ("manifest", "objects", "message"),
    [
        pytest.param(
            "{kind: Pod, metadata: {name: p}, spec: {containers: [{name: nginx, resources: {requests: {cpu: 700m}}}]}}",
            "[{kind: LimitRange, metadata: {name: l}, spec: {limits: [{type: Container, default: {cpu: 10m}}]}}]",
            "container nginx, cpu: 700m is more than the limit 10m that LimitRange l adds: the API server refuses",
            id="kubernetes/kubernetes#112835",
        ),
        pytest.param(
            "{kind: Pod, metadata: {name: p}, spec: {runtimeClassName: runsc, nodeSelector: {zone: a}}}",
            KATA,
            "pod.spec.nodeSelector.zone: a, but RuntimeClass runsc has b: the API server refuses this pod",
            id="kubernetes/enhancements#909",
        ),
        pytest.param(
            "{kind: Pod, metadata: {name: p}, spec: {runtimeClassName: absent}}",
            KATA,
            "pod.spec.runtimeClassName: there is no RuntimeClass absent: the API server refuses",
            id="no-runtime-class",
        ),
        pytest.param(
            "{kind: Pod, metadata: {name: p}, spec: {runtimeClassName: runsc, overhead: {cpu: 1}}}",
            KATA,
            "pod.spec.overhead: cpu=1, but RuntimeClass runsc has ",
            id="another-overhead",
        ),
        pytest.param(
            "{kind: Pod, metadata: {name: p}, spec: {priorityClassName: absent}}",
            HIGH,
            "pod.spec.priorityClassName: there is no PriorityClass absent: the API server refuses",
            id="no-priority-class",
        ),
        pytest.param(
            "{kind: Pod, metadata: {name: p}, spec: {priorityClassName: high, priority: 8}}",
            HIGH,
            "pod.spec.priority: 8, but with PriorityClass high it is 9: the API server refuses",
            id="another-priority",
        ),
        pytest.param(
            "{kind: Pod, metadata: {name: p}, spec: {priority: 8}}",
            HIGH,
            "pod.spec.priority: 8, but with no default PriorityClass it is 0",
            id="priority-without-a-class",
        ),
        pytest.param(
            "{kind: Pod, metadata: {name: p}, spec: {priorityClassName: high, preemptionPolicy: Never}}",
            HIGH,
            "pod.spec.preemptionPolicy: Never, but with PriorityClass high it is PreemptLowerPriority",
            id="another-preemption-policy",
        ),
        pytest.param(
            "{kind: Pod, metadata: {name: nginx-pod}, spec: {containers: [{name: c}], preemptionPolicy: Never}}",
            HIGH,
            "pod.spec.preemptionPolicy: Never, but with no default PriorityClass it is PreemptLowerPriority",
            id="kubernetes/kubernetes#123882",
        ),
        pytest.param(
            "{kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, resources: {limits: {cpu: 3}}}]}}",
            "[{kind: LimitRange, metadata: {name: l}, spec: {limits: [{type: Container, max: {cpu: 2}}]}}]",
            "container c, cpu: 3 of requests is more than the max 2 of LimitRange l: the API server refuses",
            id="more-than-the-max",
        ),
        pytest.param(
            "{kind: Pod, metadata: {name: p}, spec: {initContainers: [{name: c, resources: {requests: {cpu: 100m}}}]}}",
            "[{kind: LimitRange, metadata: {name: l}, spec: {limits: [{type: Container, min: {cpu: 1}}]}}]",
            "container c, cpu: 100m of requests is less than the min 1 of LimitRange l: the API server refuses",
            id="less-than-the-min",
        ),
        pytest.param(
            "{kind: Job, metadata: {name: x}, spec: {template: {spec: {containers: [{name: c, ports: 7}]}}}}",
            "",
            "pod.spec.template.spec.containers[0].ports: expected array",
            id="malformed",
        ),
    ],
)
def test_what_the_api_server_refuses_is_an_error(manifest: str, objects: str, message: str, tmp_path: Path) -> None:
    result = explained(tmp_path, manifest, objects)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


SEVERAL: Final = """
{kind: Deployment, apiVersion: apps/v1, metadata: {name: web, namespace: shop}, spec: {template: {spec: {containers: [
  {name: c, image: x}]}}}}
---
{kind: Job, apiVersion: batch/v1, metadata: {name: migrate}, spec: {template: {spec: {containers: [{name: c}]}}}}
"""


@pytest.mark.parametrize("name", ["shop/web", "web", "Deployment/web", "deployment/web"])
def test_of_several_workloads_a_name_chooses_one(name: str, tmp_path: Path) -> None:
    assert reported(explained(tmp_path, SEVERAL, "", name, "-o", "json"))["summary"]["pod"] == "shop/web-0"


@pytest.mark.parametrize(
    ("manifest", "arguments", "message"),
    [
        (SEVERAL, (), "found 2: Deployment shop/web, Job migrate; keep one of them, or name it beside -f"),
        (SEVERAL, ("shop/migrate",), "is named shop/migrate: there is Deployment shop/web, Job migrate"),
        ("{kind: Service, metadata: {name: s}}\n---\n{kind: Secret}", (), "pod template, found Service s, Secret"),
        ("{kind: Certificate, spec: {template: {spec: {}}}}", (), "this Certificate has none"),
        ("{kind: Prometheus, metadata: {name: p}, spec: {containers: [{name: c}]}}", (), "this Prometheus has none"),
    ],
)
def test_a_file_without_one_workload_is_refused(
    manifest: str, arguments: Sequence[str], message: str, tmp_path: Path
) -> None:
    result = explained(tmp_path, manifest, "", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
