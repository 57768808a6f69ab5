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
    """A flag, a variable, or a file with the key; or `default`."""


def config_router(settings: Settings, sources: Mapping[str, str]) -> APIRouter:
    """Return the route that tells key -> setting; `sources` has field -> where its value is from."""
    router = APIRouter()
    told = {key: EffectiveSetting(**entry) for key, entry in effective(settings, sources).items()}

    @router.get("/debug/config")
    async def config() -> dict[str, EffectiveSetting]:
        return told

    return router
