"""`POST /explain` of the admin port, and what the page asks beside it: all nodes to draw, YAML as JSON, samples.

Requests of people are read and evaluated one at a time, and errors name the field. An explanation shows much of the
cluster, and costs as much as a few filter calls.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from typing import Annotated, Final, Literal, TypeAlias

import msgspec
from fastapi import APIRouter, Query, Request, Response
from pydantic import Field

from app.admin.access import Access, NotVisibleError, Viewer, visible_part
from app.admin.responses import AtMostOne, JsonResponse, StrictQuery
from app.explain.explain_request import (
    MAX_MANIFESTS,
    ExplainError,
    ExplainRequest,
    TooMuchWorkError,
    UnknownError,
    decode_explain_request,
)
from app.explain.explainer import Detail, Explainer
from app.explain.node_map import NodeMap, node_map
from app.explain.workloads import one_workload
from app.objects.decode import DecodeError
from app.objects.yaml_documents import DocumentsError, documents
from app.verbs.request import LargeBodyError
from app.verbs.request import Request as VerbRequest
from core.explaining.pod_names import Sees
from core.objects.labels import label_key_errors

Respond: TypeAlias = Callable[[ExplainRequest, Sees | None], Awaitable[msgspec.Struct]]
"""Evaluates a request for a caller who sees some namespaces (None: all)."""

_STATUSES: Final[Mapping[type[ExplainError], HTTPStatus]] = {
    UnknownError: HTTPStatus.NOT_FOUND,
    TooMuchWorkError: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
}
TOO_MUCH: Final = HTTPStatus.REQUEST_ENTITY_TOO_LARGE


class ExplainProblem(msgspec.Struct, frozen=True):
    """The error of a request, in the form of FastAPI's own errors."""

    detail: str
    field: str
    """The place in the request. Empty for the whole request."""


async def respond(request: Request, most: int, explainer: Explainer, respond: Respond, viewer: Viewer) -> Response:
    """Respond to a request of at most `most` bytes with a value that msgspec encodes, when the request's turn comes.

    The caller must have the right to see the pods that the request names. A pod that they may not see is unknown by its
    uid, so that the response does not say whether any namespace has it. Other pod names are hidden.
    """
    try:
        body = await body_of(request, most)
        decoded = partial(decode_explain_request, body, explainer.mirror, most=MAX_MANIFESTS)
        sees: Sees | None = None
        if not viewer.is_full:
            async with explainer.turn():
                namespaces = await explainer.namespaces_of(decoded())
            await viewer.need(namespaces.named)  # before the turn: the API server may be slow
            visible = await viewer.of((*namespaces.named, *namespaces.of_others))
            sees = None if visible.namespaces is None else visible
        async with explainer.turn():
            result = await respond(decoded(), sees)
        return await visible_part(result, viewer)
    except NotVisibleError as error:
        return problem(error.status, f"pod: {error}", "pod")
    except DecodeError as error:
        return problem(TOO_MUCH if error.field == "body" else HTTPStatus.BAD_REQUEST, str(error), error.field)
    except ExplainError as error:
        return problem(_STATUSES.get(type(error), HTTPStatus.CONFLICT), str(error), error.field)


async def body_of(request: Request, most: int, limit: str = "") -> bytes:
    """Read the body of a request. Raises DecodeError of the field `body` that names the limit."""
    read = VerbRequest()
    try:
        await read.read(request.scope, request.receive, most)
    except LargeBodyError:
        raise DecodeError("body", f"larger than {most} bytes" + (f" ({limit})" if limit else "")) from None
    return bytes(read.body)


def problem(status: HTTPStatus, text: str, field: str) -> Response:
    """Return the error response."""
    return JsonResponse(ExplainProblem(text, field), status)


MAX_LISTED: Final = 200
"""Limit of every list of domains, pods and nodes. While Kindred fills the lists, it serves no other request."""
_MAX_NODES: Final = 20  # with their own detail


class ExplainQuery(StrictQuery):
    """The amount of detail."""

    node: Annotated[list[Annotated[str, Field(min_length=1)]], Field(default=[], max_length=_MAX_NODES)]
    """Nodes to show in detail: each predicate, each term with the pods that it counts, the parts of the score."""
    limit: Annotated[int, Field(ge=0, le=MAX_LISTED)] = 5
    """Length limit of lists of domains, pods and nodes."""
    score: Literal["fitting", "all"] = "fitting"
    """Which nodes are scored. kube-scheduler scores the fitting ones."""


def explain_router(explainer: Explainer, max_body_bytes: int, access: Access) -> APIRouter:
    """Return the route."""
    router = APIRouter()

    @router.post("/explain")
    async def explain(request: Request, query: Annotated[ExplainQuery, Query()]) -> Response:
        detail = Detail(query.node, query.limit, score_all=query.score == "all")
        return await respond(
            request,
            max_body_bytes,
            explainer,
            lambda inquiry, sees: explainer.explain(inquiry, detail, sees),
            access.viewer(request),
        )

    return router


_MAX_YAML: Final = 256 * 1024  # bytes


class RackQuery(StrictQuery):
    """How nodes are divided."""

    rack: AtMostOne
    """The label of racks. Without it, a label whose name looks like one is searched for."""


class NodesQuery(RackQuery):
    """Which data of the nodes are returned."""

    score: Literal["fitting", "all"] = "fitting"
    """Which nodes are scored. kube-scheduler scores the fitting ones."""


def explained_nodes_router(explainer: Explainer, max_body_bytes: int, access: Access) -> APIRouter:
    """Return the routes."""
    router = APIRouter()
    # One text at a time: YAML takes a second, and each thread more takes an equal share of the time from the event
    # loop. The threads also resolve names and renew logins.
    reading = asyncio.Lock()

    @router.post("/explain/nodes")
    async def nodes(request: Request, query: Annotated[NodesQuery, Query()]) -> Response:
        rack = query.rack[0] if query.rack else None
        errors = label_key_errors(rack) if rack is not None else []
        if errors:
            return problem(HTTPStatus.BAD_REQUEST, f"rack: {errors[0]}", "rack")

        async def draw(inquiry: ExplainRequest, sees: Sees | None) -> NodeMap:
            every = query.score == "all"
            return await explainer.look(inquiry, lambda decision: node_map(decision, rack), score_all=every, sees=sees)

        return await respond(request, max_body_bytes, explainer, draw, access.viewer(request))

    @router.post("/explain/manifest")
    async def manifest(request: Request) -> Response:
        try:
            text = await body_of(request, _MAX_YAML, "for YAML")
            async with reading:
                workload = await asyncio.to_thread(lambda: one_workload(documents(text)))
        except DecodeError as error:
            status = TOO_MUCH if error.field == "body" else HTTPStatus.BAD_REQUEST
            return problem(status, f"pod: {error}", "pod")
        except DocumentsError as error:
            return problem(HTTPStatus.BAD_REQUEST, f"pod: {error}", "pod")
        return Response(workload, media_type="application/json")

    return router


class Sample(msgspec.Struct, frozen=True):
    """A pod that is not in the cluster."""

    name: str
    """Its subject, such as `required-affinity`."""
    pod: msgspec.Raw


class Samples(msgspec.Struct, frozen=True):
    """The samples. Empty unless the demo cluster is served."""

    samples: Sequence[Sample]


def samples_router(samples: Sequence[Sample]) -> APIRouter:
    """Return the route."""
    router = APIRouter()

    @router.get("/samples")
    async def all_samples() -> Response:
        return JsonResponse(Samples(samples))

    return router
