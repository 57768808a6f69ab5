"""The outcome of a binding."""

from enum import Enum

import msgspec


class BindingResult(Enum):
    """The result of a binding. Also the values of the metric's label."""

    BOUND = "bound"
    """This call bound the pod."""
    ALREADY_BOUND = "already_bound"
    """The pod was bound to this node already, by an earlier call or by a call whose response was lost."""
    CONFLICT = "conflict"
    """By the present mirror, a hard rule rejects the pod on the node."""
    BOUND_ELSEWHERE = "bound_elsewhere"
    """The pod is bound to another node, or is being bound there."""
    REFUSED = "refused"
    """The API server rejects the binding: no such pod, another uid, pod being deleted, forbidden."""
    UNREACHABLE = "unreachable"
    """The API server was unreachable, or failed. The pod is not bound."""
    UNKNOWN = "unknown"
    """The request was sent without a response. The API server may have bound the pod."""
    NOT_LEADING = "not_leading"
    """Another replica leads, and nothing was posted."""
    OFF = "off"
    """The verb is off, and nothing was read or posted."""
    INVALID = "invalid"
    """The arguments could not be read."""


class BindingOutcome(msgspec.Struct, frozen=True, gc=False):
    """A result with its reason. The reason is empty if the pod is bound to the node.

    The reason names nothing that the request does not name, because the caller may have guessed a uid. `detail`, for
    the log, may.
    """

    result: BindingResult
    error: str = ""
    detail: str = ""
