"""Long bodies in chunks, made while others have their turns, so that no question waits for the whole of one."""

from collections.abc import AsyncIterator, Iterable
from typing import Final

from app.watch.turns import Turns

_CHUNK_BYTES: Final = 64 * 1024


async def in_chunks(pieces: Iterable[bytes]) -> AsyncIterator[bytes]:
    """Join pieces, of which each is made in a short time, to chunks that are worth sending."""
    turns = Turns()
    gathered: list[bytes] = []
    size = 0
    for piece in pieces:
        gathered.append(piece)
        size += len(piece)
        if size >= _CHUNK_BYTES:
            yield b"".join(gathered)
            gathered, size = [], 0
        if turns.over:
            await turns.give_way()
    if size:
        yield b"".join(gathered)
