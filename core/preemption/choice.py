"""The choice of the node where preemption does the least harm.

Source: k8s.io/kubernetes v1.34 pkg/scheduler/framework/preemption/preemption.go (pickOneNodeForPreemption).
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from core.preemption.importance import earliest_start_time
from core.preemption.victims import Victims

_LOWEST_PRIORITY: Final = -(2**31)
_HARM: Final[tuple[Callable[[Victims], Any], ...]] = (
    lambda victims: victims.pdb_violations,
    lambda victims: victims.pods[0].priority,
    # No summand is negative. Otherwise many victims with a negative priority would have a lower sum than few.
    lambda victims: sum(pod.priority - _LOWEST_PRIORITY for pod in victims.pods),
    lambda victims: len(victims.pods),
)


def best_nodes(candidates: Mapping[str, Victims]) -> list[str]:
    """Return the nodes that upstream chooses among at random (it loops over a map), in the order of the candidates.

    These nodes have the fewest violations of PodDisruptionBudgets. Ties are broken in turn by the least important first
    victim, the lowest sum of priorities, the fewest victims, and the latest earliest start time of the most important
    victims.
    """
    best = list(candidates)
    for harm in _HARM:
        least = min((harm(candidates[name]) for name in best), default=None)
        best = [name for name in best if harm(candidates[name]) == least]
    latest = max((earliest_start_time(candidates[name].pods) for name in best), default=None)
    return [name for name in best if earliest_start_time(candidates[name].pods) == latest]
