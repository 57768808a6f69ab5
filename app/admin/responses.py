"""Responses of the admin port: a value as JSON, a long body in chunks, and a large value that requests share.

A client that reads slowly holds the source of its body in memory, but not the text, and not the turn.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from http import HTTPStatus
from time import monotonic, thread_time
from typing import Annotated, Final, Generic, TypeAlias, TypeVar

from fastapi import HTTPException, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import StreamingResponse

from app.process.json_text import encode
from app.process.long_work import LongWork


class StrictQuery(BaseModel):
    """The parameters of a query. An unknown one is an error."""

    model_config = ConfigDict(extra="forbid")


AtMostOne = Annotated[list[Annotated[str, Field(min_length=1)]], Field(default=[], max_length=1)]
"""A parameter of a query that may be missing. A list, because FastAPI takes the last one where it is given twice."""


class JsonResponse(Response):
    """A value as JSON. FastAPI would first copy the value by pydantic, which does not support msgspec structs."""

    media_type = "application/json"

    def render(self, content: object) -> bytes:
        """Return the body."""
        return encode(content)


Encoder: TypeAlias = Callable[[object], bytes]
_CHUNK_BYTES: Final = 64 * 1024
MAX_READERS: Final = 32
"""Clients at a time that read a long text. One that reads slowly holds a copy of, say, all nodes for hours. With one on
each connection of the port, these copies would take a gigabyte."""


def streamed(pieces: Iterable[bytes], work: LongWork) -> Response:
    """Return the response with a long text of JSON, which is made while the client reads it. Raises HTTPException."""
    if work.readers >= MAX_READERS:
        detail = f"{MAX_READERS} clients already read long texts: try again"
        raise HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, detail)
    return StreamingResponse(in_chunks(pieces, work), media_type=JsonResponse.media_type)


async def in_chunks(pieces: Iterable[bytes], work: LongWork) -> AsyncIterator[bytes]:
    """Join pieces to chunks that are worth sending. Each piece must take little time to make."""
    remaining = iter(pieces)
    work.readers += 1  # not in the caller: a stream that never starts never reaches `finally`
    try:
        while True:
            async with work.turn():
                chunk = await _chunk(remaining, work)
            if not chunk:
                return
            yield chunk
    finally:
        work.readers -= 1


def list_pieces(values: Iterable[object], text: Encoder = encode) -> Iterator[bytes]:
    """Yield a list as JSON, one value at a time."""
    yield b"["
    for place, value in enumerate(values):
        yield b"," * bool(place) + text(value)
    yield b"]"


async def _chunk(remaining: Iterator[bytes], work: LongWork) -> bytes:
    """Return the next chunk, made in one turn. Empty after the last chunk."""
    gathered: list[bytes] = []
    size = 0
    for piece in remaining:
        gathered.append(piece)
        size += len(piece)
        if size >= _CHUNK_BYTES:
            break
        if work.over:
            await work.checkpoint()
    return b"".join(gathered)


Copy = TypeVar("Copy")

_OLDEST: Final = 1.0
"""Seconds after which a new copy is made."""
_CHEAP: Final = 0.005
"""Seconds of CPU. A copy that costs less is made for each request, so that small clusters are shown without delay."""


class SharedCopy(Generic[Copy]):
    """The latest copy. Requests within a second of its making share it. Afterwards it is released."""

    def __init__(self, make: Callable[[], Awaitable[Copy]]) -> None:
        """`make` returns a copy of the present state. Only one call runs at a time."""
        self._make = make
        self._lock = asyncio.Lock()
        self._copy: Copy | None = None
        self._made_at = 0.0

    async def get(self) -> Copy:
        """Return a copy that is at most a second old when this returns."""
        async with self._lock:
            if self._copy is not None and monotonic() - self._made_at <= _OLDEST:
                return self._copy
            began = thread_time()
            copy = await self._make()
            if thread_time() - began > _CHEAP:
                self._copy, self._made_at = copy, monotonic()
                asyncio.get_running_loop().call_later(_OLDEST, self._release, copy)
            return copy

    def _release(self, copy: Copy) -> None:
        if self._copy is copy:
            self._copy = None
