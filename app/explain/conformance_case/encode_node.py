"""Nodes, device classes and namespaces as v1 objects."""

from typing import Final

from app.explain.conformance_case.encode import Encoder, quantities_of, simple

encode_node: Final = Encoder(
    {
        "spec.taints": lambda node: simple(node.taints),
        "spec.unschedulable": "unschedulable",
        "status.declaredFeatures": lambda node: sorted(node.declared_features),
        "status.allocatable": lambda node: quantities_of(node.allocatable),
        "status.capacity": lambda node: quantities_of(node.capacity),
        "status.conditions": lambda node: [
            {"type": kind, "status": status} for kind, status in node.conditions.items()
        ],
        "status.images": lambda node: [{"names": [name], "sizeBytes": size} for name, size in node.images.items()],
    }
)
encode_device_class: Final = Encoder({"spec.extendedResourceName": "extended_resource"})
encode_namespace: Final = Encoder({})
