"""The service as a user starts it: `kindred serve --demo` as a separate process, on a free port."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

_PATIENCE: Final = 30  # seconds until a process that does not end is killed


class DemoServer(NamedTuple):
    """The URLs of a running service, for schedulers and for people."""

    url: str
    admin: str


@contextmanager
def demo_server() -> Iterator[DemoServer]:
    """Yield the URLs of a running service; it is stopped at the end, and must then end with status 0."""
    command = [sys.executable, "-m", "app.commands.cli", "serve", "--demo", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:  # noqa: S603  # our own program
        try:
            if process.stdout is None:
                raise AssertionError("the process has no output")
            admin = announced(process.stdout, r"in a browser: (\S+)/")
            yield DemoServer(announced(process.stdout, r"answers at (\S+)"), admin)
        finally:
            process.send_signal(signal.SIGTERM)
            status = process.wait(_PATIENCE)
    if status != 0:
        raise AssertionError(f"the service ended with status {status}")


def announced(output: Iterable[str], pattern: str) -> str:
    """Read lines up to the first that has the pattern, and return its group. Raises AssertionError if none has."""
    found = next(filter(None, (re.search(pattern, line) for line in output)), None)
    if found is None:
        raise AssertionError("the service did not say where it listens")
    return found[1]
