"""The events after which kube-scheduler retries an unschedulable pod, and the victims that a pod waits for.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/*, EventsToRegister of each plugin in v1.34.1, v1.35.4,
v1.36.3 and v1.37.1. The events are those with the feature gate SchedulerQueueingHints, which is locked on up to 1.36
and removed in 1.37.

A plugin's queueing hint checks the object of the event, and may skip the event. Events that the hint always skips are
left out, for all pods here, and for one pod by `_may_help`. Only 1.37 registers pods on nodes (AssignedPod) and the
waiting pod (TargetPod) as two resources. Before, the hint distinguishes them.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec
import numpy as np
from msgspec.structs import replace

from core.diagnosis.amounts.requirements import is_unmeetable
from core.diagnosis.counted_terms import Direction, Rule
from core.diagnosis.diagnosis import Diagnosis
from core.diagnosis.pod_names import name_of, uid_of
from core.mirror.cluster import ClusterMirror
from core.mirror.pending_pods import VictimWait
from core.objects.pod import HONOR, Pod, PodClaim
from core.releases.release import Rules


class Wake(msgspec.Struct, frozen=True, gc=False):
    """Events of one kind of object that a plugin registers, for the pods that it rejected."""

    plugin: str
    resource: str
    """Kind of the object, `*` for any. `Pod` means a pod on a node, unless `of_pod_itself`."""
    actions: Sequence[str]
    """Upstream's ActionTypes: Add, Delete, Update, or one of its parts such as UpdateNodeTaint, or `*`."""
    of_pod_itself: bool = False
    """Whether the event is a change of the waiting pod itself."""


EVENTS: Final[Sequence[Wake]] = (
    Wake("NodeUnschedulable", "Node", ("Add", "UpdateNodeTaint")),
    Wake("NodeUnschedulable", "Pod", ("UpdatePodToleration",), of_pod_itself=True),
    Wake("NodeName", "Node", ("Add",)),
    Wake("TaintToleration", "Node", ("Add", "UpdateNodeTaint")),
    Wake("TaintToleration", "Pod", ("UpdatePodToleration",), of_pod_itself=True),
    Wake("NodeAffinity", "Node", ("Add", "UpdateNodeLabel")),
    Wake("NodePorts", "Pod", ("Delete",)),
    Wake("NodePorts", "Node", ("Add",)),
    Wake("NodeResourcesFit", "Pod", ("Delete",)),
    Wake("NodeResourcesFit", "Node", ("Add", "UpdateNodeAllocatable")),
    Wake("VolumeRestrictions", "Pod", ("Delete",)),
    Wake("VolumeRestrictions", "Node", ("Add",)),
    Wake("VolumeRestrictions", "PersistentVolumeClaim", ("Add",)),
    Wake("NodeVolumeLimits", "CSINode", ("Add", "Update")),
    Wake("NodeVolumeLimits", "Pod", ("Delete",)),
    Wake("NodeVolumeLimits", "PersistentVolumeClaim", ("Add",)),
    Wake("NodeVolumeLimits", "VolumeAttachment", ("Delete",)),
    Wake("VolumeBinding", "StorageClass", ("Add", "Update")),
    Wake("VolumeBinding", "PersistentVolumeClaim", ("Add", "Update")),
    Wake("VolumeBinding", "PersistentVolume", ("Add", "Update")),
    Wake("VolumeBinding", "Node", ("Add", "UpdateNodeLabel")),
    Wake("VolumeBinding", "CSINode", ("Add", "Update")),
    Wake("VolumeBinding", "CSIDriver", ("Update",)),
    Wake("VolumeBinding", "CSIStorageCapacity", ("Add", "Update")),
    Wake("VolumeZone", "StorageClass", ("Add",)),
    Wake("VolumeZone", "Node", ("Add", "UpdateNodeLabel")),
    Wake("VolumeZone", "PersistentVolumeClaim", ("Add", "Update")),
    Wake("VolumeZone", "PersistentVolume", ("Add", "Update")),
    Wake("PodTopologySpread", "Pod", ("Add", "UpdatePodLabel", "Delete")),
    Wake("PodTopologySpread", "Pod", ("UpdatePodLabel", "UpdatePodToleration"), of_pod_itself=True),
    Wake("PodTopologySpread", "Node", ("Add", "Delete", "UpdateNodeLabel", "UpdateNodeTaint")),
    Wake("InterPodAffinity", "Pod", ("Add", "UpdatePodLabel", "Delete")),
    Wake("InterPodAffinity", "Node", ("Add", "UpdateNodeLabel")),
    Wake("NodeDeclaredFeatures", "Node", ("Add", "UpdateNodeDeclaredFeature")),
    Wake("NodeDeclaredFeatures", "Pod", ("Update",), of_pod_itself=True),
)
"""The events that plugins register in every release. Other plugins register none, or are not upstream's."""

_Holds: TypeAlias = Callable[[Rules], bool]

_BY_RULE: Final[Sequence[tuple[_Holds, Wake]]] = (
    (lambda rules: rules.wakes_by_resize, Wake("NodeResourcesFit", "Pod", ("UpdatePodScaleDown",))),
    (lambda rules: rules.wakes_by_resize, Wake("NodeResourcesFit", "Pod", ("UpdatePodScaleDown",), of_pod_itself=True)),
    (lambda rules: rules.wakes_by_device_class, Wake("NodeResourcesFit", "DeviceClass", ("Add", "Update"))),
    (lambda rules: rules.wakes_by_own_labels, Wake("InterPodAffinity", "Pod", ("UpdatePodLabel",), of_pod_itself=True)),
)
"""The events that plugins register if the rule applies in a release with its feature gates."""


def events_of(plugin: str, rules: Rules) -> Sequence[Wake]:
    """Return the events that a plugin registers. Empty for a plugin that is not upstream's."""
    found = [*EVENTS, *(wake for holds, wake in _BY_RULE if holds(rules))]
    return [wake for wake in found if wake.plugin == plugin]


ANY_EVENT: Final = Wake("Extender", "*", ("*",))
"""Any event, after a rejection by an extender: pkg/scheduler/schedule_one.go, findNodesThatFitPod (ExtenderName)."""


def wakes(decision: Diagnosis) -> Sequence[Wake]:
    """Return the events of the plugins that first failed a node, in the order of the profile. Empty if the pod fits.

    kube-scheduler records only these plugins (UnschedulablePlugins), because it stops at the first failure of a node.
    """
    if len(decision.fitting):
        return ()
    deciding = [decision.profile.filters[place - 1].name for place in np.unique(decision.deciding).tolist() if place]
    names = [name for name in deciding if decision.explained.runs_in_scheduler(name)]
    registered = [wake for name in names for wake in events_of(name, decision.mirror.rules)]
    found = []
    for wake in registered:
        actions = [action for action in wake.actions if _may_help(decision, wake, action)]
        if actions:
            found.append(replace(wake, actions=tuple(actions)))
    return found if len(names) == len(deciding) else [*found, ANY_EVENT]


def _may_help(decision: Diagnosis, wake: Wake, action: str) -> bool:
    """Return whether a queueing hint can tell kube-scheduler to try the pod. False if it skips the event of any object.

    Source: isSchedulableAfter... of each plugin.
    """
    pod, helps = decision.pod, True
    match wake.plugin, wake.resource:
        case "InterPodAffinity", resource if not wake.of_pod_itself:
            helps = _of_terms(decision, resource, action)
        case "NodeAffinity", "Node":
            helps = not is_unmeetable(pod.node_affinity)
        case "NodeResourcesFit", "DeviceClass":
            helps = any("/" in resource for resource in pod.requests)
        case "PodTopologySpread", "Pod" if action == "UpdatePodToleration":
            helps = any(each.node_taints_policy == HONOR for each in pod.spread)
        case "VolumeRestrictions" | "NodeVolumeLimits" as plugin, "PersistentVolumeClaim":
            claims = [each for each in pod.volumes if isinstance(each, PodClaim)]
            helps = any(plugin == "NodeVolumeLimits" or not each.ephemeral for each in claims)
    return helps


def _of_terms(decision: Diagnosis, resource: str, action: str) -> bool:
    """Return what InterPodAffinity's hints say of other pods and of nodes: they read only the pod's own terms.

    A placed pod's anti-affinity counts for the end of that pod, and only since 1.36.
    """
    affinity = decision.pod.affinity
    if affinity.errors:
        return True
    if (resource, action) == ("Pod", "Add"):
        return bool(affinity.required_affinity)
    if (resource, action) == ("Pod", "Delete"):
        repelled = decision.mirror.rules.wakes_by_end_of_repelling_pod and any(
            each.direction is Direction.EXISTING and each.rule is Rule.REQUIRED_ANTI_AFFINITY for each in decision.terms
        )
        return bool(affinity.required_anti_affinity) or repelled
    return bool(affinity.required_affinity or affinity.required_anti_affinity)


class AwaitedVictim(msgspec.Struct, frozen=True):
    """A pod whose end the explained pod waits for, in order to get its node."""

    name: str
    """NAMESPACE/NAME"""
    uid: str
    node: str
    waiting: float
    """Seconds since the wait was first seen."""


VictimsByPod: TypeAlias = Mapping[str, Sequence[AwaitedVictim]]
"""Uid of a pod that waits -> its victims, by name."""


def awaited_victims(mirror: ClusterMirror, pod: Pod, now: float) -> Sequence[AwaitedVictim]:
    """Return the victims that a pod waits for, by name. Empty for a pod that is not pending."""
    mirror.preemptors.follow(now)
    return [_awaited(each, now) for each in mirror.preemptors.of_preemptor(pod.uid)]


def victims_by_pod(mirror: ClusterMirror, now: float) -> VictimsByPod:
    """Return the victims of all pods that wait for any."""
    mirror.preemptors.follow(now)
    found: dict[str, list[AwaitedVictim]] = {}
    for each in mirror.preemptors.waits():
        found.setdefault(each.preemptor.uid, []).append(_awaited(each, now))
    return found


def _awaited(wait: VictimWait, now: float) -> AwaitedVictim:
    return AwaitedVictim(name_of(wait.victim), uid_of(wait.victim), wait.node, now - wait.since)
