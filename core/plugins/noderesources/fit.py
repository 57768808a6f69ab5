"""The plugin NodeResourcesFit: its arguments and its extension points.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/noderesources/fit.go. Devices that back an extended resource
are not scored, because upstream reads ResourceSlices and their allocations for that.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from core.framework.interface import SUCCESS, Capacity, FilterPlugin, Status, Verdicts
from core.framework.invalidation import InvalidationRule, Scope, node_update
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.objects.kinds import DeviceClass
from core.objects.labels import label_key_errors
from core.objects.node import Node
from core.objects.pod import Pod
from core.plugins.in_tree import EVERY_SCHEDULER, DeviceSchedulers
from core.plugins.noderesources.arguments import NodeResourcesFitArgs, ScoringStrategy
from core.plugins.noderesources.columns import (
    ResourceColumns,
    classes_of,
    cpu_and_memory,
    insufficient,
    left_to_devices,
    offered_by_unmirrored,
    requests_changed,
    stands_for,
)
from core.plugins.noderesources.explaining import NAME, ExplainedFit
from core.plugins.noderesources.filtering import IgnoredResources, PreFilterState, capacity_for
from core.plugins.noderesources.strategies import ResourceScore, ScoreState, scorer_of

LEAST_ALLOCATED: Final = ScoringStrategy()


class NodeResourcesFit(ExplainedFit, FilterPlugin[PreFilterState], ResourceScore):
    """Filters by all requests of a pod, and scores by the requested amounts, exactly as the in-tree plugin.

    `ignored_resources` and `ignored_resource_groups` name extended resources that the filter ignores, because another
    extender checks them. `device_schedulers` have the plugin DynamicResources. Pods of all other schedulers need the
    amounts that nodes list, whatever devices there are: no program would allocate a device. Raises ValueError for
    arguments that upstream's ValidateNodeResourcesFitArgs rejects.
    """

    name = NAME
    former_filters = ("PodFitsResources",)
    former_scores = (
        ("LeastRequestedPriority", "LeastAllocated"),
        ("MostRequestedPriority", "MostAllocated"),
        ("RequestedToCapacityRatioPriority", "RequestedToCapacityRatio"),
    )
    points = ("preFilter", "filter", "preScore", "score")
    needs_pre = ("filter",)
    arguments = NodeResourcesFitArgs
    of_scores = ("scoring_strategy",)
    of_verdicts = ("ignored_resources", "ignored_resource_groups")
    judges_resizes = True
    kinds = (Node, Pod, DeviceClass)
    class_fields: tuple[str, ...] = ("requests", "demand.scored_requests")
    invalidated_by = (
        node_update(
            when="an allocatable amount changed",
            because="a pod must fit into the allocatable amount less the requests",
            reads=lambda node: node.allocatable,
        ),
        InvalidationRule(
            kind=Pod,
            scope=Scope.NODE,
            when="it comes, goes, or asks for something else than before",
            because="every pod takes one of the node's pods, and what it asks for; also one that was resized in place",
            touches=requests_changed,
        ),
        InvalidationRule(
            kind=DeviceClass,
            scope=Scope.ALL,
            when="it comes or goes, or its extended resource changed",
            because="its resource is left to devices on every node that does not offer it itself",
            touches=lambda before, after: stands_for(before) != stands_for(after),
        ),
    )

    def __init__(
        self,
        *,
        ignored_resources: Sequence[str] = (),
        ignored_resource_groups: Sequence[str] = (),
        scoring_strategy: ScoringStrategy = LEAST_ALLOCATED,
        device_schedulers: DeviceSchedulers = EVERY_SCHEDULER,
    ) -> None:
        errors = [
            *_ignored_errors("ignoredResources", ignored_resources),
            *_ignored_errors("ignoredResourceGroups", ignored_resource_groups),
            *scoring_strategy.errors(),
        ]
        if errors:
            raise ValueError("; ".join(errors))
        self._ignored = IgnoredResources(ignored_resources, ignored_resource_groups)
        super().__init__(scoring_strategy.resources)
        self._scorer = scorer_of(scoring_strategy)
        self.device_schedulers: Final = device_schedulers
        if device_schedulers != EVERY_SCHEDULER:
            self.class_fields += ("scheduler_name",)

    def pre_filter(self, mirror: ClusterMirror, pod: Pod) -> tuple[Status, PreFilterState]:
        """Collect the pod's requests. Never skipped, because every pod counts against the node's pods."""
        left = left_to_devices(mirror, pod, self.device_schedulers)
        return SUCCESS, PreFilterState(mirror.derived(ResourceColumns), pod.requests, self._ignored, left)

    def filter(self, state: PreFilterState, batch: NodeBatch) -> Verdicts:
        """Judge every node of the batch."""
        return state.judge(batch)

    def status_on(self, state: PreFilterState, slot: int) -> Status | None:
        """Return what is too scarce on the node of a slot, or success. None: look closer."""
        return state.status_on(slot)

    def left_to_devices(self, mirror: ClusterMirror, pod: Pod, batch: NodeBatch) -> Sequence[str]:
        """Return the requests that the filter does not check on some node of the batch."""
        classes = classes_of(mirror, pod)
        left = left_to_devices(mirror, mirror.counted(pod), self.device_schedulers)
        found = left.anywhere(mirror.derived(ResourceColumns), offered_by_unmirrored(batch), batch)
        return [f"{resource} (DeviceClass {classes[resource]})" for resource in found if resource in classes]

    def device_needs(self, mirror: ClusterMirror, pod: Pod) -> Mapping[str, str]:
        """Return the reasons of nodes with too little for a pod whose scheduler gets it no device."""
        if self.device_schedulers.have(pod.scheduler_name):
            return {}
        classes = classes_of(mirror, pod)
        return {insufficient(resource): self.device_schedulers.need(name) for resource, name in classes.items()}

    def capacity_for(self, mirror: ClusterMirror, pods: Sequence[Pod], batch: NodeBatch) -> Capacity:
        """Return how many of some pods each node can hold, by the resources that are checked. See filtering.py."""
        return capacity_for(mirror, pods, self._ignored, batch, self.device_schedulers)

    def pre_score(self, mirror: ClusterMirror, pod: Pod, _batch: NodeBatch) -> tuple[Status, ScoreState]:
        """Collect the pod's amounts for scoring."""
        # Not the amounts of a pod on a node: upstream's scorer reads only the containers of the incoming pod.
        requests = {**pod.requests, **cpu_and_memory(pod.demand.scored_requests)}
        return SUCCESS, ScoreState(
            mirror.derived(ResourceColumns), requests, self._resources, self._scorer, non_zero=True
        )


def _ignored_errors(argument: str, names: Sequence[str]) -> Iterator[str]:
    for index, name in enumerate(names):
        if argument == "ignoredResourceGroups" and "/" in name:
            yield f"{argument}[{index}]: resource group name can't contain '/', got {name}"
        for error in label_key_errors(name):
            yield f"{argument}[{index}]: {error}, got {name}"
