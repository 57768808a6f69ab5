"""kube-scheduler's own plugins that Kindred lacks, for its configuration. Of them, DynamicResources alone judges nodes.

Source: k8s.io/kubernetes v1.36 pkg/scheduler/framework/plugins/registry.go.
"""

from typing import Final

from core.framework.interface import Plugin


class SchedulingGates(Plugin):
    """Keeps a pod with scheduling gates out of the queue."""

    name = "SchedulingGates"
    points = ("preEnqueue",)


class PrioritySort(Plugin):
    """Sorts the queue."""

    name = "PrioritySort"
    points = ("queueSort",)


class DynamicResources(Plugin):
    """Allocates resource claims, and devices behind extended resources."""

    name = "DynamicResources"
    points = ("preEnqueue", "preFilter", "filter", "postFilter", "score", "reserve", "preBind")
    left_out = ("filterTimeout", "bindingTimeout")
    waits_by = "bindingTimeout"
    missed = "no plugin allocates ResourceClaims"


class DefaultPreemption(Plugin):
    """Chooses victims, and nominates a node."""

    name = "DefaultPreemption"
    points = ("preEnqueue", "postFilter")
    left_out = ("minCandidateNodesPercentage", "minCandidateNodesAbsolute")


class DefaultBinder(Plugin):
    """Posts the binding."""

    name = "DefaultBinder"
    points = ("bind",)


GANG_SCHEDULING: Final = "GangScheduling"
GATED: Final = (GANG_SCHEDULING, "TopologyPlacementGenerator", "PodGroupPodsCount", "DeferredPodScheduling")
"""Plugins that only a feature gate adds. They place groups of pods, or put pods off."""
