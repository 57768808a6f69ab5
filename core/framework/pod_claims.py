"""The claims of a pod: the objects behind their names, and their owners."""

from core.mirror.cluster import ClusterMirror
from core.objects.pod import Pod
from core.objects.pod_volumes import PodClaim
from core.objects.volumes import PersistentVolumeClaim


def claim_uids(mirror: ClusterMirror, pod: Pod) -> tuple[str | None, ...] | None:
    """Return the UIDs of the pod's claims, each None if missing, or None for a pod without claims.

    Pods of one StatefulSet differ in these UIDs (kubernetes issue 56265). So does one pod before and after its claim is
    deleted and created again.
    """
    if not pod.volumes:
        return None
    names = [f"{pod.namespace}/{volume.name}" for volume in pod.volumes if isinstance(volume, PodClaim)]
    if not names:
        return None
    claims = mirror.objects(PersistentVolumeClaim)
    return tuple([claims[name].uid if name in claims else None for name in names])


def ownership_error(pod: Pod, volume: PodClaim, claim: PersistentVolumeClaim) -> str:
    """Return why a claim was not created for an ephemeral volume of the pod, or the empty text if it was.

    Source: k8s.io/component-helpers storage/ephemeral/ephemeral.go (VolumeIsForPod).
    """
    if not volume.ephemeral or (claim.controller is not None and claim.controller.uid == pod.uid):
        return ""
    return f"PVC {claim.full_name} was not created for pod {pod.full_name} (pod is not owner)"
