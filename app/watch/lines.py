"""Splits a byte stream into lines. Only a line feed ends a line.

JSON may have U+0085 and U+2028 unescaped. Text readers, such as httpx's `aiter_lines`, treat them as line ends.
"""

from typing import Final

MAX_LINE_BYTES: Final = 16 * 1024 * 1024
"""An object in etcd has at most 1.5 MiB by default. Its JSON may be six times as large, if every character is escaped.
A tenant can make such a pod, and some etcds have a higher limit. An endless line must not take all memory."""


class LineTooLongError(ValueError):
    """A line of more than MAX_LINE_BYTES."""


class LineSplitter:
    """Collects chunks that break anywhere, and returns whole lines."""

    def __init__(self) -> None:
        self._unfinished = bytearray()

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that a chunk completes, without their line feeds. Raises LineTooLongError."""
        *lines, rest = chunk.split(b"\n")
        if lines and self._unfinished:
            # One growing buffer, not a list of pieces: pieces may have one byte each.
            self._unfinished += lines[0]
            lines[0] = bytes(self._unfinished)
            self._unfinished = bytearray()
        if rest:
            self._unfinished += rest
        if len(self._unfinished) > MAX_LINE_BYTES or (lines and len(lines[0]) > MAX_LINE_BYTES):
            raise LineTooLongError(f"a line of more than {MAX_LINE_BYTES} bytes")
        return lines

    @property
    def unfinished(self) -> bool:
        """Whether the stream so far ends in the middle of a line."""
        return bool(self._unfinished)
