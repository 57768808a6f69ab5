"""Which events make kube-scheduler try a pod again that it found unschedulable.

Source: k8s.io/kubernetes v1.36.3 pkg/scheduler/framework/plugins/*, EventsToRegister of each plugin, with the feature
SchedulerQueueingHints on, as it is by default. A plugin's queueing hint then looks at the object of the event, and may
find that it changes nothing.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
import numpy as np

from core.diagnosis.diagnosis import Diagnosis
from core.releases import DeviceClassResources


class Wake(msgspec.Struct, frozen=True, gc=False):
    """Events of one kind of object that a plugin registers, for the pods that it refused."""

    plugin: str
    resource: str
    """Kind of the object, `*` for any. `Pod` is a pod on a node, unless `of_pod_itself`."""
    actions: Sequence[str]
    """Upstream's ActionTypes: Add, Delete, Update, or one of its parts such as UpdateNodeTaint, or `*`."""
    of_pod_itself: bool = False
    """Whether it is a change of the pod that waits."""


_POD_DELETED: Final = ("Delete",)

EVENTS: Final[Mapping[str, Sequence[Wake]]] = {
    "NodeUnschedulable": (
        Wake("NodeUnschedulable", "Node", ("Add", "UpdateNodeTaint")),
        Wake("NodeUnschedulable", "Pod", ("UpdatePodToleration",), of_pod_itself=True),
    ),
    "NodeName": (Wake("NodeName", "Node", ("Add",)),),
    "TaintToleration": (
        Wake("TaintToleration", "Node", ("Add", "UpdateNodeTaint")),
        Wake("TaintToleration", "Pod", ("UpdatePodToleration",), of_pod_itself=True),
    ),
    "NodeAffinity": (Wake("NodeAffinity", "Node", ("Add", "UpdateNodeLabel")),),
    "NodePorts": (Wake("NodePorts", "Pod", _POD_DELETED), Wake("NodePorts", "Node", ("Add",))),
    "NodeResourcesFit": (
        Wake("NodeResourcesFit", "Pod", ("Delete", "UpdatePodScaleDown")),
        Wake("NodeResourcesFit", "Node", ("Add", "UpdateNodeAllocatable")),
    ),
    "VolumeRestrictions": (
        Wake("VolumeRestrictions", "Pod", _POD_DELETED),
        Wake("VolumeRestrictions", "Node", ("Add",)),
        Wake("VolumeRestrictions", "PersistentVolumeClaim", ("Add",)),
    ),
    "NodeVolumeLimits": (
        Wake("NodeVolumeLimits", "CSINode", ("Add", "Update")),
        Wake("NodeVolumeLimits", "Pod", _POD_DELETED),
        Wake("NodeVolumeLimits", "PersistentVolumeClaim", ("Add",)),
        Wake("NodeVolumeLimits", "VolumeAttachment", ("Delete",)),
    ),
    "VolumeBinding": (
        Wake("VolumeBinding", "StorageClass", ("Add", "Update")),
        Wake("VolumeBinding", "PersistentVolumeClaim", ("Add", "Update")),
        Wake("VolumeBinding", "PersistentVolume", ("Add", "Update")),
        Wake("VolumeBinding", "Node", ("Add", "UpdateNodeLabel")),
        Wake("VolumeBinding", "CSINode", ("Add", "Update")),
        Wake("VolumeBinding", "CSIDriver", ("Update",)),
        Wake("VolumeBinding", "CSIStorageCapacity", ("Add", "Update")),
    ),
    "VolumeZone": (
        Wake("VolumeZone", "StorageClass", ("Add",)),
        Wake("VolumeZone", "Node", ("Add", "UpdateNodeLabel")),
        Wake("VolumeZone", "PersistentVolumeClaim", ("Add", "Update")),
        Wake("VolumeZone", "PersistentVolume", ("Add", "Update")),
    ),
    "PodTopologySpread": (
        Wake("PodTopologySpread", "Pod", ("Add", "UpdatePodLabel", "Delete")),
        Wake("PodTopologySpread", "Pod", ("UpdatePodLabel", "UpdatePodToleration"), of_pod_itself=True),
        Wake("PodTopologySpread", "Node", ("Add", "Delete", "UpdateNodeLabel", "UpdateNodeTaint")),
    ),
    "InterPodAffinity": (
        Wake("InterPodAffinity", "Pod", ("Add", "UpdatePodLabel", "Delete")),
        Wake("InterPodAffinity", "Node", ("Add", "UpdateNodeLabel")),
    ),
    "NodeDeclaredFeatures": (
        Wake("NodeDeclaredFeatures", "Node", ("Add", "UpdateNodeDeclaredFeature")),
        Wake("NodeDeclaredFeatures", "Pod", ("Update",), of_pod_itself=True),
    ),
}
"""Plugin -> what it registers. A plugin that is not here registers nothing, or is none of upstream's."""


_DEVICE_CLASSES: Final = Wake("NodeResourcesFit", "DeviceClass", ("Add", "Update"))
"""Registered by releases that leave extended resources to devices (DRAExtendedResource)."""


ANY_EVENT: Final = Wake("Extender", "*", ("*",))
"""After a refusal by an extender, any event does: pkg/scheduler/schedule_one.go, findNodesThatFitPod (ExtenderName)."""


def wakes(decision: Diagnosis) -> Sequence[Wake]:
    """Return the events of the plugins that failed a node first, in the order of the profile; none if the pod fits.

    kube-scheduler notes these plugins alone (UnschedulablePlugins): it asks no further ones about a node.
    """
    if len(decision.fitting):
        return ()
    deciding = [decision.profile.filters[place - 1].name for place in np.unique(decision.deciding).tolist() if place]
    names = [name for name in deciding if decision.explained.runs_in_scheduler(name)]
    found = [wake for name in names for wake in EVENTS.get(name, ())]
    if len(names) < len(deciding):
        found.append(ANY_EVENT)
    leaves_to_devices = decision.mirror.rules.device_class_resources is not DeviceClassResources.CHECKED
    return [*found, _DEVICE_CLASSES] if leaves_to_devices and _DEVICE_CLASSES.plugin in names else found
