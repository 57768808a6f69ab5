"""Which pods matter more.

Source: k8s.io/kubernetes v1.34 pkg/scheduler/util/utils.go (MoreImportantPod, GetPodStartTime,
GetEarliestPodStartTime).
"""

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from core.objects.pod import Pod

StartTime: TypeAlias = tuple[bool, str]


def start_time(pod: Pod) -> StartTime:
    """Return when a pod started, to be compared: one that has not started is later than all that have.

    Upstream takes the present time for it, so that of two such pods either may come first; here they are equal.
    """
    return not pod.start_time, pod.start_time


def most_important_first(pods: Iterable[Pod]) -> list[Pod]:
    """Sort by priority, the highest first, then by start time, the oldest first; those that are equal stay in order."""
    return sorted(pods, key=lambda pod: (-pod.priority, start_time(pod)))


def earliest_start_time(pods: Sequence[Pod]) -> StartTime:
    """Return the earliest start time of those that have the highest priority; there must be a pod."""
    highest = max(pod.priority for pod in pods)
    return min(start_time(pod) for pod in pods if pod.priority == highest)
