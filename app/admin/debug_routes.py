"""The settings, the contents of the mirror, and its differences from the API server, for debugging.

Only on the admin port: the routes show the whole cluster. Some cost the API server and this process seconds of work.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Annotated

import msgspec
from fastapi import APIRouter, HTTPException, Query, Response
from pydantic import BaseModel, Field, JsonValue

from app.admin.responses import AtMostOne, JsonResponse, SharedCopy, StrictQuery, list_pieces, streamed
from app.api_server.client import ApiClient, ApiError, StatusError
from app.api_server.credentials import CredentialsError
from app.explain.known_pods import placed_pods
from app.feeds.freshness import ResourceState
from app.feeds.known_objects import Unreadable
from app.feeds.objects import ObjectReader
from app.feeds.stream import pages_of
from app.objects.decode import DecodeError
from app.objects.resources import Resource
from app.process.long_work import LongWork
from app.settings.configuration import effective
from app.settings.settings import Settings
from core.mirror.cluster import ClusterMirror
from core.mirror.comparer import Comparer, Differences
from core.mirror.dump import MirrorCopy, MirrorDump, pending_dumps, victim_dumps


class EffectiveSetting(BaseModel):
    """One setting."""

    value: JsonValue
    source: str
    """A flag, a variable, a file with the key, or `default`."""


def config_router(settings: Settings, sources: Mapping[str, str]) -> APIRouter:
    """Return the route that lists key -> setting. `sources` has field -> the source of its value."""
    router = APIRouter()
    entries = {key: EffectiveSetting(**entry) for key, entry in effective(settings, sources).items()}

    @router.get("/debug/config")
    async def config() -> dict[str, EffectiveSetting]:
        return entries

    return router


async def mirror_diff(  # noqa: PLR0913, PLR0917  # the two sides, the time between two lists, and the turn
    client: ApiClient,
    resources: Iterable[Resource],
    mirror: ClusterMirror,
    settle: float,
    sleep: Callable[[float], Awaitable[None]],
    work: LongWork,
) -> dict[str, Differences]:
    """Return the differences that last longer than `settle` seconds, by resource.

    Objects change during a list. So a difference counts only if a second list, `settle` seconds later, shows it again.
    Resources without a difference are listed once. Raises ApiError, CredentialsError, DecodeError.
    """
    found = {resource: await _compare(client, resource, mirror, work) for resource in resources}
    suspects = [resource for resource, differences in found.items() if differences]
    if suspects:
        await sleep(settle)
    for resource in suspects:
        found[resource] = (await _compare(client, resource, mirror, work)).persisting(found[resource])
    return {resource.name: differences for resource, differences in found.items()}


async def _compare(client: ApiClient, resource: Resource, mirror: ClusterMirror, work: LongWork) -> Differences:
    comparer = Comparer(mirror, resource.kind)
    reader = ObjectReader(ResourceState(resource))  # its own state: this list is not part of the watch
    try:
        async for page in pages_of(client, resource):
            async with work.turn():
                for item in page.items:
                    listed = reader.read(item)
                    if isinstance(listed, Unreadable):
                        comparer.pass_over(listed.full_name, listed.uid)
                    else:
                        comparer.add(listed)
                    if work.over:
                        await work.checkpoint()
    except StatusError as error:
        if error.code != HTTPStatus.NOT_FOUND or not resource.optional:
            raise
        # Absent: the watch skips it, too.
    except DecodeError as error:
        raise DecodeError("", f"GET {resource.path}: {error}") from None
    async with work.turn():
        await work.all_of(comparer.finish())
    return comparer.differences()


class DumpQuery(StrictQuery):
    """The requested part of the mirror."""

    node: AtMostOne
    """Name of a node. The node object may be unknown, if pods name it."""
    pod: AtMostOne
    """Uid or NAMESPACE/NAME of a pod."""


class DiffQuery(StrictQuery):
    """How long a difference must last."""

    settle: Annotated[float, Field(ge=0, le=60)] = 1.0
    """Seconds between the two comparisons."""


def debug_router(
    mirror: ClusterMirror,
    client: ApiClient | None,
    resources: Callable[[], Sequence[Resource]],
    work: LongWork,
) -> APIRouter:
    """Return the routes. A mirror from a dump has no client, so there is no API server to compare it with."""
    router = APIRouter()
    comparing = asyncio.Lock()

    async def take() -> MirrorCopy:
        copy = mirror.copy()
        async with work.turn():
            await work.all_of(copy.steps())
        return copy

    copies = SharedCopy(take)

    @router.get("/debug/mirror")
    async def dump(query: Annotated[DumpQuery, Query()]) -> Response:
        if query.pod:
            dump = await _dump_pod(mirror, query.pod[0], query.node[0] if query.node else None, work)
        elif query.node:
            dump = await _dump_node(mirror, query.node[0], work)
        else:
            return streamed(_dump_all(await copies.get()), work)
        return JsonResponse(dump)

    @router.get("/debug/mirror/diff")
    async def diff(query: Annotated[DiffQuery, Query()]) -> Response:
        if client is None:
            raise HTTPException(
                HTTPStatus.CONFLICT, "the mirror comes from a dump, so there is nothing to compare it with"
            )
        if comparing.locked():
            raise HTTPException(HTTPStatus.CONFLICT, "another comparison is under way")
        async with comparing:
            try:
                found = await mirror_diff(client, resources(), mirror, query.settle, asyncio.sleep, work)
            except (ApiError, CredentialsError, DecodeError) as error:
                raise HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, f"no fresh list: {error}") from None
        return JsonResponse(found)

    return router


def _dump_all(copy: MirrorCopy) -> Iterator[bytes]:
    """Yield MirrorDump of the whole cluster as JSON, node by node."""
    yield b'{"generation":%d,"figures":%s,"nodes":' % (copy.generation, msgspec.json.encode(copy.figures))
    yield from list_pieces(copy.nodes(), msgspec.json.encode)
    yield b',"pods_of_unknown_nodes":'
    yield from list_pieces(copy.pods_of_unknown_nodes(), msgspec.json.encode)
    yield b',"pending_pods":'
    yield from list_pieces(copy.pending_pods(), msgspec.json.encode)
    yield b',"victims":'
    yield from list_pieces(copy.victims(), msgspec.json.encode)
    yield b"}"


async def _dump_node(mirror: ClusterMirror, node: str, work: LongWork) -> MirrorDump:
    async with work.turn():
        await work.all_of(mirror.follow_figures())
        if node not in mirror.nodes.infos:
            raise HTTPException(HTTPStatus.NOT_FOUND, f"node {node}: not in the mirror")
        return mirror.dump(node=node)


async def _dump_pod(mirror: ClusterMirror, pod: str, node: str | None, work: LongWork) -> MirrorDump:
    async with work.turn():
        if node is not None and node not in mirror.nodes.infos:
            raise HTTPException(HTTPStatus.NOT_FOUND, f"node {node}: not in the mirror")
        await work.all_of(mirror.follow_figures())
        known = mirror.get_pod(pod)
        placed = [known] if known is not None else await placed_pods(mirror, {pod} if "/" in pod else (), work)
        nodes = sorted({each.node_name for each in placed})  # several, if several pods have had the name
        pending = [each for each in mirror.pending if pod in {each.uid, each.full_name}] if not nodes else []
        if not nodes and (not pending or node is not None):
            raise HTTPException(HTTPStatus.NOT_FOUND, f"pod {pod}: not in the mirror")
        if node is not None and node not in nodes:
            raise HTTPException(HTTPStatus.NOT_FOUND, f"pod {pod}: not on node {node}, but on {', '.join(nodes)}")
        waits = [each for each in mirror.preemptors.waits() if pod in {each.preemptor.uid, each.preemptor.full_name}]
        parts = [mirror.dump(name, pod) for name in nodes if node in (None, name)]
    return MirrorDump(
        mirror.generation,
        mirror.figures,
        tuple(node for part in parts for node in part.nodes),
        tuple(pod for part in parts for pod in part.pods_of_unknown_nodes),
        tuple(pending_dumps(pending)),
        (*(each for part in parts for each in part.victims), *victim_dumps(waits)),
    )
