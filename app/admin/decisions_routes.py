"""Routes that show the last decisions. Only on the admin port: a decision shows the pod that was sent."""

from http import HTTPStatus
from itertools import islice
from typing import Annotated, Any, Final

import msgspec
from fastapi import APIRouter, HTTPException, Path, Query, Response
from pydantic import Field

from app.admin.responses import AtMostOne, JsonResponse, StrictQuery
from app.explain.decisions import Decisions, RecordedDecision
from app.objects.decode import NULL
from app.objects.decode_containers import WireContainer
from app.process.long_work import LongWork
from app.verbs.request import VerbOutcome

MAX_LISTED: Final = 1000


class DecisionsQuery(StrictQuery):
    """The requested decisions."""

    pod: AtMostOne
    """Uid or NAMESPACE/NAME of a pod."""
    limit: Annotated[int, Field(ge=0, le=MAX_LISTED)] = 100
    """Number of decisions, the latest first."""


class DecisionSummary(msgspec.Struct, frozen=True):
    """One decision. Fields that do not apply are empty."""

    id: int
    at: str
    """Time of the response, RFC 3339."""
    verb: str
    outcome: VerbOutcome
    pod: str
    """NAMESPACE/NAME"""
    uid: str
    nodes: int
    passed: int
    seconds: float
    """Seconds from the complete request to the response, with the time in the queue."""
    waited: float
    generation: int
    source: str
    """The value of the header Kindred-Equivalence: `hit HASH`, `none` ..."""
    error: str
    stale: str
    """Why the mirror may have been stale."""
    request_bytes: int
    response_bytes: int
    pod_hash: str
    """Hash of the pod's JSON in the request."""
    arguments_hash: str
    """Hash of the whole request. Empty if the request was too large to keep."""
    kubernetes: str
    """Release of Kubernetes whose rules applied, `1.37`."""


class LastDecisions(msgspec.Struct, frozen=True):
    """The last decisions, the latest first."""

    noted: int
    """Number of decisions noted since the start."""
    kept: int
    decisions: list[DecisionSummary]


class DecisionDetail(msgspec.Struct, frozen=True):
    """One decision with its request and response. Of containers they have only what a rule reads."""

    decision: DecisionSummary
    pod_sent: msgspec.Raw
    """The pod in the scheduler's request. Null if the pod is unknown."""
    request: msgspec.Raw
    """The whole request. Null if it was too large to keep, or not JSON."""
    answer: msgspec.Raw
    """The response. Null if it was too large to keep."""


def decisions_router(decisions: Decisions, work: LongWork) -> APIRouter:
    """Return the routes."""
    router = APIRouter()

    @router.get("/debug/decisions")
    async def show(query: Annotated[DecisionsQuery, Query()]) -> Response:
        async with work.turn():
            noted, stored = decisions.noted, len(decisions)
            latest = decisions.latest(query.pod[0] if query.pod else None)
            rendered = await work.all_of(map(_summary, islice(latest, query.limit)))
        return JsonResponse(LastDecisions(noted, stored, rendered))

    @router.get("/debug/decisions/{number}")
    async def show_one(number: Annotated[int, Path(ge=1)]) -> Response:
        decision = decisions.get(number)
        if decision is None:
            why = "there was none yet" if number > decisions.noted else "not kept any more"
            raise HTTPException(HTTPStatus.NOT_FOUND, f"decision {number}: {why}")
        sent = (decision.pod_sent, decision.request, decision.response)
        return JsonResponse(DecisionDetail(_summary(decision), *map(_as_sent, sent)))

    return router


def _summary(decision: RecordedDecision) -> DecisionSummary:
    return msgspec.convert(decision, DecisionSummary, from_attributes=True)


_CONTAINERS: Final = frozenset({"containers", "initContainers", "ephemeralContainers"})
_READ: Final = frozenset(field.encode_name for field in msgspec.structs.fields(WireContainer))
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""An annotation with the whole manifest, containers included."""
_decoder: Final = msgspec.json.Decoder(Any, float_hook=lambda text: msgspec.Raw(text.encode()))


def _as_sent(body: bytes) -> msgspec.Raw:
    """Return JSON with what rules may read, as valid UTF-8. Null for a text that is not JSON.

    Environments and commands of containers may have secrets, which kube-scheduler sends with the pod.
    """
    try:
        return msgspec.Raw(msgspec.json.encode(_readable(_decoder.decode(body.decode(errors="replace")))))
    except (msgspec.DecodeError, RecursionError):
        return NULL


def _readable(value: Any) -> Any:  # noqa: ANN401  # JSON of any shape
    match value:
        case dict():
            return {
                key: _containers(of) if key in _CONTAINERS else _readable(of)
                for key, of in value.items()
                if key != _LAST_APPLIED
            }
        case list():
            return [*map(_readable, value)]
    return value


def _containers(value: Any) -> Any:  # noqa: ANN401  # JSON of any shape
    if value is None or isinstance(value, str):  # a label may have the name of the field
        return value
    each_of = value if isinstance(value, list) else ()
    return [{key: of for key, of in each.items() if key in _READ} for each in each_of if isinstance(each, dict)]
