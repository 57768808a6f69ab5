"""The response to how many more pods fit."""

from collections.abc import Sequence

import msgspec

from app.simulation.assumptions import Assumptions
from core.simulation.capacity import Capacity


class CapacityResponse(msgspec.Struct, frozen=True):
    """How many more pods fit, after those that are pending now."""

    of: Sequence[str]
    """What the replicas are of: KIND NAMESPACE/NAME. Empty: only the pending pods are asked about."""
    requested: int | None
    """How many were asked for. None: as many as fit."""
    enough: bool
    """Whether at least that many fit in every order; without a number, whether one does; without replicas, whether all
    pending pods do."""
    capacity: Capacity
    assumed: Assumptions

    @property
    def pending(self) -> int:
        """How many pods are pending, with those whose names are hidden."""
        return self.capacity.pending_placed + len(self.capacity.pending_unplaced) + self.assumed.left_out


def capacity_response(
    of: Sequence[str], requested: int | None, found: Capacity, assumed: Assumptions
) -> CapacityResponse:
    """Return the response."""
    enough = found.least >= (1 if requested is None else requested) if of else not found.pending_unplaced
    return CapacityResponse(of, requested, enough, found, assumed)
