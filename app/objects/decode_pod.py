"""JSON of a v1.Pod to the core's value."""

from functools import lru_cache
from sys import intern
from typing import Annotated, Any, Final

import msgspec
from msgspec.structs import replace

from app.objects.decode import (
    NULL,
    Int32,
    Json,
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
    WireClaimStatus,
    WireContainer,
    WireContainers,
    WireContainerStatus,
    WireResources,
    demands_of,
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
from app.objects.decode_volumes import WireVolume, image_volumes_of, volumes_of
from core.objects.pod import NOT_WAITING, Pod, PodResourceClaim, Waiting

_TEMPLATES: Final = 4096
_TEMPLATE_BYTES: Final = 4 * 1024  # longer ones are parsed each time, so the memo has at most 16 MiB of keys
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
    """A v1.Pod. Most fields that many pods have in common stay bytes."""

    kind: str | None = None
    metadata: _PodMetadata | None = None
    spec: _PodSpec | None = None
    status: _PodStatus | None = None


_pod_decoder: Final = msgspec.json.Decoder(WirePod)
_EMPTY_METADATA: Final = _PodMetadata()
_EMPTY_SPEC: Final = _PodSpec()
_EMPTY_STATUS: Final = _PodStatus()


class _Template(Wire, array_like=True):
    """The fields that mostly are equal in all pods of a controller. Equal JSON means equal values in `Pod`."""

    namespace: str
    owner_references: msgspec.Raw
    affinity: msgspec.Raw
    node_selector: msgspec.Raw
    tolerations: msgspec.Raw
    spread: msgspec.Raw
    priority: int | None
    preemption_policy: str | None
    scheduler_name: str | None
    scheduling_group: _SchedulingGroup | None
    workload_ref: _WorkloadRef | None
    users_of_host: bool
    ephemeral_containers: list[WireContainer] | None
    containers: WireContainers


_template_decoder: Final = msgspec.json.Decoder(_Template)
_encoder: Final = msgspec.json.Encoder()


def decode_pod(raw: Json | WirePod) -> Pod:
    """Decode a v1.Pod. Without a uid, as in a manifest, NAMESPACE/NAME identifies the pod. Raises DecodeError.

    Invalid affinity terms do not raise. They are in `Pod.affinity.errors`, and the caller rejects or tolerates them.
    Node affinity and the selectors of topology spread constraints keep their errors in the same way.
    """
    wire = raw if isinstance(raw, WirePod) else decoding(_pod_decoder.decode, raw)
    metadata = wire.metadata or _EMPTY_METADATA
    name = checked_name("Pod", wire.kind, metadata)
    spec = wire.spec or _EMPTY_SPEC
    status = wire.status or _EMPTY_STATUS
    namespace = intern(metadata.namespace or "default")
    pod = replace(
        _pod_of(namespace, spec, status, metadata.owner_references),
        uid=metadata.uid or f"{namespace}/{name}",
        name=name,
        labels=labels_of(metadata.labels),
        node_name=intern(spec.node_name or ""),
        resource_version=metadata.resource_version or "",
        start_time=intern(status.start_time or ""),
    )
    own = _own_fields(pod, metadata, spec, status)
    return replace(pod, **own) if own else pod


def _pod_of(namespace: str, spec: _PodSpec, status: _PodStatus, owner_references: msgspec.Raw) -> Pod:
    """Return a pod with the fields that it has in common with others. All of them share one value."""
    if not spec.node_name:
        status = _PodStatus(qos_class=status.qos_class)  # for an incoming pod only the spec counts
    # Most conditions have only times. The condition that matters here is rare.
    conditions = status.conditions
    template = _Template(
        namespace,
        owner_references,
        spec.affinity,
        spec.node_selector,
        spec.tolerations,
        spec.topology_spread_constraints,
        spec.priority,
        spec.preemption_policy,
        spec.scheduler_name,
        spec.scheduling_group,
        spec.workload_ref,
        spec.host_network is True and spec.host_users is False,
        spec.ephemeral_containers,
        WireContainers(
            spec.containers,
            spec.init_containers,
            spec.resources,
            spec.overhead,
            status.container_statuses,
            status.init_container_statuses,
            conditions if b"PodResizePending" in bytes(conditions) else NULL,
            status.qos_class,
            status.resources,
            status.allocated_resources,
            status.node_allocatable_resource_claim_statuses,
        ),
    )
    raw = _encoder.encode(template)
    return _memoised_template(raw) if len(raw) <= _TEMPLATE_BYTES else _parse_template(raw)


def _parse_template(raw: bytes) -> Pod:
    wire = decoding(_template_decoder.decode, raw)  # valid, but nested deeper than in the pod
    namespace, affinity = intern(wire.namespace), bytes(wire.affinity)
    pods, nodes = affinity_of(namespace, affinity), node_affinity_of(affinity, wire.node_selector)
    features = needed_features(wire.containers, wire.ephemeral_containers, users_of_host=wire.users_of_host)
    demands = demands_of(wire.containers, features, shared=len(raw) <= _TEMPLATE_BYTES)
    controller = controller_of(wire.owner_references)
    return Pod(
        "",
        namespace,
        "",
        affinity=pods,
        requests=demands.requests,
        best_effort=demands.best_effort,
        controller=controller,
        demand=demands.demand,
        tolerations=tolerations_of(wire.tolerations),
        node_affinity=nodes,
        spread=topology_spread_of(wire.spread),
        priority=wire.priority or 0,
        preemption_policy=intern(wire.preemption_policy or ""),
        scheduler_name=intern(wire.scheduler_name or ""),
        scheduling_group=_scheduling_group(namespace, wire),
        of_daemon_set=controller is not None and controller.kind == "DaemonSet",
    )


_memoised_template: Final = lru_cache(maxsize=_TEMPLATES)(_parse_template)


def _own_fields(pod: Pod, metadata: _PodMetadata, spec: _PodSpec, status: _PodStatus) -> dict[str, Any]:
    """Return the fields that few pods have, and that a pod shares with no other."""
    own: dict[str, Any] = {}
    if spec.volumes:
        if volumes := volumes_of(pod.name, spec.volumes):
            own["volumes"] = volumes
        if images := image_volumes_of(spec.volumes):
            own["demand"] = replace(pod.demand, image_volumes=images)
    if not spec.node_name:
        own["waiting"] = _waiting(metadata, spec, status)
    if status.phase in _TERMINAL_PHASES:
        own["terminal"] = True
    if metadata.deletion_timestamp is not None:
        own["terminating"], own["preempted"] = True, _is_preempted(status.conditions)
    if status.nominated_node_name:
        own["nominated_node_name"] = intern(status.nominated_node_name)
    if spec.resource_claims:
        own["resource_claims"] = _resource_claims(spec.resource_claims, status)
    group = membership_of(pod.labels, metadata.annotations)
    if group is not None and not pod.in_scheduling_group:  # whose members kube-scheduler places
        own["group"] = group
    return own


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


def _scheduling_group(namespace: str, spec: _Template) -> str:
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
    gates = tuple([intern(gate.name or "") for gate in spec.scheduling_gates]) if spec.scheduling_gates else ()
    failed = EMPTY_CONDITION if status.conditions is NULL else condition_of(status.conditions, "PodScheduled")
    if failed.status != "False" or not failed.reason:
        failed = EMPTY_CONDITION
    created = metadata.creation_timestamp or ""
    if not (created or gates or failed.reason):
        return NOT_WAITING
    # Thousands of pods of one class share a message of up to a kilobyte.
    message = intern((failed.message or "")[:_MAX_MESSAGE])
    return Waiting(created, gates, intern(failed.reason or ""), message, failed.last_transition_time or "")
