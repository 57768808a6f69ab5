"""Pods that are pending for many reasons: Kindred names the cause that a real kube-scheduler names.

The scheduler has no extender and Kindred serves the profile `affinity`: it explains what the scheduler judges.
"""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import httpx

from tests.e2e.api import NODES, Manifest, condition_of
from tests.e2e.cluster import NAMESPACE, Cluster
from tests.e2e.conftest import Note
from tests.e2e.control_plane import ADMIN
from tests.e2e.kindred import Kindred
from tests.e2e.programs import PATIENCE, wait_until
from tests.e2e.scheduler import IN_TREE, configuration
from tests.e2e.shapes import HOSTNAME, apart, node, on, pod, required_node, together

CLAIMS: Final = f"/api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims"
NODES_THERE: Final = 6
CORDONED, TAINTED = "node-0004", "node-0005"
PORT: Final = 31_000
GPU: Final = "example.com/gpu"
COPIES: Final = 4
PLUGIN: Final = Path(sys.executable).with_name("kubectl-kindred")
AMOUNTS: Final = {
    "cpu": "resources",
    "memory": "resources",
    "gpu": "resources",
    "selector": "requirements",
    "affinity": "requirements",
    "taint": "taints",
    "cordon": "cordoned",
    "port": "ports",
    "spread": "spread",
}
"""Cause -> the member of an explanation's amounts that has its numbers; the terms have those of inter-pod affinity."""


def nodes() -> list[Manifest]:
    """Return nodes, one of them cordoned and one with a taint."""
    made = [node(index, allocatable={"cpu": "8", "memory": "16Gi", "pods": "10"}) for index in range(NODES_THERE)]
    made[4] = {**made[4], "spec": {"unschedulable": True}}
    made[5] = {**made[5], "spec": {"taints": [{"key": "team", "value": "data", "effect": "NoSchedule"}]}}
    return made


def placed() -> list[Manifest]:
    """Return pods that are on nodes already, and are in the way."""
    every = [f"node-{index:04}" for index in range(NODES_THERE)]
    shy = apart({"loud": "yes"})
    return [
        *(on(pod(f"port-{name}", host_port=PORT), name) for name in every),
        *(on(pod(f"web-{name}", {"app": "web"}, affinity=shy), name) for name in every),
    ]


def spread() -> list[dict[str, Any]]:
    """Return a constraint that no node can satisfy: `absent` is a label of no node."""
    selector = {"matchLabels": {"app": "web"}}
    return [{"maxSkew": 1, "topologyKey": "absent", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}]


def claim(name: str) -> dict[str, Any]:
    """Return members of a spec: a volume of a claim."""
    return {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]}


def requesting(name: str, **requests: str) -> Manifest:
    """Return a pod that requests these resources."""
    made = pod(name)
    container = {**made["spec"]["containers"][0], "resources": {"requests": requests, "limits": requests}}
    return {**made, "spec": {**made["spec"], "containers": [container]}}


def causes(copy: int) -> Mapping[str, tuple[Manifest, str, str]]:
    """Return cause -> (a pod, the plugin that refuses it most, a part of the reason that the scheduler writes)."""
    attracted = together({"app": "nowhere"})
    repelled = apart({"app": "web"})
    by_label = required_node("matchExpressions", "disk", "ssd")
    tolerant: dict[str, Any] = {"tolerations": [{"operator": "Exists"}]}
    made = {
        "cpu": (pod(f"cpu-{copy}", cpu="9"), "NodeResourcesFit", "Insufficient cpu"),
        "memory": (requesting(f"memory-{copy}", memory="17Gi"), "NodeResourcesFit", "Insufficient memory"),
        "gpu": (requesting(f"gpu-{copy}", **{GPU: "1"}), "NodeResourcesFit", f"Insufficient {GPU}"),
        "selector": (pod(f"selector-{copy}", nodeSelector={"disk": "ssd"}), "NodeAffinity", "node affinity/selector"),
        "affinity": (pod(f"node-affinity-{copy}", affinity=by_label), "NodeAffinity", "node affinity/selector"),
        "taint": (pod(f"taint-{copy}", nodeSelector={HOSTNAME: TAINTED}), "NodeAffinity", "untolerated taint"),
        "cordon": (pod(f"cordon-{copy}", nodeSelector={HOSTNAME: CORDONED}), "NodeAffinity", "were unschedulable"),
        "port": (pod(f"port-{copy}", host_port=PORT, **tolerant), "NodePorts", "didn't have free ports"),
        "attracted": (
            pod(f"attracted-{copy}", affinity=attracted, **tolerant),
            "InterPodAffinity",
            "pod affinity rules",
        ),
        "repelled": (pod(f"repelled-{copy}", affinity=repelled, **tolerant), "InterPodAffinity", "anti-affinity rules"),
        "existing": (
            pod(f"existing-{copy}", {"loud": "yes"}, **tolerant),
            "InterPodAffinity",
            "existing pods anti-affinity rules",
        ),
        "spread": (
            pod(f"spread-{copy}", {"app": "web"}, topologySpreadConstraints=spread(), **tolerant),
            "PodTopologySpread",
            "topology spread constraints",
        ),
        "unbound": (pod(f"unbound-{copy}", **claim("unbound")), "VolumeBinding", "unbound immediate"),
        "no-claim": (pod(f"no-claim-{copy}", **claim("absent")), "VolumeRestrictions", '"absent" not found'),
    }
    return {cause: (_in_namespace(each), plugin, text) for cause, (each, plugin, text) in made.items()}


def _in_namespace(manifest: Manifest) -> Manifest:
    return {**manifest, "metadata": {**manifest["metadata"], "namespace": NAMESPACE}}


def pending(kindred: Kindred) -> dict[str, Any]:
    """Return what Kindred says of the pending pods of the tests."""
    url = f"http://127.0.0.1:{kindred.admin_port}/pending"
    found: dict[str, Any] = httpx.get(url, params={"namespace": NAMESPACE}, timeout=30.0).raise_for_status().json()
    return found


def test_the_cause_of_every_pending_pod_is_the_schedulers(cluster: Cluster, note: Note) -> None:
    cluster.api.create_all(NODES, nodes())
    cluster.create_pods(placed())
    claim_spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "",
    }
    cluster.api.create(CLAIMS, {"metadata": {"name": "unbound"}, "spec": claim_spec})
    kindred = cluster.start_kindred()
    kindred.wait_for_explanations()
    cluster.start_scheduler(configuration(IN_TREE, ""))
    required = {made[0]["metadata"]["name"]: made for copy in range(COPIES) for made in causes(copy).values()}
    cluster.create_pods([manifest for manifest, _, _ in required.values()])
    wait_until(lambda: len(waiting(cluster)) == len(required), PATIENCE, "every pod refused by the scheduler")
    wait_until(
        lambda: sum(each["condition"] is not None for each in pending(kindred)["pods"]) == len(required),
        PATIENCE,
        "every condition known to Kindred",
    )
    reported = pending(kindred)
    messages = waiting(cluster)
    for each in reported["pods"]:
        name = each["pod"].removeprefix(f"{NAMESPACE}/")
        _, plugin, text = required[name]
        judged = reported["classes"][each["class"]]
        assert (each["state"], judged["fit"], judged["not_judged"]) == ("unschedulable", 0, []), name
        # Preemption adds a sentence of its own.
        assert messages[name].startswith(judged["message"].removesuffix(".")), (name, judged["message"])
        assert text in judged["message"], name
        assert plugin in {reason["plugin"] for reason in judged["reasons"]}, name
        assert each["condition"]["message"] == messages[name]
        assert each["seconds"] is not None
    assert len(reported["pods"]) == len(required) >= 50
    note(f"{len(required)} pods of {len(reported['classes'])} classes pending for {len(causes(0))} reasons")


def test_each_cause_is_explained_with_amounts_by_the_plugin_of_kubectl(cluster: Cluster, note: Note) -> None:
    cluster.api.create_all(NODES, nodes())
    cluster.create_pods(placed())
    cluster.start_scheduler(configuration(IN_TREE, ""))
    made = {cause: each for cause, each in causes(0).items() if cause != "unbound"}  # its claim is of the test before
    cluster.create_pods([manifest for manifest, _, _ in made.values()])
    wait_until(lambda: len(waiting(cluster)) == len(made), PATIENCE, "every pod refused by the scheduler")
    messages = waiting(cluster)
    kubeconfig = cluster.plane.kubeconfig("admin", client=ADMIN)
    for cause, (manifest, plugin, text) in made.items():
        name = manifest["metadata"]["name"]
        reported = why(kubeconfig, name)
        assert (reported["fit"], reported["not_judged"]) == (0, []), cause
        assert text in reported["message"], cause
        assert messages[name].startswith(reported["message"].removesuffix(".")), cause
        assert plugin in {reason["plugin"] for reason in reported["reasons"]}, cause
        if cause in AMOUNTS:
            assert reported["amounts"][AMOUNTS[cause]], cause
    note(f"{len(made)} causes, {len(AMOUNTS)} of them with amounts")


def why(kubeconfig: Path, name: str) -> dict[str, Any]:
    """Return what `kubectl kindred why` says of a pod that fits nowhere."""
    command = [str(PLUGIN), "why", name, "-n", NAMESPACE, "--kubeconfig", str(kubeconfig), "--local", "-o", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)  # noqa: S603 - our own
    assert done.returncode == 1, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)["summary"]
    return found


def waiting(cluster: Cluster) -> dict[str, str]:
    """Return pod -> why its scheduler has not placed it, of those that it has tried."""
    return {
        each["metadata"]["name"]: message
        for each in cluster.pods()
        if not each["spec"].get("nodeName") and (message := condition_of(each).get("message"))
    }
