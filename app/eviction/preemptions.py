"""Recent preemptions by Kindred, and whether their victims still exist."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from core.mirror.cluster import ClusterMirror
from core.mirror.preemptors import UNSEEN


class Preemption(NamedTuple):
    """The preemption for a pod, and the time until which the watch may lag behind it."""

    node: str
    victims: tuple[str, ...]
    """The uids of the victims."""
    until: float


class Preemptions:
    """uid of a preemptor -> its preemption. The evictor adds entries, and `filter` looks pods up."""

    def __init__(self, mirror: ClusterMirror, clock: Callable[[], float]) -> None:
        """`mirror` shows whether victims still exist. `clock` returns seconds."""
        self._mirror = mirror
        self._clock = clock
        self._preemptions: dict[str, Preemption] = {}
        self._last = ""  # uid of the last or present preemptor

    def begin(self, uid: str) -> None:
        """Record that a preemption for a pod begins."""
        self._last = uid

    def add(self, uid: str, node: str, victims: Sequence[str]) -> None:
        """Record the nominated node of a pod, and the victims there, evicted or already terminating."""
        now = self._clock()
        self._preemptions[uid] = Preemption(node, tuple(victims), now + UNSEEN)
        self._mirror.preemptors.evicted(uid, node, victims, now)

    def forget(self, uid: str) -> None:
        """Remove the preemption for a pod that no longer gets the node."""
        self._preemptions.pop(uid, None)
        self._mirror.preemptors.forget(uid)

    def includes(self, uid: str) -> bool:
        """Return whether a preemption for a pod is in progress or recent."""
        return uid == self._last or uid in self._preemptions

    def node_for(self, uid: str) -> str:
        """Return the nominated node of a pod. Empty without a recent preemption for it."""
        known = self._preemptions.get(uid)
        return known.node if known is not None else ""

    def lost_nomination(self, uid: str) -> str:
        """Return the node of a preemption if the watch shows the pod without a nomination. Else an empty text."""
        pending = self._mirror.pending.get(uid)
        return self.node_for(uid) if pending is not None and not pending.nominated_node_name else ""

    def going(self) -> Mapping[str, Preemption]:
        """Return the preemptions with victims that still exist, and drop old ones."""
        now = self._clock()
        going = {uid: each for uid, each in self._preemptions.items() if self._is_going(each, now)}
        self._preemptions = {uid: each for uid, each in self._preemptions.items() if uid in going or now < each.until}
        return going

    def _is_going(self, preemption: Preemption, now: float) -> bool:
        held = [pod for uid in preemption.victims if (pod := self._mirror.get_pod(uid)) is not None]
        return any(pod.terminating or now < preemption.until for pod in held)
