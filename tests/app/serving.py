"""`kindred serve` as a process of its own, and requests that it has to wait for."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
ANY_PORT: Final = ("--listen", "127.0.0.1:0")
PATIENCE: Final = 60.0  # seconds for a start or an end: a start takes 2 of CPU, which may be 20 on busy CPUs


class Service:
    """A running `kindred serve`, with what it has printed so far."""

    def __init__(self, process: "subprocess.Popen[bytes]", folder: Path) -> None:
        self.process = process
        self._folder = folder

    @property
    def stdout(self) -> str:
        return (self._folder / "stdout").read_text()

    @property
    def stderr(self) -> str:
        return (self._folder / "stderr").read_text()

    @property
    def url(self) -> str:
        return self.announced(r"answers at (\S+)")

    @property
    def admin_url(self) -> str:
        return self.announced(r"Debugging at (\S+?)/debug")

    def announced(self, pattern: str) -> str:
        """Return what the service has said of itself."""
        found = re.search(pattern, self.stdout)
        assert found, self.stderr[-2000:]
        return found[1]

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.url.removeprefix("http://").rpartition(":")
        return host, int(port)

    def end(self, number: signal.Signals) -> int:
        """Send a signal and give the exit status."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)


@contextmanager
def kindred(
    folder: Path,
    *arguments: str,
    stdin: bytes = b"",
    environment: Mapping[str, str] | None = None,
    directory: Path = ROOT,
    module: str = "app.commands.cli",
) -> Iterator[Service]:
    """Run a command until it serves or ends, and see to it that it has ended afterwards."""
    command = [sys.executable, "-m", module, *arguments]
    (folder / "stdin").write_bytes(stdin)
    with (
        (folder / "stdin").open("rb") as given,
        (folder / "stdout").open("wb") as out,
        (folder / "stderr").open("wb") as err,
        subprocess.Popen(  # noqa: S603 - our own program
            command,
            stdin=given,
            stdout=out,
            stderr=err,
            cwd=directory,
            env={**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})},
            start_new_session=True,
        ) as process,
    ):
        service = Service(process, folder)
        try:
            until(lambda: process.poll() is not None or "answers at" in service.stdout)
            yield service
        finally:
            if process.poll() is None:
                process.kill()


@contextmanager
def demo_server(folder: Path) -> Iterator[Service]:
    """Run the demo as a user starts it, on a free port; it must end with status 0."""
    with kindred(folder, "serve", "--demo", *ANY_PORT) as service:
        until(lambda: "in a browser" in service.stdout)
        yield service
        assert service.end(signal.SIGTERM) == 0, service.stderr[-2000:]


def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition, with patience."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def connected(service: Service, text: bytes) -> socket.socket:
    """Open a connection and send text."""
    connection = socket.create_connection(service.address, PATIENCE)
    connection.sendall(text)
    return connection


def request_head(length: int) -> bytes:
    return b"POST /filter HTTP/1.1\r\nHost: kindred\r\nContent-Length: %d\r\n\r\n" % length
