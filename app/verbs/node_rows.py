"""Makes text for thousands of nodes without a Python loop over the nodes."""

from collections.abc import Iterable, Sequence
from itertools import chain, repeat
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Piece: TypeAlias = bytes | NDArray[np.bytes_ | np.object_]
"""One value for every node, or an array with a value for each. An array is padded with NUL, which no JSON text has, or
has bytes objects if it would be mostly padding."""

_FEW: Final = 3
"""Up to this number of NULs a node, `replace`, at 12 ns each, removes them faster than a mask over the whole text."""


def rows(count: int, *pieces: Piece) -> bytearray | bytes:
    """Return the joined pieces of the first node, then of the second, and so on, without padding.

    5,000 objects `{"Host":"NAME","Score":7}` take 0.04 ms if the names have one length, and 0.15 ms otherwise. With
    names in a list of bytes they take 0.2 ms.
    """
    if not count:
        return b""
    if any(not isinstance(piece, bytes) and piece.dtype == np.object_ for piece in pieces):
        return _joined(count, pieces)
    row = b"".join([piece if isinstance(piece, bytes) else bytes(piece.itemsize) for piece in pieces])
    text = bytearray(row) * count
    offset = 0
    for piece in pieces:
        if isinstance(piece, bytes):
            offset += len(piece)
        else:
            column = np.ndarray((count,), piece.dtype, text, offset, (len(row),))
            column[:] = piece
            offset += piece.itemsize
    return _without_padding(text, count)


def _joined(count: int, pieces: Sequence[Piece]) -> bytes:
    """Return the result of `rows`. Time and memory depend on the bytes of the pieces, not on the longest piece."""
    columns: list[Iterable[bytes]] = [
        repeat(piece, count) if isinstance(piece, bytes) else piece.tolist() for piece in pieces
    ]
    return b"".join(chain.from_iterable(zip(*columns, strict=True)))


def _without_padding(text: bytearray, count: int) -> bytearray | bytes:
    if 0 not in text:
        return text
    characters = np.frombuffer(text, np.uint8)
    is_padding = characters == 0
    few = np.count_nonzero(is_padding) <= _FEW * count
    return text.replace(b"\0", b"") if few else characters[~is_padding].tobytes()
