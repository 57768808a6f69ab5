"""`GET /cluster` of the admin port: all nodes by zone, rack and requests, for the first view of the page."""

from collections.abc import Iterator
from http import HTTPStatus
from typing import Annotated, Final

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import StreamingResponse

from app.admin.asking import problem
from app.admin.chunks import in_chunks, list_pieces
from app.admin.shared_copy import SharedCopy
from app.explain.node_map import guessed_rack_key
from app.json_text import encode
from app.long_work import LongWork
from core.diagnosis.cluster_view import ClusterSurvey, ClusterView
from core.mirror.cluster import ClusterMirror
from core.objects.label_validation import label_key_errors

_JSON: Final = "application/json"


class ClusterQuery(BaseModel):
    """How the nodes are divided."""

    model_config = ConfigDict(extra="forbid")

    rack: Annotated[list[Annotated[str, Field(min_length=1)]], Field(max_length=1)] = []
    """The label of racks. Without it, a label whose name looks like one is searched for."""


def cluster_router(mirror: ClusterMirror, work: LongWork) -> APIRouter:
    """Return the route."""
    router = APIRouter()

    async def survey(rack_key: str | None = None) -> ClusterView:
        async with work.turn():
            key = guessed_rack_key(mirror) if rack_key is None else rack_key
            found = ClusterSurvey(mirror, key)
            for _ in found.steps():
                if work.over:
                    await work.give_way()
            return found.view()

    copies = SharedCopy(survey)

    @router.get("/cluster")
    async def cluster(query: Annotated[ClusterQuery, Query()]) -> Response:
        if not query.rack:
            view = await copies.get()
        elif errors := label_key_errors(query.rack[0]):
            return problem(HTTPStatus.BAD_REQUEST, f"rack: {errors[0]}", "rack")
        elif query.rack[0] not in mirror.nodes.label_keys:
            return problem(HTTPStatus.NOT_FOUND, f"rack: no node has the label {query.rack[0]}", "rack")
        else:
            view = await survey(query.rack[0])
        return StreamingResponse(in_chunks(_written(view), work), media_type=_JSON)

    return router


def _written(view: ClusterView) -> Iterator[bytes]:
    """Yield a view as JSON, column by column."""
    separator = b"{"
    for name in view.__struct_fields__:
        yield separator + encode(name) + b":"
        column = getattr(view, name)
        if name == "resources":
            yield from list_pieces(column)
        else:
            yield encode(column)
        separator = b","
    yield b"}"
