"""Persistent volumes, claims, classes and objects of CSI drivers as v1 objects."""

from typing import Final

import msgspec

from app.explain.conformance_case.encode import (
    DELETED,
    IN_TREE_DISKS,
    V1,
    Encoder,
    NotExpressibleError,
    label_selector,
    node_selector,
    owners_of,
)
from core.objects.node_selector import NodeSelectorTerm
from core.objects.volumes import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass


def _source(volume: PersistentVolume) -> V1:
    source = volume.source
    if source is None:
        return {}
    if not source.in_tree:
        return {"csi": {"driver": source.plugin, "volumeHandle": source.volume}}
    member, name = IN_TREE_DISKS[source.plugin]
    return {member: {name: source.volume}}


def _reach(volume: PersistentVolume) -> V1 | None:
    affinity = volume.node_affinity
    return None if affinity is None else {"required": node_selector(affinity, f"persistent volume {volume.name}")}


def _claim_annotations(claim: PersistentVolumeClaim) -> V1:
    annotations: V1 = {"pv.kubernetes.io/bind-completed": "yes"} if claim.bind_completed else {}
    if claim.selected_node is not None:
        annotations["volume.kubernetes.io/selected-node"] = claim.selected_node
    return annotations


def _claim_selector(claim: PersistentVolumeClaim) -> V1 | None:
    if claim.selector_error:
        raise NotExpressibleError(
            f"persistent volume claim {claim.full_name}: a broken selector cannot be written again: "
            f"{claim.selector_error}"
        )
    return label_selector(claim.selector)


def _topologies(storage_class: StorageClass) -> list[V1] | None:
    topologies, whose = storage_class.allowed_topologies, f"storage class {storage_class.name}"
    if topologies is None:
        return None
    # An empty term allows no node. A list without terms would allow all nodes.
    return [_topology_term(term, whose) for term in topologies.terms] or [{}]


def _topology_term(term: NodeSelectorTerm, whose: str) -> V1:
    for error in term.errors:
        raise NotExpressibleError(f"{whose}: a broken topology cannot be written again: {error}")
    return {"matchLabelExpressions": [{"key": each.key, "values": list(each.values)} for each in term.requirements]}


def _migrated(node: CSINode) -> V1:
    names = ",".join(sorted(node.migrated_plugins)) or ","  # one empty name
    return {"storage.alpha.kubernetes.io/migrated-plugins": names} if node.migrated_plugins else {}


encode_persistent_volume: Final = Encoder(
    {
        "metadata.deletionTimestamp": lambda volume: DELETED if volume.deleting else "",
        "spec": _source,
        "spec.capacity.storage": lambda volume: str(volume.capacity) if volume.capacity else "",
        "spec.accessModes": lambda volume: sorted(volume.access_modes),
        "spec.volumeMode=": "volume_mode",
        "spec.storageClassName": "storage_class",
        "spec.volumeAttributesClassName": "volume_attributes_class",
        "spec.claimRef": lambda volume: None if volume.claim is None else msgspec.structs.asdict(volume.claim),
        "spec.nodeAffinity": _reach,
        "status.phase": "phase",
    }
)
encode_claim: Final = Encoder(
    {
        "metadata.annotations": _claim_annotations,
        "metadata.ownerReferences": owners_of,
        "metadata.deletionTimestamp": lambda claim: DELETED if claim.deleting else "",
        "spec.volumeName": "volume",
        "spec.storageClassName": "storage_class",
        "spec.accessModes": lambda claim: sorted(claim.access_modes),
        "spec.volumeMode=": "volume_mode",
        "spec.volumeAttributesClassName": "volume_attributes_class",
        "spec.selector": _claim_selector,
        "spec.resources.requests.storage": lambda claim: None if claim.requested is None else str(claim.requested),
        "status.phase": "phase",
    }
)
encode_storage_class: Final = Encoder(
    {
        "provisioner": "provisioner",
        "volumeBindingMode=": "volume_binding_mode",
        "allowedTopologies": _topologies,
    }
)
encode_csi_node: Final = Encoder(
    {
        "metadata.annotations": _migrated,
        "spec.drivers": lambda node: [
            {"name": name, "allocatable": {"count": node.volume_limits[name]}}
            if name in node.volume_limits
            else {"name": name}
            for name in sorted(node.drivers)
        ],
    }
)
encode_csi_driver: Final = Encoder(
    {
        "spec.storageCapacity": "storage_capacity",
        "spec.preventPodSchedulingIfMissing": "prevents_scheduling_if_missing",
    }
)
encode_csi_storage_capacity: Final = Encoder(
    {
        "storageClassName": "storage_class",
        "nodeTopology=": lambda capacity: label_selector(capacity.topology),
        "capacity": lambda capacity: str(capacity.capacity) if capacity.capacity else "",
        "maximumVolumeSize": lambda capacity: None if capacity.limit is None else str(capacity.limit),
    }
)
encode_volume_attachment: Final = Encoder(
    {
        "spec.attacher": "attacher",
        "spec.nodeName": "node",
        "spec.source.persistentVolumeName": "volume",
    }
)
