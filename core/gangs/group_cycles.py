"""The cycles in which kube-scheduler schedules its own groups, and the places to release after a cycle without effect.

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
    Shortly after a start, members may have ended that the mirror has never had. Then nothing is proved, save for a
    group that is newer than the start.

In such a case the places that the cycle answered are released. No other case proves anything: kube-scheduler can call
`filter` for a member while it binds the others, and conditions are not written again if they are unchanged.
"""

from collections import deque
from typing import Final, NamedTuple

from core.mirror.cluster import ClusterMirror
from core.objects.groups import SchedulingGroup
from core.objects.pod import Pod

_SILENCE: Final = 10.0  # seconds
_SILENCE_OF_MEMBER: Final = 0.2  # seconds: the in-tree filters take up to 140 ms for a pod, and end without a request
_JUST_ENDED: Final = 30.0  # seconds


class _Cycle:
    """The requests of one cycle."""

    __slots__ = ("group", "last", "places")

    def __init__(self, group: str, now: float) -> None:
        self.group: Final = group
        self.places: Final[dict[str, float]] = {}  # uid -> time of the assumption
        self.last = now


class Released(NamedTuple):
    """The places that were released after a cycle."""

    group: str
    pods: list[Pod]
    """As assumed."""
    minimum: int


class GroupCycles:
    """The present cycle of the one kube-scheduler. Times are seconds of the caller's clock."""

    def __init__(self, mirror: ClusterMirror) -> None:
        self._mirror = mirror
        self._cycle: _Cycle | None = None
        self._ended: deque[tuple[float, str]] = deque()  # time, group of a member that left
        self._began: float | None = None  # time of `begin`, or else of the first request
        self._earlier: frozenset[str] | None = None  # the groups at that time; None: any may have been there

    def begin(self, now: float) -> None:
        """Note that decisions begin. The groups of the mirror are those whose members can have ended before."""
        self._began = now
        self._earlier = frozenset(self._mirror.objects(SchedulingGroup))

    def asked(self, pod: Pod, now: float) -> Released | None:
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

    def answered(self, pod: Pod, now: float) -> None:
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
        self._ended.extend((now, group) for group in self._mirror.scheduling_groups.take_left())
        while self._ended and now - self._ended[0][0] > _JUST_ENDED:
            self._ended.popleft()

    def _end(self, cycle: _Cycle, now: float) -> Released | None:
        self._cycle = None
        if self._may_lack_members(cycle.group, now):
            return None
        groups = self._mirror.scheduling_groups
        minimum = groups.smallest_minimum(cycle.group)
        placed = {uid for uid in groups.members(cycle.group) if self._mirror.is_mirrored(uid)}
        # The watch may not show them yet: then they were read from the API server.
        placed |= {uid for uid, each in self._mirror.assumed.items() if each.pod.scheduling_group == cycle.group}
        if len(placed) + sum(group == cycle.group for _, group in self._ended) >= minimum:
            return None
        released = []
        for uid, at in cycle.places.items():
            assumed = self._mirror.assumed.get(uid)
            if assumed is not None and assumed.assumed_at == at:
                self._mirror.forget(uid)
                released.append(assumed.pod)
        return Released(cycle.group, released, minimum) if released else None

    def _may_lack_members(self, group: str, now: float) -> bool:
        """Whether members of a group may have just ended that the mirror has never had."""
        if self._earlier is not None and group not in self._earlier:
            return False
        return self._began is None or now - self._began <= _JUST_ENDED
