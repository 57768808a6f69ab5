"""Pods and nodes in the OpenAPI description: all that is read of them, and no value that upstream forbids."""

import copy
from typing import Any, Final

import jsonschema_rs
import pytest

from app.admin.extender_schemas import extender_schemas
from core.objects.node import Node
from tests.app.objects.full_objects import FULL_OBJECTS
from tests.builders import expressed, labelled, make_node, make_pod, term

NEAR: Final = term("zone", {**labelled(app="web"), **expressed("tier", "Exists")}, namespaces=["shop"])
POD: Final = (
    make_pod("p")
    .required_affinity(NEAR)
    .preferred_anti_affinity(10, NEAR)
    .required_node_affinity(expressed("disk", "Gt", "1"))
    .preferred_node_affinity(5, expressed("disk", "Exists"))
    .spread("zone", labelled(app="web"))
    .requests(cpu="100m")
    .host_port(80)
    .obj()
)
POD["spec"]["containers"][0]["name"] = "c"
NODE: Final = make_node("n").taint("k", "v", "NoSchedule").image(5, "web").allocatable(cpu="1").obj()
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
TERM: Final = f"spec.affinity.podAffinity.{REQUIRED}.0"
WEIGHTED: Final = f"spec.affinity.podAntiAffinity.{PREFERRED}.0"
NODE_TERMS: Final = f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms"
PREFERENCE: Final = f"spec.affinity.nodeAffinity.{PREFERRED}.0"
CONSTRAINT: Final = "spec.topologySpreadConstraints.0"
ABSENT: Final = object()


def allows(kind: str, found: object) -> bool:
    schema = {"$ref": f"#/components/schemas/{kind}", "components": {"schemas": extender_schemas()}}
    return jsonschema_rs.Draft202012Validator(schema).is_valid(found)


def changed(found: Any, path: str, value: object) -> Any:  # noqa: ANN401 - decoded JSON
    """Copy an object with another value at a place, or with none."""
    copied = place = copy.deepcopy(found)
    *parents, last = (int(part) if part.isdigit() else part for part in path.split("."))
    for part in parents:
        place = place[part]
    if value is ABSENT:
        del place[last]
    else:
        place[last] = value
    return copied


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        pytest.param("Pod", POD, id="pod"),
        pytest.param("Pod", {"metadata": {"name": "p"}, "spec": None, "apiVersion": "v1"}, id="pod-with-null"),
        pytest.param("Node", NODE, id="node"),
        pytest.param("Node", FULL_OBJECTS[Node], id="node-with-all-that-is-read"),
    ],
)
def test_what_kubernetes_allows_is_allowed(kind: str, found: object) -> None:
    assert allows(kind, found)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("kind", "Node"),
        ("metadata", ABSENT),
        ("metadata.name", ABSENT),
        ("metadata.name", ""),
        ("metadata.labels", {"app": 1}),
        ("metadata.ownerReferences", [{"controller": "yes"}]),
        ("spec.nodeSelector", {"disk": None}),
        ("spec.priority", 2**31),
        ("spec.preemptionPolicy", "Sometimes"),
        ("spec.overhead", {"cpu": "much"}),
        ("spec.overhead", {"cpu": -1}),
        ("spec.tolerations", [{"key": 1}]),
        ("spec.volumes", [{"persistentVolumeClaim": {"claimName": 1}}]),
        ("spec.containers.0.name", ABSENT),
        ("spec.containers.0.resources.requests.cpu", "1e400"),
        ("spec.containers.0.ports.0.hostPort", 65536),
        ("spec.containers.0.ports.0.protocol", "ICMP"),
        (f"{TERM}.topologyKey", ABSENT),
        (f"{TERM}.namespaces", [""]),
        (f"{TERM}.labelSelector.matchExpressions.0.operator", "Gt"),
        (f"{TERM}.labelSelector.matchExpressions.0.key", ""),
        (f"{WEIGHTED}.weight", 101),
        (f"{WEIGHTED}.podAffinityTerm", ABSENT),
        (NODE_TERMS, ABSENT),
        (f"{NODE_TERMS}.0.matchExpressions.0.operator", "Near"),
        (f"{NODE_TERMS}.0.matchFields", [{"key": "metadata.name", "operator": "Near"}]),
        (f"{PREFERENCE}.weight", 0),
        (f"{PREFERENCE}.preference", ABSENT),
        (f"{CONSTRAINT}.maxSkew", 0),
        (f"{CONSTRAINT}.topologyKey", ABSENT),
        (f"{CONSTRAINT}.whenUnsatisfiable", "Never"),
    ],
)
def test_what_kubernetes_forbids_of_a_pod_is_forbidden(path: str, value: object) -> None:
    assert not allows("Pod", changed(POD, path, value))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("kind", "Pod"),
        ("metadata", ABSENT),
        ("metadata.name", ""),
        ("spec.unschedulable", "yes"),
        ("spec.taints.0.key", ABSENT),
        ("spec.taints.0.effect", ""),
        ("status.allocatable.cpu", "many"),
        ("status.conditions", [{"type": 1}]),
        ("status.images.0.sizeBytes", -1),
    ],
)
def test_what_kubernetes_forbids_of_a_node_is_forbidden(path: str, value: object) -> None:
    assert not allows("Node", changed(NODE, path, value))
