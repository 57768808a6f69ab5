"""Everything that a request may change, besides results that are kept to be computed once.

The code that evaluates a request has no reference to these objects. It is passed them for an ordinary request, and None
for a dry run. So a dry run cannot reach an effect.

    recent pods     the pods of requests, for callers that have only a uid
    rotation        where the next sample of nodes begins, see NodeSample
    refused nodes   where `preempt` and the evictor search for victims
    nominations     since when the rejection of a nominated node is doubted
    look-ups        pods that were read from the API server
    gangs           reservations, and gangs that wait
    group cycles    the present cycle in which kube-scheduler schedules a group
    assumptions     pods that count on the node that was decided for them
    decisions       counts by outcome
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

import numpy as np

from app.objects.decode import Json
from app.verbs.pods import PodLookup
from app.verbs.request import Decision, RecentPods
from app.verbs.wire_in import decode_incoming_pod
from core.framework.interface import Code, Verdicts
from core.gangs.gangs import Gangs
from core.gangs.scheduling_groups import GroupCycles, Released
from core.mirror.changes import NodeChange
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NO_SLOT, NodeBatch
from core.mirror.topology import BoolArray, IntpArray
from core.objects.pod import Pod, decides_alike

# Doubts about rejections of nominated nodes: the watch may not have shown yet that the victims were deleted.
#
# kube-scheduler nominates a node for a pod, evicts the victims there, and retries the pod as soon as its own watch
# shows their deletion. If Kindred's watch lags, Kindred rejects the node, and kube-scheduler preempts again on
# another node. v1.36.3 evicted a second victim needlessly this way. So `filter` evaluates such a request again for a
# moment. If the rejection remains, it returns an `Error`. If the request had the nominated node alone, kube-scheduler
# then asks about all nodes. Else an `Error` only ends the attempt (schedule_one.go, evaluateNominatedNode, and
# schedulingCycle: no PostFilter runs, but the nomination is lost). kube-scheduler retries the pod after its backoff,
# which is 1 s at first.
#
# If Kindred itself preempts for the pod, a remaining rejection is returned as it is: the victims may terminate
# slowly, and the pod must stay nominated. The same is true for each pod that Kindred decides for
# (app/verbs/decide.py).

_PATIENCE: Final = 3.0  # seconds: an attempt, its backoff, and another attempt
_MAX_STALE: Final = 1024


class StaleRejection(NamedTuple):
    """Why a rejection is doubted, and whether `filter` returns the rejection if the doubt remains."""

    reason: str
    is_returned: bool


class _StaleSince(NamedTuple):
    node: str
    since: float


class Nominations:
    """uid -> time since which the rejection of the pod's nominated node is doubted. The oldest entries are dropped."""

    def __init__(
        self, mirror: ClusterMirror, clock: Callable[[], float], is_ours: Callable[[str], bool] = lambda _: False
    ) -> None:
        """Read the pods of a mirror. `clock` returns seconds.

        `is_ours` returns whether Kindred itself preempts for the pod of a uid.
        """
        self._mirror = mirror
        self._clock = clock
        self._stale_rejections: OrderedDict[str, _StaleSince] = OrderedDict()
        self._is_ours = is_ours

    def stale_rejection(self, pod: Pod, batch: NodeBatch, verdicts: Verdicts) -> StaleRejection | None:
        """Return why the verdicts should not be returned yet. None if they may be.

        Verdicts are held back if no node fits, and the nominated node has pods of lower priority that are not
        terminating in the mirror. These pods are the victims, or pods that took their place.
        """
        name = pod.nominated_node_name
        if not name or not self._rejected_only_for_now(name, batch, verdicts):
            return None
        if not any(each.priority < pod.priority and not each.terminating for each in self._mirror.pods_on(name)):
            return None
        if self._clock() - self._since(pod.uid, name) > _PATIENCE:
            return None
        reason = (
            f"pod {pod.full_name} does not fit on its nominated node {name}; the watch may be late with its victims"
        )
        return StaleRejection(reason, self._is_ours(pod.uid))

    def _rejected_only_for_now(self, name: str, batch: NodeBatch, verdicts: Verdicts) -> bool:
        slot = self._mirror.nodes.slots.get(name)
        if slot is None:
            return False
        codes = [status.code for status in verdicts.statuses]
        if any(codes[index] is Code.SUCCESS for index in np.unique(verdicts.codes).tolist()):
            return False
        return any(codes[index] is Code.UNSCHEDULABLE for index in verdicts.codes[batch.slots == slot].tolist())

    def _since(self, uid: str, node: str) -> float:
        known = self._stale_rejections.get(uid)
        if known is None or known.node != node:
            self._stale_rejections[uid] = known = _StaleSince(node, self._clock())
            if len(self._stale_rejections) > _MAX_STALE:
                self._stale_rejections.popitem(last=False)
        return known.since


# The nodes that `filter` rejected for the pods of recent requests. Preemption searches victims on them.
#
# kube-scheduler sends an extender only nodes that passed its own filters. So if Kindred accepts such a node later,
# the pod fits there.

_MAX_REJECTIONS: Final = 4096
_MAX_BYTES_OF_REJECTIONS: Final = 8 * 1024 * 1024  # of bits, one a node: 0.6 KB for 5,000 nodes
# A request after this time belongs to another scheduling attempt, and kube-scheduler may have rejected the node itself
# in between. Within an attempt, this is the time from the filter to the preemption. Two attempts are mostly
# podInitialBackoffSeconds apart.
_ONE_ATTEMPT: Final = 1.0  # seconds


class _Rejection(NamedTuple):
    pod: Pod  # as it was judged
    at: float
    node_lives: int  # RejectedNodes._node_lives at that time
    slots: bytes  # bit of a slot -> whether preemption might help on its node
    requested: bytes  # bit of a slot -> whether its node was in the request; empty if some node was not rejected

    @property
    def size(self) -> int:
        return len(self.slots) + len(self.requested)


class _Noted(NamedTuple):
    """What follows from verdicts on nodes. Pods of a class get the same verdicts, one after another."""

    verdicts: Verdicts
    of_slots: IntpArray
    slots: bytes  # as those of _Rejection; empty if preemption helps nowhere
    requested: bytes


class RejectedNodes:
    """uid -> the nodes that its last `filter` rejected and where preemption might help. The oldest are dropped."""

    hears: Final = (NodeChange,)

    def __init__(
        self,
        mirror: ClusterMirror,
        clock: Callable[[], float],
        rejected_everywhere: Callable[[Pod, int], None] | None = None,
    ) -> None:
        """Record slots of a mirror. `clock` returns seconds.

        `rejected_everywhere` is called with each pod for which no node was left although preemption might help, and
        with the number of nodes where it might. Not with a pod of the lowest priority that any pod has had, nor with a
        member of a scheduling group: kube-scheduler preempts for all members together, or for none (v1.37
        schedule_one_podgroup.go, podGroupCycle). 1.35 does for each by itself, whether the others have room or not.
        """
        self._mirror = mirror
        self._nodes = mirror.nodes
        self._clock = clock
        self._rejections: OrderedDict[str, _Rejection] = OrderedDict()
        self._bytes = 0
        self._last: _Noted | None = None
        self._node_lives = 0
        self._changed_hands: dict[int, int] = {}  # slot -> self._node_lives when it was last taken or left
        self._rejected_everywhere = rejected_everywhere
        mirror.listen(self)

    def changed(self, change: NodeChange) -> None:
        """Track added and deleted nodes, because another node may then have the slot."""
        if change.before is None or change.after is None:
            self._node_lives += 1
            self._changed_hands[change.slot] = self._node_lives

    def note(self, pod: Pod, batch: NodeBatch, verdicts: Verdicts) -> None:
        """Record the result of `filter`, in place of the pod's earlier result."""
        self.forget(pod.uid)
        last = self._last
        if last is None or last.verdicts is not verdicts or last.of_slots is not batch.slots:
            last = self._last = self._noted(batch, verdicts)
        if not last.slots:
            return
        judged = self._mirror.counted(pod)
        self._add(pod.uid, _Rejection(judged, self._clock(), self._node_lives, last.slots, last.requested))
        # For a pod that is more important than no other, to read it and to plan would take 0.1 s and find no victim.
        may_preempt = pod.priority > self._mirror.pods.least_priority and not pod.in_scheduling_group
        if last.requested and may_preempt and self._rejected_everywhere is not None:
            self._rejected_everywhere(pod, len(batch))

    def forget(self, uid: str) -> None:
        """Drop the results for a pod that has got a node."""
        before = self._rejections.pop(uid, None)
        self._bytes -= before.size if before is not None else 0

    def of_this_attempt(self, pod: Pod) -> list[str]:
        """Return the names of the nodes, by slot, if the pod's last request belongs to this attempt. Else none.

        A rejection of another pod under this uid, or of another state of this pod, is no reason to preempt for it.
        """
        rejection = self._of(pod)
        if rejection is None or self._clock() - rejection.at > _ONE_ATTEMPT:
            return []
        return self._names(rejection, rejection.slots)

    def all_of_last_filter(self, pod: Pod) -> list[str]:
        """Return the names of all nodes of the last `filter`, by slot, if none was left for this state of the pod."""
        rejection = self._of(pod)
        return self._names(rejection, rejection.requested) if rejection is not None else []

    def _of(self, pod: Pod) -> _Rejection | None:
        rejection = self._rejections.get(pod.uid)
        return rejection if rejection is not None and decides_alike(rejection.pod, self._mirror.counted(pod)) else None

    def _noted(self, batch: NodeBatch, verdicts: Verdicts) -> _Noted:
        slots = batch.slots
        helped: BoolArray = np.array([status.code is Code.UNSCHEDULABLE for status in verdicts.statuses])
        helped = helped.take(verdicts.codes)
        if batch.unmirrored:
            known = slots != NO_SLOT
            slots, helped = slots[known], helped[known]
        resolvable = requested = b""
        if helped.any():
            resolvable = _bits(slots, helped, self._nodes.extent)
            if self._rejected_everywhere is not None and verdicts.codes.all():
                requested = resolvable if helped.all() else _bits(slots, np.ones_like(helped), self._nodes.extent)
        return _Noted(verdicts, batch.slots, resolvable, requested)

    def _add(self, uid: str, rejection: _Rejection) -> None:
        self._rejections[uid] = rejection
        self._bytes += rejection.size
        while len(self._rejections) > _MAX_REJECTIONS or self._bytes > _MAX_BYTES_OF_REJECTIONS:
            self._bytes -= self._rejections.popitem(last=False)[1].size

    def _names(self, rejection: _Rejection, bits: bytes) -> list[str]:
        """Return the names of the nodes that still have these slots."""
        slots = np.flatnonzero(np.unpackbits(np.frombuffer(bits, np.uint8))).tolist()
        same = [slot for slot in slots if self._changed_hands.get(slot, 0) <= rejection.node_lives]
        return [self._nodes.name(slot) for slot in same]


def _bits(slots: IntpArray, chosen: BoolArray, extent: int) -> bytes:
    bits = np.zeros(extent, np.bool_)
    bits[slots] = chosen
    return np.packbits(bits).tobytes()


log = logging.getLogger(__name__)

LONGEST_WAIT: Final = 660.0
"""Seconds, above the waits of in-tree plugins until a pod is bound: VolumeBinding and DynamicResources 600 by default,
GangScheduling 300 (volumebinding and dynamicresources: bindTimeoutSeconds and bindingTimeout; gangscheduling.go)."""

_REVIEW_EVERY: Final = 0.2  # seconds
_PAUSE: Final = 0.05
"""Seconds between two parts of attempts to place gangs, which take as long each (core/gangs/trials.py)."""
_RELEASE_EVERY: Final = 10.0  # seconds: each time may be a list, but only in the minutes after a start
_LANDS: Final = 1.0
"""Seconds for bindings of the last decisions before the end of a replica. One takes some tens of milliseconds."""
_LOOKS_EVERY: Final = 0.05  # seconds


class Effects:
    """The effects of the requests to one service."""

    def __init__(  # noqa: PLR0913  # one part for each kind of effect
        self,
        mirror: ClusterMirror,
        clock: Callable[[], float],
        lookup: PodLookup,
        *,
        rejected_nodes: RejectedNodes | None = None,
        nominations: Nominations | None = None,
        gangs: Gangs | None = None,
        waiting_schedulers: frozenset[str] = frozenset(),
    ) -> None:
        """Assume pods in a mirror, by its clock.

        `rejected_nodes` records the rejections of `filter` for preemption. `nominations` delay rejections, if the
        mirror follows a cluster. Without `gangs`, a pod of a group is decided for like any other pod. The profiles of
        `waiting_schedulers` have in-tree plugins that let a binding wait, up to LONGEST_WAIT.
        """
        self.recent_pods: Final = RecentPods()
        self.lookup: Final = lookup
        self.gangs: Final = gangs
        self.decisions: Final = dict.fromkeys(Decision, 0)
        self.clock: Final = clock
        self.rotation = 0
        self._mirror = mirror
        self.rejected_nodes: Final = rejected_nodes
        self._nominations = nominations
        self._waiting_schedulers = waiting_schedulers
        self._cycles = GroupCycles(mirror)

    def decoded(self, raw: Json) -> Pod:
        """Return the pod of a request and record it. Raises DecodeError."""
        written = bytes(raw)
        pod = self.recent_pods.by_json(written)  # a hit mostly: prioritize sends the pod of the filter before it
        if pod is None:
            pod = decode_incoming_pod(raw)
            self.recent_pods.add(pod, written)
        return pod

    def stale_rejection(self, pod: Pod, batch: NodeBatch, verdicts: Verdicts) -> StaleRejection | None:
        """Return why a rejection may be too early, see Nominations."""
        return self._nominations.stale_rejection(pod, batch, verdicts) if self._nominations is not None else None

    def reject(self, pod: Pod, batch: NodeBatch, verdicts: Verdicts) -> None:
        """Record the nodes that reject a pod, for preemption."""
        if self.rejected_nodes is not None:
            self.rejected_nodes.note(pod, batch, verdicts)

    def assume(self, pod: Pod, node: str) -> None:
        """Count a pod on the node that was decided for it."""
        now = self.clock()
        self._count(pod, node, now)
        if pod.scheduling_group:
            self._cycles.responded(pod, now)
        if self.rejected_nodes is not None:
            self.rejected_nodes.forget(pod.uid)

    def take_over(self, since: float) -> None:
        """Take over from another process, which may have led until `since`. Call it before the first decision.

        Pods count on their nominated nodes, if a decision of that process may still be bound there. kube-scheduler
        nominates a pod whose binding waits for in-tree plugins, and such a wait can outlive a replica of Kindred. Pods
        that wait for the end of victims are nominated, too. A scheduler requests their decision again. If this process
        led before that one, its own decision for such a pod is the older one.
        """
        self._cycles.begin(self.clock())
        for pod in [*self._mirror.pending]:
            waits = pod.scheduler_name in self._waiting_schedulers and not pod.terminating
            if not (waits and pod.nominated_node_name):
                continue
            own = self._mirror.assumed.get(pod.uid)
            if own is not None and own.assumed_at < since and own.pod.node_name != pod.nominated_node_name:
                self._mirror.release(pod.uid)
            if not self._mirror.is_mirrored(pod.uid):
                self._count(pod, pod.nominated_node_name, self.clock())  # in no cycle: no request was for it

    async def have_landed(self) -> bool:
        """Wait for the bindings of all decisions, but not for long. Return whether the watch has shown them."""
        until = self.clock() + _LANDS
        while any(self._is_under_way(assumed.pod) for assumed in self._mirror.assumed.values()):
            if self.clock() >= until:
                return False
            await asyncio.sleep(_LOOKS_EVERY)
        return True

    def _is_under_way(self, assumed: Pod) -> bool:
        """Return whether a pod was decided for, and the next leader does not learn it, see `take_over`."""
        if self.gangs is not None and self.gangs.has_reserved(assumed.uid):
            return False
        waits = assumed.scheduler_name in self._waiting_schedulers
        return not (waits and assumed.uid in self._mirror.pending.nominated_for(assumed.node_name))

    def _count(self, pod: Pod, node: str, now: float) -> None:
        wait = LONGEST_WAIT if pod.scheduler_name in self._waiting_schedulers else 0.0
        self._mirror.assume(pod, node, now, wait=wait)  # no message reports the binding

    def requested(self, pod: Pod) -> None:
        """Record that a scheduler asks about a pending pod, before the decision for it."""
        _report(self._cycles.requested(pod, self.clock()))

    def review_cycles(self) -> None:
        """End a group's cycle that had no request for a while."""
        _report(self._cycles.review(self.clock()))

    async def release_unproved(self, catch_up: Callable[[], Awaitable[None]]) -> None:
        """Release the places of unproved cycles that are old enough, see core/gangs/scheduling_groups.py.

        `catch_up` brings the mirror up to the pods at the time of its call.
        """
        now = self.clock()
        if self._cycles.has_unproved(now):
            await catch_up()
            for released in self._cycles.release_unproved(now):
                _report(released)

    async def keep_releasing(self, catch_up: Callable[[], Awaitable[None]]) -> None:
        """Call `release_unproved` until cancelled. Not in `keep`, because a list may take long."""
        while True:
            await asyncio.sleep(_RELEASE_EVERY)
            await self.release_unproved(catch_up)

    async def keep(self, rejection: Callable[[], str]) -> None:
        """End cycles and reservations of groups that are too old, and go on with gangs that wait, until cancelled.

        While no decision is allowed, as `rejection` says, release all reservations. Another replica that decides does
        not have them. When this replica leads again, it starts with none. Invalid annotations about packing are
        logged once per group.
        """
        goes_on = False
        while True:
            await asyncio.sleep(_PAUSE if goes_on else _REVIEW_EVERY)
            goes_on = False
            self.review_cycles()
            if self.gangs is None:
                continue
            if rejection():
                self.gangs.end()
            else:
                now = self.clock()
                self.gangs.review(now)
                goes_on = self.gangs.work(now)
            for unit, problem in self.gangs.take_packing_problems().items():
                log.warning("group %s is placed as spread: %s", unit, problem)

    def begin_decision(self, pod: Pod) -> Decision | str:
        """End the assumption of an earlier decision for a pod, which failed. Return the outcome of a decision now.

        A reserved place of a gang is no decision yet. Each cycle of a scheduling group has a request for a member, so a
        second request is no sign of a failure. It is none either for a pod that `bind` is binding or has bound: then
        the node that keeps it is returned. A pod that may be bound was read before, see PodLookup.
        """
        if self.gangs is not None:
            self.gangs.begin(self.clock())
            if pod.group is None:
                self.gangs.leave(pod.uid)
        if not self._mirror.is_assumed(pod.uid) or (self.gangs is not None and self.gangs.has_reserved(pod.uid)):
            return Decision.ASSUMED
        assumed = self._mirror.assumed[pod.uid]
        if assumed.is_reported and not assumed.is_doubtful:
            return assumed.pod.node_name
        self._mirror.forget(pod.uid)
        return Decision.ASSUMED if pod.in_scheduling_group else Decision.REPLACED


def _report(released: Released | None) -> None:
    if released is not None:
        log.info("group %s: %s: released %d places", released.group, released.why, len(released.pods))
