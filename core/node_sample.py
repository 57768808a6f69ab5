"""How many of the fitting nodes are passed on for scoring, and which ones.

Source: k8s.io/kubernetes v1.36 pkg/scheduler/schedule_one.go (numFeasibleNodesToFind, nextStartNodeIndex).

kube-scheduler normally stops filtering at a sample, before it calls extenders. If it leaves a hard rule to an extender,
it must send all nodes (percentageOfNodesToScore: 100), and then it scores all that fit. A sample after the extender's
filter avoids this cost, and the pod fits every node in the sample.
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
"""The percentage that depends on the number of nodes: 50, less 1 for each 125 nodes."""
ALL: Final = 100


def nodes_to_score(percentage: int, nodes: int) -> int:
    """Return how many fitting nodes are enough in a cluster of `nodes` nodes."""
    if percentage == ADAPTIVE:
        percentage = max(50 - nodes // 125, _MIN_PERCENTAGE)
    return max(nodes * percentage // 100, _MIN_FEASIBLE_NODES)


class NodeSample:
    """Samples nodes: the best ones by the scores of the profile. Ties are broken in rotation."""

    def __init__(self, percentage: int) -> None:
        """Sample `percentage` of the cluster's nodes, 0 (ADAPTIVE) to 100 (ALL), but at least 100 nodes."""
        self._percentage = percentage

    def of(  # noqa: PLR0913  # an evaluation with its nodes, and where the rotation is
        self, profile: Profile, evaluation: Evaluation, batch: NodeBatch, fitting: IntpArray, *, nodes: int, start: int
    ) -> IntpArray:
        """Return a sample of the positions `fitting`, in the order of the batch. `nodes` is the cluster's size.

        `start` is where the rotation begins. The next sample begins `len(sample)` later.
        """
        wanted = nodes_to_score(self._percentage, nodes)
        if self._percentage == ALL or len(fitting) <= wanted:
            return fitting
        turned = np.roll(fitting, -(start % len(fitting)))
        scores = score_nodes(profile, evaluation, batch.part(turned))
        best = np.argsort(-scores, kind="stable")[:wanted]
        return np.sort(turned[best])
