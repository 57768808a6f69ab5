"""Pending pods that people have published, one of each kind: after the first remedy, when owners have acted, each runs.

The inputs are shortened, with names of the source. What is not said is default: nodes have room, and no taint.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from app.commands.cli import main
from app.objects.decode_node import decode_namespace, decode_node
from app.objects.decode_pod import decode_pod
from app.objects.decode_storage import decode_persistent_volume, decode_persistent_volume_claim
from core.diagnosis.remedies.find_remedies import find_remedies
from core.events import Object
from tests.remedies.world import World

DATA: Final = Path(__file__).with_name("data")
HOST: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"
TAINT: Final = "node-role.kubernetes.io/control-plane:NoSchedule"

PODS: Final = {
    "affinity-in-another-namespace": (
        "kubernetes/kubernetes#67475, kubernetes/website#9876: a term selects its own namespace unless it names others",
        f"add namespace data to the required pod affinity by {ZONE}, which does not select it: 1 pod matches there",
    ),
    "affinity-to-a-node-without-pod-slots": (
        "cilium/cilium#42816: 1 Too many pods, 2 node(s) didn't match pod affinity rules",
        f"set topologyKey of the required pod affinity from {HOST} to {ZONE}",
    ),
    "claim-of-one-pod": (
        "kubernetes/kubernetes#129143: two pods with one ReadWriteOncePod claim",
        "remove pod default/app, which no owner makes again, from n1",
    ),
    "claim-that-cannot-be-bound": ("kubernetes/website#26943: no volume, and no class that makes one", ""),
    "cloud-controller-on-the-control-plane": (
        "kubernetes-sigs/cloud-provider-azure#4901",
        f"tolerate the taint {TAINT}",
    ),
    "cordoned-after-a-drain": ("Azure/AKS#342", "uncordon aks-1"),
    "daemon-set-on-a-full-node": (
        "kubernetes-sigs/karpenter#671: the DaemonSet's pod can be on one node only",
        (
            "annotate pod default/api-1-x controller.kubernetes.io/pod-deletion-cost=-2147483648, and scale Deployment "
            "default/api down by one, which an operator or autoscaler may undo, so that its pod default/api-1-x leaves "
            "node-1"
        ),
    ),
    "daemon-set-with-max-surge": (
        "kubernetes/kubernetes#106417: hostPort and maxSurge",
        (
            "set maxSurge of DaemonSet default/ds-nginx to 0 and its maxUnavailable to 1, so that its old pod "
            "default/ds-nginx-a leaves n1 first"
        ),
    ),
    "disk-pressure": ("kubernetes/kubernetes#93711", "repair worker-1: it is short of disk space"),
    "gpus-of-two-nodes": (
        "NVIDIA/k8s-device-plugin#165: no node has two GPUs",
        "lower the nvidia.com/gpu request by 1 to 1",
    ),
    "host-network-and-a-node-not-ready": ("kubernetes/kubernetes#90669", "repair n3: it does not answer"),
    "host-port-of-another-daemon-set": ("kubernetes/kubernetes#93934: each node gets both pods again", ""),
    "host-port-of-the-old-pod": (
        "kubernetes/kubernetes#126879",
        (
            "set maxSurge of Deployment default/nginx to 0 and its maxUnavailable to 1, so that its old pod "
            "default/nginx-1-a leaves n1 first"
        ),
    ),
    "hostname-with-a-typo": (
        "koti.dev/posts/node-affinity-issue",
        f"ask for {HOST}=worker-two instead of {HOST}=wroker-two in the pod's required node affinity",
    ),
    "label-that-was-renamed": (
        "hwameistor/hwameistor#230",
        (
            "ask for node-role.kubernetes.io/control-plane= instead of node-role.kubernetes.io/master in the pod's "
            "required node affinity"
        ),
    ),
    "memory-of-a-stateful-set": (
        "kubernetes/kubernetes#86942: two of three replicas run",
        "lower the memory request by 2Gi to 10Gi",
    ),
    "more-replicas-than-nodes": (
        "knix-microfunctions/knix#41",
        (
            f"turn the required pod anti-affinity by {HOST} into a preferred one, and delete pod default/dl-mfn-0, "
            "which StatefulSet default/dl-mfn makes again like that"
        ),
    ),
    "more-replicas-than-workers": (
        "SUSE/skuba#966, kubernetes/website#28029: no workload is sent to the control plane first",
        (
            f"turn the required pod anti-affinity by {HOST} into a preferred one, and let its old pod "
            "default/nginx-1-a go first (maxSurge 0 and maxUnavailable 2 of Deployment default/nginx)"
        ),
    ),
    "more-replicas-than-zones": (
        "kubernetes/kubernetes#66533",
        (
            f"set topologyKey of the required pod anti-affinity from {ZONE} to {HOST}, and delete pod default/queue-0, "
            "which StatefulSet default/queue makes again like that"
        ),
    ),
    "node-not-initialized": (
        "kubernetes/cloud-provider-openstack#2200",
        "repair worker-1: it is not initialized by the cloud controller manager",
    ),
    "node-that-the-autoscaler-removes": (
        "kubernetes/autoscaler, cluster-autoscaler/utils/taints (ToBeDeletedByClusterAutoscaler)",
        "add a node like n1",
    ),
    "placeholders-of-lower-priority": (
        "kubernetes/autoscaler cluster-autoscaler/FAQ.md, How can I configure overprovisioning?",
        "let kube-scheduler preempt pod default/overprovisioning-1-a of lower priority on n2",
    ),
    "pod-that-is-being-deleted": (
        "aws/karpenter-provider-aws#3729",
        "wait until pod default/pod-a-1-x, which is being deleted, has left node-a",
    ),
    "rolling-update-with-anti-affinity": (
        "kubernetes/kubernetes#116891, zalando/postgres-operator#1600",
        (
            "annotate pod default/nginx-deployment-1-1 controller.kubernetes.io/pod-deletion-cost=-2147483648, and "
            "set maxSurge of Deployment default/nginx-deployment to 0 and its maxUnavailable to 2, so that its old pod "
            "default/nginx-deployment-1-1 leaves n1 first"
        ),
    ),
    "spread-over-a-control-plane": ("kubernetes/kops#18535", f"set nodeTaintsPolicy for {HOST} to Honor"),
    "spread-over-a-cordoned-node": ("kubernetes/kubernetes#106127", "uncordon n2"),
    "spread-over-zones-that-no-node-has": (
        "cozystack/cozystack#3358",
        f"set whenUnsatisfiable for {ZONE} to ScheduleAnyway",
    ),
    "spread-with-pods-of-the-old-revision": (
        "pytorch/ci-infra#984",
        f"add pod-template-hash to matchLabelKeys for {HOST}, so that pods of other revisions do not count",
    ),
    "static-pods-and-daemon-sets": (
        "kubernetes/kubernetes#141227, kubernetes-sigs/descheduler#303",
        "lower the cpu request by 900m to 100m",
    ),
    "volume-in-a-zone-without-nodes": ("helm/charts#16701", "add a node like c-1 in zone eu-central-1b"),
    "volume-on-a-node-that-is-not-selected": (
        "kubernetes/kubernetes#81020",
        "drop env=test from the pod's nodeSelector",
    ),
}
"""Kind -> the source, and the first remedy; none if nothing helps."""

DECODERS: Final[Mapping[str, Callable[[bytes], Object]]] = {
    "Namespace": decode_namespace,
    "PersistentVolume": decode_persistent_volume,
    "PersistentVolumeClaim": decode_persistent_volume_claim,
}


def world_of(kind: str) -> World:
    """Return the cluster of a file, and its pod without a node."""
    items: list[dict[str, Any]] = json.loads((DATA / f"{kind}.json").read_bytes())["items"]
    text = [(each["kind"], json.dumps(each).encode()) for each in items]
    pods = [decode_pod(each) for name, each in text if name == "Pod"]
    others = [DECODERS[name](each) for name, each in text if name in DECODERS]
    (pending,) = [each for each in pods if not each.node_name]
    nodes = [decode_node(each) for name, each in text if name == "Node"]
    return World(nodes, [each for each in pods if each.node_name], others, pending)


def test_there_is_an_answer_for_each_file() -> None:
    assert {each.stem for each in DATA.glob("*.json")} == PODS.keys()
    assert len(PODS) >= 20


@pytest.mark.parametrize("kind", PODS)
def test_after_the_first_remedy_the_pod_runs(kind: str) -> None:
    _, text = PODS[kind]
    world = world_of(kind)
    assert not world.fitting()
    remedies = find_remedies(world.diagnosis(), 3)
    if not text:
        assert not remedies
        return
    assert remedies[0].text.partition(" (then it fits on ")[0] == text
    for each in remedies:
        assert each.node in world.after(each.steps).fitting(), each


REPORTS: Final = Path(__file__).with_name("reports")


def requested(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Run `kindred explain`, and return how it ends and its output in one line."""
    with pytest.raises(SystemExit) as ended:
        main(["explain", *arguments])
    return int(ended.value.code or 0), " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("pod", ["default/web", "default/big"])
def test_no_pod_is_removed_that_its_node_gets_again(capsys: pytest.CaptureFixture[str], pod: str) -> None:
    """kubernetes/kubernetes#141227, kubernetes-sigs/descheduler#303, openshift/openshift-docs#7364."""
    code, stated = requested(capsys, pod, "--snapshot", str(REPORTS / "remedy-removes-what-comes-back.json"))
    assert code == 1
    assert "Changes that would help" in stated
    assert "agent-x" not in stated
    assert "etcd-node-a" not in stated


def test_that_nothing_helps_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    _, stated = requested(capsys, "default/agent-x", "--snapshot", str(DATA / "host-port-of-another-daemon-set.json"))
    assert "No change that was tried would help" in stated
    assert "Changes that would help" not in stated


def test_tainted_nodes_are_no_longer_counted(capsys: pytest.CaptureFixture[str]) -> None:
    """zimmertr/Kubernetes-Manifests#498, kubernetes/enhancements#6211 (KEP-5980)."""
    cluster = str(REPORTS / "spread-over-tainted-nodes.json")
    code, stated = requested(capsys, "default/site-new", "--snapshot", cluster, "-o", "wide")
    assert code == 1
    assert (
        "Changes that would help, each by itself - set nodeTaintsPolicy for kubernetes.io/hostname to Honor" in stated
    )
    assert (
        "3 domains with nodes that only refuse the pod hold the minimum at 0: control-1, control-2, control-3" in stated
    )
    assert requested(capsys, "-f", str(REPORTS / "spread-that-honours-taints.json"), "--snapshot", cluster)[0] == 0
