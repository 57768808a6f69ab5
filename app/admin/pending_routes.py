"""`GET /pending` of the admin port: every pod without a node, and why it has none."""

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from app.admin.json_response import JsonResponse
from app.admin.shared_copy import SharedCopy
from app.explain.pending import PendingPodsExplainer


class PendingQuery(BaseModel):
    """Which pods are listed."""

    model_config = ConfigDict(extra="forbid")

    namespace: Annotated[str, Field(min_length=1)] | None = None
    """All namespaces where it is left out."""


def pending_router(pending: PendingPodsExplainer) -> APIRouter:
    """Return the route. Those who ask within a second share one answer."""
    router = APIRouter()
    judged = SharedCopy(pending.judge)

    @router.get("/pending")
    async def list_pending(query: Annotated[PendingQuery, Query()]) -> Response:
        return JsonResponse(pending.view(await judged.get(), query.namespace))

    return router
