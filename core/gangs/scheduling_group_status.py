"""The status of a group that kube-scheduler places: a PodGroup of scheduling.k8s.io with its members in the mirror.

kube-scheduler does not report why it does not try a group. So the reason follows from the mirror, by kube-scheduler's
rules. Conditions are only shown: kube-scheduler does not write an unchanged one again, and none becomes False after the
first success (schedule_one_podgroup.go, updatePodGroupCondition).
"""

from collections.abc import Iterator, Sequence
from math import sqrt
from typing import Final, NamedTuple

from core.gangs.unit_status import PlacedBy, SchedulingStatus, UnitStatus
from core.mirror.cluster import ClusterMirror
from core.objects.groups import SchedulingGroup
from core.objects.pod import Pod

_MAX_BACKOFF: Final = 10.0
"""Seconds: podMaxBackoffSeconds, unless the configuration of kube-scheduler has another value."""


class _Members(NamedTuple):
    """The members of a group by state."""

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
    """Return the state of a group, and why it waits."""
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
    said = str(max(failed, key=lambda each: each.since))
    if not (members.pending and mirror.rules.groups_queued):
        return said
    longest = _MAX_BACKOFF * sqrt(len(members.pending))
    return f"{said}; kube-scheduler tries it again, with a backoff of at most {longest:.0f} s"


def _list(values: Sequence[object]) -> str:
    *others, last = map(str, values)
    return f"{', '.join(others)} and {last}"
