"""The pod, reduced to the fields that scheduling reads."""

import re
from collections.abc import Collection, Mapping
from operator import attrgetter
from typing import Final, TypeAlias

import msgspec
from msgspec.structs import replace

from core.objects.affinity import NO_AFFINITY, NO_NODE_AFFINITY, NodeAffinity, PodAffinity
from core.objects.groups import GroupKey, Membership
from core.objects.kinds import ControllerRef
from core.objects.labels import NOTHING, Selector
from core.objects.pod_requests import (
    NO_LOAD,
    ExtendedRequests,
    Origins,
    PodLoad,
    PodResources,
    non_zero_requests,
    pod_requests,
)
from core.objects.volumes import VolumeSource
from core.releases.release import RequestCounting

# The volumes of a pod that a plugin reads: claims and inline disks.
#
# Source: the fields of v1.Volume that k8s.io/kubernetes pkg/scheduler/framework/plugins/{volumebinding,volumezone,
# nodevolumelimits,volumerestrictions} and k8s.io/csi-translation-lib (IsInlineMigratable) read. Inline CSI volumes,
# Azure files and vSphere volumes change no result of these plugins.


class PodClaim(msgspec.Struct, frozen=True, gc=False):
    """A claim in the pod's namespace. An ephemeral one has the name POD-VOLUME, and must belong to the pod."""

    name: str
    ephemeral: bool = False


class PodResourceClaim(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """A v1.PodResourceClaim: a ResourceClaim of the pod's namespace, by its name or made of a template.

    `claim` is its name, None if the pod needs none, or if the claim of a template is not made yet (`created` is false).
    Source: k8s.io/dynamic-resource-allocation resourceclaim/resourceclaim.go (Name).
    """

    name: str
    claim: str | None = None
    of_template: bool = False
    created: bool = True


class InlineDisk(msgspec.Struct, frozen=True, gc=False):
    """An inline disk, identified as its in-tree plugin does.

    `name` is the volume's name in the pod, for messages. The source of an iSCSI disk, which counts against no limit, is
    `kubernetes.io/iscsi` and the IQN. `read_only` is set only for GCE and iSCSI disks: no plugin reads it for other
    disks.
    """

    name: str
    source: VolumeSource
    read_only: bool = False


class RBDImage(msgspec.Struct, frozen=True, gc=False):
    """A Ceph block device. Two pods share the device if the image is the same and they share a monitor."""

    monitors: frozenset[str]
    pool: str
    image: str
    read_only: bool = False


PodVolume: TypeAlias = PodClaim | InlineDisk | RBDImage


ALL_ADDRESSES: Final = "0.0.0.0"  # noqa: S104 - the name that upstream has for it, nothing binds to it here
"""The address of a port that names none."""


class HostPort(msgspec.Struct, frozen=True, order=True, gc=False):
    """A port of the node, on one address or on all of them (k8s.io/kube-scheduler framework/types.go, HostPortInfo)."""

    port: int
    protocol: str = "TCP"
    ip: str = ALL_ADDRESSES


NO_HOST_PORTS: Final[frozenset[HostPort]] = frozenset()
"""Shared by pods without host ports: Python creates a new empty set each time."""


_COMPARED: Final = ("Lt", "Gt")
_LONGEST_INT64: Final = 20
_canonical: Final = re.compile("-?[1-9][0-9]*|0")


class Taint(msgspec.Struct, frozen=True, order=True, gc=False):
    """A v1.Taint. The effect is NoSchedule, PreferNoSchedule or NoExecute."""

    key: str
    value: str = ""
    effect: str = ""


KEEP_PODS_OFF: Final = frozenset({"NoSchedule", "NoExecute"})
"""The effects of taints that reject a pod (taint.go, DoNotScheduleTaintsFilterFunc)."""


class Toleration(msgspec.Struct, frozen=True, order=True, gc=False):
    """A v1.Toleration: the taints that do not keep the pod off a node (k8s.io/api core/v1 toleration.go).

    An empty `key` means every key, and an empty `effect` every effect. An empty `operator` means Equal. Decoding writes
    Equal, so that equal tolerations are equal values.
    """

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: Taint, *, numeric: bool = False) -> bool:
        """Return whether the toleration tolerates the taint. An unknown operator tolerates no taint.

        `numeric` enables the operators Lt and Gt (TaintTolerationComparisonOperators).
        """
        if (self.effect and self.effect != taint.effect) or (self.key and self.key != taint.key):
            return False
        if numeric and self.operator in _COMPARED:
            return self._compares(taint.value)
        return self.operator == "Exists" or (self.operator in ("", "Equal") and self.value == taint.value)

    def _compares(self, value: str) -> bool:
        """Upstream compareNumericValues: the taint's value is less than the toleration's (Lt), or greater (Gt)."""
        tolerated, there = _number(self.value), _number(value)
        if tolerated is None or there is None:
            return False
        return there < tolerated if self.operator == "Lt" else there > tolerated


def _number(text: str) -> int | None:
    """Return a decimal integer in canonical form. None for any other text, and for values outside of int64."""
    if len(text) > _LONGEST_INT64 or not _canonical.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


class ToleratedTaints:
    """The taints that some tolerations tolerate.

    The cost of a look-up does not depend on the number of tolerations, except for those that compare numbers.
    """

    __slots__ = ("_compared", "_equal", "_existing")

    def __init__(self, tolerations: Collection[Toleration], *, numeric: bool = False) -> None:
        self._existing: set[tuple[str, str]] = set()  # (key, effect), each "" for any
        self._equal: set[tuple[str, str, str]] = set()  # (key, effect, value)
        self._compared = [each for each in tolerations if each.operator in _COMPARED] if numeric else []
        for each in tolerations:
            if each.operator == "Exists":
                self._existing.add((each.key, each.effect))
            elif each.operator in ("", "Equal"):
                self._equal.add((each.key, each.effect, each.value))

    def __contains__(self, taint: Taint) -> bool:
        """Return whether any toleration tolerates the taint, as Toleration.tolerates does."""
        for key in (taint.key, ""):
            for effect in (taint.effect, ""):
                if (key, effect) in self._existing or (key, effect, taint.value) in self._equal:
                    return True
        return any(each.tolerates(taint, numeric=True) for each in self._compared)


NO_TOLERATIONS: Final[frozenset[Toleration]] = frozenset()
"""Shared by pods without tolerations: Python creates a new empty set each time."""


DO_NOT_SCHEDULE: Final = "DoNotSchedule"
SCHEDULE_ANYWAY: Final = "ScheduleAnyway"
HONOR: Final = "Honor"
IGNORE: Final = "Ignore"


class SpreadConstraint(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """A v1.TopologySpreadConstraint, with the plugin's defaults for missing fields.

    `selector` excludes the requirements that `match_label_keys` (sorted) add from the pod's labels. If the selector is
    invalid, it selects no pods and `selector_error` has the reason. The plugin then returns an error for the pod.
    Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/podtopologyspread/common.go (topologySpreadConstraint).
    """

    max_skew: int
    topology_key: str
    when_unsatisfiable: str = DO_NOT_SCHEDULE
    selector: Selector = NOTHING
    selector_error: str = ""
    min_domains: int = 1
    node_affinity_policy: str = HONOR
    node_taints_policy: str = IGNORE
    match_label_keys: tuple[str, ...] = ()


class Waiting(msgspec.Struct, frozen=True, gc=False):
    """The status of a pod without a node, from its object. Times are RFC 3339, in UTC, empty if unknown.

    `reason`, `message` and `changed` are from the condition PodScheduled while it is False. They describe the last
    failed attempt (`Unschedulable`, `SchedulerError`), or its gates (`SchedulingGated`). If the condition has no
    information, all three are empty. No plugin reads these fields.
    """

    created: str = ""
    """metadata.creationTimestamp"""
    gates: tuple[str, ...] = ()
    """Names of spec.schedulingGates. With any gate, kube-scheduler does not try the pod."""
    reason: str = ""
    message: str = ""
    changed: str = ""
    """lastTransitionTime of the condition."""


NOT_WAITING = Waiting()
"""Shared by every pod on a node."""


NO_FEATURES: Final[frozenset[str]] = frozenset()
"""Shared by pods and nodes without features."""


class Demand(msgspec.Struct, frozen=True, gc=False):
    """What a pod asks of its node, apart from its requests. Pods of one controller mostly share one value.

    `non_zero_requests` and `scored_requests` are the cpu and memory that scoring assumes for the pod: the first on the
    pod's node, the second while the pod is being scheduled. `load` has the amounts that predict the usage of the pod.
    `origins` has what decides some requests, such as an init container. `overhead` is the part of the requests that its
    RuntimeClass adds. `extended_requests` is what containers request of extended resources, which devices may provide.
    `resources` has the source of the requests if releases count them differently, else None (see `counted`).

    `images` has one normalised name per container, including init containers, sorted. `image_volumes` has one per image
    volume. `needed_features` are the features of any release that a node must declare.
    """

    non_zero_requests: tuple[int, int] = (0, 0)
    scored_requests: tuple[int, int] = (0, 0)
    load: PodLoad = NO_LOAD
    origins: Origins = ()
    overhead: tuple[tuple[str, int], ...] = ()
    extended_requests: tuple[ExtendedRequests, ...] = ()
    host_ports: frozenset[HostPort] = NO_HOST_PORTS
    images: tuple[str, ...] = ()
    image_volumes: tuple[str, ...] = ()
    needed_features: frozenset[str] = NO_FEATURES
    resources: PodResources | None = None


NO_DEMAND: Final = Demand()
"""Shared by pods without containers."""


class Pod(msgspec.Struct, frozen=True, gc=False):
    """A v1.Pod, reduced to the fields that the enabled plugins and the mirror read.

    `uid` identifies the pod through all its updates. `node_name` is empty while the pod is not bound. `terminal` means
    phase Succeeded or Failed. Such a pod occupies no resources, but a pod with a deletionTimestamp still does.

    `requests` is the amount that the scheduler reserves for the whole pod: cpu in millicores, all other resources in
    their own unit (bytes, pieces). `best_effort` means QoS class BestEffort: no cpu or memory is requested or limited.
    `demand` has the rest of what its containers ask, in one value: a cluster may have 450,000 pods, and a field takes 8
    bytes in each. `volumes` are the volumes that a plugin reads, in the order of the spec, because the first faulty
    volume is reported. `spread` keeps its order for the same reason.

    Preemption reads `start_time`, `preemption_policy` and `preempted`. `start_time` is the text of status.startTime,
    empty while the pod has not started. The API server writes it in UTC and whole seconds, so the texts sort by time.
    `preemption_policy` is empty if the pod does not set it. `preempted` is true if the pod terminates because a
    scheduler preempted it. Plugins of node load read `of_daemon_set`: whether its controller is a DaemonSet.

    Decisions read the other fields. No plugin reads them, except that NodeResourcesFit may read `scheduler_name`, the
    name of the pod's scheduler. `scheduling_group` is the group that kube-scheduler schedules the pod in, empty for
    none: NAMESPACE/NAME of the PodGroup in spec.schedulingGroup, in 1.35 NAMESPACE/WORKLOAD/PODGROUP[/KEY] of
    spec.workloadRef. `resource_claims` are spec.resourceClaims. `waiting` has the status of a pod without a node.
    `group` has its fields about the group that Kindred places it in.
    """

    uid: str
    namespace: str
    name: str
    labels: Mapping[str, str] = {}
    node_name: str = ""
    terminal: bool = False
    affinity: PodAffinity = NO_AFFINITY
    requests: Mapping[str, int] = {}
    best_effort: bool = True
    controller: ControllerRef | None = None
    resource_version: str = ""
    terminating: bool = False
    demand: Demand = NO_DEMAND
    tolerations: frozenset[Toleration] = NO_TOLERATIONS
    node_affinity: NodeAffinity = NO_NODE_AFFINITY
    volumes: tuple[PodVolume, ...] = ()
    spread: tuple[SpreadConstraint, ...] = ()
    priority: int = 0
    start_time: str = ""
    preemption_policy: str = ""
    nominated_node_name: str = ""
    preempted: bool = False
    scheduler_name: str = ""
    scheduling_group: str = ""
    resource_claims: tuple[PodResourceClaim, ...] = ()
    waiting: Waiting = NOT_WAITING
    group: Membership | None = None
    of_daemon_set: bool = False

    @property
    def full_name(self) -> str:
        """NAMESPACE/NAME."""
        return f"{self.namespace}/{self.name}"

    @property
    def group_name(self) -> str:
        """NAMESPACE/NAME of the group that Kindred places the pod in. Empty for none."""
        return f"{self.namespace}/{self.group.group}" if self.group is not None else ""

    @property
    def group_key(self) -> GroupKey | None:
        """The group that Kindred places the pod in. None for none."""
        return GroupKey(self.group_name, self.group.by_object) if self.group is not None else None

    @property
    def claims_resources(self) -> bool:
        """Whether the pod has spec.resourceClaims."""
        return bool(self.resource_claims)

    @property
    def in_scheduling_group(self) -> bool:
        """Whether kube-scheduler schedules the pod with others."""
        return bool(self.scheduling_group)

    @property
    def failure(self) -> str:
        """Why the last attempt to schedule the pod failed, such as `Unschedulable`. Empty if no attempt failed."""
        return self.waiting.reason

    @property
    def assigned(self) -> bool:
        """Whether the pod occupies a node. The mirror holds such pods, and the plugins count them."""
        return bool(self.node_name) and not self.terminal


_NOT_DECIDING: Final = frozenset(
    {
        "resource_version",
        "terminating",
        "start_time",
        "nominated_node_name",
        "preempted",
        "waiting",
    }
)
"""Fields of the status and the metadata. They change without another decision."""
_deciding: Final = attrgetter(*(field for field in Pod.__struct_fields__ if field not in _NOT_DECIDING))


def decides_alike(one: Pod, other: Pod) -> bool:
    """Return whether two states of a pod are equal in every field that a decision for the pod reads.

    The requests of both must be counted by the same rules (`counted`). A new field of Pod is compared.
    """
    return one is other or _deciding(one) == _deciding(other)


def counted(pod: Pod, counting: RequestCounting) -> Pod:
    """Return the pod with its requests as a release counts them, or the same pod if all releases count them alike."""
    resources = pod.demand.resources
    if resources is None:
        return pod
    demand = replace(pod.demand, non_zero_requests=non_zero_requests(resources, counting))
    return replace(pod, requests=pod_requests(resources, counting), demand=demand)


def normalized_image_name(name: str) -> str:
    """Return the image name with its default tag if it has none.

    Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/imagelocality/image_locality.go (normalizedImageName).
    """
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"
