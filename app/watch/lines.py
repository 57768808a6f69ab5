"""A byte stream to its lines, which end at a line feed and nothing else.

JSON may hold U+0085 and U+2028 unescaped, which text readers (httpx's `aiter_lines` among them) take for line ends.
"""

from typing import Final

MAX_LINE_BYTES: Final = 64 * 1024 * 1024
"""An object in etcd has at most 1.5 MiB; a line without end must not take all memory."""


class LineTooLongError(ValueError):
    """A line of more than MAX_LINE_BYTES."""


class LineSplitter:
    """Gathers chunks that break anywhere, and gives whole lines."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that a chunk completes, without their line feeds. Raises LineTooLongError."""
        *lines, rest = chunk.split(b"\n")
        if lines and self._pieces:
            # Joined once a line, not once a chunk: a 1 MB object comes in dozens of chunks.
            lines[0] = b"".join((*self._pieces, lines[0]))
        if lines:
            self._pieces, self._size = [], 0
        if rest:
            self._pieces.append(rest)
            self._size += len(rest)
            if self._size > MAX_LINE_BYTES:
                raise LineTooLongError(f"a line of more than {MAX_LINE_BYTES} bytes")
        return lines

    @property
    def unfinished(self) -> bool:
        """Whether the stream so far ends in the middle of a line."""
        return self._size > 0
