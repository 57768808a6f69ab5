"""Text that is made for thousands of nodes at once, without a loop over them."""

from collections.abc import Iterable, Sequence
from itertools import chain, repeat
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Piece: TypeAlias = bytes | NDArray[np.bytes_ | np.object_]
"""A value that is the same for every node, or an array of values: padded with NUL, which is in no JSON text, or as
bytes objects if the array would be mostly padding."""

_FEW: Final = 3
"""NULs a node, up to which `replace` takes them out faster, at 12 ns each, than a mask over everything does."""


def rows(count: int, *pieces: Piece) -> bytearray | bytes:
    """Return the pieces of each node one behind the other, for one node after the other, without padding.

    5,000 objects `{"Host":"NAME","Score":7}` take 0.04 ms where the names are of one length, and 0.15 ms where they
    are not; from a list of bytes it is 0.2 ms.
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
    """Return the same as `rows`, in time and memory by the bytes that are there, not by the longest piece."""
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
