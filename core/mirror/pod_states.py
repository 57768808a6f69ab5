"""The states of a pod in the mirror, and the transitions that are worth reporting."""

from enum import Enum

import msgspec


class PodState(Enum):
    """The state of a pod in the mirror. ClusterMirror has the diagram."""

    INITIAL = "Initial"
    """Not in the mirror."""
    ASSUMED = "Assumed"
    """Counted on the node that was decided for it. The watch has not shown it there yet."""
    ADDED = "Added"
    """Shown on its node by the watch."""
    EXPIRED = "Expired"
    """Not in the mirror: it was assumed, and the watch did not confirm it in time."""
    DELETED = "Deleted"
    """Not in the mirror: it was deleted, or is Succeeded or Failed."""


class PodStateError(Exception):
    """The operation is not possible in the pod's present state. The pod was not changed."""


class PodTransition(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A transition, caused by an event, that is worth reporting.

    - Assumed -> Added: confirmed. It is a *mismatch* if the nodes differ.
    - Added -> Added: the pod *moved*, which no API server allows.
    - Assumed -> Deleted: the pod was deleted before the watch showed it on its node.
    - Initial -> Deleted: an assigned pod was deleted that was not in the mirror.
    """

    uid: str
    pod: str
    """NAMESPACE/NAME"""
    from_state: PodState
    to_state: PodState
    from_node: str = ""
    """The node in the mirror before. Empty for none."""
    to_node: str = ""
    """The node in the mirror now. Empty for none."""


class PodStateCounts:
    """Number of transitions of each kind since the mirror was created."""

    __slots__ = (
        "assumed",
        "confirmed",
        "deleted_while_assumed",
        "expired",
        "forgotten",
        "mismatches",
        "moves",
        "unknown_deletes",
    )

    def __init__(self) -> None:
        self.assumed = 0
        self.confirmed = 0  # Assumed -> Added on the assumed node
        self.mismatches = 0  # Assumed -> Added on another node
        self.forgotten = 0
        self.expired = 0
        self.deleted_while_assumed = 0
        self.moves = 0  # Added on one node -> Added on another
        self.unknown_deletes = 0  # deletions of assigned pods that were not in the mirror
