"""Trials of remedies: the same plugins judge the changed pod in the supposed cluster."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from core.diagnosis.diagnosis import Diagnosis
from core.diagnosis.remedies.remedy import Step
from core.diagnosis.remedies.supposing import changed_pod, suppose
from core.framework.evaluation import FreshEvaluation
from core.mirror.what_if import WhatIfError
from core.mirror.work import WorkLimitError
from core.scheduling_cycle import filter_nodes

MAX_TRIALS: Final = 48
"""How many evaluations one search may make. Most judge one node, and take about 0.3 ms."""
MAX_UNITS: Final = 30_000_000
"""Units of work (core/mirror/work.py) for one search. Ordinary pods are charged almost none."""


class Trials:
    """Makes trials, and counts how many one search may still make. Stale after the next event."""

    def __init__(self, decision: Diagnosis) -> None:
        self._decision: Final = decision
        self._pod: Final = decision.mirror.counted(decision.pod)
        self._everywhere: Final = decision.batch.part(decision.known)  # no step changes the slot of these nodes
        self._left = MAX_TRIALS
        self._units = MAX_UNITS

    @property
    def are_left(self) -> bool:
        """Whether another trial may be made."""
        return self._left > 0 and self._units > 0

    def fitting(self, steps: Sequence[Step], node: str | None = None) -> str | None:
        """Return a node on which the pod fits after the steps: `node`, or else the first known node of the decision.

        Returns None if there is no such node, or if the steps cannot be supposed. Also returns None if the changed pod
        takes too much work, or if no trials are left.
        """
        if not self.are_left:
            return None
        self._left -= 1
        mirror = self._decision.mirror
        with mirror.work.apart(), mirror.suppose() as supposed:
            try:
                suppose(mirror, supposed, steps)
                batch = self._everywhere if node is None else mirror.batch([node])
                evaluation = FreshEvaluation(mirror, changed_pod(self._pod, steps))
                verdicts = filter_nodes(self._decision.profile, evaluation, batch)
            except (WhatIfError, WorkLimitError):
                return None
            finally:
                self._units -= mirror.work.spent
        fitting = np.flatnonzero(verdicts.codes == 0)
        return batch.names[int(fitting[0])] if len(fitting) else None
