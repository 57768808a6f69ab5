"""Pods that were decided for a node here and that the watch has not confirmed yet, with the time they are given."""

from math import inf

import msgspec

from core.objects.pod import Pod


class AssumedPod(msgspec.Struct, frozen=True, gc=False):
    """A pod as it was assumed, with its node. Times are seconds on the caller's clock."""

    pod: Pod
    assumed_at: float
    deadline: float | None = None
    """The last moment at which it does not expire; None while its binding is not finished: it never expires."""


class AssumedPods:
    """The assumed pods by uid.

    `ttl` is how many seconds a pod may stay assumed after its binding; 0 lets it stay for ever, as upstream has it
    (cache.go finishBinding). Raises ValueError for a negative or a nan one.
    """

    def __init__(self, ttl: float) -> None:
        if not ttl >= 0:
            raise ValueError(f"the TTL of an assumed pod is {ttl} s, and has to be 0 or more")
        self.by_uid: dict[str, AssumedPod] = {}
        self._ttl = ttl
        self._earliest = inf  # no deadline is before it

    def __contains__(self, uid: str) -> bool:
        return uid in self.by_uid

    def add(self, pod: Pod, now: float) -> None:
        """Take in a pod whose binding begins."""
        self.by_uid[pod.uid] = AssumedPod(pod, now)

    def remove(self, uid: str) -> AssumedPod:
        """Take out a pod: confirmed, forgotten, deleted or expired."""
        return self.by_uid.pop(uid)

    def replace(self, pod: Pod) -> None:
        """Hold another state of an assumed pod."""
        self.by_uid[pod.uid] = msgspec.structs.replace(self.by_uid[pod.uid], pod=pod)

    def finish_binding(self, uid: str, now: float) -> None:
        """Let a pod expire when the TTL has passed from now; nothing happens to a pod that is not assumed."""
        known = self.by_uid.get(uid)
        if known is None or not self._ttl:
            return
        deadline = now + self._ttl
        self.by_uid[uid] = AssumedPod(known.pod, known.assumed_at, deadline)
        self._earliest = min(self._earliest, deadline)

    def take_overdue(self, now: float) -> list[Pod]:
        """Take out the pods whose deadline has passed, and return them.

        All are looked at only if some pod was due when it was last looked: about once per TTL where binding goes well.
        """
        if now <= self._earliest:
            return []
        overdue, earliest = [], inf
        for assumed in self.by_uid.values():
            if assumed.deadline is None:
                continue
            if now > assumed.deadline:
                overdue.append(assumed.pod)
            else:
                earliest = min(earliest, assumed.deadline)
        for pod in overdue:
            del self.by_uid[pod.uid]
        self._earliest = earliest
        return overdue
