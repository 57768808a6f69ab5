"""The settings of the service, and the source of each."""

from collections.abc import Mapping

from fastapi import APIRouter
from pydantic import BaseModel, JsonValue

from app.configuration import effective
from app.settings import Settings


class EffectiveSetting(BaseModel):
    """One setting."""

    value: JsonValue
    source: str
    """A flag, a variable, a file with the key, or `default`."""


def config_router(settings: Settings, sources: Mapping[str, str]) -> APIRouter:
    """Return the route that lists key -> setting. `sources` has field -> the source of its value."""
    router = APIRouter()
    told = {key: EffectiveSetting(**entry) for key, entry in effective(settings, sources).items()}

    @router.get("/debug/config")
    async def config() -> dict[str, EffectiveSetting]:
        return told

    return router
