"""`GET /events` of the admin port: the state of the mirror as server-sent events, whenever it changes.

The state is read once a second for each client, which costs a few microseconds; nothing listens to the mirror. A client
that does not read is closed as any other is (app/server/bounded_protocol.py). The streams end when the process is about
to, so that its ports close without waiting for them.
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
"""Clients at once. Each holds one of the port's connections."""
_EVERY: Final = 5
"""Ticks between two looks at the state."""
_TICK: Final = 0.2
"""Seconds in which a stream notices that the process is about to end."""
_SILENCE: Final = 75
"""Ticks after which a comment is sent, so that a client knows that the service is there, and the service that it is."""
_COMMENT: Final = b": nothing has changed\n\n"


def events_router(state_of: Callable[[], MirrorState], serving: ServingState) -> APIRouter:
    """Return the route. It is not part of the OpenAPI description, which has no form for a stream without an end."""
    router = APIRouter()
    followers = _Followers(state_of, serving)

    @router.get("/events", include_in_schema=False)
    async def events() -> Response:
        if serving.draining:
            raise HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, "the service is about to end")
        if followers.number >= MAX_FOLLOWERS:
            raise HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, f"{MAX_FOLLOWERS} clients follow the service already")
        return StreamingResponse(followers.follow(), media_type="text/event-stream")

    return router


class _Followers:
    """The streams that are open."""

    def __init__(self, state_of: Callable[[], MirrorState], serving: ServingState) -> None:
        self.number = 0
        self._state_of = state_of
        self._serving = serving

    async def follow(self) -> AsyncIterator[bytes]:
        """Yield the state now, and each later one, at most one a second, until the process is about to end."""
        self.number += 1  # here, and not by the caller: a stream that is never begun is never ended either
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
