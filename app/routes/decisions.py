"""The last decisions, to be looked at, asked again, and taken as conformance cases.

For the admin port: they show pods as they were sent, and a case shows the whole cluster.
"""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from http import HTTPStatus
from typing import Annotated, Final, TypeAlias

import msgspec
from fastapi import APIRouter, HTTPException, Path, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from app.conformance_case.case import CaseArgs, conformance_case, encoded_pod
from app.conformance_case.encode import NotExpressibleError
from app.decisions import Decision, Decisions
from app.observation import Outcome
from app.replay import NotReplayableError, Replayer
from app.routes.chunks import in_chunks
from app.watch.decode import NULL
from core.mirror.cluster import ClusterMirror

MOST_SHOWN: Final = 1000
Turn: TypeAlias = Callable[[], AbstractAsyncContextManager[None]]
_JSON: Final = "application/json"
_Number = Annotated[int, Path(ge=1)]
_Limit = Annotated[int, Query(ge=0, le=MOST_SHOWN)]


class JsonLines(Response):
    """JSON, a line for each value."""

    media_type = "application/x-ndjson"


class DecisionsQuery(BaseModel):
    """Which decisions are asked for."""

    model_config = ConfigDict(extra="forbid")

    pod: Annotated[list[Annotated[str, Field(min_length=1)]], Field(max_length=1)] = []
    """Uid or NAMESPACE/NAME of a pod."""
    limit: Annotated[int, Field(ge=0, le=MOST_SHOWN)] = 100
    """How many, the latest first."""


class DecisionSummary(msgspec.Struct, frozen=True):
    """One decision. Members that do not apply are empty."""

    id: int
    at: str
    """When it was answered, RFC 3339."""
    verb: str
    outcome: Outcome
    pod: str
    """NAMESPACE/NAME"""
    uid: str
    nodes: int
    passed: int
    seconds: float
    """From when the request was complete, waiting included."""
    waited: float
    generation: int
    source: str
    """As the header Kindred-Equivalence: `hit HASH`, `none` ..."""
    error: str
    stale: str
    """Why the mirror may have been behind."""
    request_bytes: int
    response_bytes: int
    pod_hash: str
    """Hash of the pod's JSON as it was sent."""
    arguments_hash: str
    """Hash of the whole request; empty where it was too large to be kept."""


class LastDecisions(msgspec.Struct, frozen=True):
    """The latest first."""

    noted: int
    """Since the start."""
    kept: int
    decisions: list[DecisionSummary]


class DecisionDetail(msgspec.Struct, frozen=True):
    """One decision with what was said."""

    decision: DecisionSummary
    pod_sent: msgspec.Raw
    """As the scheduler sent it; null where that is not known."""
    request: msgspec.Raw
    """The whole of it; null where it was too large to be kept, or no JSON."""
    answer: msgspec.Raw
    """Null where it was too large to be kept."""


def decisions_router(
    mirror: ClusterMirror, decisions: Decisions, replayer: Replayer, args: CaseArgs, turn: Turn
) -> APIRouter:
    """Return the routes of the admin port; `args` are those of InterPodAffinity in the cases.

    What takes as long as a few questions has its `turn`; see Explainer.turn.
    """
    router = APIRouter()
    writing = asyncio.Lock()

    @router.get("/debug/decisions")
    async def show(query: Annotated[DecisionsQuery, Query()]) -> Response:
        latest = decisions.latest(query.pod[0] if query.pod else None)
        shown = [_summary(decision) for decision, _ in zip(latest, range(query.limit), strict=False)]
        return _answer(LastDecisions(decisions.noted, len(decisions), shown))

    @router.get("/debug/decisions/{number}")
    async def show_one(number: _Number) -> Response:
        decision = _found(decisions, number)
        sent = (decision.pod, decision.request, decision.response)
        return _answer(DecisionDetail(_summary(decision), *map(_as_sent, sent)))

    @router.post("/debug/decisions/{number}/replay")
    async def replay(number: _Number, limit: _Limit = 100) -> Response:
        try:
            async with turn():
                return _answer(replayer.replay(_found(decisions, number), limit))
        except NotReplayableError as error:
            raise HTTPException(HTTPStatus.CONFLICT, f"decision {number}: {error}") from None

    @router.get("/debug/decisions/{number}/case", response_class=JsonLines)
    async def write_case(number: _Number) -> Response:
        decision = _found(decisions, number)
        if writing.locked():  # each holds all of the text, and a large cluster's is 100 MB
            raise HTTPException(HTTPStatus.CONFLICT, "another case is being written")
        async with writing:
            line = await _case(decision, mirror, args, turn)
        headers = {"content-disposition": f'attachment; filename="decision-{number}.jsonl"'}
        return JsonLines(line, headers=headers)

    return router


def _found(decisions: Decisions, number: int) -> Decision:
    decision = decisions.get(number)
    if decision is None:
        never = number > decisions.noted
        raise HTTPException(
            HTTPStatus.NOT_FOUND, f"decision {number}: {'there was none yet' if never else 'not kept any more'}"
        )
    return decision


def _summary(decision: Decision) -> DecisionSummary:
    return DecisionSummary(
        id=decision.number,
        at=decision.answered_at,
        verb=decision.verb,
        outcome=decision.outcome,
        pod=decision.asked.pod,
        uid=decision.asked.uid,
        nodes=decision.asked.nodes,
        passed=decision.asked.passed,
        seconds=decision.seconds,
        waited=decision.waited,
        generation=decision.generation,
        source=decision.source,
        error=decision.error,
        stale=decision.stale,
        request_bytes=decision.request_bytes,
        response_bytes=decision.response_bytes,
        pod_hash=decision.pod_hash,
        arguments_hash=decision.arguments_hash,
    )


async def _case(decision: Decision, mirror: ClusterMirror, args: CaseArgs, turn: Turn) -> bytes:
    number = decision.number
    name = f"decision/{number}/{decision.asked.pod}"
    try:
        async with turn():
            held = mirror.get_pod(decision.asked.uid)
            if not decision.pod and held is None:
                raise HTTPException(HTTPStatus.CONFLICT, f"decision {number}: its pod is not known any more")
            pod = encoded_pod(held) if held is not None and not decision.pod else decision.pod
            case = conformance_case(name, mirror, pod, args, _note(decision, mirror))
        return b"".join([chunk async for chunk in in_chunks(case.pieces())])
    except NotExpressibleError as error:
        raise HTTPException(HTTPStatus.CONFLICT, f"decision {number}: no case can be made: {error}") from None


def _note(decision: Decision, mirror: ClusterMirror) -> str:
    return (
        f"{decision.verb} at {decision.answered_at}: {decision.outcome.value}, {decision.asked.passed} of "
        f"{decision.asked.nodes} nodes passed; asked at generation {decision.generation}, "
        f"the cluster as of generation {mirror.generation}"
    )


def _as_sent(body: bytes) -> msgspec.Raw:
    """Return JSON as it stands, but UTF-8 also where nobody has read it; null for what is no JSON."""
    try:
        return msgspec.json.decode(body.decode(errors="replace"), type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        return NULL


def _answer(told: object) -> Response:
    return Response(msgspec.json.encode(told), media_type=_JSON)
