"""The answer to how many more pods fit."""

from collections.abc import Sequence

import msgspec

from app.simulation.assumptions import Assumptions
from core.simulation.capacity import Capacity


class CapacityAnswer(msgspec.Struct, frozen=True):
    """How many more pods fit, after those that are pending now."""

    of: Sequence[str]
    """What the replicas are of: KIND NAMESPACE/NAME. Empty: only the pending pods are asked about."""
    asked: int | None
    """How many were asked for. None: as many as fit."""
    enough: bool
    """Whether at least that many fit in every order; without a number, whether one does; without replicas, whether all
    pending pods do."""
    capacity: Capacity
    assumed: Assumptions


def capacity_answer(of: Sequence[str], asked: int | None, found: Capacity, assumed: Assumptions) -> CapacityAnswer:
    """Return the answer."""
    enough = found.least >= (1 if asked is None else asked) if of else not found.pending_unplaced
    return CapacityAnswer(of, asked, enough, found, assumed)
