"""The result of one request to a verb: its response, and the data for metrics, logs and traces."""

from enum import Enum
from typing import Final, NamedTuple, TypeAlias

import msgspec

from app.objects.limits import Body
from app.verbs.binding.binding_outcome import BindingResult
from app.verbs.preempt_outcome import PreemptResult
from core.objects.pod import Pod


class VerbOutcome(Enum):
    """How a request ended. Also the values of the label `outcome`, and in logs."""

    FIT = "fit"
    """`filter` passed on at least one node; for other verbs: it was done."""
    NO_FIT = "no_fit"
    """`filter` or `preempt` left no node, or `bind` found a conflict."""
    BAD_REQUEST = "bad_request"
    """The request could not be read."""
    TOO_MUCH_WORK = "too_much_work"
    """Refused, as the pod takes more work than `max_work` allows."""
    DOUBTED = "doubted"
    """`filter` answered an Error as the watch may be late; see app/verbs/nominations.py, and Decider."""
    STALE = "stale"
    """Refused, as the mirror cannot be trusted."""
    SHED = "shed"
    """Turned away: past the deadline, or past the bounds of the queue."""
    BYPASSED = "bypassed"
    """Passed untouched, as the settings want it for that pod."""
    REFUSED = "refused"
    """`filter` cannot decide for that pod; the `Error` names the remedy."""
    NOT_LEADING = "not_leading"
    """Refused, as another replica leads."""
    FAILED = "failed"
    """`bind` or `preempt` could not be done: an error of the API server, a timeout."""
    INTERNAL_ERROR = "internal_error"
    """A fault in Kindred, which is in the log."""

    # There is one object for each, and Enum's own hash is a function in Python, called twice for each request counted.
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

VerbResult: TypeAlias = BindingResult | PreemptResult
"""How a request to `bind` or `preempt` ended, finer than its outcome."""


class VerbResponse(msgspec.Struct, frozen=True, gc=False):
    """The body of a response, with data about it.

    `source` is where it is from, see Evaluation.source; empty for an error. A `doubtful` response may be another one in
    a moment, see Nominations. `error` is the text of its `Error`. `result` is the outcome of `bind` and `preempt`, if
    they were reached. `unknown_pod` has to be looked up before it can be decided for, see Decider.
    """

    body: bytes
    source: str = ""
    doubtful: bool = False
    outcome: VerbOutcome = VerbOutcome.FIT
    asked: Asked = NOT_KNOWN
    error: str = ""
    result: VerbResult | None = None
    unknown_pod: Pod | None = None


class Observation(NamedTuple):
    """One request, once its response is written."""

    verb: str
    outcome: VerbOutcome
    seconds: float
    """From the complete request until the response, waiting included."""
    waited: float
    """Of these, in the queue."""
    request_bytes: int
    response_bytes: int
    asked: Asked
    source: str
    """As the header Kindred-Equivalence: `hit HASH`, `none` ...; empty without a cache."""
    error: str
    """The `Error` of the response; empty if it had none."""
    stale: str
    """Why the mirror may be behind, where it was answered all the same; else empty."""
    traceparent: str = ""
    """The header of that name, by which a caller that is traced names its span (W3C Trace Context); else empty."""
    request: Body = b""
    """The body of the request. Do not keep it: it may be 64 MB."""
    response: bytes = b""
    """The body of the response, likewise."""
    result: VerbResult | None = None
    """Of `bind` and `preempt`, where the verb itself answered."""
