"""The pods without a fitting node that wait for their turn of a preemption."""

import logging
from collections.abc import Callable
from typing import Final

from app.eviction.eviction_outcome import EvictionOutcome, EvictionResult
from app.eviction.eviction_queue import EvictionQueue, QueuedPod
from app.logs import one_line
from core.mirror.cluster import ClusterMirror
from core.objects.pod import Pod

log = logging.getLogger(__name__)

_PAUSE: Final = 0.2  # seconds; more if kube-scheduler rejected nodes itself, because it may find victims there
_LONGER_PAUSE: Final = 1.0
_TURNS: Final = 4  # the later ones after two, four and eight times the pause


class UnschedulablePods:
    """`filter` adds pods, the evictor takes them."""

    def __init__(
        self, mirror: ClusterMirror, clock: Callable[[], float], observe: Callable[[EvictionOutcome], None]
    ) -> None:
        """`clock` returns seconds. `observe` is called for a pod that the queue drops."""
        self._nodes = mirror.nodes
        self._clock = clock
        self._observe = observe
        self._queue = EvictionQueue(clock)
        self._resting: dict[str, float] = {}  # uid of a pod without candidates -> earliest time of its next turn

    def add(self, pod: Pod, nodes: int) -> None:
        """Give a turn to a pod that was rejected on all nodes. `nodes`: where preemption might help."""
        pause = _PAUSE if nodes >= len(self._nodes.slots) else _LONGER_PAUSE
        rest = self._resting.get(pod.uid, 0.0) - self._clock()
        if not self._queue.put(pod, max(pause, rest)):
            log.warning("preemption: %s: too many pods wait for their turn", one_line(pod.full_name))
            self._observe(EvictionOutcome(EvictionResult.DROPPED))

    async def take(self) -> QueuedPod:
        """Wait until a turn is due, remove it from the queue, and return it."""
        return await self._queue.take()

    def retry(self, turn: QueuedPod) -> bool:
        """Give a pod another turn later. Return False if it has had all its turns, or waits for one already."""
        had = turn.had + 1
        if had >= _TURNS or self._queue.waits(turn.pod.uid):
            return False
        self._queue.put(turn.pod, _PAUSE * 2**had, had)
        return True

    def rest(self, uid: str, seconds: float) -> None:
        """Give a pod no turn for `seconds`, even if a new request arrives in the meantime."""
        now = self._clock()
        self._resting = {each: until for each, until in self._resting.items() if until > now}
        self._resting[uid] = now + seconds
        self._queue.put_back(uid, self._resting[uid])
