"""Nodes and pods for a real API server, as plain manifests."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tests.e2e.api import Manifest

HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"
RACK: Final = "example.com/rack"
_RACKS: Final = 3
_ALLOCATABLE: Final = {"cpu": "32", "memory": "64Gi", "pods": "110"}


def node(index: int, zones: int = 3, allocatable: Mapping[str, str] = _ALLOCATABLE) -> Manifest:
    """Return a ready node, in one of some zones and one of three racks in turn."""
    name = f"node-{index:04}"
    resources = dict(allocatable)
    labels = {HOSTNAME: name, ZONE: f"zone-{index % zones}", RACK: f"rack-{index % _RACKS}"}
    return {
        "metadata": {"name": name, "labels": labels},
        "status": {
            "allocatable": resources,
            "capacity": resources,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }


def pod(
    name: str,
    labels: Mapping[str, str] | None = None,
    *,
    affinity: Mapping[str, Any] | None = None,
    cpu: str = "50m",
    host_port: int | None = None,
    **spec: object,
) -> Manifest:
    """Return a pod of one container; `spec` are further fields of its spec."""
    container: dict[str, Any] = {
        "name": "main",
        "image": "registry.invalid/none",
        "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}},
    }
    if host_port is not None:
        container["ports"] = [{"containerPort": host_port, "hostPort": host_port}]
    return {
        "metadata": {"name": name, "labels": dict(labels or {})},
        "spec": {
            **({"affinity": dict(affinity)} if affinity else {}),
            "terminationGracePeriodSeconds": 0,
            "containers": [container],
            **spec,
        },
    }


def term(labels: Mapping[str, str], topology_key: str, **more: object) -> dict[str, Any]:
    """Return an affinity term that selects pods by labels."""
    return {"labelSelector": {"matchLabels": dict(labels)}, "topologyKey": topology_key, **more}


def required(kind: str, *terms: Mapping[str, Any]) -> dict[str, Any]:
    """Return an affinity of required terms; `kind` is podAffinity or podAntiAffinity."""
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def apart(labels: Mapping[str, str]) -> dict[str, Any]:
    """Return an affinity that keeps a pod off the nodes of pods with labels."""
    return required("podAntiAffinity", term(labels, HOSTNAME))


def together(labels: Mapping[str, str]) -> dict[str, Any]:
    """Return an affinity that keeps a pod in the zone of pods with labels."""
    return required("podAffinity", term(labels, ZONE))


def required_node(source: str, key: str, *values: str) -> dict[str, Any]:
    """Return a required node affinity; `source` is matchExpressions, of labels, or matchFields."""
    rules = [{source: [{"key": key, "operator": "In", "values": list(values)}]}]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": rules}}}


def preferred(kind: str, weight: int, terms: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return an affinity of preferred terms of one weight."""
    weighted = [{"weight": weight, "podAffinityTerm": dict(each)} for each in terms]
    return {kind: {"preferredDuringSchedulingIgnoredDuringExecution": weighted}}


def on(manifest: Manifest, node_name: str) -> Manifest:
    """Return the pod, bound to a node from the beginning."""
    return {**manifest, "spec": {**manifest["spec"], "nodeName": node_name}}
