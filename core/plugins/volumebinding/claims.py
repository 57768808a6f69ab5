"""The claims of a pod, grouped by the necessary step.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/volumebinding/volume_binding.go (podHasPVCs) and binder.go
(GetPodVolumeClaims).
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from core.framework.claims import not_found_text, ownership_error
from core.framework.interface import Code, Status
from core.mirror.cluster import ClusterMirror
from core.objects.pod import Pod, PodClaim
from core.objects.quantity import quoted
from core.objects.volumes import PersistentVolumeClaim, StorageClass

LOST: Final = "Lost"
"""Phase of a claim whose volume was deleted."""

UNBOUND_IMMEDIATE: Final = Status(
    Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("pod has unbound immediate PersistentVolumeClaims",)
)

_WAIT_FOR_FIRST_CONSUMER: Final = "WaitForFirstConsumer"


class ClaimError(Exception):
    """Claims for which a pod fails on all nodes. The status says why."""

    def __init__(self, code: Code, reason: str) -> None:
        super().__init__(reason)
        self.status = Status(code, (reason,))


class PodVolumeClaims(msgspec.Struct, frozen=True):
    """The bound claims of a pod, and the claims whose volumes wait for the pod, in the order of its volumes."""

    bound: tuple[PersistentVolumeClaim, ...]
    unbound: tuple[PersistentVolumeClaim, ...]


def claims_of(mirror: ClusterMirror, pod: Pod) -> PodVolumeClaims:
    """Return the claims of a pod. Raises ClaimError."""
    bound: list[PersistentVolumeClaim] = []
    unbound: list[PersistentVolumeClaim] = []
    immediate = False
    for claim in tuple(_usable(mirror, pod)):  # check all claims before any further step
        if claim.volume and claim.bind_completed:
            bound.append(claim)
        elif _waits(mirror, claim) and not claim.volume:
            unbound.append(claim)
        else:
            immediate = True
    if immediate:
        raise ClaimError(UNBOUND_IMMEDIATE.code, *UNBOUND_IMMEDIATE.reasons)
    return PodVolumeClaims(tuple(bound), tuple(unbound))


def _usable(mirror: ClusterMirror, pod: Pod) -> Iterator[PersistentVolumeClaim]:
    claims = mirror.objects(PersistentVolumeClaim)
    for volume in pod.volumes:
        if isinstance(volume, PodClaim):
            claim = claims.get(f"{pod.namespace}/{volume.name}")
            problem = _missing(volume) if claim is None else _fault(pod, volume, claim)
            if claim is None or problem:
                raise ClaimError(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, problem)
            yield claim


def _missing(volume: PodClaim) -> str:
    if volume.ephemeral:
        return f"waiting for ephemeral volume controller to create the persistentvolumeclaim {quoted(volume.name)}"
    return not_found_text(PersistentVolumeClaim, volume.name)


def _fault(pod: Pod, volume: PodClaim, claim: PersistentVolumeClaim) -> str:
    if claim.phase == LOST:
        return (
            f"persistentvolumeclaim {quoted(claim.name)} bound to non-existent persistentvolume {quoted(claim.volume)}"
        )
    if claim.deleting:
        return f"persistentvolumeclaim {quoted(claim.name)} is being deleted"
    return ownership_error(pod, volume, claim)


def _waits(mirror: ClusterMirror, claim: PersistentVolumeClaim) -> bool:
    """Upstream IsDelayBindingMode: a claim whose class is missing does not wait. Raises ClaimError."""
    storage_class = mirror.objects(StorageClass).get(claim.storage_class) if claim.storage_class else None
    if storage_class is None:
        return False
    if storage_class.volume_binding_mode is None:
        raise ClaimError(Code.ERROR, f"VolumeBindingMode not set for StorageClass {quoted(claim.storage_class)}")
    return storage_class.volume_binding_mode == _WAIT_FOR_FIRST_CONSUMER
