"""Claims of volumes and devices, made and bound by the test: no controller and no driver is here."""

from collections.abc import Sequence
from typing import Any, Final

from tests.e2e.api import Api, Manifest
from tests.e2e.cluster import NAMESPACE

CLAIMS: Final = f"/api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims"
_VOLUMES: Final = "/api/v1/persistentvolumes"
_CLASSES: Final = "/apis/storage.k8s.io/v1/storageclasses"
_DEVICES: Final = "/apis/resource.k8s.io/v1"
DEVICE_CLAIMS: Final = f"{_DEVICES}/namespaces/{NAMESPACE}/resourceclaims"
_SLICES: Final = f"{_DEVICES}/resourceslices"
_DEVICE_CLASSES: Final = f"{_DEVICES}/deviceclasses"
_LATE: Final = "late"
"""The name of the class whose volumes come when the pod has a node."""
_DRIVER: Final = "devices.example.com"
_MODES: Final = {"accessModes": ["ReadWriteOnce"]}


def volume_claim(claim: str) -> dict[str, Any]:
    """Return a field of a pod's spec that refers to a claim."""
    return {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]}


def device_claim(claim: str) -> dict[str, Any]:
    """Return a field of a pod's spec that refers to a claim."""
    return {"resourceClaims": [{"name": "device", "resourceClaimName": claim}]}


def create_late_claims(api: Api, claims: Sequence[str]) -> None:
    """Make claims whose volumes are made when their pods have nodes."""
    api.create(
        _CLASSES,
        {
            "metadata": {"name": _LATE},
            "provisioner": "volumes.example.com",
            "volumeBindingMode": "WaitForFirstConsumer",
        },
    )
    for name in claims:
        spec = {**_MODES, "storageClassName": _LATE, "resources": {"requests": {"storage": "1Gi"}}}
        api.create(CLAIMS, {"metadata": {"name": name}, "spec": spec})


def provision(api: Api, claim: str) -> None:
    """Make the volume of a claim, and bind them, as a provisioner and the controller do."""
    found = api.get(f"{CLAIMS}/{claim}")
    reference = {
        "kind": "PersistentVolumeClaim",
        "namespace": NAMESPACE,
        "name": claim,
        "uid": found["metadata"]["uid"],
    }
    spec = {
        **_MODES,
        "capacity": {"storage": "1Gi"},
        "storageClassName": _LATE,
        "claimRef": reference,
        "csi": {"driver": "volumes.example.com", "volumeHandle": claim},
    }
    volume = api.create(_VOLUMES, {"metadata": {"name": claim}, "spec": spec, "status": {"phase": "Bound"}})
    name = volume["metadata"]["name"]
    annotations = {"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"}
    api.patch(f"{CLAIMS}/{claim}", {"metadata": {"annotations": annotations}, "spec": {"volumeName": name}})
    status = {**_MODES, "phase": "Bound", "capacity": {"storage": "1Gi"}}
    api.patch(f"{CLAIMS}/{claim}/status", {"status": status})


def create_devices(api: Api, nodes: Sequence[str], number: int, claims: Sequence[str]) -> None:
    """Make so many devices on each of some nodes, and claims of one device each."""
    api.create(_DEVICE_CLASSES, {"metadata": {"name": _DRIVER}, "spec": {}})
    for name in nodes:
        devices = [{"name": f"device-{at}"} for at in range(number)]
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": _DRIVER, "nodeName": name, "pool": pool, "devices": devices}
        api.create(_SLICES, {"metadata": {"name": name}, "spec": spec})
    for name in claims:
        request = {"name": "one", "exactly": {"deviceClassName": _DRIVER}}
        api.create(DEVICE_CLAIMS, {"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}})


def delete_claims(api: Api) -> None:
    """Delete all that is made here. Finalizers are for controllers that are not here."""
    for path in (CLAIMS, _VOLUMES, DEVICE_CLAIMS):
        for each in api.items(path):
            named = f"{path}/{each['metadata']['name']}"
            api.patch(named, _without_finalizers())
            api.delete(named)
    for path in (_CLASSES, _SLICES, _DEVICE_CLASSES):
        api.delete_all(path)


def _without_finalizers() -> Manifest:
    return {"metadata": {"finalizers": None}}
