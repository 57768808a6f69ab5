"""Routes of the page beside `POST /explain`: all nodes to draw, YAML as JSON."""

import asyncio
from http import HTTPStatus
from typing import Annotated, Final, Literal

import msgspec
from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from app.admin.access import Access
from app.admin.asking import TOO_MUCH, answered, body_of, problem
from app.explain.explain_request import ExplainRequest
from app.explain.explainer import Explainer
from app.explain.node_map import NodeMap, node_map
from app.objects.decode import DecodeError
from app.objects.yaml_documents import DocumentsError, documents
from core.diagnosis.pod_names import Sees
from core.objects.label_validation import label_key_errors

_MAX_YAML: Final = 256 * 1024  # bytes


class NodesQuery(BaseModel):
    """Which data of the nodes are returned."""

    model_config = ConfigDict(extra="forbid")

    rack: Annotated[list[Annotated[str, Field(min_length=1)]], Field(max_length=1)] = []
    """The label of racks. Without it, a label whose name looks like one is searched for."""
    score: Literal["fitting", "all"] = "fitting"
    """Which nodes are scored. kube-scheduler scores the fitting ones."""


_object_decoder: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


def explained_nodes_router(explainer: Explainer, max_body_bytes: int, access: Access) -> APIRouter:
    """Return the routes."""
    router = APIRouter()

    @router.post("/explain/nodes")
    async def nodes(request: Request, query: Annotated[NodesQuery, Query()]) -> Response:
        rack = query.rack[0] if query.rack else None
        errors = label_key_errors(rack) if rack is not None else []
        if errors:
            return problem(HTTPStatus.BAD_REQUEST, f"rack: {errors[0]}", "rack")

        async def draw(question: ExplainRequest, sees: Sees | None) -> NodeMap:
            every = query.score == "all"
            return await explainer.look(question, lambda decision: node_map(decision, rack), score_all=every, sees=sees)

        return await answered(request, max_body_bytes, explainer, draw, access.sight(request))

    @router.post("/explain/manifest")
    async def manifest(request: Request) -> Response:
        try:
            text = await body_of(request, _MAX_YAML, "for YAML")
            found = await asyncio.to_thread(documents, text)
        except DecodeError as error:
            return problem(TOO_MUCH, str(error), "pod")
        except DocumentsError as error:
            return problem(HTTPStatus.BAD_REQUEST, f"pod: {error}", "pod")
        if len(found) != 1 or not _is_object(found[0]):
            return problem(HTTPStatus.BAD_REQUEST, "pod: expected one manifest", "pod")
        return Response(found[0], media_type="application/json")

    return router


def _is_object(text: bytes) -> bool:
    try:
        _object_decoder.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True
