"""The pods that were asked about lately, as `bind` is told no more of a pod than what it is called."""

from collections import OrderedDict
from typing import Final, NamedTuple

from core.objects.pod import Pod

_MOST_PODS: Final = 4096
_MOST_BYTES: Final = 16 * 1024 * 1024  # of JSON, which can take 20 times as much when it is decoded


class _Sized(NamedTuple):
    pod: Pod
    size: int


class RecentPods:
    """uid -> the pod as the scheduler last sent it, which is as it made its decision; the oldest go first."""

    def __init__(self) -> None:
        self._pods: OrderedDict[str, _Sized] = OrderedDict()
        self._bytes = 0

    def add(self, pod: Pod, size: int) -> None:
        """Take in a pod whose JSON has so many bytes."""
        before = self._pods.pop(pod.uid, None)
        self._pods[pod.uid] = _Sized(pod, size)
        self._bytes += size - (before.size if before is not None else 0)
        while len(self._pods) > _MOST_PODS or self._bytes > _MOST_BYTES:
            self._bytes -= self._pods.popitem(last=False)[1].size

    def get(self, uid: str) -> Pod | None:
        """Return a pod, if it was asked about lately."""
        found = self._pods.get(uid)
        return found.pod if found is not None else None
