"""What a request may hold at most, and an error may say, whichever the verb."""

from typing import Final

import msgspec

from app.watch.decode import DecodeError

MAX_NODES: Final = 100_000
"""Nodes in one request; 5,000 is the largest supported cluster."""
FEW_BYTES: Final = 1024 * 1024
"""A body up to here is not worth counting."""
_MAX_ELEMENTS: Final = 5_000_000
"""JSON elements in one body. A decoded element takes up to 80 bytes, however short it was: `{},` 3 bytes, or 64 MiB of
them 3 GB. The limit is 1,000 elements for each of 5,000 whole nodes."""
_LONGEST_ERROR: Final = 8192  # characters; a message may quote what the request holds


def refuse_too_many_elements(body: bytes) -> None:
    """Refuse a body that would be too large when it is decoded. Raises DecodeError."""
    if len(body) > FEW_BYTES and body.count(b",") > _MAX_ELEMENTS:
        raise DecodeError("body", f"more than {_MAX_ELEMENTS} elements")


def error_json(message: str) -> bytes:
    """Return a message as JSON, cut to a length that a log line can take."""
    return msgspec.json.encode(message[:_LONGEST_ERROR])
