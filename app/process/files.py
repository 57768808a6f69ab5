"""Reads a file up to a bound.

Only files of the kernel and of the package itself are read in another way (tests/app/test_files.py has the list).
"""

import os
import select
import stat
import time
from errno import EFBIG, ETIMEDOUT
from pathlib import Path
from typing import Final

MAX_TOKEN_BYTES: Final = 64 * 1024
"""Bytes of a token. The API server issues tokens of about 1 KB."""
MAX_CONFIGURATION_BYTES: Final = 1024 * 1024
"""Bytes of a file of settings, of a kubeconfig and of a configuration of kube-scheduler."""
MAX_PEM_BYTES: Final = 1024 * 1024
"""Bytes of certificates or a key. The authorities of an operating system take about 220 KB."""
_PATIENCE: Final = 10.0  # seconds until a pipe has ended
_AT_ONCE: Final = 64 * 1024  # bytes


def read_file(path: Path, most: int, *, patience: float = _PATIENCE) -> bytes:
    """Return the contents of a file of at most `most` bytes.

    A device has no end, and neither may a pipe. So a longer file raises an OSError with EFBIG, and a pipe that has not
    ended after `patience` seconds one with ETIMEDOUT. Any other OSError is the system's.
    """
    until = time.monotonic() + patience
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # else a pipe waits here for its writer
    try:
        regular = stat.S_ISREG(os.fstat(file).st_mode)
        found = bytearray()
        while len(found) <= most:
            if not regular:
                _await(file, until, path)
            chunk = os.read(file, min(_AT_ONCE, most + 1 - len(found)))
            if not chunk:
                return bytes(found)
            found += chunk
    finally:
        os.close(file)
    raise OSError(EFBIG, f"more than {most} bytes", str(path))


def _await(file: int, until: float, path: Path) -> None:
    """Wait until a pipe or a device has data, or has ended."""
    poll = select.poll()
    poll.register(file, select.POLLIN)
    if not poll.poll(max(0.0, until - time.monotonic()) * 1000):
        raise OSError(ETIMEDOUT, "a pipe or a device that does not end", str(path))
