"""Pods as v1 objects."""

from collections.abc import Sequence
from typing import Final

from app.conformance_case.encode import V1, metadata_of, owners_of, present, selected_labels
from app.conformance_case.encode_affinity import affinity_of, spread_of
from app.conformance_case.encode_containers import containers_of
from core.objects.pod import Pod
from core.objects.pod_volumes import InlineDisk, PodClaim, PodVolume, RBDImage
from core.objects.toleration import Toleration

_DELETED: Final = "1970-01-01T00:00:00Z"  # when it was is not known, and in no answer
_INLINE_DISKS: Final = {  # plugin -> member of the volume, and what the disk is called there
    "kubernetes.io/gce-pd": ("gcePersistentDisk", "pdName"),
    "kubernetes.io/iscsi": ("iscsi", "iqn"),
    "kubernetes.io/azure-disk": ("azureDisk", "diskURI"),
    "kubernetes.io/aws-ebs": ("awsElasticBlockStore", "volumeID"),
    "kubernetes.io/cinder": ("cinder", "volumeID"),
    "kubernetes.io/portworx-volume": ("portworxVolume", "volumeID"),
}


def encode_pod(pod: Pod) -> V1:
    """Return a v1.Pod from which `decode_pod` makes an equal one. Raises NotExpressibleError.

    That is for broken terms and selectors (see `without_broken_parts`), and for a demand that no containers were found
    for. The containers are not those of the pod (see containers_of), and times of its deletion are made up.
    """
    metadata = metadata_of(
        pod,
        pod.name,
        namespace=pod.namespace,
        labels=dict(pod.labels),
        ownerReferences=owners_of(pod.controller),
        deletionTimestamp=_DELETED if pod.terminating else "",
    )
    containers = containers_of(pod)
    spec = {
        **containers.spec,
        "nodeName": pod.node_name,
        "nodeSelector": selected_labels(pod.node_affinity.selector),
        "affinity": affinity_of(pod),
        "tolerations": [_toleration(each) for each in sorted(pod.tolerations)],
        "topologySpreadConstraints": spread_of(pod),
        "volumes": [_volume(pod, f"v{index}", volume) for index, volume in enumerate(pod.volumes)],
        "priority": pod.priority,
        "preemptionPolicy": pod.preemption_policy,
        "schedulerName": pod.scheduler_name,
    }
    status = {
        **containers.status,
        "phase": "Succeeded" if pod.terminal else "",
        "startTime": pod.start_time,
        "nominatedNodeName": pod.nominated_node_name,
        "conditions": [*containers.conditions, *_preempted(pod)],
    }
    return present({"metadata": metadata, "spec": present(spec), "status": present(status)})


def _toleration(toleration: Toleration) -> V1:
    return present(
        {
            "key": toleration.key,
            "operator": toleration.operator,
            "value": toleration.value,
            "effect": toleration.effect,
        }
    )


def _preempted(pod: Pod) -> Sequence[V1]:
    if not pod.preempted:
        return ()
    return [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]


def _volume(pod: Pod, name: str, volume: PodVolume) -> V1:
    match volume:
        case PodClaim(claim, ephemeral=True):
            return {"name": claim.removeprefix(f"{pod.name}-"), "ephemeral": {}}
        case PodClaim(claim):
            return {"name": name, "persistentVolumeClaim": {"claimName": claim}}
        case RBDImage():
            said = {"pool": volume.pool, "image": volume.image, "readOnly": volume.read_only}
            return {"name": name, "rbd": {"monitors": sorted(volume.monitors), **present(said)}}
        case InlineDisk():
            member, called = _INLINE_DISKS[volume.source.plugin]
            said = present({called: volume.source.volume, "readOnly": volume.read_only})
            return {"name": volume.name, member: said if volume.kind is None else {**said, "kind": volume.kind}}
