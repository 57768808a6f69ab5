"""The selector of the default constraints, deduced from the Services and the controller of a pod.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/helper/spread.go (DefaultSelector, GetPodServices).
"""

from core.mirror.changes import Change, ObjectChange
from core.mirror.cluster import ClusterMirror
from core.mirror.term_index import TermIndex
from core.objects.affinity import PodMatcher
from core.objects.labels import NOTHING, Operator, Requirement, Selector, requirement
from core.objects.owner import ReplicaSet
from core.objects.pod import Pod
from core.objects.service import Service


class ServiceSelectors:
    """The selectors of all Services, so that those that select a pod are found without looking at the others."""

    def __init__(self, mirror: ClusterMirror) -> None:
        self._services = mirror.objects(Service)
        self._index: TermIndex[str] = TermIndex()  # by the full names of the Services
        for service in self._services.values():
            self._index.add(service.full_name, _matcher(service))

    def selecting(self, pod: Pod) -> set[Requirement]:
        """Return the requirements of all Services that select a pod, together; stale after the next event."""
        requirements: set[Requirement] = set()
        for name in self._index.candidates(pod.namespace, pod.labels):
            selector = self._services[name].selector
            if selector.matches(pod.labels):
                requirements.update(selector.requirements)
        return requirements

    def changed(self, change: Change) -> None:
        """Take over the selector of a Service."""
        if not isinstance(change, ObjectChange) or change.kind is not Service:
            return
        if change.before is not None:
            self._index.remove(change.before.full_name)
        if change.after is not None:
            self._index.add(change.after.full_name, _matcher(change.after))


def default_selector(mirror: ClusterMirror, pod: Pod) -> Selector:
    """Return what selects the pods that belong together with a pod; the empty selector if nothing does.

    Of a ReplicaSet the mirror has no selector, but its labels. Those that the pod has stand for it: for a ReplicaSet of
    a Deployment they are the selector with the pod template's hash, and what else the template says, so that both
    select the same pods. StatefulSets and ReplicationControllers are not mirrored: their pods are told by Services.
    """
    requirements = mirror.derived(ServiceSelectors).selecting(pod)
    if pod.controller is not None and pod.controller.kind == "ReplicaSet":
        owner = mirror.objects(ReplicaSet).get(f"{pod.namespace}/{pod.controller.name}")
        for key, value in owner.labels.items() if owner is not None else ():
            if pod.labels.get(key) == value:
                requirements.add(requirement(key, Operator.IN, [value]))
    return Selector(tuple(sorted(requirements)))


def _matcher(service: Service) -> PodMatcher:
    return PodMatcher(frozenset((service.namespace,)), NOTHING, service.selector)
