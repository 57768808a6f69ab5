"""How many candidate nodes preemption looks for.

Source: k8s.io/kubernetes v1.36 pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go
(calculateNumCandidates, with the defaults of DefaultPreemptionArgs), and framework/preemption/preemption.go
(DryRunPreemption).
"""

from collections.abc import Mapping
from typing import Final

from core.preemption.victims import Victims

_MIN_CANDIDATE_NODES_PERCENTAGE: Final = 10
_MIN_CANDIDATE_NODES_ABSOLUTE: Final = 100


def candidates_wanted(nodes: int) -> int:
    """Return how many candidates are enough, if preemption might help on `nodes` nodes."""
    return min(max(nodes * _MIN_CANDIDATE_NODES_PERCENTAGE // 100, _MIN_CANDIDATE_NODES_ABSOLUTE), nodes)


def are_enough(candidates: Mapping[str, Victims], wanted: int) -> bool:
    """Return whether the search may end: there are enough candidates, and one violates no PodDisruptionBudget."""
    return len(candidates) >= wanted and any(not each.pdb_violations for each in candidates.values())
