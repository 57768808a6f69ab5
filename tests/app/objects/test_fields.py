"""Fields of objects of every kind: null and empty ones are absent, and a wrong type is refused with its path."""

import json
import re
from functools import reduce
from typing import Any, Final

import pytest

from app.objects.decode import DecodeError
from app.objects.resources import RESOURCES
from tests.builders import PREFERRED, REQUIRED

DECODERS: Final = {kind.__name__: resource.decode for kind, resource in RESOURCES.items()}
TEXT: Final = "expected str | null, got int"
NOT_A_QUANTITY: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
TERMS: Final = f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0]"

# Where null is as if the field were not there.
NULLABLE: Final = {
    "Pod": f"""
        spec.nodeName spec.affinity spec.containers spec.initContainers spec.resources spec.overhead spec.nodeSelector
        spec.tolerations spec.topologySpreadConstraints spec.volumes spec.priority spec.preemptionPolicy
        spec.affinity.podAffinity spec.affinity.podAntiAffinity spec.affinity.nodeAffinity
        spec.affinity.podAffinity.{REQUIRED} spec.affinity.podAffinity.{PREFERRED}
        spec.containers[0].name spec.containers[0].restartPolicy spec.containers[0].image spec.containers[0].ports
        spec.containers[0].resources spec.containers[0].resources.requests spec.containers[0].resources.limits
        spec.containers[0].ports[0].hostPort spec.containers[0].ports[0].protocol spec.containers[0].ports[0].hostIP
        status.phase status.qosClass status.conditions status.containerStatuses status.initContainerStatuses
        status.startTime status.nominatedNodeName status.containerStatuses[0].name
        status.containerStatuses[0].resources status.containerStatuses[0].allocatedResources
    """,
    "Node": "spec.taints spec.unschedulable status.allocatable status.images status.conditions",
}
EMPTY: Final[list[tuple[str, str, object]]] = [
    ("Pod", "spec", {}),
    ("Pod", "status", {}),
    ("Pod", "spec.affinity", {}),
    ("Pod", "spec.containers", []),
    ("Pod", "spec.containers[0].ports", []),
    ("Pod", "spec.containers[0].ports", [{}]),
    ("Pod", "spec.containers[0].resources.requests", {}),
    ("Pod", "spec.containers[0].resources.limits", {}),
    ("Pod", "spec.initContainers", []),
    ("Pod", "spec.nodeSelector", {}),
    ("Pod", "spec.tolerations", []),
    ("Pod", "spec.topologySpreadConstraints", []),
    ("Pod", "spec.volumes", []),
    ("Node", "spec", {}),
    ("Node", "status", {}),
    ("Node", "spec.taints", []),
    ("Node", "spec.unschedulable", False),
    ("Node", "status.allocatable", {}),
    ("Node", "status.images", []),
    ("Node", "status.conditions", []),
]

# The kind, the path of the field, what stands there, and what is wrong with it.
BROKEN: Final[list[tuple[str, str, object, str]]] = [
    ("Pod", "metadata.deletionTimestamp", 1, TEXT),
    ("Pod", "spec", [], "expected object | null, got array"),
    ("Pod", "spec.nodeName", 1, TEXT),
    ("Pod", "spec.priority", 2**31, "expected int <= 2147483647"),
    ("Pod", "spec.affinity", "near", "expected object, got str"),
    ("Pod", "spec.affinity.podAntiAffinity", [], "expected object | null, got array"),
    ("Pod", "spec.nodeSelector", ["a"], "expected object | null, got array"),
    ("Pod", "spec.nodeSelector[...]", {"a": 1}, "expected str, got int"),
    ("Pod", "spec.affinity.nodeAffinity", [], "expected object | null, got array"),
    ("Pod", f"{TERMS}.matchFields", {}, "expected array | null, got object"),
    ("Pod", f"spec.affinity.nodeAffinity.{PREFERRED}[0].weight", "1", "expected int | null, got str"),
    ("Pod", "spec.containers", {}, "expected array | null, got object"),
    ("Pod", "spec.initContainers[0].restartPolicy", 1, TEXT),
    ("Pod", "spec.initContainers[0].ports[0]", 1, "expected object, got int"),
    ("Pod", "spec.containers[1].image", 1, TEXT),
    ("Pod", "spec.containers[1].ports", {}, "expected array | null, got object"),
    ("Pod", "spec.containers[1].ports[1].hostPort", "80", "expected int | null, got str"),
    ("Pod", "spec.containers[1].ports[0].hostPort", 2**31, "expected int <= 2147483647"),
    ("Pod", "spec.containers[1].ports[0].hostIP", 1, TEXT),
    ("Pod", "spec.containers[0].resources", 3, "expected object | null, got int"),
    ("Pod", "spec.containers[0].resources.requests", [], "expected object | null, got array"),
    ("Pod", "spec.overhead", "x", "expected object | null, got str"),
    ("Pod", "spec.volumes[0]", 1, "expected object, got int"),
    ("Pod", "spec.volumes[0].persistentVolumeClaim", "c", "expected object | null, got str"),
    ("Pod", "spec.volumes[0].persistentVolumeClaim.claimName", 1, TEXT),
    ("Pod", "spec.volumes[0].rbd.monitors[0]", 1, "expected str, got int"),
    ("Pod", "spec.volumes[0].gcePersistentDisk.readOnly", "yes", "expected bool | null, got str"),
    ("Pod", "spec.tolerations", {}, "expected array | null, got object"),
    ("Pod", "spec.tolerations[0]", 1, "expected object, got int"),
    ("Pod", "spec.tolerations[1].key", 1, TEXT),
    ("Pod", "spec.tolerations[0].effect", [], "expected str | null, got array"),
    ("Pod", "spec.topologySpreadConstraints", {}, "expected array | null, got object"),
    ("Pod", "spec.topologySpreadConstraints[1].maxSkew", "1", "expected int | null, got str"),
    ("Pod", "spec.topologySpreadConstraints[0].matchLabelKeys[0]", 1, "expected str, got int"),
    ("Pod", "spec.topologySpreadConstraints[0].labelSelector", [], "expected object | null, got array"),
    ("Pod", "status.phase", 1, TEXT),
    ("Pod", "status.qosClass", [], "expected str | null, got array"),
    ("Pod", "status.containerStatuses[0].name", 1, TEXT),
    ("Node", "spec.taints", {}, "expected array | null, got object"),
    ("Node", "spec.taints[1]", 3, "expected object, got int"),
    ("Node", "spec.taints[0].key", 3, TEXT),
    ("Node", "spec.taints[0].value", True, "expected str | null, got bool"),
    ("Node", "spec.taints[0].effect", [], "expected str | null, got array"),
    ("Node", "spec.unschedulable", "true", "expected bool | null, got str"),
    ("Node", "status.images", "app:1", "expected array | null, got str"),
    ("Node", "status.images[0].names", "app:1", "expected array | null, got str"),
    ("Node", "status.images[1].names[0]", 3, "expected str, got int"),
    ("Node", "status.images[0].sizeBytes", "5", "expected int | null, got str"),
    ("Node", "status.images[0].sizeBytes", 2**63, "expected int <= 9223372036854775807"),
    ("Node", "status.conditions", {}, "expected array | null, got object"),
    ("Node", "status.conditions[0].status", True, "expected str | null, got bool"),
    ("Node", "status.conditions[1].type", 1, TEXT),
    ("Node", "status.allocatable", 3, "expected object | null, got int"),
    ("Node", "status.allocatable.memory", "lots", NOT_A_QUANTITY),
    ("PersistentVolume", "spec.csi.driver", 1, TEXT),
    ("PersistentVolume", "spec.awsElasticBlockStore.volumeID", 1, TEXT),
    ("PersistentVolume", "spec.capacity.storage", "big", NOT_A_QUANTITY),
    ("PersistentVolume", "spec.accessModes", "RWO", "expected array | null, got str"),
    ("PersistentVolumeClaim", "spec.resources.requests.storage", "5K", "unable to parse quantity's suffix"),
    ("PersistentVolumeClaim", "spec.volumeName", [], "expected str | null, got array"),
    ("StorageClass", "provisioner", 1, TEXT),
    ("StorageClass", "allowedTopologies[0].matchLabelExpressions[0].values", "a", "expected array | null, got str"),
    ("CSINode", "spec.drivers[0].allocatable.count", "8", "expected int | null, got str"),
    ("CSIDriver", "spec.storageCapacity", "yes", "expected bool | null, got str"),
    ("CSIDriver", "spec.preventPodSchedulingIfMissing", "yes", "expected bool | null, got str"),
    ("DeviceClass", "spec.extendedResourceName", 3, TEXT),
    ("PodGroup", "spec.minMember", "8", "expected int | null, got str"),
    ("PodGroup", "spec.minMember", 2**31, "expected int <= 2147483647"),
    ("PodGroup", "spec.scheduleTimeoutSeconds", [], "expected int | null, got array"),
    ("Node", "status.declaredFeatures", "a", "expected array | null, got str"),
    ("CSIStorageCapacity", "capacity", "many", NOT_A_QUANTITY),
    ("CSIStorageCapacity", "maximumVolumeSize", {}, NOT_A_QUANTITY),
    ("VolumeAttachment", "spec.nodeName", 1, TEXT),
    ("Service", "spec.selector[...]", {"app": 1}, "expected str, got int"),
    ("PodDisruptionBudget", "spec.selector", [], "expected object | null, got array"),
    ("PodDisruptionBudget", "status.disruptionsAllowed", "2", "expected int | null, got str"),
    ("PodDisruptionBudget", "status.disruptionsAllowed", 2**31, "expected int <= 2147483647"),
    ("PodDisruptionBudget", "status.disruptedPods", ["a"], "expected object | null, got array"),
    ("ReplicaSet", "metadata.ownerReferences", 3, "expected array | null, got int"),
    ("ReplicaSet", "metadata.ownerReferences[0].uid", 3, TEXT),
    ("ReplicaSet", "metadata.ownerReferences[0].controller", "yes", "expected bool | null, got str"),
    ("ReplicaSet", "spec.selector", [], "expected object | null, got array"),
    ("StatefulSet", "spec.selector", [], "expected object | null, got array"),
    ("ReplicationController", "spec.selector", [], "expected object | null, got array"),
    *[
        (kind, *row)
        for kind in ("Pod", "Node", "Namespace", "ReplicaSet", "PersistentVolume")
        for row in (
            ("metadata.labels", ["a"], "expected object | null, got array"),
            ("metadata.labels[...]", {"a": True}, "expected str, got bool"),
        )
    ],
]


def object_with(path: str, value: object) -> dict[str, Any]:
    """Return an object with a name and the value at a path; before it, lists have empty objects."""
    steps = [int(number) if number else name for name, number in re.findall(r"([^.\[\]]+(?=[.\[]|$))|\[(\d+)\]", path)]
    built: Any = reduce(
        lambda inner, step: [{}] * step + [inner] if isinstance(step, int) else {step: inner}, reversed(steps), value
    )
    return {**built, "metadata": {"name": "x", **built.get("metadata", {})}}


def slug(*words: object) -> str:
    return re.sub(r"\W+", "-", " ".join(map(str, words))).strip("-").lower()


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        pytest.param(*row, id=slug(*row[:2], "null" if row[2] is None else "empty"))
        for row in [*((kind, path, None) for kind, paths in NULLABLE.items() for path in paths.split()), *EMPTY]
    ],
)
def test_a_field_that_is_null_or_empty_is_absent(kind: str, path: str, value: object) -> None:
    absent = object_with(path.rpartition(".")[0], {})
    assert DECODERS[kind](json.dumps(absent).encode()) == DECODERS[kind](json.dumps(object_with(path, value)).encode())


@pytest.mark.parametrize(
    ("kind", "path", "value", "message"),
    [pytest.param(*row, id=slug(*row[:2], row[3].partition(",")[0])) for row in BROKEN],
)
def test_a_broken_field_is_refused_with_its_path(kind: str, path: str, value: object, message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        DECODERS[kind](json.dumps(object_with(path.removesuffix("[...]"), value)).encode())
    assert f"{path}: {message}" == str(caught.value)
