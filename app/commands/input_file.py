"""The input of a command: a file, a pipe or a device, whole, and never more than fits into memory."""

import io
import os
import stat
from typing import IO, Final

_AT_ONCE: Final = 1024 * 1024  # bytes


class InputError(ValueError):
    """The input cannot be read, or not to its end. The message says why."""


def read_input(file: IO[bytes], most: int, limit: str) -> bytes:
    """Return the whole input, of at most `most` bytes. `limit` names this bound in the error.

    The size of a regular file is checked before it is read. A pipe or a device may have no end. Text has no NUL, so a
    NUL identifies /dev/zero at once. The bound stops any other input. Raises InputError.
    """
    size = _size(file)
    if size > most:
        raise InputError(f"{size} bytes, more than {most} ({limit})")
    found = io.BytesIO()
    while chunk := file.read(size + 1 if size else _AT_ONCE):
        nul = chunk.find(b"\0")
        if nul >= 0:
            raise InputError(f"a NUL at byte {found.tell() + nul}: neither JSON nor YAML in UTF-8")
        if not found.tell() and len(chunk) == size:
            return chunk  # without a copy, which could take 2 GB
        found.write(chunk)
        if found.tell() > most:
            raise InputError(f"more than {most} bytes ({limit})")
        size = 0
    return found.getvalue()


def _size(file: IO[bytes]) -> int:
    """Return the size of a regular file; 0 if it is unknown before the end, as in /proc. Raises InputError."""
    try:
        status = os.fstat(file.fileno())
    except OSError:  # a stream without a file descriptor raises an OSError, too
        return 0
    if stat.S_ISBLK(status.st_mode):
        raise InputError("a block device; expected a file or a pipe")
    return status.st_size if stat.S_ISREG(status.st_mode) else 0
