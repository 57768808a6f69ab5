"""`GET /units` of the admin port: the groups of pods that are placed together, by Kindred or by kube-scheduler."""

from collections.abc import Callable, Iterable, Sequence
from typing import Annotated

import msgspec
from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from app.admin.json_response import JsonResponse
from core.gangs.unit_status import UnitStatus


class UnitsQuery(BaseModel):
    """Which units are listed."""

    model_config = ConfigDict(extra="forbid")

    namespace: Annotated[str, Field(min_length=1)] | None = None
    """A namespace. Without it: all namespaces."""


class Units(msgspec.Struct, frozen=True):
    """All units, by name."""

    units: Sequence[UnitStatus]


def units_router(units: Callable[[], Iterable[UnitStatus]]) -> APIRouter:
    """Return the route. `units` returns all units by name."""
    router = APIRouter()

    @router.get("/units")
    async def list_units(query: Annotated[UnitsQuery, Query()]) -> Response:
        prefix = f"{query.namespace}/" if query.namespace else ""
        return JsonResponse(Units([each for each in units() if each.unit.startswith(prefix)]))

    return router
