"""The pod, reduced to the fields that scheduling reads."""

from collections.abc import Mapping
from operator import attrgetter
from typing import Final

import msgspec
from msgspec.structs import replace

from core.objects.affinity import NO_AFFINITY, PodAffinity
from core.objects.host_port import NO_HOST_PORTS, HostPort
from core.objects.node_affinity import NO_NODE_AFFINITY, NodeAffinity
from core.objects.owner import ControllerRef
from core.objects.pod_group import Membership
from core.objects.pod_load import NO_LOAD, PodLoad
from core.objects.pod_requests import PodResources, non_zero_requests, pod_requests
from core.objects.pod_volumes import PodVolume
from core.objects.toleration import NO_TOLERATIONS, Toleration
from core.objects.topology_spread import SpreadConstraint
from core.objects.waiting import NOT_WAITING, Waiting
from core.releases import RequestCounting

NO_FEATURES: Final[frozenset[str]] = frozenset()
"""Shared by pods and nodes without features."""


class Pod(msgspec.Struct, frozen=True, gc=False):
    """A v1.Pod, reduced to the fields that the enabled plugins and the mirror read.

    `uid` identifies the pod through all its updates. `node_name` is empty while the pod is not bound. `terminal` means
    phase Succeeded or Failed. Such a pod occupies no resources, but a pod with a deletionTimestamp still does.

    `requests` is the amount that the scheduler reserves for the whole pod: cpu in millicores, all other resources in
    their own unit (bytes, pieces). `non_zero_requests` and `scored_requests` are the cpu and memory that scoring
    assumes for the pod: the first on the pod's node, the second while the pod is being scheduled. `best_effort` means
    QoS class BestEffort: no cpu or memory is requested or limited. `resources` has the source of `requests` and
    `non_zero_requests` if releases count them differently, else None (see `counted`).

    `images` has one normalised name per container, including init containers, sorted. `image_volumes` has one per image
    volume. `volumes` are the volumes that a plugin reads, in the order of the spec, because the first faulty volume is
    reported. `spread` keeps its order for the same reason. `needed_features` are the features of any release that a
    node must declare for the pod.

    Preemption reads `start_time`, `preemption_policy` and `preempted`. `start_time` is the text of status.startTime,
    empty while the pod has not started. The API server writes it in UTC and whole seconds, so the texts sort by time.
    `preemption_policy` is empty if the pod does not set it. `preempted` is true if the pod terminates because a
    scheduler preempted it.

    The plugins that follow node load read two fields. `load` has the amounts that predict the usage of the pod.
    `of_daemon_set` is true if its controller is a DaemonSet.

    Decisions read the other fields. No plugin reads them, except that NodeResourcesFit may read `scheduler_name`, the
    name of the pod's scheduler. `scheduling_group` is the group that kube-scheduler schedules the pod in, empty for
    none: NAMESPACE/NAME of the PodGroup in spec.schedulingGroup, in 1.35 NAMESPACE/WORKLOAD/PODGROUP[/KEY] of
    spec.workloadRef. `claims_resources` is true if the pod has spec.resourceClaims.
    `waiting` has the status of a pod without a node. `group` has its fields about the group that Kindred places it in.
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
    non_zero_requests: tuple[int, int] = (0, 0)
    scored_requests: tuple[int, int] = (0, 0)
    tolerations: frozenset[Toleration] = NO_TOLERATIONS
    node_affinity: NodeAffinity = NO_NODE_AFFINITY
    host_ports: frozenset[HostPort] = NO_HOST_PORTS
    images: tuple[str, ...] = ()
    volumes: tuple[PodVolume, ...] = ()
    spread: tuple[SpreadConstraint, ...] = ()
    priority: int = 0
    start_time: str = ""
    preemption_policy: str = ""
    nominated_node_name: str = ""
    preempted: bool = False
    scheduler_name: str = ""
    scheduling_group: str = ""
    claims_resources: bool = False
    waiting: Waiting = NOT_WAITING
    resources: PodResources | None = None
    image_volumes: tuple[str, ...] = ()
    needed_features: frozenset[str] = NO_FEATURES
    group: Membership | None = None
    load: PodLoad = NO_LOAD
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
"""Fields of the status and the metadata. They change without another decision for the pod."""
_deciding: Final = attrgetter(*(field for field in Pod.__struct_fields__ if field not in _NOT_DECIDING))


def decides_alike(one: Pod, other: Pod) -> bool:
    """Return whether two states of a pod are equal in every field that a decision for the pod reads.

    The requests of both must be counted by the same rules (`counted`). A new field of Pod is compared.
    """
    return one is other or _deciding(one) == _deciding(other)


def counted(pod: Pod, counting: RequestCounting) -> Pod:
    """Return the pod with its requests as a release counts them, or the same pod if all releases count them alike."""
    if pod.resources is None:
        return pod
    return replace(
        pod,
        requests=pod_requests(pod.resources, counting),
        non_zero_requests=non_zero_requests(pod.resources, counting),
    )


def normalized_image_name(name: str) -> str:
    """Return the image name with its default tag if it has none.

    Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/imagelocality/image_locality.go (normalizedImageName).
    """
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"
