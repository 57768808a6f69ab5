"""Assumed pods: pods with a node decided here that the watch has not confirmed yet, and their deadlines."""

from collections.abc import Callable
from math import inf
from typing import Final

import msgspec

from core.objects.pod import Pod

_RENEWED: Final = 10.0  # seconds until a pod that was due and stays is due again


class AssumedPod(msgspec.Struct, frozen=True, gc=False):
    """A pod as it was assumed, with its node. Times are seconds on the caller's clock."""

    pod: Pod
    assumed_at: float
    deadline: float | None = None
    """The pod expires after this time. None while its binding is not finished: then the pod never expires."""
    waits: bool = False
    """Whether its binding may wait for minutes, so that a failure in its status may be of an earlier attempt."""


class AssumedPods:
    """The assumed pods by UID.

    `ttl` is how many seconds a pod may stay assumed after its binding. 0 means without limit, as upstream (cache.go
    finishBinding). Raises ValueError if `ttl` is negative or nan.
    """

    def __init__(self, ttl: float) -> None:
        if not ttl >= 0:
            raise ValueError(f"the TTL of an assumed pod is {ttl} s, but must be 0 or more")
        self.by_uid: dict[str, AssumedPod] = {}
        self._ttl = ttl
        self._earliest = inf  # lower bound of all deadlines

    def __contains__(self, uid: str) -> bool:
        return uid in self.by_uid

    def add(self, pod: Pod, now: float) -> None:
        """Add a pod whose binding begins."""
        self.by_uid[pod.uid] = AssumedPod(pod, now)

    def remove(self, uid: str) -> AssumedPod:
        """Remove a pod that was confirmed, forgotten, deleted or expired."""
        return self.by_uid.pop(uid)

    def replace(self, pod: Pod) -> None:
        """Store a new state of an assumed pod."""
        self.by_uid[pod.uid] = msgspec.structs.replace(self.by_uid[pod.uid], pod=pod)

    def finish_binding(self, uid: str, now: float, *, wait: float = 0.0) -> None:
        """Set the deadline of a pod to `now` plus the TTL, or plus `wait` if that is more.

        A pod that is not assumed is ignored.
        """
        known = self.by_uid.get(uid)
        if known is None or not self._ttl:
            return
        deadline = now + max(self._ttl, wait)
        self.by_uid[uid] = AssumedPod(known.pod, known.assumed_at, deadline, waits=wait > 0)
        self._earliest = min(self._earliest, deadline)

    def take_overdue(self, now: float, stays: Callable[[Pod], bool] = lambda _: False) -> list[Pod]:
        """Remove the pods past their deadline, and return them. A pod that `stays` is due again ten seconds later.

        Loops over the pods only if the earliest deadline of the last loop has passed: about once per TTL if bindings
        are confirmed.
        """
        if now <= self._earliest:
            return []
        overdue, earliest = [], inf
        renewed = []
        for assumed in self.by_uid.values():
            if assumed.deadline is None:
                continue
            if now <= assumed.deadline:
                earliest = min(earliest, assumed.deadline)
            elif stays(assumed.pod):
                renewed.append(assumed.pod.uid)
            else:
                overdue.append(assumed.pod)
        for pod in overdue:
            del self.by_uid[pod.uid]
        for uid in renewed:
            earliest = min(earliest, now + _RENEWED)
            self.by_uid[uid] = msgspec.structs.replace(self.by_uid[uid], deadline=now + _RENEWED)
        self._earliest = earliest
        return overdue
