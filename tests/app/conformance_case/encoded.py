"""Values that went out as v1 objects and came back."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from app.conformance_case.encode import V1
from app.conformance_case.encode_affinity import without_broken_parts
from app.conformance_case.encode_node import encode_namespace, encode_node
from app.conformance_case.encode_pod import encode_pod
from app.conformance_case.encode_volumes import (
    encode_claim,
    encode_csi_driver,
    encode_csi_node,
    encode_csi_storage_capacity,
    encode_persistent_volume,
    encode_storage_class,
    encode_volume_attachment,
)
from app.watch.decode_namespace import decode_namespace
from app.watch.decode_pod import decode_pod
from app.watch.resources import RESOURCES
from core.events import Kind, Object
from core.objects.namespace import Namespace
from core.objects.node import Node
from core.objects.pod import Pod
from core.objects.volumes import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)

ENCODERS: Final[Mapping[Kind, Callable[[Any], V1]]] = {
    Pod: encode_pod,
    Node: encode_node,
    PersistentVolume: encode_persistent_volume,
    PersistentVolumeClaim: encode_claim,
    StorageClass: encode_storage_class,
    CSINode: encode_csi_node,
    CSIDriver: encode_csi_driver,
    CSIStorageCapacity: encode_csi_storage_capacity,
    VolumeAttachment: encode_volume_attachment,
}
GOLDEN_MEMBERS: Final[Mapping[str, Kind]] = {
    "nodes": Node,
    "pods": Pod,
    "pvs": PersistentVolume,
    "pvcs": PersistentVolumeClaim,
    "storageclasses": StorageClass,
    "csinodes": CSINode,
    "csidrivers": CSIDriver,
    "csistoragecapacities": CSIStorageCapacity,
    "volumeattachments": VolumeAttachment,
}
"""Member of a golden case -> kind of the objects in it; namespaces apart."""


def decoded(kind: Kind, v1_object: object) -> Object:
    """Decode a v1 object."""
    return RESOURCES[kind].decode(json.dumps(v1_object).encode())


def pod_of(v1_object: object) -> Pod:
    """Decode a pod."""
    return decode_pod(json.dumps(v1_object).encode())


def again(found: Object) -> Object:
    """Encode a value and decode it again."""
    return decoded(type(found), ENCODERS[type(found)](found))


def whole(found: Object) -> Object:
    """Give a value without what is broken of an existing pod."""
    return without_broken_parts(found) if isinstance(found, Pod) else found


def namespace_again(namespace: Namespace) -> Namespace:
    """Encode what the mirror holds of a namespace, and decode it again."""
    return decode_namespace(json.dumps(encode_namespace(namespace.name, namespace.labels)).encode())
