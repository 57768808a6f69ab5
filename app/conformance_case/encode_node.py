"""Nodes and namespaces as v1 objects."""

from collections.abc import Mapping

from app.conformance_case.encode import V1, metadata_of, present, quantities_of
from core.objects.node import Node


def encode_node(node: Node) -> V1:
    """Return a v1.Node from which `decode_node` makes an equal one."""
    spec = {
        "taints": [present({"key": taint.key, "value": taint.value, "effect": taint.effect}) for taint in node.taints],
        "unschedulable": node.unschedulable,
    }
    status = {
        "allocatable": quantities_of(node.allocatable),
        "conditions": [{"type": kind, "status": status} for kind, status in node.conditions.items()],
        "images": [{"names": [name], "sizeBytes": size} for name, size in node.images.items()],
    }
    return present(
        {
            "metadata": metadata_of(node, node.name, labels=dict(node.labels)),
            "spec": present(spec),
            "status": present(status),
        }
    )


def encode_namespace(name: str, labels: Mapping[str, str]) -> V1:
    """Return a v1.Namespace; the mirror holds no more of it."""
    return {"metadata": present({"name": name, "labels": dict(labels)})}
