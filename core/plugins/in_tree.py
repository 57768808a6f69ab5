"""kube-scheduler's own plugins that Kindred lacks, for its configuration. None of them judges nodes.

Source: k8s.io/kubernetes v1.36 pkg/scheduler/framework/plugins/registry.go.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final, NamedTuple

import msgspec

from core.framework.arguments import NotNegative
from core.framework.interface import Plugin


class SchedulingGates(Plugin):
    """Keeps a pod with scheduling gates out of the queue."""

    name = "SchedulingGates"
    points = ("preEnqueue",)


class PrioritySort(Plugin):
    """Sorts the queue."""

    name = "PrioritySort"
    points = ("queueSort",)


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


class DefaultPreemption(Plugin):
    """Chooses victims, and nominates a node."""

    name = "DefaultPreemption"
    points = ("preEnqueue", "postFilter")
    left_out: Mapping[str, Any] = {
        "minCandidateNodesPercentage": Annotated[NotNegative, msgspec.Meta(le=100)],
        "minCandidateNodesAbsolute": NotNegative,
    }


class DefaultBinder(Plugin):
    """Posts the binding."""

    name = "DefaultBinder"
    points = ("bind",)


GANG_SCHEDULING: Final = "GangScheduling"
GATED: Final = (GANG_SCHEDULING, "TopologyPlacementGenerator", "PodGroupPodsCount", "DeferredPodScheduling")
"""Plugins that only a feature gate adds. They place groups of pods, or put pods off."""
