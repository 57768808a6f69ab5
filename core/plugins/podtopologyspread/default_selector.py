"""The selector of the default constraints, derived from the Services and the controller of a pod.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/helper/spread.go (DefaultSelector, GetPodServices).
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from core.mirror.changes import Change, ObjectChange
from core.mirror.cluster import ClusterMirror
from core.mirror.term_index import TermIndex
from core.objects.affinity import PodMatcher
from core.objects.kinds import ReplicaSet, ReplicationController, Service, StatefulSet
from core.objects.labels import NOTHING, Requirement, Selector
from core.objects.pod import Pod

Controller: TypeAlias = ReplicationController | ReplicaSet | StatefulSet

CONTROLLERS: Final[Mapping[tuple[str, str], type[Controller]]] = MappingProxyType(
    {
        ("v1", "ReplicationController"): ReplicationController,
        ("apps/v1", "ReplicaSet"): ReplicaSet,
        ("apps/v1", "StatefulSet"): StatefulSet,
    }
)
"""(apiVersion, kind) in an owner reference -> the kind of the controller. Selectors of other owners do not count."""


class ServiceSelectors:
    """The selectors of all Services, indexed so that a pod's Services are found without a loop over the others."""

    hears: Final = (ObjectChange,)

    def __init__(self, mirror: ClusterMirror) -> None:
        self._services = mirror.objects(Service)
        self._index: TermIndex[str] = TermIndex()  # by the full names of the Services
        for service in self._services.values():
            self._index.add(service.full_name, _matcher(service))

    def selecting(self, pod: Pod) -> set[Requirement]:
        """Return the union of the requirements of all Services that select a pod. Stale after the next event."""
        requirements: set[Requirement] = set()
        for name in self._index.candidates(pod.namespace, pod.labels):
            selector = self._services[name].selector
            if selector.matches(pod.labels):
                requirements.update(selector.requirements)
        return requirements

    def changed(self, change: Change) -> None:
        """Update the selector of a Service."""
        if not isinstance(change, ObjectChange) or change.kind is not Service:
            return
        if change.before is not None:
            self._index.remove(change.before.full_name)
        if change.after is not None:
            self._index.add(change.after.full_name, _matcher(change.after))


def default_selector(mirror: ClusterMirror, pod: Pod) -> Selector:
    """Return the selector of the pods that belong with a pod, or the empty selector if there are none.

    It has the requirements of all Services that select the pod, and of its controller. A missing or invalid selector
    requires nothing. For the same keys, a ReplicationController's labels replace the Services' labels. The two can
    differ if the controller's selector was changed and no longer matches the pod.
    """
    requirements = mirror.derived(ServiceSelectors).selecting(pod)
    controller = _controller(mirror, pod)
    if isinstance(controller, ReplicationController):
        keys = {requirement.key for requirement in controller.selector.requirements}
        requirements = {requirement for requirement in requirements if requirement.key not in keys}
    if controller is not None:
        requirements.update(controller.selector.requirements)
    return Selector(tuple(sorted(requirements)))


def _controller(mirror: ClusterMirror, pod: Pod) -> Controller | None:
    """Return the controller by name. Like upstream, this does not compare its UID with the owner reference."""
    owner = pod.controller
    kind = CONTROLLERS.get((owner.api_version, owner.kind)) if owner is not None else None
    return None if owner is None or kind is None else mirror.objects(kind).get(f"{pod.namespace}/{owner.name}")


def _matcher(service: Service) -> PodMatcher:
    return PodMatcher(frozenset((service.namespace,)), NOTHING, service.selector)
