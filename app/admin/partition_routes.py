"""Routes that show the scheduler's partition of the nodes, and replace it at run time."""

from http import HTTPStatus
from typing import Final

import msgspec
from fastapi import APIRouter, HTTPException, Request, Response

from app.admin.asking import TOO_MUCH, body_of
from app.admin.json_response import JsonResponse
from app.admin.node_partition import NodePartition, Rule, decode_rule
from app.long_work import LongWork
from app.objects.decode import DecodeError

_MAX_BODY_BYTES: Final = 4 * 1024 * 1024  # 5,000 nodes with the longest names are 1.3 MB


class Nodes(msgspec.Struct, frozen=True):
    """Numbers of known nodes."""

    inside: int = msgspec.field(name="in")
    outside: int = msgspec.field(name="out")


class PartitionState(msgspec.Struct, frozen=True):
    """The last rule, and its present effect on the nodes."""

    rule: Rule
    nodes: Nodes


def partition_router(partition: NodePartition, work: LongWork) -> APIRouter:
    """Return the routes that show and replace the partition's rule."""
    router = APIRouter()

    @router.get("/debug/partition")
    async def show() -> Response:
        return JsonResponse(_state(partition))

    @router.put("/debug/partition")
    async def put(request: Request) -> Response:
        try:
            body = await body_of(request, _MAX_BODY_BYTES)
        except DecodeError as error:
            raise HTTPException(TOO_MUCH, str(error)) from None
        try:
            async with work.uncut_turn():  # the rule changes for all nodes at once
                partition.replace(decode_rule(body))
        except DecodeError as error:
            raise HTTPException(HTTPStatus.UNPROCESSABLE_ENTITY, str(error)) from None
        return JsonResponse(_state(partition))

    return router


def _state(partition: NodePartition) -> PartitionState:
    return PartitionState(partition.rule, Nodes(*partition.count()))
