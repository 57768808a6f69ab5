"""Limits of requests and of error messages, for every verb."""

from typing import Final, TypeAlias

import msgspec
import numpy as np

from app.objects.decode import DecodeError

Body: TypeAlias = bytes | bytearray
"""Of a request, as it was gathered: to copy 32 MB takes up to 10 ms."""
MAX_NODES: Final = 100_000
"""Nodes in one request; 5,000 is the largest supported cluster."""
FEW_BYTES: Final = 1024 * 1024
"""A body up to here is not worth counting."""
_MAX_ELEMENTS: Final = 5_000_000
"""JSON elements in one body. A decoded element takes up to 80 bytes, however short it was: `{},` 3 bytes, or 64 MiB of
them 3 GB. The limit is 1,000 elements for each of 5,000 whole nodes."""
_COUNTED_AT_ONCE: Final = 256 * 1024  # bytes: the compared data stays in the CPU's cache
_MAX_ERROR_LENGTH: Final = 8192  # characters; a message may quote the request
_MAX_REASON_LENGTH: Final = 1024
"""Characters of why a node failed. It occurs once for each node, and may quote a name of any length, such as a claim's:
with one of 30 KB the response about 5,000 nodes was 150 MB."""


def refuse_too_many_elements(body: Body) -> None:
    """Refuse a body that would be too large when it is decoded. Raises DecodeError."""
    if len(body) > FEW_BYTES and _commas(body) > _MAX_ELEMENTS:
        raise DecodeError("body", f"more than {_MAX_ELEMENTS} elements")


def _commas(body: Body) -> int:
    """Count the commas: 3.5 ms for whole nodes of 30 MB, where `bytes.count`, which stops at each, takes 15."""
    characters = np.frombuffer(body, np.uint8)
    return sum(
        int(np.count_nonzero(characters[start : start + _COUNTED_AT_ONCE] == ord(",")))
        for start in range(0, len(characters), _COUNTED_AT_ONCE)
    )


def error_json(message: str) -> bytes:
    """Return a message as JSON, cut to a length that a log line can take."""
    return msgspec.json.encode(message[:_MAX_ERROR_LENGTH])


def reason_json(message: str) -> bytes:
    """Return why a node failed as JSON, cut to a length that a response can have once for each node."""
    return msgspec.json.encode(message[:_MAX_REASON_LENGTH])
