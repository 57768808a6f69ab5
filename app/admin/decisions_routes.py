"""Routes that show the last decisions, evaluate them again, and export them as conformance cases.

Only on the admin port: a decision shows the pod that was sent, and a case shows the whole cluster.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from http import HTTPStatus
from itertools import islice
from typing import Annotated, Final
from weakref import ref

import msgspec
from fastapi import APIRouter, HTTPException, Path, Query, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import StreamingResponse

from app.admin.chunks import in_chunks
from app.admin.json_response import JsonResponse
from app.explain.conformance_case.case import CaseArgs, conformance_case, encoded_pod
from app.explain.conformance_case.encode import NotExpressibleError
from app.explain.decisions import Decisions, RecordedDecision
from app.explain.replay import NotReplayableError, Replayer
from app.long_work import LongWork
from app.objects.decode import NULL
from app.verbs.observation import VerbOutcome
from core.mirror.cluster import ClusterMirror

MAX_SHOWN: Final = 1000
_Number = Annotated[int, Path(ge=1)]
_Limit = Annotated[int, Query(ge=0, le=MAX_SHOWN)]


class JsonLines(Response):
    """JSON, one value a line."""

    media_type = "application/x-ndjson"


class DecisionsQuery(BaseModel):
    """The requested decisions."""

    model_config = ConfigDict(extra="forbid")

    pod: Annotated[list[Annotated[str, Field(min_length=1)]], Field(max_length=1)] = []
    """Uid or NAMESPACE/NAME of a pod."""
    limit: Annotated[int, Field(ge=0, le=MAX_SHOWN)] = 100
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
    kubernetes: str = ""
    """Release of Kubernetes whose rules applied, `1.37`."""


class LastDecisions(msgspec.Struct, frozen=True):
    """The last decisions, the latest first."""

    noted: int
    """Number of decisions noted since the start."""
    kept: int
    decisions: list[DecisionSummary]


class DecisionDetail(msgspec.Struct, frozen=True):
    """One decision with its request and response."""

    decision: DecisionSummary
    pod_sent: msgspec.Raw
    """The pod in the scheduler's request. Null if the pod is unknown."""
    request: msgspec.Raw
    """The whole request. Null if it was too large to keep, or not JSON."""
    answer: msgspec.Raw
    """The response. Null if it was too large to keep."""


class _Text:
    """The text of a case in chunks. Each chunk is released when it is sent."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = deque(chunks)
        self.size = sum(map(len, self._chunks))

    @property
    def sent(self) -> bool:
        """Whether every chunk was sent."""
        return not self._chunks

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while self._chunks:
            yield self._chunks.popleft()


class _Cases:
    """Writes cases, one at a time: the case of a large cluster has 100 MB of text.

    The text is complete before its first byte is sent. An object that a case cannot express is found only while the
    text is written, and must become an error response.
    """

    def __init__(self, mirror: ClusterMirror, args: CaseArgs, work: LongWork) -> None:
        self._mirror = mirror
        self._args = args
        self._work = work
        self._writing = asyncio.Lock()
        self._sending: Callable[[], _Text | None] = lambda: None

    async def write(self, decision: RecordedDecision) -> _Text:
        """Return the case of a decision. Raises HTTPException, also while another case is written or sent."""
        sending = self._sending()
        if self._writing.locked() or (sending is not None and not sending.sent):
            raise HTTPException(HTTPStatus.CONFLICT, "another case is being written")
        async with self._writing:
            try:
                text = _Text(await self._chunks(decision))
            except NotExpressibleError as error:
                told = f"decision {decision.number}: no case can be made: {error}"
                raise HTTPException(HTTPStatus.CONFLICT, told) from None
        self._sending = ref(text)  # a weak reference: a client that disconnects frees the text
        return text

    async def _chunks(self, decision: RecordedDecision) -> list[bytes]:
        number, mirror = decision.number, self._mirror
        async with self._work.uncut_turn():
            held = mirror.get_pod(decision.asked.uid)
            if not decision.pod and held is None:
                raise HTTPException(HTTPStatus.CONFLICT, f"decision {number}: the service no longer has its pod")
            pod = encoded_pod(held) if held is not None and not decision.pod else decision.pod
            name = f"decision/{number}/{decision.asked.pod}"
            case = conformance_case(name, mirror, pod, self._args, _note(decision, mirror))
        return [chunk async for chunk in in_chunks(case.pieces(), self._work)]


def decisions_router(
    mirror: ClusterMirror, decisions: Decisions, replayer: Replayer, args: CaseArgs, work: LongWork
) -> APIRouter:
    """Return the routes. `args` are for InterPodAffinity in the cases."""
    router = APIRouter()
    cases = _Cases(mirror, args, work)

    @router.get("/debug/decisions")
    async def show(query: Annotated[DecisionsQuery, Query()]) -> Response:
        shown = []
        async with work.turn():
            noted, kept = decisions.noted, len(decisions)
            latest = decisions.latest(query.pod[0] if query.pod else None)
            for decision in islice(latest, query.limit):
                shown.append(_summary(decision))
                if work.over:
                    await work.give_way()
        return JsonResponse(LastDecisions(noted, kept, shown))

    @router.get("/debug/decisions/{number}")
    async def show_one(number: _Number) -> Response:
        decision = _found(decisions, number)
        sent = (decision.pod, decision.request, decision.response)
        return JsonResponse(DecisionDetail(_summary(decision), *map(_as_sent, sent)))

    @router.post("/debug/decisions/{number}/replay")
    async def replay(number: _Number, limit: _Limit = 100) -> Response:
        try:
            async with work.uncut_turn():
                return JsonResponse(replayer.replay(_found(decisions, number), limit))
        except NotReplayableError as error:
            raise HTTPException(HTTPStatus.CONFLICT, f"decision {number}: {error}") from None

    @router.get("/debug/decisions/{number}/case", response_class=JsonLines)
    async def write_case(number: _Number) -> Response:
        text = await cases.write(_found(decisions, number))
        headers = {
            "content-disposition": f'attachment; filename="decision-{number}.jsonl"',
            "content-length": str(text.size),
        }
        return StreamingResponse(aiter(text), headers=headers, media_type=JsonLines.media_type)

    return router


def _found(decisions: Decisions, number: int) -> RecordedDecision:
    decision = decisions.get(number)
    if decision is None:
        never = number > decisions.noted
        raise HTTPException(
            HTTPStatus.NOT_FOUND, f"decision {number}: {'there was none yet' if never else 'not kept any more'}"
        )
    return decision


def _summary(decision: RecordedDecision) -> DecisionSummary:
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
        kubernetes=decision.release,
    )


def _note(decision: RecordedDecision, mirror: ClusterMirror) -> str:
    return (
        f"{decision.verb} at {decision.answered_at}: {decision.outcome.value}, {decision.asked.passed} of "
        f"{decision.asked.nodes} nodes passed; asked at generation {decision.generation}, "
        f"the cluster as of generation {mirror.generation}"
    )


def _as_sent(body: bytes) -> msgspec.Raw:
    """Return JSON unchanged, except that it is valid UTF-8 in unread parts, too. Null for a text that is not JSON."""
    try:
        return msgspec.json.decode(body.decode(errors="replace"), type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        return NULL
