"""Persistent volumes, claims, classes and what CSI drivers publish as v1 objects."""

from typing import Final

from app.conformance_case.encode import (
    V1,
    NotExpressibleError,
    label_selector,
    metadata_of,
    node_selector,
    owners_of,
    present,
)
from core.objects.node_selector import NodeSelectorTerm
from core.objects.volumes import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
    VolumeSource,
)

_DELETED: Final = "1970-01-01T00:00:00Z"  # when it was is not known, and in no answer
_IN_TREE: Final = {  # plugin -> member of the spec, and what the volume is called there
    "kubernetes.io/aws-ebs": ("awsElasticBlockStore", "volumeID"),
    "kubernetes.io/gce-pd": ("gcePersistentDisk", "pdName"),
    "kubernetes.io/azure-disk": ("azureDisk", "diskURI"),
    "kubernetes.io/cinder": ("cinder", "volumeID"),
    "kubernetes.io/portworx-volume": ("portworxVolume", "volumeID"),
}


def encode_persistent_volume(volume: PersistentVolume) -> V1:
    """Return a v1.PersistentVolume. Raises NotExpressibleError for a broken node affinity."""
    affinity, whose = volume.node_affinity, f"persistent volume {volume.name}"
    spec = {
        **_source(volume.source),
        **({"capacity": {"storage": str(volume.capacity)}} if volume.capacity else {}),
        "accessModes": sorted(volume.access_modes),
        "storageClassName": volume.storage_class,
        "volumeAttributesClassName": volume.volume_attributes_class,
        **({} if affinity is None else {"nodeAffinity": {"required": node_selector(affinity, whose)}}),
    }
    if volume.claim is not None:
        claim = volume.claim
        spec["claimRef"] = {"namespace": claim.namespace, "name": claim.name, "uid": claim.uid}
    deleted = _DELETED if volume.deleting else ""
    return {
        "metadata": metadata_of(volume, volume.name, labels=dict(volume.labels), deletionTimestamp=deleted),
        "spec": {**present(spec), "volumeMode": volume.volume_mode},
        "status": {"phase": volume.phase},
    }


def encode_claim(claim: PersistentVolumeClaim) -> V1:
    """Return a v1.PersistentVolumeClaim. Raises NotExpressibleError for a broken selector."""
    if claim.selector_error:
        raise NotExpressibleError(
            f"persistent volume claim {claim.full_name}: a broken selector cannot be written again: "
            f"{claim.selector_error}"
        )
    annotations = {"pv.kubernetes.io/bind-completed": "yes"} if claim.bind_completed else {}
    if claim.selected_node is not None:
        annotations["volume.kubernetes.io/selected-node"] = claim.selected_node
    spec = {
        "volumeName": claim.volume,
        "storageClassName": claim.storage_class,
        "accessModes": sorted(claim.access_modes),
        "volumeAttributesClassName": claim.volume_attributes_class,
        "selector": label_selector(claim.selector),
        "resources": {} if claim.requested is None else {"requests": {"storage": str(claim.requested)}},
    }
    metadata = metadata_of(
        claim,
        claim.name,
        namespace=claim.namespace,
        annotations=annotations,
        ownerReferences=owners_of(claim.controller),
        deletionTimestamp=_DELETED if claim.deleting else "",
    )
    return {
        "metadata": metadata,
        "spec": {**present(spec), "volumeMode": claim.volume_mode},
        "status": {"phase": claim.phase},
    }


def encode_storage_class(storage_class: StorageClass) -> V1:
    """Return a storage.k8s.io/v1 StorageClass. Raises NotExpressibleError for broken topologies."""
    said: V1 = {"metadata": metadata_of(storage_class, storage_class.name), "provisioner": storage_class.provisioner}
    if storage_class.volume_binding_mode is not None:
        said["volumeBindingMode"] = storage_class.volume_binding_mode
    topologies = storage_class.allowed_topologies
    if topologies is not None:
        terms = [_topology_term(term, f"storage class {storage_class.name}") for term in topologies.terms]
        said["allowedTopologies"] = terms or [{}]  # an empty term allows no node, where no terms would allow all
    return said


def encode_csi_node(node: CSINode) -> V1:
    """Return a storage.k8s.io/v1 CSINode."""
    drivers = [{"name": name, "allocatable": {"count": count}} for name, count in node.volume_limits.items()]
    annotations = {}
    if node.migrated_plugins:
        migrated = ",".join(sorted(node.migrated_plugins)) or ","  # one empty name
        annotations["storage.alpha.kubernetes.io/migrated-plugins"] = migrated
    return {"metadata": metadata_of(node, node.name, annotations=annotations), "spec": {"drivers": drivers}}


def encode_csi_driver(driver: CSIDriver) -> V1:
    """Return a storage.k8s.io/v1 CSIDriver."""
    return {"metadata": metadata_of(driver, driver.name), "spec": {"storageCapacity": driver.storage_capacity}}


def encode_csi_storage_capacity(capacity: CSIStorageCapacity) -> V1:
    """Return a storage.k8s.io/v1 CSIStorageCapacity."""
    said: V1 = {
        "metadata": metadata_of(capacity, capacity.name, namespace=capacity.namespace),
        "storageClassName": capacity.storage_class,
    }
    if not capacity.topology.nothing:
        said["nodeTopology"] = label_selector(capacity.topology)
    if capacity.limit is not None:
        said["maximumVolumeSize"] = str(capacity.limit)
    return said


def encode_volume_attachment(attachment: VolumeAttachment) -> V1:
    """Return a storage.k8s.io/v1 VolumeAttachment."""
    spec = {
        "attacher": attachment.attacher,
        "nodeName": attachment.node,
        "source": present({"persistentVolumeName": attachment.volume}),
    }
    return {"metadata": metadata_of(attachment, attachment.name), "spec": spec}


def _topology_term(term: NodeSelectorTerm, whose: str) -> V1:
    for error in term.errors:
        raise NotExpressibleError(f"{whose}: a broken topology cannot be written again: {error}")
    return {"matchLabelExpressions": [{"key": each.key, "values": list(each.values)} for each in term.requirements]}


def _source(source: VolumeSource | None) -> V1:
    if source is None:
        return {}
    if not source.in_tree:
        return {"csi": {"driver": source.plugin, "volumeHandle": source.volume}}
    member, name = _IN_TREE[source.plugin]
    return {member: {name: source.volume}}
