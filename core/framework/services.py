"""The Services that select a pod.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/helper/spread.go (GetPodServices).
"""

from collections.abc import Iterator
from typing import Final

from core.mirror.changes import Change, ObjectChange
from core.mirror.cluster import ClusterMirror
from core.mirror.affinity_counts import TermIndex
from core.objects.affinity import PodMatcher
from core.objects.kinds import Service
from core.objects.labels import NOTHING
from core.objects.pod import Pod


class Services:
    """All Services, indexed so that those of a pod are found without a loop over the others."""

    hears: Final = (ObjectChange,)

    def __init__(self, mirror: ClusterMirror) -> None:
        self._services = mirror.objects(Service)
        self._index: TermIndex[str] = TermIndex()  # by the full names of the Services
        for service in self._services.values():
            self._add(service)

    def selecting(self, pod: Pod) -> Iterator[Service]:
        """Yield the Services that select a pod. Stale after the next event."""
        for name in self._index.candidates(pod.namespace, pod.labels):
            service = self._services[name]
            if service.selector.matches(pod.labels):
                yield service

    def changed(self, change: Change) -> None:
        """Update the selector of a Service."""
        if not isinstance(change, ObjectChange) or change.kind is not Service:
            return
        if change.before is not None:
            self._index.remove(change.before.full_name)
        if change.after is not None:
            self._add(change.after)

    def _add(self, service: Service) -> None:
        self._index.add(service.full_name, PodMatcher(frozenset((service.namespace,)), NOTHING, service.selector))
