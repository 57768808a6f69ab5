"""The cluster as the page shows it: all nodes, names, pending pods, units, and the state of the mirror as events.

Each stream of events reads the state once a second, which costs a few microseconds. The mirror has no listeners.
app/server/port.py closes the connection of a client that does not read. The streams end when the shutdown
begins, so that the ports close without a wait.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from http import HTTPStatus
from typing import Annotated, Final

import msgspec
from fastapi import APIRouter, HTTPException, Query, Request, Response
from pydantic import Field
from starlette.responses import StreamingResponse

from app.admin.access import Access, NotVisibleError, encoder
from app.admin.explain_routes import RackQuery, problem
from app.admin.responses import Encoder, JsonResponse, SharedCopy, StrictQuery, list_pieces, streamed
from app.explain.explainer import MirrorState
from app.explain.known_pods import NameSearch
from app.explain.node_map import guessed_rack_key
from app.explain.pending import PendingPodsExplainer, PendingView
from app.process.json_text import encode
from app.process.long_work import LongWork
from app.verbs.admission import ServingState
from core.diagnosis.cluster_view import ClusterSurvey, ClusterView
from core.gangs.unit import UnitStatus
from core.mirror.cluster import ClusterMirror
from core.objects.labels import label_key_errors


def cluster_router(mirror: ClusterMirror, work: LongWork) -> APIRouter:
    """Return the route."""
    router = APIRouter()

    async def survey(rack_key: str | None = None) -> ClusterView:
        async with work.turn():
            key = guessed_rack_key(mirror) if rack_key is None else rack_key
            found = ClusterSurvey(mirror, key)
            await work.all_of(found.steps())
            return found.view()

    copies = SharedCopy(survey)

    @router.get("/cluster")
    async def cluster(query: Annotated[RackQuery, Query()]) -> Response:
        if not query.rack:
            view = await copies.get()
        elif errors := label_key_errors(query.rack[0]):
            return problem(HTTPStatus.BAD_REQUEST, f"rack: {errors[0]}", "rack")
        elif query.rack[0] not in mirror.nodes.label_keys:
            return problem(HTTPStatus.NOT_FOUND, f"rack: no node has the label {query.rack[0]}", "rack")
        else:
            view = await survey(query.rack[0])
        return streamed(_written(view), work)

    return router


def _written(view: ClusterView) -> Iterator[bytes]:
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


_LONGEST: Final = 512
"""Characters: NAMESPACE/NAME has at most 63 + 1 + 253."""


class NamesQuery(StrictQuery):
    """The text to search for."""

    text: Annotated[str, Field(max_length=_LONGEST)] = ""
    """A part of the names. Names that begin with it come first."""
    limit: Annotated[int, Field(ge=1, le=100)] = 20
    """Limit of the nodes, and of the pods."""


def names_router(search: NameSearch, access: Access) -> APIRouter:
    """Return the route."""
    router = APIRouter()

    @router.get("/names")
    async def names(request: Request, query: Annotated[NamesQuery, Query()]) -> Response:
        viewer = access.viewer(request)
        if viewer.is_full:
            return JsonResponse(await search.find(query.text, query.limit))
        # Not the reason of the reviews below: that one says whether a hidden name contains the text.
        why = await viewer.why_limited()
        visible = await viewer.of(sorted(await search.namespaces(query.text)))
        found = await search.find(query.text, query.limit, visible)
        return JsonResponse(msgspec.structs.replace(found, names_hidden=why))

    return router


class NamespaceQuery(StrictQuery):
    """Which pods or units are listed."""

    namespace: Annotated[str, Field(min_length=1)] | None = None
    """A namespace. Without it: all namespaces."""


def pending_router(pending: PendingPodsExplainer, work: LongWork, access: Access) -> APIRouter:
    """Return the route. Requests within one second share the verdicts. Responses are written in pieces."""
    router = APIRouter()
    judged = SharedCopy(pending.judge)

    @router.get("/pending")
    async def list_pending(request: Request, query: Annotated[NamespaceQuery, Query()]) -> Response:
        viewer = access.viewer(request)
        if query.namespace is not None:
            try:
                await viewer.need((query.namespace,))
            except NotVisibleError as error:
                raise HTTPException(error.status, f"namespace: {error}") from None
        pods = await judged.get()
        visible = await viewer.of(pods.namespaces(query.namespace))
        view = pending.view(pods, query.namespace, visible)
        pieces = pieces_of(view, encoder(visible), names_hidden=visible.why)
        return streamed(pieces, work)

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


class Units(msgspec.Struct, frozen=True):
    """All units, by name."""

    units: Sequence[UnitStatus]


def units_router(units: Callable[[], Iterable[UnitStatus]]) -> APIRouter:
    """Return the route. `units` returns all units by name."""
    router = APIRouter()

    @router.get("/units")
    async def list_units(query: Annotated[NamespaceQuery, Query()]) -> Response:
        prefix = f"{query.namespace}/" if query.namespace else ""
        return JsonResponse(Units([each for each in units() if each.unit.startswith(prefix)]))

    return router


MAX_FOLLOWERS: Final = 64
"""Clients at a time. Each holds one of the port's connections."""
_EVERY: Final = 5
"""Ticks between two reads of the state."""
_TICK: Final = 0.2
"""Seconds within which a stream notices the shutdown."""
_SILENCE: Final = 75
"""Ticks without a change after which a comment is sent. With it each side detects that the other has disconnected."""
_COMMENT: Final = b": nothing has changed\n\n"


class FollowedState(MirrorState, frozen=True):
    """An event: the mirror, and whether the pending pods have changed, which takes no generation."""

    pending_changes: int
    """Grows with each change of the pending pods."""


def events_router(
    state_of: Callable[[], MirrorState], pending_changes: Callable[[], int], serving: ServingState
) -> APIRouter:
    """Return the route. It is not in the OpenAPI description, because OpenAPI cannot describe an endless stream."""
    router = APIRouter()

    def followed() -> FollowedState:
        return FollowedState(**msgspec.structs.asdict(state_of()), pending_changes=pending_changes())

    followers = _Followers(followed, serving)

    @router.get("/events", include_in_schema=False)
    async def events() -> Response:
        if serving.draining:
            raise HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, "the service is ending")
        if followers.number >= MAX_FOLLOWERS:
            raise HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, f"{MAX_FOLLOWERS} clients already follow the service")
        return StreamingResponse(followers.follow(), media_type="text/event-stream")

    return router


class _Followers:
    def __init__(self, state_of: Callable[[], FollowedState], serving: ServingState) -> None:
        self.number = 0
        self._state_of = state_of
        self._serving = serving

    async def follow(self) -> AsyncIterator[bytes]:
        """Yield the present state and each later one, at most one a second, until the shutdown."""
        self.number += 1  # not in the caller: a stream that never starts never reaches `finally`
        sent, tick, silent = b"", 0, 0
        try:
            while not self._serving.draining:
                if tick % _EVERY == 0 and (state := encode(self._state_of())) != sent:
                    sent, silent = state, 0
                    yield b"data: " + state + b"\n\n"
                elif silent >= _SILENCE:
                    silent = 0
                    yield _COMMENT
                await asyncio.sleep(_TICK)
                tick, silent = tick + 1, silent + 1
        finally:
            self.number -= 1
