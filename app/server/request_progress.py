"""The progress of reading a request: its bytes against the limits of its port, and the next piece to parse."""

from typing import Final

from app.server.connections import Limits
from app.server.unread import Piece, Unread, head_of_whole_request

_RAW_BODIES: Final = 6
"""A request on the wire may have this many times the largest body: for discarded bytes of one that is too large, and
for the encoding in chunks."""
_FIELD_COST: Final = 32
"""Bytes that a header counts for besides its own, as in HTTP/2 (RFC 9113, 6.5.2). As objects, headers of 4 bytes take
40 times their size."""
_FRAMING_SHARE: Final = 16
"""Bytes of body that allow a byte of framing more than a head may have: chunks of 100 bytes on average."""
_SHORT: Final = 4 * 1024
"""Bytes of headers or tiny chunks that are parsed in one go: 1 ms at worst."""
_LONG: Final = 64 * 1024
"""Bytes of large chunks that are parsed in one go."""
_FALSE_ENDS: Final = 64
"""Empty lines within a body in chunks that are taken for its end. Past them, a short piece
may hold the end of a request and the next one, which then counts for both."""


class RequestProgress:
    """The request that is being read. Framing is all that is not the body: chunk sizes, extensions, trailers."""

    def __init__(self, limits: Limits) -> None:
        self._max_head = limits.max_header_bytes
        self._max_raw = _RAW_BODIES * limits.max_body_bytes
        self.piece_body = 0
        """Bytes of a body in the last piece."""
        self._piece = 0  # bytes of the last piece
        self._piece_head = 0  # headers of a head
        self._stride = _SHORT
        self.begin()

    def begin(self) -> None:
        """Begin to read a head."""
        self._head = 0  # what it counts for
        self._fields = 0  # headers that are in it
        self.chunked = False
        """Whether the body comes in chunks."""
        self._left = 0  # bytes of the body to come, if its length is known
        self._body = 0
        self._framing = 0
        self._false_ends = 0

    def begin_body(self, length: int | None) -> None:
        """Begin to read a body; without a length it comes in chunks."""
        if length is None:
            self.chunked = True
        else:
            self._left = length

    def whole(self, data: bytes) -> bool:
        """Return whether the data looks like one whole request, to be parsed in one piece, and begin it if so."""
        self._piece_head = head_of_whole_request(data, _SHORT)
        self._piece = len(data)
        self.piece_body = 0
        return self._piece_head > 0

    def piece_of_head(self, unread: Unread) -> Piece:
        """Return the next piece to parse, up to the end of the head."""
        return self._begun(unread.take_until_end(_SHORT))

    def piece_of_body(self, unread: Unread) -> Piece:
        """Return the next piece to parse, up to the end of the body."""
        if not self.chunked:
            return self._begun(unread.take(self._left or _SHORT))
        if self._false_ends < _FALSE_ENDS:
            return self._begun(unread.take_until_end(self._stride))
        return self._begun(unread.take(_SHORT))

    def begin_piece(self, size: int) -> None:
        """Start counting the parser's findings here."""
        self._piece = self._piece_head = size
        self.piece_body = 0

    @property
    def piece_framing(self) -> int:
        """Bytes of the last piece that are no body."""
        return self._piece - self.piece_body

    def add_body(self, size: int) -> None:
        """Count bytes that the parser has found to be body."""
        self.piece_body += size
        self._left -= size
        self._body += size

    def add_trailer(self) -> None:
        """Count a header behind the body."""
        self._framing += _FIELD_COST

    def add_piece_to_head(self, fields: int) -> bool:
        """Count the last piece, with which the head has so many headers; return whether it is within the limits."""
        self._head += self._piece_head + _FIELD_COST * (fields - self._fields)
        self._fields = fields
        return self._head <= self._max_head

    def add_piece_to_body(self, *, at_end: bool) -> bool:
        """Count the last piece, after which the body goes on; return whether its framing is within the limits.

        `at_end`: the piece was cut where the body might have ended.
        """
        if not self.chunked:
            return True
        framing = self.piece_framing
        self._framing += framing
        self._false_ends += at_end
        self._stride = _SHORT if 8 * framing > self._piece else min(2 * self._stride, _LONG)
        return self._framing_fits(self._framing)

    def body_fits_at_end(self) -> bool:
        """Return whether the framing of a chunked body that ends with the last piece is within the limits."""
        return self._framing_fits(self._framing + self.piece_framing)

    @property
    def is_endless(self) -> bool:
        """Whether it has come to more than may be read of any request."""
        return self._body + self._framing > self._max_raw

    def _begun(self, piece: Piece) -> Piece:
        self.begin_piece(len(piece))
        return piece

    def _framing_fits(self, framing: int) -> bool:
        return self._head + framing <= self._max_head + self._body // _FRAMING_SHARE
