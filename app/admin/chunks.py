"""Long bodies in chunks. Each chunk is made in its own turn, while no verb request waits.

A client that reads slowly holds the source of its body in memory, but not the text, and not the turn.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Final, TypeAlias

from app.json_text import encode
from app.long_work import LongWork

Encoder: TypeAlias = Callable[[object], bytes]
_CHUNK_BYTES: Final = 64 * 1024


async def in_chunks(pieces: Iterable[bytes], work: LongWork) -> AsyncIterator[bytes]:
    """Join pieces to chunks that are worth sending. Each piece must take little time to make."""
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
    """Return the next chunk, made in one turn. Empty after the last chunk."""
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
