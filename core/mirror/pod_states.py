"""The states of a pod in the mirror, their names, and the transitions that are worth reporting."""

from enum import Enum

import msgspec


class PodState(Enum):
    """Where a pod is in its life in the mirror; the diagram is ClusterMirror's."""

    INITIAL = "Initial"
    """Not in the mirror."""
    ASSUMED = "Assumed"
    """Counted on the node that was decided for it, not seen there in the watch yet."""
    ADDED = "Added"
    """Seen on its node in the watch."""
    EXPIRED = "Expired"
    """Not in the mirror: it was assumed, and the watch did not confirm it in time."""
    DELETED = "Deleted"
    """Not in the mirror: it was deleted, or is Succeeded or Failed."""


class PodStateError(Exception):
    """The operation is not possible in the pod's present state; nothing was changed."""


class PodTransition(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A transition by an event that is worth telling.

    - Assumed -> Added: confirmed; a *mismatch* where the nodes differ.
    - Added -> Added: the pod *moved*, which no API server lets happen.
    - Assumed -> Deleted: the pod is gone before the watch has shown it on its node.
    - Initial -> Deleted: the mirror did not know the assigned pod that was deleted.
    """

    uid: str
    pod: str
    """NAMESPACE/NAME"""
    from_state: PodState
    to_state: PodState
    from_node: str = ""
    """Where the mirror had it; empty if nowhere."""
    to_node: str = ""
    """Where the mirror has it now; empty if nowhere."""


class PodStateCounts:
    """How often pods went from one state to another, since the mirror was made."""

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
        self.confirmed = 0  # Assumed -> Added on the node that was assumed
        self.mismatches = 0  # Assumed -> Added on another node
        self.forgotten = 0
        self.expired = 0
        self.deleted_while_assumed = 0
        self.moves = 0  # Added on one node -> Added on another
        self.unknown_deletes = 0  # deletions of assigned pods that the mirror did not know
