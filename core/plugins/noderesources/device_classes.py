"""Extended resources that a DeviceClass provides, and that are left to kube-scheduler's DynamicResources plugin.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/noderesources/fit.go (shouldDelegateResourceToDRA; in v1.34
withDeviceClass and fitsRequest).
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.node_values import NodeValues
from core.mirror.topology import BoolArray
from core.objects.kinds import IMPLICIT_PREFIX, DeviceClass
from core.objects.pod import Pod
from core.objects.quantity import shortened
from core.plugins.noderesources.columns import NATIVE, Offered, ResourceColumns
from core.releases import DeviceClassResources

_NATIVE_DOMAIN: Final = "kubernetes.io/"
_QUOTA_PREFIX: Final = "requests."


class DeviceSchedulers(NamedTuple):
    """The schedulers, by spec.schedulerName, with the plugin DynamicResources. Only it allocates devices.

    Without it, a node would run the pod without its device, or reject the pod.
    """

    names: frozenset[str] = frozenset()
    others: bool = True
    """False: the schedulers of `names` have the plugin. True: all others have it."""
    advised: str = ""
    """The scheduler to name in remedies. Empty: none is known."""

    def have(self, scheduler: str) -> bool:
        """Return whether a scheduler has the plugin."""
        return (scheduler in self.names) is not self.others

    def need(self, device_class: str) -> str:
        """Return the need of a pod that gets no device of a class, with the remedy."""
        remedy = (
            f"give the pod spec.schedulerName: {self.advised}"
            if self.advised
            else "name a scheduler whose profile keeps that plugin"
        )
        return f"devices of DeviceClass {device_class} need the in-tree plugin DynamicResources: {remedy}"


EVERY_SCHEDULER: Final = DeviceSchedulers()


class LeftToDevices:
    """The resources of one pod that are left to devices, and on which nodes. Stale after the next event."""

    __slots__ = ("_listed", "_resources")

    def __init__(self, resources: Iterable[str] = (), listed: NodeValues[frozenset[str]] | None = None) -> None:
        """Resources in `listed` are checked nevertheless: each node lists them with 0."""
        self._resources = frozenset(resources)
        self._listed = listed

    def anywhere(self, columns: ResourceColumns, offered: Offered, batch: NodeBatch) -> list[str]:
        """Return the resources that DynamicResources handles on a node of the batch, sorted."""
        found = ((resource, self.on(resource, columns, offered, batch)) for resource in sorted(self._resources))
        return [resource for resource, left in found if left is not None and left.any()]

    def on(self, resource: str, columns: ResourceColumns, offered: Offered, batch: NodeBatch) -> BoolArray | None:
        """Return for each node whether DynamicResources handles the resource there, or None if on no node."""
        if resource not in self._resources:
            return None
        left: BoolArray = columns.allocatable_of(resource, batch, offered) <= 0
        if self._listed is not None:
            left &= self._listed.judged(batch, lambda names: int(names is not None and resource in names)) == 0
        return left


NOTHING_LEFT: Final = LeftToDevices()


def left_to_devices(mirror: ClusterMirror, pod: Pod, schedulers: DeviceSchedulers = EVERY_SCHEDULER) -> LeftToDevices:
    """Return the requests of a pod that are left to devices. `schedulers` have a plugin that allocates them."""
    rule = mirror.rules.device_class_resources
    if rule is DeviceClassResources.CHECKED or not schedulers.have(pod.scheduler_name):
        return NOTHING_LEFT
    asked = [resource for resource, amount in pod.requests.items() if amount and resource not in NATIVE]
    if not asked:
        return NOTHING_LEFT
    named = _stood_for(mirror).intersection(asked)
    if rule is DeviceClassResources.LEFT_UNLESS_ALLOCATABLE:
        return LeftToDevices(named)
    # v1.34 reads classes only if the pod requests an extended resource. Else it leaves every unlisted resource.
    return LeftToDevices(named if any(map(is_extended, asked)) else asked, mirror.derived(_listed_as_none))


def is_extended(resource: str) -> bool:
    """Return whether a resource is an extended one (v1helper.IsExtendedResourceName), if Kindred accounts for it."""
    return "/" in resource and _NATIVE_DOMAIN not in resource and not resource.startswith(_QUOTA_PREFIX)


def stands_for(device_class: DeviceClass | None) -> frozenset[str]:
    """Return the resources that a class provides: the one that it names, and the implicit one of every class."""
    if device_class is None:
        return frozenset()
    return frozenset({device_class.extended_resource, IMPLICIT_PREFIX + device_class.name} - {""})


def classes_of(mirror: ClusterMirror, pod: Pod) -> Mapping[str, str]:
    """Return the requests of a pod that a DeviceClass provides: resource -> that class, the first one by name."""
    if mirror.rules.device_class_resources is DeviceClassResources.CHECKED:
        return {}
    asked = {resource for resource, amount in pod.requests.items() if amount and resource not in NATIVE}
    if not asked:
        return {}
    found: dict[str, str] = {}
    for each in sorted(mirror.objects(DeviceClass).values(), key=lambda each: each.name, reverse=True):
        found.update(dict.fromkeys(stands_for(each) & asked, each.name))
    return found


def insufficient(resource: str) -> str:
    """Return the reason of a node that has too little of a resource."""
    return f"Insufficient {shortened(resource)}"


def _stood_for(mirror: ClusterMirror) -> frozenset[str]:
    return frozenset[str]().union(*map(stands_for, mirror.objects(DeviceClass).values()))


def _listed_as_none(mirror: ClusterMirror) -> NodeValues[frozenset[str]]:
    return NodeValues(
        mirror, lambda node: frozenset(name for name, amount in node.allocatable.items() if not amount) or None
    )
