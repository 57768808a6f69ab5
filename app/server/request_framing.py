"""The framing of a body by its head: checks rules of HTTP/1.1 (RFC 9112) that the parser does not check."""

from collections.abc import Iterable
from typing import Final

_VERSIONS: Final = frozenset({"1.0", "1.1"})
_UPGRADE: Final = b"upgrade"


class FramingError(Exception):
    """The head is not HTTP/1.1, or its body has an unsupported coding."""


def body_length(version: str, headers: Iterable[tuple[bytes, bytes]]) -> int | None:
    """Return the length of the body, or None for a chunked body. Names of headers are in lower case.

    Raises FramingError. The parser rejects lengths that are no numbers or contradict each other. But it accepts any
    version up to 2.0. It accepts any coding before `chunked`, and would treat the coded body as plain. It accepts
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
    """Return a head without its `Upgrade`, which a server may ignore (RFC 9110, 7.8). Raises FramingError.

    A CONNECT requests a tunnel and has no body, so it is an error here.
    """
    if method == b"CONNECT":
        raise FramingError
    lines = [b"%b %b HTTP/%b" % (method, url, version.encode())]
    lines.extend(b"%b: %b" % header for header in headers if header[0] != _UPGRADE)
    return b"\r\n".join((*lines, b"", b""))
