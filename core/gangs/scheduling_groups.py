"""The groups that kube-scheduler places: the places to release after a cycle without effect, and their status.

From 1.36 on, with the feature gate GenericWorkload, kube-scheduler calls `filter` for the members of a group one after
another, in a cycle. It binds none of them unless at least the minimum has a node in the end
(schedule_one_podgroup.go). It tells an extender neither the end of a cycle nor its result. So this module relies on
its behaviour in any case:

    It schedules one group or one pod at a time. So a request for a pod out of the group shows that the cycle has ended.
    All requests have to come from one process for that: one kube-scheduler has all schedulers that Kindred decides for.

    It asks once for each member, in order. So a second request for a member shows the same: another cycle has begun, or
    the cycle is simulated again without the victims of a preemption.

    A cycle in which fewer members than the minimum had a node or a place has bound nothing. Members count that run,
    terminate or have just ended, because kube-scheduler may count them, and the smallest minimum that the group had.

In such a case the places that the cycle answered are released. No other case proves anything: kube-scheduler can call
`filter` for a member while it binds the others, and conditions are not written again if they are unchanged.

Shortly after a start, members may have ended that the mirror has never had, save for those of a group that is newer
than the start. Then a cycle below the minimum is *unproved*: it may have bound its members. Mostly it has not, and the
next cycle need not ask about the same members, so their places would be held for as long as a binding may wait. These
places are released in another way, by the facts that a start relies on, too: 30 s after the cycle, a list of the pods
shows all that was bound, and kube-scheduler nominates a pod whose binding waits.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from math import sqrt
from typing import Final, NamedTuple

from core.gangs.unit import PlacedBy, SchedulingStatus, UnitStatus
from core.mirror.cluster import ClusterMirror
from core.objects.groups import SchedulingGroup
from core.objects.pod import Pod

_SILENCE: Final = 10.0  # seconds
_SILENCE_OF_MEMBER: Final = 0.2  # seconds: the in-tree filters take up to 140 ms for a pod, and end without a request
_JUST_ENDED: Final = 30.0  # seconds
_BOUND: Final = 30.0  # seconds until a binding that waits for nothing has ended; after a start, 3 s are waited for it


class _Cycle:
    def __init__(self, group: str, now: float) -> None:
        self.group: Final = group
        self.places: Final[dict[str, float]] = {}  # uid -> time of the assumption
        self.last = now


class Released(NamedTuple):
    """The places that were released after a cycle."""

    group: str
    pods: list[Pod]
    """As assumed."""
    why: str


class _Unproved(NamedTuple):
    """A place of a cycle that may have bound nothing. The times are those of the assumption and of the cycle's end."""

    group: str
    assumed_at: float
    ended: float


class GroupCycles:
    """The present cycle of the one kube-scheduler. Times are seconds of the caller's clock."""

    def __init__(self, mirror: ClusterMirror) -> None:
        self._mirror = mirror
        self._cycle: _Cycle | None = None
        self._ended: deque[tuple[float, str]] = deque()  # time, group of a member that left
        self._began: float | None = None  # time of `begin`, or else of the first request
        self._earlier: frozenset[str] | None = None  # the groups at that time; None: any may have been there
        self._unproved: dict[str, _Unproved] = {}  # uid -> its newest place

    def begin(self, now: float) -> None:
        """Note that decisions begin. The groups of the mirror are those whose members can have ended before."""
        self._began = now
        self._earlier = frozenset(self._mirror.objects(SchedulingGroup))

    def requested(self, pod: Pod, now: float) -> Released | None:
        """Record a request for a pod, before its earlier place is dropped. It may end a cycle."""
        self._note_ended(now)
        if self._began is None:
            self._began = now
        cycle = self._cycle
        if cycle is None:
            return None
        if pod.scheduling_group == cycle.group and pod.uid not in cycle.places:
            cycle.last = now
            return None
        return self._end(cycle, now)

    def responded(self, pod: Pod, now: float) -> None:
        """Record that a member was assumed in this cycle."""
        if not self._mirror.rules.group_cycles:
            return
        if self._cycle is None:
            self._cycle = _Cycle(pod.scheduling_group, now)
        self._cycle.places[pod.uid] = now

    def review(self, now: float) -> Released | None:
        """End a cycle that had no request for a while. Its members may have failed without one."""
        self._note_ended(now)
        cycle = self._cycle
        if cycle is None:
            return None
        silence = _SILENCE + _SILENCE_OF_MEMBER * len(self._mirror.scheduling_groups.members(cycle.group))
        return self._end(cycle, now) if now - cycle.last > silence else None

    def _note_ended(self, now: float) -> None:
        left = self._mirror.scheduling_groups.left
        while left:
            self._ended.append((now, left.popleft()))
        while self._ended and now - self._ended[0][0] > _JUST_ENDED:
            self._ended.popleft()

    def has_unproved(self, now: float) -> bool:
        """Return whether a place of an unproved cycle is old enough for `release_unproved`."""
        self._unproved = {uid: each for uid, each in self._unproved.items() if self._has_place(uid, each.assumed_at)}
        return any(now - each.ended > _BOUND for each in self._unproved.values())

    def release_unproved(self, now: float) -> list[Released]:
        """Release the places of unproved cycles whose pods are neither bound nor nominated for them.

        The mirror must have the pods of a list that began at `now` or later.
        """
        due = {uid: each for uid, each in self._unproved.items() if now - each.ended > _BOUND}
        found: dict[str, list[str]] = {}
        for uid, each in due.items():
            del self._unproved[uid]
            if self._has_place(uid, each.assumed_at) and not self._is_nominated(uid):
                found.setdefault(each.group, []).append(uid)
        why = "its cycle shortly after the start has bound none of these members"
        return [Released(group, self._forget(uids), why) for group, uids in found.items()]

    def _end(self, cycle: _Cycle, now: float) -> Released | None:
        self._cycle = None
        groups = self._mirror.scheduling_groups
        minimum = groups.smallest_minimum(cycle.group)
        placed = {uid for uid in groups.members(cycle.group) if self._mirror.is_mirrored(uid)}
        # The watch may not show them yet: then they were read from the API server.
        placed |= {uid for uid, each in self._mirror.assumed.items() if each.pod.scheduling_group == cycle.group}
        ended = sum(group == cycle.group for _, group in self._ended)
        unproved = {uid for uid in placed - cycle.places.keys() if self._is_unproved(uid)}
        if len(placed - unproved) + ended >= minimum:
            return None
        if self._may_lack_members(cycle.group, now) or len(placed) + ended >= minimum:
            self._unproved |= {uid: _Unproved(cycle.group, at, now) for uid, at in cycle.places.items()}
            return None
        released = self._forget([uid for uid, at in cycle.places.items() if self._has_place(uid, at)])
        why = f"fewer than its minimum of {minimum} had a node, so its cycle has bound nothing"
        return Released(cycle.group, released, why) if released else None

    def _is_unproved(self, uid: str) -> bool:
        known = self._unproved.get(uid)
        return known is not None and self._has_place(uid, known.assumed_at)

    def _has_place(self, uid: str, assumed_at: float) -> bool:
        """Return whether a pod is assumed, and since that time."""
        assumed = self._mirror.assumed.get(uid)
        return assumed is not None and assumed.assumed_at == assumed_at

    def _is_nominated(self, uid: str) -> bool:
        return uid in self._mirror.pending.nominated_for(self._mirror.assumed[uid].pod.node_name)

    def _forget(self, uids: Sequence[str]) -> list[Pod]:
        pods = [self._mirror.assumed[uid].pod for uid in uids]
        for uid in uids:
            self._mirror.forget(uid)
        return pods

    def _may_lack_members(self, group: str, now: float) -> bool:
        """Whether members of a group may have just ended that the mirror has never had."""
        if self._earlier is not None and group not in self._earlier:
            return False
        return self._began is None or now - self._began <= _JUST_ENDED


# The status.
#
# kube-scheduler does not report why it does not try a group. So the reason follows from the mirror, by kube-
# scheduler's rules. Conditions are only shown: kube-scheduler does not write an unchanged one again, and none becomes
# False after the first success (schedule_one_podgroup.go, updatePodGroupCondition).

_MAX_BACKOFF: Final = 10.0
"""Seconds: podMaxBackoffSeconds, unless the configuration of kube-scheduler has another value."""


class _Members(NamedTuple):
    bound: Sequence[Pod]
    assumed: Sequence[Pod]
    pending: Sequence[Pod]
    terminating: Sequence[Pod]

    @property
    def number(self) -> int:
        return sum(map(len, self))

    @property
    def scheduled(self) -> int:
        return len(self.bound) + len(self.assumed)


def scheduling_group_status(mirror: ClusterMirror, key: str, unread: str = "") -> UnitStatus:
    """Return the status of a group by its key, see Pod.scheduling_group. It may have no member and no PodGroup.

    `unread` is why the mirror may lack PodGroups, in one line. Empty if it has all of them.
    """
    group = mirror.objects(SchedulingGroup).get(key)
    members = _members(mirror, key)
    minimum = 0 if group is None else group.minimum
    status, reason = _unknown(key, members, unread) if group is None else _waiting(mirror, group, members)
    return UnitStatus(
        unit=key,
        status=status,
        placed_by=PlacedBy.KUBE_SCHEDULER,
        reason=reason,
        minimum=minimum,
        members=members.number,
        pending=len(members.pending),
        assumed=len(members.assumed),
        bound=len(members.bound),
        terminating=len(members.terminating),
        priority=max((pod.priority for pod in mirror.scheduling_groups.members(key).values()), default=0),
        packing=None,
        conditions=() if group is None else group.conditions,
    )


def scheduling_group_statuses(mirror: ClusterMirror, unread: str = "") -> Iterator[UnitStatus]:
    """Yield the status of every group by name, including PodGroups without members. `unread`: as for one group."""
    for key in sorted({*mirror.scheduling_groups} | {*mirror.objects(SchedulingGroup)}):
        yield scheduling_group_status(mirror, key, unread)


def _members(mirror: ClusterMirror, key: str) -> _Members:
    bound, assumed, pending, terminating = [], [], [], []
    for uid, pod in mirror.scheduling_groups.members(key).items():
        if pod.terminating:
            terminating.append(pod)
        elif pod.node_name:
            bound.append(pod)
        elif mirror.is_assumed(uid):
            assumed.append(pod)
        else:
            pending.append(pod)
    return _Members(bound, assumed, pending, terminating)


def _unknown(key: str, members: _Members, unread: str) -> tuple[SchedulingStatus, str]:
    """Return the state of a group without a known PodGroup, and why it waits.

    kube-scheduler tries no group before its PodGroup exists (gangscheduling.go, PreEnqueue).
    """
    if members.scheduled and not members.pending:
        return SchedulingStatus.SCHEDULED, ""
    if key.count("/") > 1:
        unread = "its Workload has it, which Kindred does not read"
    if unread:
        return SchedulingStatus.PENDING, f"its minimum is unknown: {unread}"
    return SchedulingStatus.PENDING, f"no PodGroup {key} is known, and kube-scheduler waits for it"


def _waiting(mirror: ClusterMirror, group: SchedulingGroup, members: _Members) -> tuple[SchedulingStatus, str]:
    untried = _why_untried(mirror, group, members)
    if members.scheduled >= group.minimum:
        reason = (untried or _why_unplaced(mirror, group, members)) if members.pending else ""
        return SchedulingStatus.SCHEDULED, reason
    if untried:
        return SchedulingStatus.PENDING, untried
    return SchedulingStatus.SCHEDULING, _why_unplaced(mirror, group, members, _last_attempt(mirror, group, members))


def _why_untried(mirror: ClusterMirror, group: SchedulingGroup, members: _Members) -> str:
    """Return why kube-scheduler does not try the group. Empty if it does.

    It counts all members for the minimum, whatever their state (gangscheduling.go, PreEnqueue). A scheduling gate holds
    its own pod, and from `groups_queued` on the whole group (backend/queue/scheduling_queue.go, runPreEnqueuePlugins).
    """
    if not members.number:
        return "has no members"
    missing = group.minimum - members.number
    if missing > 0:
        return f"waits for {missing} more member{'s' if missing > 1 else ''} of {group.minimum}"
    gated = sum(bool(pod.waiting.gates) for pod in members.pending)
    if gated and (mirror.rules.groups_queued or members.number - gated < group.minimum):
        return f"waits until the scheduling gates of {gated} member{'s' if gated > 1 else ''} are removed"
    return ""


def _why_unplaced(mirror: ClusterMirror, group: SchedulingGroup, members: _Members, last_attempt: str = "") -> str:
    """Return why kube-scheduler places no more members, although it tries.

    It checks that the pending members agree in their scheduler. From `groups_queued` on, it checks the priority, too,
    and the members with a node (schedule_one_podgroup.go: validatePodGroup; in 1.36 frameworkForPodGroup).
    """
    is_queued = mirror.rules.groups_queued
    checked = (*members.pending, *members.bound, *members.assumed) if is_queued else members.pending
    schedulers = sorted({pod.scheduler_name for pod in checked})
    if len(schedulers) > 1:
        return f"its members name the schedulers {_list(schedulers)}: kube-scheduler places no such group"
    priorities = sorted({pod.priority for pod in checked})
    if is_queued and len(priorities) > 1:
        return f"its members have the priorities {_list(priorities)}: kube-scheduler places no such group"
    unsupported = ""
    if group.unsupported:
        tries = f"its {group.unsupported} makes kube-scheduler try several placements"
        unsupported = f"{tries}: Kindred returns an Error for members that it would decide for"
    return "; ".join(filter(None, (unsupported, last_attempt)))


def _last_attempt(mirror: ClusterMirror, group: SchedulingGroup, members: _Members) -> str:
    """Return the newest condition that is False, and how long the next attempt may wait.

    The backoff is at most _MAX_BACKOFF times the root of the queued members (backend/queue/backoff_queue.go,
    calculateBackoffDuration). It needs no event of the cluster (scheduling_queue.go, AddAttemptedPodGroupIfNeeded).
    """
    failed = [each for each in group.conditions if each.status == "False"]
    if not failed:
        return "kube-scheduler has reported no attempt yet"
    message = str(max(failed, key=lambda each: each.since))
    if not (members.pending and mirror.rules.groups_queued):
        return message
    longest = _MAX_BACKOFF * sqrt(len(members.pending))
    return f"{message}; kube-scheduler tries it again, with a backoff of at most {longest:.0f} s"


def _list(values: Sequence[object]) -> str:
    *others, last = map(str, values)
    return f"{', '.join(others)} and {last}"
