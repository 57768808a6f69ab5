"""Applies the steps about claims and volumes to the cluster, as a supposition."""

from msgspec.structs import replace

from core.diagnosis.remedies.remedy import Step
from core.diagnosis.remedies.volume_steps import AllowTopology, CreateClaim, ProvideVolume, ResizeClaim
from core.mirror.cluster import ClusterMirror
from core.mirror.what_if import Supposition, WhatIfError
from core.objects.volumes import ClaimRef, PersistentVolume, PersistentVolumeClaim, StorageClass


def suppose_volumes(mirror: ClusterMirror, supposed: Supposition, step: Step) -> None:
    """Suppose a step if it is about claims or volumes. Raises WhatIfError for a missing object."""
    match step:
        case CreateClaim():
            namespace, _, name = step.claim.partition("/")
            claim = PersistentVolumeClaim(namespace=namespace, name=name, storage_class=step.storage_class)
            supposed.put_object(claim)
            if not step.storage_class:
                _bind(supposed, claim, "")
        case ProvideVolume():
            _bind(supposed, _claim(mirror, step.claim), step.volume)
        case AllowTopology():
            storage_class = mirror.objects(StorageClass).get(step.storage_class)
            if storage_class is None:
                raise WhatIfError(f"StorageClass {step.storage_class} is not there")
            supposed.put_object(replace(storage_class, allowed_topologies=None))
        case ResizeClaim():
            supposed.put_object(replace(_claim(mirror, step.claim), requested=step.to))
        case _:
            pass


def _bind(supposed: Supposition, claim: PersistentVolumeClaim, volume: str) -> None:
    """Suppose a volume that every node can reach, and the claim bound to it."""
    name = volume or claim.full_name  # no volume has a slash in its name
    supposed.put_object(
        PersistentVolume(
            name=name,
            capacity=claim.requested or 0,
            access_modes=claim.access_modes,
            volume_mode=claim.volume_mode,
            storage_class=claim.storage_class,
            volume_attributes_class=claim.volume_attributes_class,
            claim=ClaimRef(claim.namespace, claim.name, claim.uid),
        )
    )
    supposed.put_object(replace(claim, volume=name, bind_completed=True))


def _claim(mirror: ClusterMirror, name: str) -> PersistentVolumeClaim:
    claim = mirror.objects(PersistentVolumeClaim).get(name)
    if claim is None:
        raise WhatIfError(f"claim {name} is not there")
    return claim
