"""A request to a verb, its response, the data of both for metrics and logs, and the pods of recent requests."""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Final, NamedTuple

import msgspec
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope

from app.objects.decode import Body
from app.verbs.admission import Admission
from core.objects.pod import Pod


class Decision(Enum):
    """The outcome of a decision. Also the values of the metric's label."""

    ASSUMED = "assumed"
    """The pod is assumed on the returned node."""
    REPLACED = "replaced"
    """The same, for a pod that was assumed already: its earlier decision failed."""
    NOT_ASSUMED = "not_assumed"
    """The response has a node, but the pod is not assumed there."""
    NO_FIT = "no_fit"
    """No node fits."""
    REJECTED = "refused"
    """The response has an `Error`."""
    GANG_WAITS = "gang_waits"
    """No node is returned, because a member of the pod's group is missing or does not fit."""
    __hash__ = object.__hash__  # each member is one object, and Enum's own hash is a Python function


class BindingResult(Enum):
    """The result of a binding. Also the values of the metric's label."""

    BOUND = "bound"
    """This call bound the pod."""
    ALREADY_BOUND = "already_bound"
    """The pod was bound to this node already, by an earlier call or by a call whose response was lost."""
    CONFLICT = "conflict"
    """By the present mirror, a hard rule rejects the pod on the node."""
    TOO_MUCH_WORK = "too_much_work"
    """The pod takes more work than Kindred allows."""
    BOUND_ELSEWHERE = "bound_elsewhere"
    """The pod is bound to another node, or is being bound there."""
    REJECTED = "refused"
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
    RETRIED = "doubted"
    """`filter` returned an Error because the watch may be late. See app/verbs/effects.py and Decider."""
    STALE = "stale"
    """Rejected: the mirror is stale."""
    SHED = "shed"
    """Shed: past the deadline, or past the limits of the queue."""
    BYPASSED = "bypassed"
    """Passed untouched, by the settings for that pod."""
    REJECTED = "refused"
    """`filter` cannot decide for that pod. The `Error` names the remedy."""
    NOT_LEADING = "not_leading"
    """Rejected: another replica leads."""
    FAILED = "failed"
    """`bind` or `preempt` failed: an error of the API server, a timeout."""
    INTERNAL_ERROR = "internal_error"
    """A bug in Kindred. The log has the error."""

    # Each member is one object. Enum's own hash is a Python function that would run twice for each counted request.
    __hash__ = object.__hash__


class VerbResponse(msgspec.Struct, frozen=True, gc=False):
    """The body of a response, with data about it. Fields that do not apply are empty."""

    body: bytes
    source: str = ""
    """The source of the results, see Evaluation.source: `hit HASH`, `none` ... Empty for an error, or with no cache."""
    outcome: VerbOutcome = VerbOutcome.FIT
    pod: str = ""
    """namespace/name"""
    uid: str = ""
    nodes: int = 0
    passed: int = 0
    """Nodes that `filter` passed on, that `prioritize` scored, or that `preempt` offered."""
    error: str = ""
    """The text of its `Error`."""
    result: BindingResult | None = None
    """The result of `bind`, if the verb ran."""
    retryable: bool = False
    """Whether the response may change within a moment, see Nominations."""
    last_look: Decision | None = None
    """The outcome of a decision, which counts only if the response does not change."""
    unknown_pod: Pod | None = None
    """A pod that must be seen at the API server before the request can have its effect, see PodLookup."""


_NO_RESPONSE: Final = VerbResponse(b"")
OPTION: Final = b"kindred-"
"""The names of headers with options begin with it."""
_CACHE: Final = b"kindred-cache"
"""With the value `off`: a header of a request for a fresh evaluation, to see whether the cache makes a difference."""
_DRY_RUN: Final = b"kindred-dry-run"
"""The header of a request without effects, with any value but `false`."""


class LargeBodyError(Exception):
    """A body that is larger than allowed."""


class Request(msgspec.Struct, gc=False):
    """A request to a verb, from its arrival to its line in the log."""

    body: Body = b""
    """The bytes that were read, until `release`. Do not keep them: they may be 64 MB."""
    cached: bool = True
    """Whether results may be taken from the equivalence cache, and kept there."""
    dry_run: bool = False
    """Whether the request may have no effect. Such a request is not `cached`."""
    verb: str = ""
    size: int = 0
    """Bytes of the body, which may have been released."""
    buffered: int = 0
    """Bytes of these that the budget of all requests counts."""
    arrived: float = 0.0
    """Time at which the request was complete, by the clock of the admission."""
    waited: float = 0.0
    """Seconds in the queue."""
    is_fresh: bool = True
    """Whether the mirror was neither stale nor incomplete when the request had its turn."""
    stale: str = ""
    """Why the mirror was stale, if there was a result nevertheless. Else empty."""
    has_left: Callable[[], bool] = lambda: False
    """Returns whether the client has disconnected, once its response has to wait. Before that, nobody knows."""
    response: VerbResponse = _NO_RESPONSE
    seconds: float = 0.0
    """Seconds from the complete request to the response, with the time in the queue."""

    async def read(self, scope: Scope, receive: Receive, most: int, budget: Admission | None = None) -> bool:
        """Read the options in the headers, and the body, by ASGI. Return False if the budget is spent: nothing is held.

        `budget` counts the bytes that all requests hold, and limits them. Raises ClientDisconnect, and LargeBodyError
        for a body of more than `most` bytes, before it is read if its length is known.
        """
        for name, value in scope["headers"]:
            if name == b"content-length" and int(value) > most:
                raise LargeBodyError
            if name.startswith(OPTION):
                self._take_option(name, value)
        fits = more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            piece = message.get("body", b"")
            self.size += len(piece)
            if self.size > most:
                raise LargeBodyError
            fits = fits and self._hold(piece, budget)
            more = message.get("more_body", False)
        return fits

    def release(self, budget: Admission) -> None:
        """Release the body."""
        if self.buffered:
            budget.release(self.buffered)
            self.buffered = 0
        self.body = b""

    def _take_option(self, name: bytes, value: bytes) -> None:
        if name == _DRY_RUN and value.strip().lower() != b"false":
            self.dry_run, self.cached = True, False
        elif name == _CACHE and value == b"off":
            self.cached = False

    def _hold(self, piece: bytes, budget: Admission | None) -> bool:
        if budget is not None:
            self.buffered += len(piece)
            if not budget.buffer(len(piece)):
                self.release(budget)
                return False
        # Not a list of pieces: a body in pieces of one byte would take 40 times its size.
        if not self.body:
            self.body = piece
        elif isinstance(self.body, bytearray):
            self.body += piece
        else:
            self.body = bytearray(self.body) + piece
        return True


# The pods of recent requests.
#
# `bind` gets only the name of a pod. `prioritize` gets the same bytes as the `filter` before it.

_MAX_PODS: Final = 4096
_MAX_BYTES: Final = 16 * 1024 * 1024  # of JSON, which may take 20 times as much memory when decoded
_ORDINARY_BYTES: Final = 16 * 1024
_WEIGHT: Final = 8
"""Factor for the bytes of a pod that is larger than ordinary pods. Without it, a few megabytes of odd pods would take
hundreds of megabytes when decoded."""


class _Written(NamedTuple):
    pod: Pod
    raw: bytes


class RecentPods:
    """uid -> the pod as the scheduler last sent it. The oldest entries are dropped."""

    def __init__(self) -> None:
        self._pods: OrderedDict[str, _Written] = OrderedDict()
        self._bytes = 0
        self._last: _Written | None = None

    def __iter__(self) -> Iterator[Pod]:
        """Yield the pods, the latest request first."""
        yield from [written.pod for written in reversed(self._pods.values())]

    def add(self, pod: Pod, raw: bytes) -> None:
        """Add a pod with its JSON."""
        before = self._pods.pop(pod.uid, None)
        self._last = self._pods[pod.uid] = _Written(pod, raw)
        self._bytes += _weight(raw) - (_weight(before.raw) if before is not None else 0)
        while len(self._pods) > _MAX_PODS or self._bytes > _MAX_BYTES:
            self._bytes -= _weight(self._pods.popitem(last=False)[1].raw)

    def get(self, uid: str) -> Pod | None:
        """Return a pod, if it was in a recent request."""
        found = self._pods.get(uid)
        return found.pod if found is not None else None

    def json_of(self, uid: str) -> bytes:
        """Return the JSON of a pod from a recent request. Empty if there was none."""
        found = self._pods.get(uid)
        return found.raw if found is not None else b""

    def by_json(self, raw: bytes) -> Pod | None:
        """Return the pod that was added last, if its JSON was the same, byte for byte."""
        return self._last.pod if self._last is not None and self._last.raw == raw else None


def _weight(raw: bytes) -> int:
    return len(raw) if len(raw) <= _ORDINARY_BYTES else _WEIGHT * len(raw)
