"""What the mirror holds, and where it differs from the API server, for people who look for an error.

For the admin port: it shows the whole cluster, and some of it costs the API server and this process seconds of work.
"""

import asyncio
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from typing import Annotated

import msgspec
from fastapi import APIRouter, HTTPException, Query, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import StreamingResponse

from app.partition import NodePartition
from app.routes.chunks import in_chunks
from app.routes.partition import partition_router
from app.watch.client import ApiClient, ApiError
from app.watch.credentials import CredentialsError
from app.watch.decode import DecodeError
from app.watch.mirror_diff import mirror_diff
from app.watch.resources import Resource
from app.watch.turns import Turns
from core.mirror.cluster import ClusterMirror
from core.mirror.dump import MirrorDump

_JSON = "application/json"

_AtMostOne = Annotated[list[Annotated[str, Field(min_length=1)]], Field(max_length=1)]


class DumpQuery(BaseModel):
    """Which part of the mirror is asked for."""

    model_config = ConfigDict(extra="forbid")

    node: _AtMostOne = []
    """Name of a node, known or only named by pods."""
    pod: _AtMostOne = []
    """Uid or NAMESPACE/NAME of a pod."""


class DiffQuery(BaseModel):
    """How long a difference has to last."""

    model_config = ConfigDict(extra="forbid")

    settle: Annotated[float, Field(ge=0, le=60)] = 1.0
    """Seconds between the two looks."""


def debug_router(
    mirror: ClusterMirror, partition: NodePartition, client: ApiClient | None, resources: Sequence[Resource]
) -> APIRouter:
    """Return the routes of the admin port. A mirror from a dump has no client, and nothing to be compared with."""
    router = APIRouter()
    router.include_router(partition_router(partition))
    comparing = asyncio.Lock()

    @router.get("/debug/mirror")
    async def dump(query: Annotated[DumpQuery, Query()]) -> Response:
        if query.pod:
            asked = await _dump_pod(mirror, query.pod[0], query.node[0] if query.node else None)
        elif query.node:
            asked = _dump_node(mirror, query.node[0])
        else:
            return StreamingResponse(in_chunks(_dump_all(mirror)), media_type=_JSON)
        return Response(msgspec.json.encode(asked), media_type=_JSON)

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
                found = await mirror_diff(client, resources, mirror, query.settle, asyncio.sleep)
            except (ApiError, CredentialsError, DecodeError) as error:
                raise HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, f"no fresh list: {error}") from None
        return Response(msgspec.json.encode(found), media_type=_JSON)

    return router


def _dump_all(mirror: ClusterMirror) -> Iterator[bytes]:
    """Yield MirrorDump of the whole cluster as JSON, node by node; each part is as the mirror is when it is made."""
    nothing = mirror.dump(node="")  # no node has an empty name
    yield b'{"generation":%d,"figures":%s,"nodes":[' % (nothing.generation, msgspec.json.encode(nothing.figures))
    separator = b""
    for name in sorted(mirror.nodes.slots):
        for node in mirror.dump(node=name).nodes:
            yield separator + msgspec.json.encode(node)
            separator = b","
    yield b'],"pods_of_unknown_nodes":['
    separator = b""
    for name in sorted(mirror.nodes.infos.keys() - mirror.nodes.slots.keys()):
        for pod in mirror.dump(node=name).pods_of_unknown_nodes:
            yield separator + msgspec.json.encode(pod)
            separator = b","
    yield b"]}"


def _dump_node(mirror: ClusterMirror, node: str) -> MirrorDump:
    if node not in mirror.nodes.infos:
        raise HTTPException(HTTPStatus.NOT_FOUND, f"node {node}: not in the mirror")
    return mirror.dump(node=node)


async def _dump_pod(mirror: ClusterMirror, pod: str, node: str | None) -> MirrorDump:
    if node is not None and node not in mirror.nodes.infos:
        raise HTTPException(HTTPStatus.NOT_FOUND, f"node {node}: not in the mirror")
    nodes = await _nodes_of(mirror, pod)
    if not nodes:
        raise HTTPException(HTTPStatus.NOT_FOUND, f"pod {pod}: not in the mirror")
    if node is not None and node not in nodes:
        raise HTTPException(HTTPStatus.NOT_FOUND, f"pod {pod}: not on node {node}, but on {', '.join(nodes)}")
    parts = [mirror.dump(name, pod) for name in nodes if node in (None, name)]
    return MirrorDump(
        parts[0].generation,
        parts[0].figures,
        tuple(node for part in parts for node in part.nodes),
        tuple(pod for part in parts for pod in part.pods_of_unknown_nodes),
    )


async def _nodes_of(mirror: ClusterMirror, pod: str) -> list[str]:
    """Return the node that a pod is on, by its uid or NAMESPACE/NAME; several if a name stands for several pods."""
    known = mirror.get_pod(pod)
    if known is not None:
        return [known.node_name]
    found = set()
    turns = Turns()
    for uid in list(mirror.pods.rows):
        candidate = mirror.get_pod(uid)
        if candidate is not None and candidate.full_name == pod:
            found.add(candidate.node_name)
        if turns.over:
            await turns.give_way()
    return sorted(found)
