"""What belongs to a pod: its claims, with the objects behind their names, and the Services that select it."""

from collections.abc import Collection, Iterator
from typing import Final

from core.events import Kind
from core.framework.interface import Code, Plugin, Status
from core.mirror.changes import ObjectChange
from core.mirror.cluster import ClusterMirror
from core.mirror.term_index import TermIndex
from core.objects.affinity import PodMatcher
from core.objects.kinds import Service
from core.objects.labels import NOTHING
from core.objects.pod import Pod, PodClaim
from core.objects.quantity import quoted
from core.objects.volumes import (
    NO_PROVISIONER,
    CSIDriver,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)


class ClaimError(Exception):
    """The claims of a pod cannot be judged, or satisfied on any node. The status says why."""

    def __init__(self, reason: str, code: Code = Code.UNSCHEDULABLE_AND_UNRESOLVABLE) -> None:
        super().__init__(reason)
        self.status = Status(code, (reason,))


class ReadsClaims(Plugin):
    """The common part of the plugins whose results depend on the pod's claims."""

    def references(self, mirror: ClusterMirror, pod: Pod, /) -> tuple[str | None, ...] | None:
        """Return the UIDs of the pod's claims, each None if missing, or None for a pod without claims.

        Pods of one StatefulSet differ in these UIDs (kubernetes issue 56265). So does one pod before and after its
        claim is deleted and created again.
        """
        if not pod.volumes:
            return None
        names = [f"{pod.namespace}/{volume.name}" for volume in pod.volumes if isinstance(volume, PodClaim)]
        if not names:
            return None
        claims = mirror.objects(PersistentVolumeClaim)
        return tuple([claims[name].uid if name in claims else None for name in names])

    def reads(self, mirror: ClusterMirror, pod: Pod, missing: Collection[Kind]) -> Collection[Kind]:
        """Return the kinds of the objects by which a pod's claims are judged.

        A claim that exists is judged by its volume, or by its class and the volumes that it may take. Where a class
        makes volumes, a node is refused by the class, and by the capacity if its driver publishes some.
        """
        if not any(isinstance(each, PodClaim) for each in pod.volumes):
            return set()
        if PersistentVolumeClaim in missing:
            return {PersistentVolumeClaim, PersistentVolume, StorageClass}
        kinds: set[Kind] = set()
        for claim in found_claims(mirror, pod):
            provisioner = _provisioner(mirror, claim)
            if not claim.volume:
                kinds.add(StorageClass)
            if claim.volume or provisioner in NO_PROVISIONER:
                kinds.add(PersistentVolume)
            driver = mirror.objects(CSIDriver).get(provisioner)
            if not claim.volume and driver is not None and driver.storage_capacity:
                kinds.add(CSIStorageCapacity)
        return kinds


def ownership_error(pod: Pod, volume: PodClaim, claim: PersistentVolumeClaim) -> str:
    """Return why a claim was not created for an ephemeral volume of the pod, or the empty text if it was.

    Source: k8s.io/component-helpers storage/ephemeral/ephemeral.go (VolumeIsForPod).
    """
    if not volume.ephemeral or (claim.controller is not None and claim.controller.uid == pod.uid):
        return ""
    return f"PVC {claim.full_name} was not created for pod {pod.full_name} (pod is not owner)"


_RESOURCES: Final = {
    PersistentVolume: "persistentvolume",
    PersistentVolumeClaim: "persistentvolumeclaim",
    StorageClass: "storageclass.storage.k8s.io",
}


def named_claims(pod: Pod) -> tuple[PodClaim, ...]:
    """Return the claims that the pod names itself, in the order of its volumes, without claims of ephemeral volumes."""
    return tuple([each for each in pod.volumes if isinstance(each, PodClaim) and not each.ephemeral])


def find_claim(mirror: ClusterMirror, pod: Pod, claim: PodClaim) -> PersistentVolumeClaim | None:
    """Return the claim that a volume of a pod names, in the pod's namespace, or None if it does not exist."""
    return mirror.objects(PersistentVolumeClaim).get(f"{pod.namespace}/{claim.name}")


def not_found(kind: type[PersistentVolume | PersistentVolumeClaim | StorageClass], name: str) -> Status:
    """Return the status of a pod on all nodes if an object does not exist."""
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (not_found_text(kind, name),))


def not_found_text(kind: type[PersistentVolume | PersistentVolumeClaim | StorageClass], name: str) -> str:
    """Return the error of client-go's listers for a missing object (pkg/api/errors/errors.go, NewNotFound)."""
    return f"{_RESOURCES[kind]} {quoted(name)} not found"


def found_claims(mirror: ClusterMirror, pod: Pod) -> Iterator[PersistentVolumeClaim]:
    """Return the claims of a pod that exist, also those of its ephemeral volumes."""
    claims = (find_claim(mirror, pod, each) for each in pod.volumes if isinstance(each, PodClaim))
    return (claim for claim in claims if claim is not None)


def _provisioner(mirror: ClusterMirror, claim: PersistentVolumeClaim) -> str:
    storage_class = mirror.objects(StorageClass).get(claim.storage_class)
    return "" if storage_class is None else storage_class.provisioner


def makes_volume(mirror: ClusterMirror, pod: Pod) -> bool:
    """Return whether a volume is to be made for a claim of the pod."""
    return any(
        not claim.volume and _provisioner(mirror, claim) not in NO_PROVISIONER for claim in found_claims(mirror, pod)
    )


class Services:
    """All Services, indexed so that those of a pod are found without a loop over the others.

    Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/helper/spread.go (GetPodServices).
    """

    hears: Final = (ObjectChange,)

    def __init__(self, mirror: ClusterMirror) -> None:
        self._services = mirror.objects(Service)
        self._index: TermIndex[str] = TermIndex()  # by the full names of the Services
        for service in self._services.values():
            self._add(service)

    def selecting(self, pod: Pod) -> list[Service]:
        """Return the Services that select a pod. Stale after the next event."""
        candidates = [self._services[name] for name in self._index.candidates(pod.namespace, pod.labels)]
        return [service for service in candidates if service.selector.matches(pod.labels)]

    def changed(self, change: ObjectChange) -> None:
        """Update the selector of a Service."""
        if change.kind is not Service:
            return
        if change.before is not None:
            self._index.remove(change.before.full_name)
        if change.after is not None:
            self._add(change.after)

    def _add(self, service: Service) -> None:
        self._index.add(service.full_name, PodMatcher(frozenset((service.namespace,)), NOTHING, service.selector))
