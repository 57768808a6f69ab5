"""`GET /units` of the admin port: the groups of pods that are placed together."""

from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Annotated

import msgspec
from fastapi import APIRouter, HTTPException, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from app.admin.json_response import JsonResponse
from core.gangs.gangs import Gangs
from core.gangs.unit_status import UnitStatus


class UnitsQuery(BaseModel):
    """Which units are listed."""

    model_config = ConfigDict(extra="forbid")

    namespace: Annotated[str, Field(min_length=1)] | None = None
    """A namespace. Without it: all namespaces."""


class Units(msgspec.Struct, frozen=True):
    """All units, by name."""

    units: Sequence[UnitStatus]


def units_router(gangs: Gangs | None, clock: Callable[[], float]) -> APIRouter:
    """Return the route. Without `gangs`, no pods are placed together, and the route responds with 404."""
    router = APIRouter()

    @router.get("/units")
    async def list_units(query: Annotated[UnitsQuery, Query()]) -> Response:
        if gangs is None:
            raise HTTPException(HTTPStatus.NOT_FOUND, "groups: off, because they need `answer: decide` and a cluster")
        prefix = f"{query.namespace}/" if query.namespace else ""
        found = gangs.unit_statuses(clock())
        return JsonResponse(Units([each for each in found if each.unit.startswith(prefix)]))

    return router
