"""The progress of reading a request: its bytes against the limits of its port, and the next piece to parse."""

from typing import Final

from app.server.connections import Limits
from app.server.unread import Piece, Unread, head_of_whole_request

_RAW_BODIES: Final = 6
"""Limit of a request on the wire, in multiples of the largest body. It allows for the discarded bytes of a body that is
too large, and for chunk framing."""
_FIELD_COST: Final = 32
"""Bytes that each header counts in addition to its own, as in HTTP/2 (RFC 9113, 6.5.2). As Python objects, headers of 4
bytes take 40 times their size."""
_FRAMING_SHARE: Final = 16
"""Bytes of body for each further byte of framing that is allowed. It allows chunks of 100 bytes on average."""
_SHORT: Final = 4 * 1024
"""Bytes of headers or tiny chunks in one piece: at worst 1 ms."""
_LONG: Final = 64 * 1024
"""Bytes of large chunks in one piece."""
_FALSE_ENDS: Final = 64
"""Empty lines within a chunked body at which pieces are cut, because the body may end there. After this number, a short
piece may have the end of one request and the next request, and counts for both."""


class RequestProgress:
    """The request that is being read. Framing is everything around the body: chunk sizes, extensions, trailers."""

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
        self._head = 0  # bytes that the head counts for
        self._fields = 0  # headers of the head
        self.chunked = False
        """Whether the body is chunked."""
        self._left = 0  # bytes of the body to come, if its length is known
        self._body = 0
        self._framing = 0
        self._false_ends = 0

    def begin_body(self, length: int | None) -> None:
        """Begin to read a body. Without a length it is chunked."""
        if length is None:
            self.chunked = True
        else:
            self._left = length

    def whole(self, data: bytes) -> bool:
        """Return whether the data looks like one whole request. If so, begin it: it can be parsed in one piece."""
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
        """Start to count the bytes of a new piece."""
        self._piece = self._piece_head = size
        self.piece_body = 0

    @property
    def piece_framing(self) -> int:
        """Bytes of the last piece that are framing."""
        return self._piece - self.piece_body

    def add_body(self, size: int) -> None:
        """Count bytes that the parser reported as body."""
        self.piece_body += size
        self._left -= size
        self._body += size

    def add_trailer(self) -> None:
        """Count a header behind the body."""
        self._framing += _FIELD_COST

    def add_piece_to_head(self, fields: int) -> bool:
        """Count the last piece. The head has `fields` headers with it. Return whether the head is within the limits."""
        self._head += self._piece_head + _FIELD_COST * (fields - self._fields)
        self._fields = fields
        return self._head <= self._max_head

    def add_piece_to_body(self, *, at_end: bool) -> bool:
        """Count the last piece of a body that is not complete yet. Return whether its framing is within the limits.

        `at_end`: the piece was cut at a possible end of the body.
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
        """Whether the request is larger than any request may be."""
        return self._body + self._framing > self._max_raw

    def _begun(self, piece: Piece) -> Piece:
        self.begin_piece(len(piece))
        return piece

    def _framing_fits(self, framing: int) -> bool:
        return self._head + framing <= self._max_head + self._body // _FRAMING_SHARE
