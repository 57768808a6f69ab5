"""The response to which nodes could go."""

from collections.abc import Mapping, Sequence

import msgspec

from app.simulation.assumptions import Assumptions
from core.simulation.removal import NodeRemoval, Removal


class RemovalResponse(msgspec.Struct, frozen=True):
    """Which nodes could go, each by itself and together."""

    nodes: Sequence[NodeRemoval]
    """In the order of the names."""
    together: Sequence[str]
    """Nodes that could all go at once, in every order, as far as a greedy search found them."""
    saved: Mapping[str, int]
    """cpu in millicores and memory in bytes, which these nodes offer."""
    assumed: Assumptions


def removal_response(removal: Removal, assumed: Assumptions) -> RemovalResponse:
    """Return the response."""
    return RemovalResponse(removal.nodes, removal.together, removal.saved, assumed)
