"""Pods as v1 objects."""

from collections.abc import Sequence
from typing import Any, Final

from app.explain.conformance_case.encode import DELETED, IN_TREE_DISKS, V1, Encoder, owners_of, present, simple
from app.explain.conformance_case.encode_affinity import affinity_of, spread_of
from app.explain.conformance_case.encode_containers import containers_of
from app.explain.conformance_case.encode_resources import resources_of
from core.objects.pod import Pod
from core.objects.pod_volumes import InlineDisk, PodClaim, PodVolume, RBDImage
from core.releases import MOUNT_OPTIONS, RESTART_ALL, USERS_OF_HOST

_MOUNTS: Final = [{"name": "v", "bindMountOptions": ["option"]}]
_BUT_CONTAINERS: Final = Encoder(
    {
        "metadata.ownerReferences": owners_of,
        "metadata.creationTimestamp": lambda pod: pod.waiting.created,
        "metadata.deletionTimestamp": lambda pod: DELETED if pod.terminating else "",
        "spec.nodeName": "node_name",
        "spec.nodeSelector": lambda pod: {each.key: each.values[0] for each in pod.node_affinity.selector.requirements},
        "spec.affinity": affinity_of,
        "spec.tolerations": lambda pod: simple(sorted(pod.tolerations)),
        "spec.topologySpreadConstraints": spread_of,
        "spec.hostNetwork": lambda pod: USERS_OF_HOST in pod.needed_features,
        "spec.hostUsers=": lambda pod: False if USERS_OF_HOST in pod.needed_features else None,
        "spec.volumes": lambda pod: [
            *(_volume(pod, f"v{index}", volume) for index, volume in enumerate(pod.volumes)),
            *(_image_volume(f"image{index}", image) for index, image in enumerate(pod.image_volumes)),
        ],
        "spec.priority": "priority",
        "spec.preemptionPolicy": "preemption_policy",
        "spec.schedulerName": "scheduler_name",
        "spec.schedulingGroup": lambda pod: _scheduling_group(pod) if pod.scheduling_group.count("/") == 1 else {},
        "spec.workloadRef": lambda pod: _workload(pod) if pod.scheduling_group.count("/") > 1 else {},
        "spec.schedulingGates": lambda pod: [{"name": name} for name in pod.waiting.gates],
        "spec.resourceClaims": lambda pod: [{"name": "claim"}] if pod.claims_resources else [],
        "status.phase": lambda pod: "Succeeded" if pod.terminal else "",
        "status.startTime": "start_time",
        "status.nominatedNodeName": "nominated_node_name",
    }
)


def encode_pod(pod: Pod) -> V1:
    """Return a v1.Pod that `decode_pod` decodes to an equal pod.

    Raises NotExpressibleError for invalid terms and selectors (see `without_broken_parts`), and for a demand without
    matching containers. The containers are not the pod's own (see containers_of). The time of deletion, and the names
    of resource claims, are made up.
    """
    containers = containers_of(pod) if pod.resources is None else resources_of(pod, pod.resources)
    written: Any = _BUT_CONTAINERS(pod)
    conditions = [*containers.conditions, *_preempted(pod), *_failed(pod)]
    for member, made in (
        ("spec", containers.spec),
        ("status", {**containers.status, **present({"conditions": conditions})}),
    ):
        if made:
            written[member] = {**made, **written.get(member, {})}
    _use_features(pod, written)
    return present(written)


def _use_features(pod: Pod, written: Any) -> None:  # noqa: ANN401  the pod as it is put together
    """Make containers use the features that the pod's node must declare."""
    spec = written.setdefault("spec", {})
    containers = [dict(each) for each in spec.get("containers", ())]
    if not containers:
        if MOUNT_OPTIONS in pod.needed_features:
            spec["ephemeralContainers"] = [{"name": "e", "volumeMounts": _MOUNTS}]
    elif MOUNT_OPTIONS in pod.needed_features:
        containers[0]["volumeMounts"] = _MOUNTS
    if RESTART_ALL in pod.needed_features:
        restarting = containers or (starting := [dict(each) for each in spec["initContainers"]])
        restarting[0]["restartPolicyRules"] = [{"action": "RestartAllContainers"}]
        if not containers:
            spec["initContainers"] = starting
    if containers:
        spec["containers"] = containers
    elif not spec:
        del written["spec"]


def _preempted(pod: Pod) -> Sequence[V1]:
    if not pod.preempted:
        return ()
    return [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]


def _failed(pod: Pod) -> Sequence[V1]:
    waiting = pod.waiting
    if not waiting.reason:
        return ()
    told = {"reason": waiting.reason, "message": waiting.message, "lastTransitionTime": waiting.changed}
    return [{"type": "PodScheduled", "status": "False", **present(told)}]


def _image_volume(name: str, image: str) -> V1:
    return {"name": name, "image": {"reference": image}}


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
            member, called = IN_TREE_DISKS[volume.source.plugin]
            said = present({called: volume.source.volume, "readOnly": volume.read_only})
            return {"name": volume.name, member: said if volume.kind is None else {**said, "kind": volume.kind}}


def _scheduling_group(pod: Pod) -> V1:
    return {"podGroupName": pod.scheduling_group.partition("/")[2]}


def _workload(pod: Pod) -> V1:
    names = pod.scheduling_group.split("/")[1:]
    return dict(zip(("name", "podGroup", "podGroupReplicaKey"), names, strict=False))
