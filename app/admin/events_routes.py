"""`GET /events` of the admin port: the state of the mirror as server-sent events, whenever it changes.

Each stream reads the state once a second, which costs a few microseconds. The mirror has no listeners.
app/server/port.py closes the connection of a client that does not read. The streams end when the shutdown
begins, so that the ports close without a wait.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from http import HTTPStatus
from typing import Final

from fastapi import APIRouter, HTTPException, Response
from starlette.responses import StreamingResponse

from app.explain.explainer import MirrorState
from app.json_text import encode
from app.verbs.serving_state import ServingState

MAX_FOLLOWERS: Final = 64
"""Clients at a time. Each holds one of the port's connections."""
_EVERY: Final = 5
"""Ticks between two reads of the state."""
_TICK: Final = 0.2
"""Seconds within which a stream notices the shutdown."""
_SILENCE: Final = 75
"""Ticks without a change after which a comment is sent. With it each side detects that the other has disconnected."""
_COMMENT: Final = b": nothing has changed\n\n"


def events_router(state_of: Callable[[], MirrorState], serving: ServingState) -> APIRouter:
    """Return the route. It is not in the OpenAPI description, because OpenAPI cannot describe an endless stream."""
    router = APIRouter()
    followers = _Followers(state_of, serving)

    @router.get("/events", include_in_schema=False)
    async def events() -> Response:
        if serving.draining:
            raise HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, "the service is ending")
        if followers.number >= MAX_FOLLOWERS:
            raise HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, f"{MAX_FOLLOWERS} clients already follow the service")
        return StreamingResponse(followers.follow(), media_type="text/event-stream")

    return router


class _Followers:
    """The streams that are open."""

    def __init__(self, state_of: Callable[[], MirrorState], serving: ServingState) -> None:
        self.number = 0
        self._state_of = state_of
        self._serving = serving

    async def follow(self) -> AsyncIterator[bytes]:
        """Yield the present state and each later one, at most one a second, until the shutdown."""
        self.number += 1  # not in the caller: a stream that never starts never reaches `finally`
        try:
            async for chunk in self._changes():
                yield chunk
        finally:
            self.number -= 1

    async def _changes(self) -> AsyncIterator[bytes]:
        told, tick, silent = b"", 0, 0
        while not self._serving.draining:
            if tick % _EVERY == 0 and (state := encode(self._state_of())) != told:
                told, silent = state, 0
                yield b"data: " + state + b"\n\n"
            elif silent >= _SILENCE:
                silent = 0
                yield _COMMENT
            await asyncio.sleep(_TICK)
            tick, silent = tick + 1, silent + 1
