"""Pods that in-tree plugins must filter before kube-scheduler reserves a node, even if Kindred chooses the node.

VolumeBinding reserves only nodes that its own Filter saw. For any other node it binds no volume and reports no error
(k8s.io/kubernetes pkg/scheduler/framework/plugins/volumebinding/volume_binding.go, Reserve). DynamicResources does the
same for resource claims. Pods of a scheduling group are scheduled together.
"""

from app.settings import variable_of
from app.verbs.deciding.scopes import DecideScope
from core.mirror.cluster import ClusterMirror
from core.objects.pod import Pod
from core.plugins.volumebinding.claims import ClaimError, claims_of


class InTreeNeeds:
    """Whether Kindred can decide for a pod in a scope."""

    def __init__(self, mirror: ClusterMirror, claims_scheduler: str = "") -> None:
        """`claims_scheduler`: the scheduler whose profile keeps VolumeBinding and DynamicResources. Empty: none."""
        self._mirror = mirror
        self._claims_scheduler = claims_scheduler

    def problem(self, pod: Pod, scope: DecideScope) -> str:
        """Return why Kindred cannot decide for a pod, in one line with the remedy. Empty if it can."""
        if not (pod.volumes or pod.claims_resources or pod.in_group):
            return ""
        need = self._need(pod)
        if not need:
            return ""
        if self._claims_scheduler:
            if scope is DecideScope.QUESTION and pod.scheduler_name == self._claims_scheduler:
                return ""
            remedy = f"give it spec.schedulerName: {self._claims_scheduler}"
        else:
            remedy = f"name a scheduler whose profile keeps that plugin, {variable_of('decide_claims_scheduler')}"
        return f"pod {pod.full_name} {need}: {remedy}"

    def _need(self, pod: Pod) -> str:
        if pod.claims_resources:
            return "has resource claims, which need the in-tree plugin DynamicResources"
        if pod.in_group:
            return "has a scheduling group, which needs the in-tree plugin GangScheduling"
        try:
            unbound = claims_of(self._mirror, pod).unbound
        except ClaimError:
            return ""  # the plugin rejects all nodes for this pod, with the reason
        return (
            f"has the unbound claim {unbound[0].name}, which needs the in-tree plugin VolumeBinding" if unbound else ""
        )
