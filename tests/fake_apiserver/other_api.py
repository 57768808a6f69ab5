"""GETs of APIs outside of the store. Each path has a function that makes the response."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from tests.fake_apiserver.faults import Kind
from tests.fake_apiserver.store import Store
from tests.fake_apiserver.wire import Request

Respond: TypeAlias = Callable[[Request], tuple[int, bytes]]
"""Returns status and body."""


@dataclass(frozen=True, slots=True)
class OtherRequest:
    """A request for another API."""

    respond: Respond
    kind: Kind = "get"
    method: str = "GET"

    def answer(self, _store: Store, request: Request) -> tuple[int, bytes]:
        """Return status and body."""
        return self.respond(request)


def other_request(request: Request, apis: Mapping[str, Respond]) -> OtherRequest | None:
    """Read the path. None if it is of no other API."""
    respond = apis.get(request.path)
    return None if respond is None else OtherRequest(respond)
