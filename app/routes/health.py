"""Liveness, readiness and version."""

import platform

from fastapi import APIRouter
from pydantic import BaseModel

from app import __version__
from core.mirror.cluster import ClusterMirror


class Readiness(BaseModel):
    """Whether questions are answered from a complete mirror, and what it holds."""

    ready: bool
    nodes: int
    pods: int
    namespaces: int


class Version(BaseModel):
    """Which program this is."""

    version: str
    python: str


def health_router(mirror: ClusterMirror) -> APIRouter:
    """Return the routes that probes and people ask. A mirror from a dump is complete before the port is open."""
    router = APIRouter()

    @router.get("/livez")
    async def livez() -> str:
        return "ok"

    @router.get("/readyz")
    async def readyz() -> Readiness:
        return Readiness(
            ready=True, nodes=len(mirror.nodes.slots), pods=len(mirror.pods), namespaces=len(mirror.namespaces)
        )

    @router.get("/version")
    async def version() -> Version:
        return Version(version=__version__, python=platform.python_version())

    return router
