"""`GET /pending` of the admin port: every pod without a node, and why it has none."""

from typing import Annotated

import msgspec
from fastapi import APIRouter, HTTPException, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from app.admin.access import Access, NotVisibleError, shown
from app.admin.shared_copy import SharedCopy
from app.explain.pending import PendingPodsExplainer


class PendingQuery(BaseModel):
    """Which pods are listed."""

    model_config = ConfigDict(extra="forbid")

    namespace: Annotated[str, Field(min_length=1)] | None = None
    """All namespaces where it is left out."""


def pending_router(pending: PendingPodsExplainer, access: Access) -> APIRouter:
    """Return the route. Those who ask within a second share one answer."""
    router = APIRouter()
    judged = SharedCopy(pending.judge)

    @router.get("/pending")
    async def list_pending(request: Request, query: Annotated[PendingQuery, Query()]) -> Response:
        sight = access.sight(request)
        if query.namespace is not None:
            try:
                await sight.need((query.namespace,))
            except NotVisibleError as error:
                raise HTTPException(error.status, f"namespace: {error}") from None
        pods = await judged.get()
        visible = await sight.of(pod.namespace for pod, _ in pods.pods if query.namespace in {None, pod.namespace})
        view = pending.view(pods, query.namespace, visible)
        return await shown(msgspec.structs.replace(view, names_hidden=visible.why), sight)

    return router
