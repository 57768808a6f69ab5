"""The nodes that `filter` rejected for the pods of recent requests. Preemption searches victims on them.

kube-scheduler sends an extender only nodes that passed its own filters. So if Kindred accepts such a node later, the
pod fits there.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np

from core.framework.interface import Verdicts
from core.framework.status import Code
from core.mirror.changes import Change, NodeChange
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NO_SLOT, NodeBatch
from core.mirror.topology import BoolArray, IntpArray
from core.objects.pod import Pod, decides_alike

_MAX_PODS: Final = 4096
_MAX_BYTES: Final = 8 * 1024 * 1024  # of bits, one a node: 0.6 KB for 5,000 nodes
# A request after this time belongs to another scheduling attempt, and kube-scheduler may have rejected the node itself
# in between. Within an attempt, this is the time from the filter to the preemption. Two attempts are mostly
# podInitialBackoffSeconds apart.
_ONE_ATTEMPT: Final = 1.0  # seconds


class _Refusal(NamedTuple):
    pod: Pod  # as it was judged
    at: float
    node_lives: int  # RefusedNodes._node_lives at that time
    slots: bytes  # bit of a slot -> whether preemption might help on its node
    asked: bytes  # bit of a slot -> whether its node was in the request; empty if some node was not rejected

    @property
    def size(self) -> int:
        return len(self.slots) + len(self.asked)


class RefusedNodes:
    """uid -> the nodes that its last `filter` rejected and where preemption might help. The oldest are dropped."""

    hears: Final = (NodeChange,)

    def __init__(
        self,
        mirror: ClusterMirror,
        clock: Callable[[], float],
        refused_everywhere: Callable[[Pod, int], None] | None = None,
    ) -> None:
        """Record slots of a mirror. `clock` returns seconds.

        `refused_everywhere` is called with each pod for which no node was left although preemption might help, and with
        the number of nodes where it might.
        """
        self._mirror = mirror
        self._nodes = mirror.nodes
        self._clock = clock
        self._refusals: OrderedDict[str, _Refusal] = OrderedDict()
        self._bytes = 0
        self._node_lives = 0
        self._changed_hands: dict[int, int] = {}  # slot -> self._node_lives when it was last taken or left
        self._refused_everywhere = refused_everywhere
        mirror.listen(self)

    def changed(self, change: Change) -> None:
        """Track added and deleted nodes, because another node may then have the slot."""
        if isinstance(change, NodeChange) and (change.before is None or change.after is None):
            self._node_lives += 1
            self._changed_hands[change.slot] = self._node_lives

    def note(self, pod: Pod, batch: NodeBatch, verdicts: Verdicts) -> None:
        """Record the result of `filter`, in place of the pod's earlier result."""
        self.forget(pod.uid)
        resolvable: BoolArray = np.array([status.code is Code.UNSCHEDULABLE for status in verdicts.statuses])
        known = batch.slots != NO_SLOT
        slots: IntpArray = batch.slots[resolvable[verdicts.codes] & known]
        if not len(slots):
            return
        everywhere = self._refused_everywhere is not None and bool(verdicts.codes.all())
        asked = _bits(batch.slots[known], self._nodes.extent) if everywhere else b""
        resolvable_slots = _bits(slots, self._nodes.extent)
        judged = self._mirror.counted(pod)
        self._add(pod.uid, _Refusal(judged, self._clock(), self._node_lives, resolvable_slots, asked))
        if everywhere and self._refused_everywhere is not None:
            self._refused_everywhere(pod, len(batch))

    def forget(self, uid: str) -> None:
        """Drop the results for a pod that has got a node."""
        before = self._refusals.pop(uid, None)
        self._bytes -= before.size if before is not None else 0

    def of_this_attempt(self, pod: Pod) -> list[str]:
        """Return the names of the nodes, by slot, if the pod's last request belongs to this attempt. Else none.

        A rejection of another pod under this uid, or of another state of this pod, is no reason to preempt for it.
        """
        refusal = self._of(pod)
        if refusal is None or self._clock() - refusal.at > _ONE_ATTEMPT:
            return []
        return self._names(refusal, refusal.slots)

    def all_of_last_filter(self, pod: Pod) -> list[str]:
        """Return the names of all nodes of the last `filter`, by slot, if none was left for this state of the pod."""
        refusal = self._of(pod)
        return self._names(refusal, refusal.asked) if refusal is not None else []

    def _of(self, pod: Pod) -> _Refusal | None:
        refusal = self._refusals.get(pod.uid)
        return refusal if refusal is not None and decides_alike(refusal.pod, self._mirror.counted(pod)) else None

    def _add(self, uid: str, refusal: _Refusal) -> None:
        self._refusals[uid] = refusal
        self._bytes += refusal.size
        while len(self._refusals) > _MAX_PODS or self._bytes > _MAX_BYTES:
            self._bytes -= self._refusals.popitem(last=False)[1].size

    def _names(self, refusal: _Refusal, bits: bytes) -> list[str]:
        """Return the names of the nodes that still have these slots."""
        slots = np.flatnonzero(np.unpackbits(np.frombuffer(bits, np.uint8))).tolist()
        same = [slot for slot in slots if self._changed_hands.get(slot, 0) <= refusal.node_lives]
        return [self._nodes.name(slot) for slot in same]


def _bits(slots: IntpArray, extent: int) -> bytes:
    chosen = np.zeros(extent, np.bool_)
    chosen[slots] = True
    return np.packbits(chosen).tobytes()
