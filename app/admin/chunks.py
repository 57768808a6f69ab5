"""Long bodies in chunks, each made in a turn of its own, while no request waits.

A client that reads slowly keeps the source of its body, and neither the text of it nor the turn.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Final, TypeAlias

from app.json_text import encode
from app.long_work import LongWork

Encoder: TypeAlias = Callable[[object], bytes]
_CHUNK_BYTES: Final = 64 * 1024


async def in_chunks(pieces: Iterable[bytes], work: LongWork) -> AsyncIterator[bytes]:
    """Join pieces, of which each is made in a short time, to chunks that are worth sending."""
    remaining = iter(pieces)
    while True:
        async with work.turn():
            chunk = await _chunk(remaining, work)
        if not chunk:
            return
        yield chunk


def list_pieces(values: Iterable[object], text: Encoder = encode) -> Iterator[bytes]:
    """Yield a list as JSON, one value at a time."""
    yield b"["
    for place, value in enumerate(values):
        yield b"," * bool(place) + text(value)
    yield b"]"


async def _chunk(remaining: Iterator[bytes], work: LongWork) -> bytes:
    """Return the next chunk, empty after the last one; within a turn."""
    gathered: list[bytes] = []
    size = 0
    for piece in remaining:
        gathered.append(piece)
        size += len(piece)
        if size >= _CHUNK_BYTES:
            break
        if work.over:
            await work.give_way()
    return b"".join(gathered)
