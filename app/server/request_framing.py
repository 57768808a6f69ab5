"""The framing of a body by its head, held to HTTP/1.1 (RFC 9112) where the parser is more lenient."""

from collections.abc import Iterable
from typing import Final

_VERSIONS: Final = frozenset({"1.0", "1.1"})
_UPGRADE: Final = b"upgrade"


class FramingError(Exception):
    """The head is not one of HTTP/1.1, or its body has a coding that is not read here."""


def body_length(version: str, headers: Iterable[tuple[bytes, bytes]]) -> int | None:
    """Return how long the body is; None if it comes in chunks. Names of headers are in small letters.

    Raises FramingError. The parser has rejected lengths that are no numbers or contradict each other. It takes any
    version up to 2.0, and any coding before `chunked`, whose body would then be read as if it were not coded. It takes
    `chunked` in HTTP/1.0, which a proxy in front may not support (RFC 9112, 6.1).
    """
    if version not in _VERSIONS:
        raise FramingError
    length: int | None = 0
    for name, value in headers:
        if name == b"content-length":
            length = int(value)
        elif name == b"transfer-encoding":
            if version != "1.1" or value.strip().lower() != b"chunked":
                raise FramingError
            length = None
    return length


def head_without_upgrade(method: bytes, url: bytes, version: str, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return a head as it was, but for `Upgrade`, which a server may ignore (RFC 9110, 7.8). Raises FramingError.

    CONNECT asks for a tunnel and has no body to be read.
    """
    if method == b"CONNECT":
        raise FramingError
    lines = [b"%b %b HTTP/%b" % (method, url, version.encode())]
    lines.extend(b"%b: %b" % header for header in headers if header[0] != _UPGRADE)
    return b"\r\n".join((*lines, b"", b""))
