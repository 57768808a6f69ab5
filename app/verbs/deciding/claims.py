"""Pods that in-tree plugins must filter before kube-scheduler reserves a node, even if Kindred chooses the node.

VolumeBinding reserves only nodes that its own Filter saw. For any other node it binds no volume and reports no error
(k8s.io/kubernetes pkg/scheduler/framework/plugins/volumebinding/volume_binding.go, Reserve). DynamicResources does the
same for resource claims, and for devices behind extended resources: there, a node with enough of its own is right for
any scheduler.

kube-scheduler schedules the members of a PodGroup one after another in one cycle, and assumes them in its own snapshot
only (schedule_one_podgroup.go). Kindred does not see that snapshot. So all in-tree filters judge a member.
"""

from collections.abc import Mapping

from app.settings import variable_of
from core.framework.interface import Verdicts
from core.framework.status import Status
from core.mirror.cluster import ClusterMirror
from core.objects.pod import Pod
from core.objects.scheduling_group import SchedulingGroup
from core.plugins.noderesources.device_classes import EVERY_SCHEDULER, DeviceSchedulers, classes_of, insufficient
from core.plugins.volumebinding.claims import ClaimError, claims_of


class InTreeNeeds:
    """Whether Kindred can decide for a pod in a scope."""

    def __init__(
        self,
        mirror: ClusterMirror,
        claims_scheduler: str = "",
        device_schedulers: DeviceSchedulers = EVERY_SCHEDULER,
        *,
        groups_scheduler: str = "",
    ) -> None:
        """`claims_scheduler`: the scheduler whose profile keeps VolumeBinding and DynamicResources. Empty: none.

        `device_schedulers`: those whose pods get devices for extended resources. `groups_scheduler`: the one whose
        profile keeps all in-tree filters. Empty: none.
        """
        self._mirror = mirror
        self._claims_scheduler = claims_scheduler
        self._groups_scheduler = groups_scheduler
        self._device_schedulers = device_schedulers

    def problem(self, pod: Pod) -> str:
        """Return why Kindred cannot decide for a pod, in one line with the remedy. Empty if it can."""
        if not (pod.volumes or pod.claims_resources or pod.in_scheduling_group):
            return ""
        if pod.in_scheduling_group:
            return self._problem_of_member(pod)
        need = self._need(pod)
        if not need or self._keeps_plugins(pod.scheduler_name):
            return ""
        if self._claims_scheduler:
            remedy = f"give it spec.schedulerName: {self._claims_scheduler}"
        else:
            remedy = f"name a scheduler whose profile keeps that plugin, {variable_of('decide_claims_scheduler')}"
        return f"pod {pod.full_name} {need}: {remedy}"

    def with_device_needs(self, pod: Pod, verdicts: Verdicts) -> Verdicts:
        """Return verdicts that leave no node, with the remedy where a device would do.

        No `Error`: a node that has enough may come, and cluster autoscalers add one only for an Unschedulable pod.
        """
        needs = self._device_needs(pod)
        if not needs:
            return verdicts
        statuses = tuple(
            Status(status.code, tuple(f"{reason}{needs.get(reason, '')}" for reason in status.reasons))
            for status in verdicts.statuses
        )
        return Verdicts(verdicts.codes, statuses, of_pre_filter=verdicts.of_pre_filter)

    def with_device_need(self, pod: Pod, reason: str) -> str:
        """Return the reason of a pod's group for no node, with the remedy where a device would do."""
        return reason + "".join(need for short, need in self._device_needs(pod).items() if short in reason)

    def _device_needs(self, pod: Pod) -> Mapping[str, str]:
        """Return the reasons of nodes that lack a resource that a device would provide -> the remedy to add."""
        if self._device_schedulers.have(pod.scheduler_name):
            return {}
        classes = classes_of(self._mirror, self._mirror.counted(pod))
        return {
            insufficient(resource): f" ({self._device_schedulers.need(name)})" for resource, name in classes.items()
        }

    def _keeps_plugins(self, scheduler: str) -> bool:
        return bool(scheduler) and scheduler in {self._claims_scheduler, self._groups_scheduler}

    def _problem_of_member(self, pod: Pod) -> str:
        of_group = f"pod {pod.full_name} is in the scheduling group {pod.scheduling_group}"
        if not self._groups_scheduler:
            needed = variable_of("decide_groups_scheduler")
            return f"{of_group}, which needs all in-tree filters: name a scheduler whose profile keeps them, {needed}"
        if pod.scheduler_name != self._groups_scheduler:
            remedy = f"give all its members spec.schedulerName: {self._groups_scheduler}"
            return f"{of_group}, which needs all in-tree filters: {remedy}"
        if pod.scheduling_group.count("/") > 1:
            return ""  # spec.workloadRef of 1.35: kube-scheduler asks only after it has seen the Workload
        group = self._mirror.objects(SchedulingGroup).get(pod.scheduling_group)
        if group is None:
            return f"{of_group}: the PodGroup is not in the watch yet"
        if group.unsupported:
            remedy = "give all its members a scheduler that Kindred does not decide for"
            return f"{of_group}, whose {group.unsupported} makes kube-scheduler try several placements: {remedy}"
        return ""

    def _need(self, pod: Pod) -> str:
        if pod.claims_resources:
            return "has resource claims, which need the in-tree plugin DynamicResources"
        try:
            unbound = claims_of(self._mirror, pod).unbound
        except ClaimError:
            return ""  # the plugin rejects all nodes for this pod, with the reason
        return (
            f"has the unbound claim {unbound[0].name}, which needs the in-tree plugin VolumeBinding" if unbound else ""
        )
