"""The result of one request to a verb: its response, and the data for metrics and logs."""

from enum import Enum
from typing import Final, NamedTuple

import msgspec

from app.objects.limits import Body
from core.objects.pod import Pod

# The outcome of a binding.


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


class VerbOutcome(Enum):
    """The outcome of a request. Also the values of the label `outcome`, and in logs."""

    FIT = "fit"
    """`filter` passed on at least one node, or another verb succeeded."""
    NO_FIT = "no_fit"
    """`filter` or `preempt` left no node, or `bind` found a conflict, or is off."""
    BAD_REQUEST = "bad_request"
    """The request could not be read."""
    TOO_MUCH_WORK = "too_much_work"
    """Rejected: the pod takes more work than Kindred allows."""
    DOUBTED = "doubted"
    """`filter` returned an Error because the watch may be late. See app/verbs/effects.py and Decider."""
    STALE = "stale"
    """Rejected: the mirror is stale."""
    SHED = "shed"
    """Shed: past the deadline, or past the limits of the queue."""
    BYPASSED = "bypassed"
    """Passed untouched, by the settings for that pod."""
    REFUSED = "refused"
    """`filter` cannot decide for that pod. The `Error` names the remedy."""
    NOT_LEADING = "not_leading"
    """Rejected: another replica leads."""
    FAILED = "failed"
    """`bind` or `preempt` failed: an error of the API server, a timeout."""
    INTERNAL_ERROR = "internal_error"
    """A bug in Kindred. The log has the error."""

    # Each member is one object. Enum's own hash is a Python function that would run twice for each counted request.
    __hash__ = object.__hash__


class Asked(NamedTuple):
    """Data about a request besides its outcome. Fields that do not apply are empty."""

    pod: str = ""
    """namespace/name"""
    uid: str = ""
    nodes: int = 0
    passed: int = 0
    """Nodes that `filter` passed on, that `prioritize` scored, or that `preempt` offered."""


NOT_KNOWN: Final = Asked()


class VerbResponse(msgspec.Struct, frozen=True, gc=False):
    """The body of a response, with data about it.

    `source` is the source of the results, see Evaluation.source, and empty for an error. A `doubtful` response may
    change within a moment, see Nominations. `error` is the text of its `Error`. `result` is the result of `bind`,
    if the verb ran. `unknown_pod` must be seen at the API server before the request can have its effect, see PodLookup.
    """

    body: bytes
    source: str = ""
    doubtful: bool = False
    outcome: VerbOutcome = VerbOutcome.FIT
    asked: Asked = NOT_KNOWN
    error: str = ""
    result: BindingResult | None = None
    unknown_pod: Pod | None = None


class Observation(NamedTuple):
    """One request, after its response was written."""

    verb: str
    outcome: VerbOutcome
    seconds: float
    """Seconds from the complete request to the response, with the time in the queue."""
    waited: float
    """Seconds of these in the queue."""
    request_bytes: int
    response_bytes: int
    asked: Asked
    source: str
    """The value of the header Kindred-Equivalence: `hit HASH`, `none` ... Empty without a cache."""
    error: str
    """The `Error` of the response. Empty without one."""
    stale: str
    """Why the mirror was stale, if there was a result nevertheless. Else empty."""
    request: Body = b""
    """The body of the request. Do not keep it: it may be 64 MB."""
    response: bytes = b""
    """The body of the response. Do not keep it either."""
    result: BindingResult | None = None
    """The result of `bind`, if the verb ran."""
    dry_run: bool = False
    """Whether the request could have no effect."""
