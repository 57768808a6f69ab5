"""Moves as compressed JSON: 150,000 of them take 1 kB each as objects, 400 bytes as JSON, and 60 to 80 bytes so.

The child that answers a question owns its moves beside all that it copies of the service, so they are packed as soon as
a domain is finished, and unpacked a block at a time while they are sent.
"""

import zlib
from collections.abc import Collection, Iterable, Iterator
from itertools import chain, islice
from typing import Final

import msgspec
from msgspec.structs import replace

from app.simulation.responses import LossResponse
from core.simulation.moves import Move

_IN_BLOCK: Final = 256
_FAST: Final = 1
"""The level of compression: the names of pods and nodes hardly get smaller with more."""
_decoder: Final = msgspec.json.Decoder(list[Move])


class PackedMoves(Collection[Move]):
    """Moves that are packed. Each time that one is read, it is made anew."""

    def __init__(self, moves: Iterable[Move]) -> None:
        """Pack moves, each as it comes."""
        self._blocks: list[bytes] = []
        self._number = 0
        self.json_bytes = 0
        """The length of `json` in all."""
        left = iter(moves)
        while block := [*islice(left, _IN_BLOCK)]:
            text = msgspec.json.encode(block)[1:-1]
            self.json_bytes += len(text) + bool(self._blocks)  # with the comma before it
            self._number += len(block)
            self._blocks.append(zlib.compress(text, _FAST))

    def __len__(self) -> int:
        return self._number

    def __iter__(self) -> Iterator[Move]:
        for block in self._blocks:
            yield from _decoder.decode(b"[%b]" % zlib.decompress(block))

    def __contains__(self, move: object) -> bool:
        return any(each == move for each in self)

    def json(self) -> Iterator[bytes]:
        """Yield the JSON of the moves with commas between them, in pieces."""
        for number, block in enumerate(self._blocks):
            yield (b"," if number else b"") + zlib.decompress(block)


def response_json(response: object) -> tuple[int, Iterator[bytes]]:
    """Return the length of the JSON of a response, and the JSON in pieces. A loss has 60 MB, and packed moves."""
    parts = _loss_parts(response) if isinstance(response, LossResponse) else [msgspec.json.encode(response)]
    length = sum(part.json_bytes if isinstance(part, PackedMoves) else len(part) for part in parts)
    return length, chain.from_iterable(part.json() if isinstance(part, PackedMoves) else (part,) for part in parts)


def _loss_parts(response: LossResponse) -> list[bytes | PackedMoves]:
    head, tail = _around(replace(response, domains=()), "domains")
    parts: list[bytes | PackedMoves] = [head]
    for number, domain in enumerate(response.domains):
        moves = domain.moves if isinstance(domain.moves, PackedMoves) else PackedMoves(domain.moves)
        begin, end = _around(replace(domain, moves=()), "moves")
        parts += [b"," if number else b"", begin, moves, end]
    return [*parts, tail]


def _around(emptied: msgspec.Struct, field: str) -> tuple[bytes, bytes]:
    """Return the JSON of a struct before and behind the elements of a field that is empty.

    No other text can be taken for the field: within a string, a quote has a backslash before it.
    """
    begin, name, end = msgspec.json.encode(emptied).partition(b'"%b":[' % field.encode())
    return begin + name, end
