"""How a binding ended."""

from enum import Enum

import msgspec


class BindingResult(Enum):
    """The outcome of a binding; also the values of the metric's label."""

    BOUND = "bound"
    """By this call."""
    ALREADY_BOUND = "already_bound"
    """The pod was found bound to that very node, by an earlier call or one whose response was lost."""
    CONFLICT = "conflict"
    """A hard rule keeps the pod off the node, by the present mirror."""
    BOUND_ELSEWHERE = "bound_elsewhere"
    """The pod is bound to another node, or on its way there."""
    REFUSED = "refused"
    """The API server does not let it: no such pod, another uid, being deleted, forbidden."""
    UNREACHABLE = "unreachable"
    """The API server could not be asked, or has not done it; the pod is not bound."""
    UNKNOWN = "unknown"
    """The request was sent, and the API server may have carried it out."""
    NOT_LEADING = "not_leading"
    """Another replica leads, and nothing was posted."""
    INVALID = "invalid"
    """The arguments could not be read."""


class BindingOutcome(msgspec.Struct, frozen=True, gc=False):
    """A result, and why; no reason if the pod is bound to the node."""

    result: BindingResult
    error: str = ""
