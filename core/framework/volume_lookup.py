"""Looks up the claims that a pod names in the mirror, and builds the status for a missing object.

Source: k8s.io/apimachinery pkg/api/errors/errors.go (NewNotFound), as the listers of client-go return it.
"""

from typing import Final

from core.framework.status import Code, Status
from core.mirror.cluster import ClusterMirror
from core.objects.go_format import quoted
from core.objects.pod import Pod
from core.objects.pod_volumes import PodClaim
from core.objects.volumes import PersistentVolume, PersistentVolumeClaim, StorageClass

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
    """Return the lister's error for a missing object."""
    return f"{_RESOURCES[kind]} {quoted(name)} not found"
