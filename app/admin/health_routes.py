"""Liveness, readiness, version and metrics."""

import asyncio
import math
import platform
from http import HTTPStatus
from time import perf_counter
from typing import Final

import msgspec
from fastapi import APIRouter
from pydantic import BaseModel
from starlette.responses import PlainTextResponse, Response

from app import __version__
from app.admin.responses import JsonResponse
from app.feeds.freshness import Freshness, ResourceState
from app.feeds.release import ReleaseStatus, ReleaseTracker
from app.process.long_work import LongWork
from app.telemetry.metrics import Metrics
from app.verbs.admission import ServingState
from core.mirror.cluster import ClusterMirror


class ResourceReadiness(BaseModel):
    """The state of the watch of one resource."""

    synced: bool
    serves: bool
    """Whether requests of schedulers read the objects of the resource. If not, only explanations do, and readiness does
    not depend on the resource."""
    absent: bool
    """Whether the API server lacks the resource. It is optional then, and skipped."""
    seconds_since_last_byte: float | None
    """Seconds since the last data of the watch. Null before the first sync, and for an absent resource."""
    problem: str | None
    """The error of the connection, in one line. Null without an error."""
    missing_rbac_rule: str | None
    """The rule that Kindred's ClusterRole lacks. Null if no rule is known to be missing."""


class Readiness(BaseModel):
    """Whether requests are evaluated with a complete and recent mirror, and the size of the mirror."""

    ready: bool
    generation: int
    """Generation of the mirror. Each event that changes the mirror increments it."""
    nodes: int
    pods: int
    """Pods that occupy a node."""
    pending: int
    """Pods without a node."""
    namespaces: int
    leader: str | None
    """The present or last leader. Empty if none is known, null without leader election, and for clients that need no
    authentication."""
    problems: list[str]
    """Reasons for not being ready: the shutdown, another leader, and each resource that is not synced or stale. For
    clients that need no authentication, only their kinds."""
    resources: dict[str, ResourceReadiness]
    """Resource -> its state. Empty if the mirror was loaded from a dump, and for clients that need no
    authentication."""


class Version(msgspec.Struct, frozen=True):
    """The version of Kindred, and the release of Kubernetes whose rules it applies."""

    version: str
    python: str
    kubernetes: ReleaseStatus


def health_router(
    mirror: ClusterMirror, freshness: Freshness, state: ServingState, release: ReleaseTracker, *, names: bool = True
) -> APIRouter:
    """Return the routes for probes and people.

    `names`: whether `/readyz` may name replicas and resources, and quote the API server. Otherwise it has kinds of
    problems and sums.
    """
    router = APIRouter()

    @router.get("/livez")
    async def livez() -> str:
        return "ok"

    @router.get("/readyz", responses={503: {"model": Readiness, "description": "Not ready."}})
    async def readyz(response: Response) -> Readiness:
        problems = [*state.problems(), *freshness.problems()]
        if problems:
            response.status_code = HTTPStatus.SERVICE_UNAVAILABLE
        leader = state.leadership.leader if state.leadership is not None else None
        kinds = [*state.kinds_of_problems(), *freshness.kinds_of_problems()]
        return Readiness(
            ready=not problems,
            generation=mirror.generation,
            nodes=len(mirror.nodes.slots),
            pods=len(mirror.pods),
            pending=len(mirror.pending),
            namespaces=len(mirror.namespaces),
            leader=leader if names else None,
            problems=problems if names else kinds,
            resources={state.plural: _readiness(state, freshness) for state in freshness.states if names},
        )

    @router.get("/version")
    async def version() -> Response:
        return JsonResponse(Version(__version__, platform.python_version(), release.status))

    return router


def _readiness(state: ResourceState, freshness: Freshness) -> ResourceReadiness:
    age = freshness.age(state)
    return ResourceReadiness(
        synced=state.synced,
        serves=state.serves,
        absent=state.absent,
        seconds_since_last_byte=None if age is None else round(age, 3),
        problem=state.problem or None,
        missing_rbac_rule=state.resource.rbac_rule if state.forbidden else None,
    )


_SCRAPES_EVERY: Final = 0.05
"""Seconds between two texts of the metrics. One takes 2 ms to make, so scrapes take at most 4 % of a CPU."""


def metrics_router(metrics: Metrics, work: LongWork) -> APIRouter:
    """Return the route of the metrics. It has only the text format, which every Prometheus reads."""
    router = APIRouter()
    making = asyncio.Lock()
    text, as_of = b"", -math.inf

    @router.get("/metrics", response_class=PlainTextResponse)
    async def scrape() -> Response:
        nonlocal text, as_of
        arrived = perf_counter()
        async with making:
            if as_of <= arrived:  # all that came before a text was begun get the same one
                await asyncio.sleep(as_of + _SCRAPES_EVERY - arrived)
                async with work.turn():
                    began = perf_counter()
                    text = b"".join(await work.all_of(metrics.pieces()))
                    as_of = began  # not of a text that failed
        return Response(text, media_type=Metrics.CONTENT_TYPE)

    return router
