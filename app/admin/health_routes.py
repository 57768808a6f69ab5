"""Liveness, readiness and version."""

import platform
from http import HTTPStatus

from fastapi import APIRouter, Response
from msgspec.structs import asdict
from pydantic import BaseModel

from app import __version__
from app.answered_release import AnsweredRelease, ReleaseSource
from app.verbs.serving_state import ServingState
from app.watch.freshness import Freshness, ResourceState
from core.mirror.cluster import ClusterMirror


class ResourceReadiness(BaseModel):
    """How far the mirror follows one resource."""

    synced: bool
    serves: bool
    """Whether schedulers are answered from its objects. If not, only explanations read them, and readiness does not
    depend on them."""
    absent: bool
    """The API server does not have the resource, and need not: it is passed over."""
    seconds_since_last_byte: float | None
    """Since the API server last showed that the mirror follows it; null before the first sync, and if it is absent."""
    problem: str | None
    """The error of the connection, in one line; null without one."""
    missing_rbac_rule: str | None
    """The rule of a ClusterRole that Kindred lacks; null when none is known to be missing."""


class Readiness(BaseModel):
    """Whether requests are evaluated with a complete and recent mirror, and the size of the mirror."""

    ready: bool
    generation: int
    """Of the mirror: each event that changes it makes it one more."""
    nodes: int
    pods: int
    """Pods that occupy a node."""
    pending: int
    """Pods without a node."""
    namespaces: int
    leader: str | None
    """Which replica leads, or led last; empty if none is known, null without leader election."""
    problems: list[str]
    """Why it is not ready: it ends, another replica leads, and a line for each resource that is not synced or is
    stale."""
    resources: dict[str, ResourceReadiness]
    """By resource; empty where the mirror was loaded from a dump."""


class KubernetesRelease(BaseModel):
    """The release of Kubernetes whose answers are given."""

    release: str
    """`1.37`"""
    source: ReleaseSource
    """`setting`; `server`: the API server; `nodes`, `case`: a dump; `default`: nothing says which."""
    exact: bool
    """False: the source named an unknown release, or none, and this is the nearest known one."""
    told: str
    """The reported version, as `v1.37.1`; empty without one."""
    ignored_gates: list[str]
    """Feature gates of the settings that the release does not have, or has locked."""


class Version(BaseModel):
    """Which program this is, and which Kubernetes it answers for."""

    version: str
    python: str
    kubernetes: KubernetesRelease


def health_router(
    mirror: ClusterMirror, freshness: Freshness, state: ServingState, release: AnsweredRelease
) -> APIRouter:
    """Return the routes that probes and people ask."""
    router = APIRouter()

    @router.get("/livez")
    async def livez() -> str:
        return "ok"

    @router.get("/readyz")
    async def readyz(response: Response) -> Readiness:
        problems = [*state.problems(), *freshness.problems()]
        if problems:
            response.status_code = HTTPStatus.SERVICE_UNAVAILABLE
        return Readiness(
            ready=not problems,
            generation=mirror.generation,
            nodes=len(mirror.nodes.slots),
            pods=len(mirror.pods),
            pending=len(mirror.pending),
            namespaces=len(mirror.namespaces),
            leader=state.leadership.leader if state.leadership is not None else None,
            problems=problems,
            resources={state.plural: _readiness(state, freshness) for state in freshness.states},
        )

    @router.get("/version")
    async def version() -> Version:
        kubernetes = KubernetesRelease(**asdict(release.status))
        return Version(version=__version__, python=platform.python_version(), kubernetes=kubernetes)

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
