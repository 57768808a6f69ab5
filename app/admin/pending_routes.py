"""`GET /pending` of the admin port: every pod without a node, and why it has none."""

from collections.abc import Iterator
from typing import Annotated, Final

from fastapi import APIRouter, HTTPException, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import StreamingResponse

from app.admin.access import Access, NotVisibleError, encoder
from app.admin.chunks import Encoder, in_chunks, list_pieces
from app.admin.shared_copy import SharedCopy
from app.explain.pending import PendingPodsExplainer, PendingView
from app.json_text import encode
from app.long_work import LongWork

_JSON: Final = "application/json"


class PendingQuery(BaseModel):
    """Which pods are listed."""

    model_config = ConfigDict(extra="forbid")

    namespace: Annotated[str, Field(min_length=1)] | None = None
    """A namespace. Without it: all namespaces."""


def pending_router(pending: PendingPodsExplainer, work: LongWork, access: Access) -> APIRouter:
    """Return the route. Requests within one second share the verdicts. Responses are written in pieces."""
    router = APIRouter()
    judged = SharedCopy(pending.judge)

    @router.get("/pending")
    async def list_pending(request: Request, query: Annotated[PendingQuery, Query()]) -> Response:
        sight = access.sight(request)
        if query.namespace is not None:
            try:
                await sight.need((query.namespace,))
            except NotVisibleError as error:
                raise HTTPException(error.status, f"namespace: {error}") from None
        pods = await judged.get()
        visible = await sight.of(pods.namespaces(query.namespace))
        view = pending.view(pods, query.namespace, visible)
        pieces = pieces_of(view, encoder(visible), names_hidden=visible.why)
        return StreamingResponse(in_chunks(pieces, work), media_type=_JSON)

    return router


def pieces_of(view: PendingView, text: Encoder = encode, names_hidden: str = "") -> Iterator[bytes]:
    """Yield PendingPods as JSON, pod by pod."""
    yield text(view.head)[:-1] + b',"pods":'
    yield from list_pieces(view.pods(), text)
    yield b',"classes":'
    yield from list_pieces(view.classes(), text)
    yield b',"units":'
    yield from list_pieces(view.units, text)
    yield b',"left_out":%d,"names_hidden":' % view.left_out + encode(names_hidden) + b"}"
