"""How many of the nodes that fit are passed on to be scored, and which.

Source: k8s.io/kubernetes v1.36 pkg/scheduler/schedule_one.go (numFeasibleNodesToFind, nextStartNodeIndex).

kube-scheduler ends its own filtering at a sample, before it asks extenders; one that leaves a hard rule to an extender
has to show it all nodes (percentageOfNodesToScore: 100), and then scores all that fit. Taken behind the extender's
filter, a sample costs no node that fits its place: the pod fits on every node of it.
"""

from typing import Final

import numpy as np

from core.framework.evaluation import Evaluation
from core.mirror.node_info import NodeBatch
from core.mirror.topology import IntpArray
from core.profile import Profile
from core.scheduling_cycle import score_nodes

_MIN_FEASIBLE_NODES: Final = 100
_MIN_PERCENTAGE: Final = 5

ADAPTIVE: Final = 0
"""The percentage that follows the number of nodes: half of them, less one percent for each 125 nodes."""
ALL: Final = 100


def nodes_to_score(percentage: int, nodes: int) -> int:
    """Return how many nodes that fit are enough, in a cluster of so many."""
    if percentage == ADAPTIVE:
        percentage = max(50 - nodes // 125, _MIN_PERCENTAGE)
    return max(nodes * percentage // 100, _MIN_FEASIBLE_NODES)


class NodeSample:
    """Takes samples: the best by the scores of the profile, and among equals not always the same ones."""

    def __init__(self, percentage: int) -> None:
        """Take `percentage` of a cluster's nodes, 0 (ADAPTIVE) to 100 (ALL); never fewer than 100."""
        self._percentage = percentage
        self._next_start = 0

    def of(
        self, profile: Profile, evaluation: Evaluation, batch: NodeBatch, fitting: IntpArray, nodes: int
    ) -> IntpArray:
        """Return the positions to pass on, in the order of the batch, of those that fit; `nodes` has the cluster."""
        wanted = nodes_to_score(self._percentage, nodes)
        if self._percentage == ALL or len(fitting) <= wanted:
            return fitting
        start = self._next_start % len(fitting)
        self._next_start = start + wanted
        turned = np.roll(fitting, -start)
        scores = score_nodes(profile, evaluation, batch.part(turned))
        best = np.argsort(-scores, kind="stable")[:wanted]
        return np.sort(turned[best])
