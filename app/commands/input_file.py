"""The input of a command: a file, a pipe or a device, whole, and never more than fits into memory."""

import io
import os
import stat
from typing import IO, Final

_AT_ONCE: Final = 1024 * 1024  # bytes


class InputError(ValueError):
    """Something that is not read, or not to its end; the message says why."""


def read_input(file: IO[bytes], most: int, limit: str) -> bytes:
    """Return all that there is to read, of at most so many bytes; `limit` says for people which bound that is.

    The size of a regular file is looked at before it is read. A pipe or a device may have no end. Text has no NUL,
    which identifies /dev/zero at once; the bound stops all others. Raises InputError.
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
            return chunk  # a copy of 2 GB would be one too many
        found.write(chunk)
        if found.tell() > most:
            raise InputError(f"more than {most} bytes ({limit})")
        size = 0
    return found.getvalue()


def _size(file: IO[bytes]) -> int:
    """Return the size of a regular file; 0 where it is not known before the end, as of /proc. Raises InputError."""
    try:
        status = os.fstat(file.fileno())
    except OSError:  # not an error of the system
        return 0
    if stat.S_ISBLK(status.st_mode):
        raise InputError("a block device; expected a file or a pipe")
    return status.st_size if stat.S_ISREG(status.st_mode) else 0
