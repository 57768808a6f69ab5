"""The pods of recent requests.

`bind` gets only the name of a pod. `prioritize` gets the same bytes as the `filter` before it.
"""

from collections import OrderedDict
from collections.abc import Iterator
from typing import Final, NamedTuple

from core.objects.pod import Pod

_MAX_PODS: Final = 4096
_MAX_BYTES: Final = 16 * 1024 * 1024  # of JSON, which may take 20 times as much memory when decoded
_ORDINARY_BYTES: Final = 16 * 1024
_WEIGHT: Final = 8
"""Factor for the bytes of a pod that is larger than ordinary pods. Without it, a few megabytes of odd pods would take
hundreds of megabytes when decoded."""


class _Written(NamedTuple):
    pod: Pod
    raw: bytes


class RecentPods:
    """uid -> the pod as the scheduler last sent it. The oldest entries are dropped."""

    def __init__(self) -> None:
        self._pods: OrderedDict[str, _Written] = OrderedDict()
        self._bytes = 0
        self._last: _Written | None = None

    def __iter__(self) -> Iterator[Pod]:
        """Yield the pods, the latest request first."""
        yield from [written.pod for written in reversed(self._pods.values())]

    def add(self, pod: Pod, raw: bytes) -> None:
        """Add a pod with its JSON."""
        before = self._pods.pop(pod.uid, None)
        self._last = self._pods[pod.uid] = _Written(pod, raw)
        self._bytes += _weight(raw) - (_weight(before.raw) if before is not None else 0)
        while len(self._pods) > _MAX_PODS or self._bytes > _MAX_BYTES:
            self._bytes -= _weight(self._pods.popitem(last=False)[1].raw)

    def get(self, uid: str) -> Pod | None:
        """Return a pod, if it was in a recent request."""
        found = self._pods.get(uid)
        return found.pod if found is not None else None

    def json_of(self, uid: str) -> bytes:
        """Return the JSON of a pod from a recent request. Empty if there was none."""
        found = self._pods.get(uid)
        return found.raw if found is not None else b""

    def written_as(self, raw: bytes) -> Pod | None:
        """Return the pod that was added last, if its JSON was the same, byte for byte."""
        return self._last.pod if self._last is not None and self._last.raw == raw else None


def _weight(raw: bytes) -> int:
    return len(raw) if len(raw) <= _ORDINARY_BYTES else _WEIGHT * len(raw)
