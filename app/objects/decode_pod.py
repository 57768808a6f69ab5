"""JSON of a v1.Pod to the core's value."""

from collections.abc import Sequence
from functools import lru_cache
from sys import intern
from typing import Annotated, Final

import msgspec

from app.objects.decode import (
    NULL,
    Int32,
    Metadata,
    Unread,
    Wire,
    WireAmounts,
    checked_name,
    controller_of,
    decoding,
    labels_of,
)
from app.objects.decode_containers import (
    Demand,
    WireClaimStatus,
    WireContainer,
    WireContainers,
    WireContainerStatus,
    WireResources,
    demand_of,
    needed_features,
)
from app.objects.decode_groups import EMPTY_CONDITION, WireCondition, condition_of, membership_of
from app.objects.decode_placement import (
    WireNodeAffinities,
    WirePodAffinities,
    WireSpreadConstraint,
    WireToleration,
    affinity_of,
    node_affinity_of,
    tolerations_of,
    topology_spread_of,
)
from core.objects.affinity import NO_AFFINITY, NO_NODE_AFFINITY
from core.objects.pod import (
    NO_TOLERATIONS,
    NOT_WAITING,
    InlineDisk,
    Pod,
    PodClaim,
    PodResourceClaim,
    PodVolume,
    RBDImage,
    Waiting,
    normalized_image_name,
)
from core.objects.volumes import VolumeSource

_MEMO_ENTRIES: Final = 8192
_SHARED_SIZE: Final = 1024  # characters; longer volumes are not shared, so the memo has at most some 16 MiB


class _Claim(Wire):
    claim_name: str | None = None


class _Ephemeral(Wire):
    """The template of the claim. The claim itself is found by its name."""


class WireVolumeID(Wire):
    """The source of several kinds of volumes, of pods and of PersistentVolumes."""

    volume: str | None = msgspec.field(default=None, name="volumeID")


class WireGCEPersistentDisk(Wire):
    """A v1.GCEPersistentDiskVolumeSource."""

    volume: str | None = msgspec.field(default=None, name="pdName")
    read_only: bool | None = None


class WireAzureDisk(Wire):
    """A v1.AzureDiskVolumeSource."""

    volume: str | None = msgspec.field(default=None, name="diskURI")
    kind: str | None = None


class _ISCSI(Wire):
    volume: str | None = msgspec.field(default=None, name="iqn")
    read_only: bool | None = None


class _RBD(Wire):
    monitors: list[str] | None = None
    pool: str | None = None
    image: str | None = None
    read_only: bool | None = None


class _ImageVolumeSource(Wire):
    reference: str | None = None


class WireVolume(Wire):
    """A v1.Volume. Kinds that no plugin reads are ignored."""

    name: str | None = None
    persistent_volume_claim: _Claim | None = None
    ephemeral: _Ephemeral | None = None
    gce_persistent_disk: WireGCEPersistentDisk | None = None
    aws_elastic_block_store: WireVolumeID | None = None
    azure_disk: WireAzureDisk | None = None
    cinder: WireVolumeID | None = None
    portworx_volume: WireVolumeID | None = None
    iscsi: _ISCSI | None = None
    rbd: _RBD | None = None
    image: _ImageVolumeSource | None = None


def image_volumes_of(wires: Sequence[WireVolume]) -> tuple[str, ...]:
    """Return the normalized image names of all image volumes, sorted."""
    names = [wire.image.reference or "" for wire in wires if wire.image is not None]
    return tuple(sorted(map(normalized_image_name, names))) if names else ()


def volumes_of(pod: str, wires: Sequence[WireVolume]) -> tuple[PodVolume, ...]:
    """Return the volumes of the pod with that name. Pods with equal volumes mostly share them."""
    volumes = [
        _volume(pod, wire)
        for wire in wires
        # Most volumes of most pods are of other kinds. They cost no call here.
        if (wire.persistent_volume_claim or wire.ephemeral or wire.rbd or wire.iscsi or wire.gce_persistent_disk)
        or (wire.aws_elastic_block_store or wire.azure_disk or wire.cinder or wire.portworx_volume)
    ]
    if not volumes:
        return ()
    return _shared(tuple(volumes)) if sum(map(_size, volumes)) <= _SHARED_SIZE else tuple(volumes)


def _size(volume: PodVolume) -> int:
    """Return the approximate number of characters of a volume."""
    if isinstance(volume, PodClaim):
        return len(volume.name)
    if isinstance(volume, InlineDisk):
        return len(volume.name) + len(volume.source.volume) + len(volume.kind or "")
    return len(volume.pool) + len(volume.image) + sum(map(len, volume.monitors))


@lru_cache(maxsize=_MEMO_ENTRIES)
def _shared(volumes: tuple[PodVolume, ...]) -> tuple[PodVolume, ...]:
    return volumes


def _volume(pod: str, wire: WireVolume) -> PodVolume:
    """Return the backend of a volume. The API server allows only one."""
    if wire.persistent_volume_claim is not None:
        return PodClaim(wire.persistent_volume_claim.claim_name or "")
    if wire.ephemeral is not None:
        return PodClaim(f"{pod}-{wire.name or ''}", ephemeral=True)
    if (rbd := wire.rbd) is not None:
        return RBDImage(frozenset(rbd.monitors or ()), rbd.pool or "", rbd.image or "", rbd.read_only or False)
    disks = (
        ("gce-pd", wire.gce_persistent_disk),
        ("iscsi", wire.iscsi),
        ("azure-disk", wire.azure_disk),
        ("aws-ebs", wire.aws_elastic_block_store),
        ("cinder", wire.cinder),
        ("portworx-volume", wire.portworx_volume),
    )
    plugin, disk = next((plugin, disk) for plugin, disk in disks if disk is not None)
    source = VolumeSource(f"kubernetes.io/{plugin}", disk.volume or "", in_tree=True)
    read_only = isinstance(disk, WireGCEPersistentDisk | _ISCSI) and disk.read_only is True
    return InlineDisk(wire.name or "", source, read_only, disk.kind if isinstance(disk, WireAzureDisk) else None)


_MAX_MESSAGE: Final = 1000
"""Characters that are kept of a pending pod's message. This limits the memory of 20,000 pending pods."""
_TERMINAL_PHASES: Final = frozenset({"Succeeded", "Failed"})


class _PodMetadata(Metadata):
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    annotations: Annotated[msgspec.Raw, Unread(dict[str, str])] = NULL


class _SchedulingGate(Wire):
    name: str | None = None


class _ResourceClaim(Wire):
    name: str | None = None
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class _ResourceClaimStatus(Wire):
    name: str | None = None
    resource_claim_name: str | None = None


class _SchedulingGroup(Wire):
    pod_group_name: str | None = None


class _WorkloadRef(Wire):
    name: str | None = None
    pod_group: str | None = None
    pod_group_replica_key: str | None = None


class _PodSpec(Wire):
    volumes: list[WireVolume] | None = None
    init_containers: list[WireContainer] | None = None
    containers: list[WireContainer] | None = None
    ephemeral_containers: list[WireContainer] | None = None
    host_network: bool | None = None
    host_users: bool | None = None
    node_selector: Annotated[msgspec.Raw, Unread(dict[str, str])] = NULL
    node_name: str | None = None
    affinity: Annotated[msgspec.Raw, Unread((WirePodAffinities, WireNodeAffinities))] = NULL
    tolerations: Annotated[msgspec.Raw, Unread(list[WireToleration])] = NULL
    overhead: WireAmounts = NULL
    topology_spread_constraints: Annotated[msgspec.Raw, Unread(list[WireSpreadConstraint])] = NULL
    resources: Annotated[msgspec.Raw, Unread(WireResources)] = NULL
    priority: Int32 | None = None
    preemption_policy: str | None = None
    scheduler_name: str | None = None
    scheduling_group: _SchedulingGroup | None = None
    workload_ref: _WorkloadRef | None = None
    resource_claims: list[_ResourceClaim] | None = None
    scheduling_gates: list[_SchedulingGate] | None = None


class _PodStatus(Wire):
    phase: str | None = None
    start_time: str | None = None
    nominated_node_name: str | None = None
    conditions: Annotated[msgspec.Raw, Unread(list[WireCondition])] = NULL
    init_container_statuses: list[WireContainerStatus] | None = None
    container_statuses: list[WireContainerStatus] | None = None
    qos_class: str | None = None
    resources: Annotated[msgspec.Raw, Unread(WireResources)] = NULL
    allocated_resources: WireAmounts = NULL
    resource_claim_statuses: list[_ResourceClaimStatus] | None = None
    node_allocatable_resource_claim_statuses: Annotated[msgspec.Raw, Unread(list[WireClaimStatus])] = NULL


class WirePod(Wire):
    """A v1.Pod. Fields that many pods have in common stay bytes."""

    kind: str | None = None
    metadata: _PodMetadata | None = None
    spec: _PodSpec | None = None
    status: _PodStatus | None = None


_pod_decoder: Final = msgspec.json.Decoder(WirePod)
_EMPTY_METADATA: Final = _PodMetadata()
_EMPTY_SPEC: Final = _PodSpec()
_EMPTY_STATUS: Final = _PodStatus()


def decode_pod(raw: bytes | msgspec.Raw) -> Pod:
    """Decode a v1.Pod. Without a uid, as in a manifest, NAMESPACE/NAME identifies the pod. Raises DecodeError.

    Invalid affinity terms do not raise. They are in `Pod.affinity.errors`, and the caller rejects or tolerates them.
    Node affinity and the selectors of topology spread constraints keep their errors in the same way.
    """
    wire = decoding(_pod_decoder.decode, raw)
    metadata = wire.metadata or _EMPTY_METADATA
    name = checked_name("Pod", wire.kind, metadata)
    spec = wire.spec or _EMPTY_SPEC
    status = wire.status or _EMPTY_STATUS
    namespace = intern(metadata.namespace or "default")
    affinity, node_affinity = NO_AFFINITY, NO_NODE_AFFINITY
    if spec.affinity is not NULL or spec.node_selector is not NULL:
        affinity = affinity_of(namespace, bytes(spec.affinity))
        node_affinity = node_affinity_of(bytes(spec.affinity), spec.node_selector)
    features = _features(spec)
    demand = _demand(spec, status)
    labels = labels_of(metadata.labels)
    controller = controller_of(metadata.owner_references)
    terminating = metadata.deletion_timestamp is not None
    # With more than ten keywords this call would take 0.7 us longer, because CPython 3.11 then makes a dict of them.
    return Pod(
        metadata.uid or f"{namespace}/{name}",
        namespace,
        name,
        labels,
        intern(spec.node_name or ""),
        status.phase in _TERMINAL_PHASES,
        affinity,
        demand.requests,
        demand.best_effort,
        controller,
        metadata.resource_version or "",
        terminating,
        demand.non_zero_requests,
        demand.scored_requests,
        NO_TOLERATIONS if spec.tolerations is NULL else tolerations_of(spec.tolerations),
        node_affinity,
        host_ports=demand.host_ports,
        images=demand.images,
        volumes=volumes_of(name, spec.volumes) if spec.volumes else (),
        spread=() if spec.topology_spread_constraints is NULL else topology_spread_of(spec.topology_spread_constraints),
        priority=spec.priority or 0,
        start_time=status.start_time or "",
        preemption_policy=intern(spec.preemption_policy or ""),
        nominated_node_name=intern(status.nominated_node_name or ""),
        preempted=terminating and _is_preempted(status.conditions),
        scheduler_name=intern(spec.scheduler_name or ""),
        scheduling_group=_scheduling_group(namespace, spec),
        resource_claims=_resource_claims(spec.resource_claims, status) if spec.resource_claims else (),
        waiting=NOT_WAITING if spec.node_name else _waiting(metadata, spec, status),
        resources=demand.resources,
        image_volumes=image_volumes_of(spec.volumes) if spec.volumes else (),
        needed_features=features,
        group=membership_of(labels, metadata.annotations),
        load=demand.load,
        of_daemon_set=controller is not None and controller.kind == "DaemonSet",
        origins=demand.origins,
        extended_requests=demand.extended,
    )


def _resource_claims(claims: list[_ResourceClaim], status: _PodStatus) -> tuple[PodResourceClaim, ...]:
    made = {each.name: each.resource_claim_name for each in reversed(status.resource_claim_statuses or ())}
    return tuple(
        [
            PodResourceClaim(each.name or "", each.resource_claim_name)
            if each.resource_claim_name is not None or each.resource_claim_template_name is None
            else PodResourceClaim(each.name or "", made.get(each.name), of_template=True, created=each.name in made)
            for each in claims
        ]
    )


def _scheduling_group(namespace: str, spec: _PodSpec) -> str:
    """Return the group that kube-scheduler schedules the pod in: of schedulingGroup, or in 1.35 of workloadRef.

    1.35 has no schedulingGroup, and takes every workloadRef for a membership (gangscheduling/gangscheduling.go). From
    1.36 on, the API server drops a workloadRef.
    """
    reference = spec.workload_ref
    if reference is not None:
        names = (reference.name or "", reference.pod_group or "", *filter(None, (reference.pod_group_replica_key,)))
        return intern("/".join((namespace, *names)))
    if spec.scheduling_group is None or not spec.scheduling_group.pod_group_name:
        return ""
    return intern(f"{namespace}/{spec.scheduling_group.pod_group_name}")


def _is_preempted(raw: msgspec.Raw) -> bool:
    """Upstream podTerminatingByPreemption."""
    condition = condition_of(raw, "DisruptionTarget")
    return condition.status == "True" and condition.reason == "PreemptionByScheduler"


def _waiting(metadata: _PodMetadata, spec: _PodSpec, status: _PodStatus) -> Waiting:
    gates = tuple(intern(gate.name or "") for gate in spec.scheduling_gates or ())
    failed = EMPTY_CONDITION if status.conditions is NULL else condition_of(status.conditions, "PodScheduled")
    if failed.status != "False" or not failed.reason:
        failed = EMPTY_CONDITION
    created = metadata.creation_timestamp or ""
    if not (created or gates or failed.reason):
        return NOT_WAITING
    # Thousands of pods of one class share a message of up to a kilobyte.
    message = intern((failed.message or "")[:_MAX_MESSAGE])
    return Waiting(created, gates, intern(failed.reason or ""), message, failed.last_transition_time or "")


def _features(spec: _PodSpec) -> frozenset[str]:
    """Return the features that the node must declare. A pod without such features costs no call per container."""
    on_host = spec.host_network is True and spec.host_users is False
    return needed_features(spec.containers, spec.init_containers, spec.ephemeral_containers, users_of_host=on_host)


def _demand(spec: _PodSpec, status: _PodStatus) -> Demand:
    if not spec.node_name:
        status = _PodStatus(qos_class=status.qos_class)  # for an incoming pod only the spec counts
    return demand_of(
        WireContainers(
            spec.containers,
            spec.init_containers,
            spec.resources,
            spec.overhead,
            status.container_statuses,
            status.init_container_statuses,
            status.conditions,
            status.qos_class,
            status.resources,
            status.allocated_resources,
            status.node_allocatable_resource_claim_statuses,
        )
    )
