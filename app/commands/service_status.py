"""The state of a running service, from several routes of its admin port."""

from http import HTTPStatus
from typing import Any, NamedTuple, TypeVar

import httpx
import msgspec
from pydantic import ValidationError

from app.admin.decisions_routes import LastDecisions
from app.admin.equivalence_routes import CacheState, Totals
from app.admin.health_routes import Readiness, Version
from app.commands.admin_client import NOT_UNDERSTOOD, Access, CannotAskError, asked, refusal
from app.json_text import decode

T = TypeVar("T")


class Status(NamedTuple):
    """The state of a service within a short time: each route is called once."""

    url: str
    readiness: Readiness
    version: Version
    cache: Totals | None
    """None if the equivalence cache is off."""
    decisions: LastDecisions
    """Only the last decision."""

    def as_json(self) -> dict[str, Any]:
        """Return the value for JSON and YAML."""
        decisions = self.decisions
        return {
            "server": self.url,
            "readiness": self.readiness.model_dump(mode="json"),
            "version": self.version.model_dump(mode="json"),
            "equivalence_cache": self.cache,
            "decisions": {
                "noted": decisions.noted,
                "kept": decisions.kept,
                "last": next(iter(decisions.decisions), None),
            },
        }


def service_status(access: Access) -> Status:
    """Call the admin port. Raises CannotAskError."""
    return Status(
        access["url"],
        _readiness(access),
        _version(access),
        _cache(access),
        _decoded(access, asked(access, "GET", "/debug/decisions", {"limit": 1}), LastDecisions),
    )


def _readiness(access: Access) -> Readiness:
    response = asked(access, "GET", "/readyz")
    if not response.is_success and response.status_code != HTTPStatus.SERVICE_UNAVAILABLE:
        raise CannotAskError(f"{access['url']}: {refusal(response)}")
    try:
        return Readiness.model_validate_json(response.content)
    except ValidationError:
        raise CannotAskError(f"{access['url']}: {NOT_UNDERSTOOD}") from None


def _version(access: Access) -> Version:
    response = asked(access, "GET", "/version")
    if not response.is_success:
        raise CannotAskError(f"{access['url']}: {refusal(response)}")
    try:
        return Version.model_validate_json(response.content)
    except ValidationError:
        raise CannotAskError(f"{access['url']}: {NOT_UNDERSTOOD}") from None


def _cache(access: Access) -> Totals | None:
    response = asked(access, "GET", "/debug/equivalence", {"limit": 0})
    if response.status_code == HTTPStatus.CONFLICT:  # the cache is off
        return None
    return _decoded(access, response, CacheState).totals


def _decoded(access: Access, response: httpx.Response, kind: type[T]) -> T:
    if not response.is_success:
        raise CannotAskError(f"{access['url']}: {refusal(response)}")
    try:
        return decode(response.content, kind)
    except msgspec.MsgspecError:
        raise CannotAskError(f"{access['url']}: {NOT_UNDERSTOOD}") from None
