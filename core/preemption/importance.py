"""The order of pods by importance.

Source: k8s.io/kubernetes v1.34 pkg/scheduler/util/utils.go (MoreImportantPod, GetPodStartTime,
GetEarliestPodStartTime).
"""

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from core.objects.pod import Pod

StartTime: TypeAlias = tuple[bool, str]


def start_time(pod: Pod) -> StartTime:
    """Return a sort key for the start time of a pod. A pod that has not started sorts after all that have.

    Upstream uses the present time for such a pod, so the order of two of them is arbitrary. Here they are equal.
    """
    return not pod.start_time, pod.start_time


def most_important_first(pods: Iterable[Pod]) -> list[Pod]:
    """Sort by priority, highest first, then by start time, oldest first. The sort is stable."""
    return sorted(pods, key=lambda pod: (-pod.priority, start_time(pod)))


def earliest_start_time(pods: Sequence[Pod]) -> StartTime:
    """Return the earliest start time among the pods with the highest priority. `pods` must not be empty."""
    highest = max(pod.priority for pod in pods)
    return min(start_time(pod) for pod in pods if pod.priority == highest)
