"""The service as a user starts it: `kindred serve --demo` as a process of its own, on a free port."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_PATIENCE: Final = 30  # seconds until a process that does not end is killed


@contextmanager
def demo_server() -> Iterator[str]:
    """Give the URL of a running service; it is stopped at the end, and must then end with status 0."""
    command = [sys.executable, "-m", "app.commands.cli", "serve", "--demo", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:  # noqa: S603  # our own program
        try:
            if process.stdout is None:
                raise AssertionError("the process has no output")
            announced = re.search(r"answers at (\S+)", process.stdout.readline())
            if announced is None:
                raise AssertionError("the service did not say where it listens")
            yield announced[1]
        finally:
            process.send_signal(signal.SIGTERM)
            status = process.wait(_PATIENCE)
    if status != 0:
        raise AssertionError(f"the service ended with status {status}")
