"""On how many nodes the victims are looked for.

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
    """Return how many candidates are enough to choose from, of so many nodes on which preemption might help."""
    return min(max(nodes * _MIN_CANDIDATE_NODES_PERCENTAGE // 100, _MIN_CANDIDATE_NODES_ABSOLUTE), nodes)


def are_enough(candidates: Mapping[str, Victims], wanted: int) -> bool:
    """Return whether the search may end: enough nodes are there, and one violates no PodDisruptionBudget."""
    return len(candidates) >= wanted and any(not each.pdb_violations for each in candidates.values())
