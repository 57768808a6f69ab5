"""For which pods others were evicted lately, and whether those are gone."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from core.mirror.cluster import ClusterMirror
from core.mirror.preemptors import UNSEEN


class Preemption(NamedTuple):
    """The preemption for a pod, and the time until which the watch may lag behind it."""

    node: str
    victims: tuple[str, ...]
    """Their uids."""
    until: float


class Preemptions:
    """uid of a preemptor -> its preemption. The evictor writes it; `filter` asks whether a pod is in it."""

    def __init__(self, mirror: ClusterMirror, clock: Callable[[], float]) -> None:
        """Look for victims in a mirror; times are of `clock`, in seconds."""
        self._mirror = mirror
        self._clock = clock
        self._preemptions: dict[str, Preemption] = {}
        self._last = ""  # uid of the pod that was preempted for last, or is just now

    def begin(self, uid: str) -> None:
        """Take note that a pod is preempted for from now on."""
        self._last = uid

    def add(self, uid: str, node: str, victims: Sequence[str]) -> None:
        """Take note of the node that a pod is to get, and of the victims there, evicted for it or going already."""
        now = self._clock()
        self._preemptions[uid] = Preemption(node, tuple(victims), now + UNSEEN)
        self._mirror.preemptors.evicted(uid, node, victims, now)

    def forget(self, uid: str) -> None:
        """Remove the preemption for a pod, which is to get its node no longer."""
        self._preemptions.pop(uid, None)
        self._mirror.preemptors.forget(uid)

    def includes(self, uid: str) -> bool:
        """Return whether pods were evicted for a pod lately, or are just now."""
        return uid == self._last or uid in self._preemptions

    def node_for(self, uid: str) -> str:
        """Return the node that a pod is to get; empty if it was not preempted for lately."""
        known = self._preemptions.get(uid)
        return known.node if known is not None else ""

    def lost_nomination(self, uid: str) -> str:
        """Return the node of a preemption for a pod that the watch shows without a nomination; else an empty text."""
        pending = self._mirror.pending.get(uid)
        return self.node_for(uid) if pending is not None and not pending.nominated_node_name else ""

    def going(self) -> Mapping[str, Preemption]:
        """Return the preemptions whose victims are not all gone, and drop old ones."""
        now = self._clock()
        going = {uid: each for uid, each in self._preemptions.items() if self._is_going(each, now)}
        self._preemptions = {uid: each for uid, each in self._preemptions.items() if uid in going or now < each.until}
        return going

    def _is_going(self, preemption: Preemption, now: float) -> bool:
        held = [pod for uid in preemption.victims if (pod := self._mirror.get_pod(uid)) is not None]
        return any(pod.terminating or now < preemption.until for pod in held)
