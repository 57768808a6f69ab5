"""`POST /explain` of the admin port. It shows much of the cluster, and costs as much as a few filter calls."""

from typing import Annotated, Final, Literal

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from app.admin.access import Access
from app.admin.asking import answered
from app.explain.explainer import Detail, Explainer

MAX_SHOWN: Final = 200
"""Limit of every list of domains, pods and nodes. While Kindred fills the lists, it serves no other request."""
_MAX_NODES: Final = 20  # with their own detail


class ExplainQuery(BaseModel):
    """The amount of detail."""

    model_config = ConfigDict(extra="forbid")

    node: Annotated[list[Annotated[str, Field(min_length=1)]], Field(max_length=_MAX_NODES)] = []
    """Nodes to show in detail: each predicate, each term with the pods that it counts, the parts of the score."""
    limit: Annotated[int, Field(ge=0, le=MAX_SHOWN)] = 5
    """Length limit of lists of domains, pods and nodes."""
    score: Literal["fitting", "all"] = "fitting"
    """Which nodes are scored. kube-scheduler scores the fitting ones."""


def explain_router(explainer: Explainer, max_body_bytes: int, access: Access) -> APIRouter:
    """Return the route."""
    router = APIRouter()

    @router.post("/explain")
    async def explain(request: Request, query: Annotated[ExplainQuery, Query()]) -> Response:
        detail = Detail(query.node, query.limit, score_all=query.score == "all")
        return await answered(
            request,
            max_body_bytes,
            explainer,
            lambda question, sees: explainer.explain(question, detail, sees),
            access.sight(request),
        )

    return router
