"""`GET /pending` of the admin port: every pod without a node, and why it has none."""

from collections.abc import Iterator
from typing import Annotated, Final

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import StreamingResponse

from app.admin.chunks import in_chunks, list_pieces
from app.admin.shared_copy import SharedCopy
from app.explain.pending import PendingPodsExplainer, PendingView
from app.json_text import encode
from app.long_work import LongWork

_JSON: Final = "application/json"


class PendingQuery(BaseModel):
    """Which pods are listed."""

    model_config = ConfigDict(extra="forbid")

    namespace: Annotated[str, Field(min_length=1)] | None = None
    """All namespaces where it is left out."""


def pending_router(pending: PendingPodsExplainer, work: LongWork) -> APIRouter:
    """Return the route. Those who ask within a second share the judgements, and each response is written in pieces."""
    router = APIRouter()
    judged = SharedCopy(pending.judge)

    @router.get("/pending")
    async def list_pending(query: Annotated[PendingQuery, Query()]) -> Response:
        view = pending.view(await judged.get(), query.namespace)
        return StreamingResponse(in_chunks(pieces_of(view), work), media_type=_JSON)

    return router


def pieces_of(view: PendingView) -> Iterator[bytes]:
    """Yield PendingPods as JSON, pod by pod."""
    yield encode(view.head)[:-1] + b',"pods":'
    yield from list_pieces(view.pods())
    yield b',"classes":'
    yield from list_pieces(view.classes())
    yield b"}"
