"""Pods without a node in the watch: candidates for a decision, some with a nominated node."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Final

from core.objects.pod import Pod

_NONE: Final[Mapping[str, Pod]] = MappingProxyType({})


class PendingPods:
    """uid -> pod, for the pods of the API server that are neither bound nor ended.

    Source of `nominated_for`: k8s.io/kubernetes pkg/scheduler/backend/queue/nominator.go. Nominations that a scheduler
    has not written yet are missing, because they are only in the scheduler's memory.
    """

    def __init__(self) -> None:
        self._pods: dict[str, Pod] = {}
        self.nominated: Final[dict[str, dict[str, Pod]]] = {}
        """Node, known or not -> uid -> pods nominated for the node. Nodes without nominated pods have no entry."""
        self._expected: dict[str, list[Callable[[], None]]] = {}  # uid -> callbacks for when the watch shows the pod

    def __len__(self) -> int:
        return len(self._pods)

    def __contains__(self, uid: str) -> bool:
        return uid in self._pods

    def __iter__(self) -> Iterator[Pod]:
        return iter(self._pods.values())

    def get(self, uid: str) -> Pod | None:
        """Return a pod, or None if it is unknown or not pending."""
        return self._pods.get(uid)

    def nominated_for(self, node: str) -> Mapping[str, Pod]:
        """Return the pods nominated for a node, by UID."""
        return self.nominated.get(node, _NONE)

    @contextmanager
    def expecting(self, uid: str, call: Callable[[], None]) -> Iterator[None]:
        """Within the block, call `call` each time the state of a pod is put. `call` must not change the mirror."""
        calls = self._expected.setdefault(uid, [])
        calls.append(call)
        try:
            yield
        finally:
            calls.remove(call)
            if not calls:
                del self._expected[uid]

    def put(self, pod: Pod) -> None:
        """Add or update a pod without a node."""
        self.remove(pod.uid)
        self._pods[pod.uid] = pod
        if pod.nominated_node_name:
            self.nominated.setdefault(pod.nominated_node_name, {})[pod.uid] = pod
        if self._expected:
            for call in self._expected.get(pod.uid, ()):
                call()

    def remove(self, uid: str) -> None:
        """Remove a pod that is bound, ended or deleted. An unknown pod is ignored."""
        known = self._pods.pop(uid, None)
        if known is not None and known.nominated_node_name:
            there = self.nominated[known.nominated_node_name]
            del there[uid]
            if not there:
                del self.nominated[known.nominated_node_name]
