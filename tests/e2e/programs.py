"""Processes of the tests: started, waited for, and ended with those who started them."""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

PATIENCE: Final = 180.0
"""Seconds for what comes without a promise of when. An API server takes ten to start on two busy cores."""
_END_PATIENCE: Final = 15.0
_GIVEN_PORTS: Final[set[int]] = set()


class ProgramError(RuntimeError):
    """A program that did not become what it was started for; the message ends with its last lines."""


def free_port() -> int:
    """Return a port of the loopback that was free a moment ago, and another one each time.

    The kernel gives the same one twice, now and then, if nobody has bound it in between.
    """
    while True:
        with socket.create_server(("127.0.0.1", 0)) as server:
            port: int = server.getsockname()[1]
        if port not in _GIVEN_PORTS:
            _GIVEN_PORTS.add(port)
            return port


def wait_until(condition: Callable[[], bool], seconds: float, what: str, *, every: float = 0.1) -> float:
    """Wait until something holds, and return the seconds that it took. Raises TimeoutError, which names `what`."""
    begin = time.monotonic()
    while not condition():
        if time.monotonic() - begin > seconds:
            raise TimeoutError(f"{what}: not within {seconds:.0f} s")
        time.sleep(every)
    return time.monotonic() - begin


class Program:
    """A running program with its output in a file. As a context manager it has ended behind the block."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        log: Path,
        environment: Mapping[str, str] | None = None,
        *,
        folder: Path | None = None,
    ) -> None:
        self.name = name
        self.log = log
        # A test run that is killed takes its programs with it.
        guard = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
        with log.open("ab") as output:
            self._process = subprocess.Popen(  # noqa: S603  # our own arguments
                [*guard, *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
                cwd=folder,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    @property
    def pid(self) -> int:
        """Its process id: setpriv becomes the program itself."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether it has not ended by itself or otherwise."""
        return self._process.poll() is None

    def wait_until(self, ready: Callable[[], bool], seconds: float = PATIENCE) -> None:
        """Wait until it is what it was started for. Raises ProgramError, and then it has ended."""

        def ready_or_gone() -> bool:
            return not self.running or ready()

        try:
            wait_until(ready_or_gone, seconds, self.name)
        except TimeoutError as error:
            self.kill()
            raise ProgramError(f"{error}\n{self.last_lines()}") from None
        if not self.running:
            raise ProgramError(f"{self.name} ended with {self._process.returncode}\n{self.last_lines()}")

    def last_lines(self, count: int = 30) -> str:
        """Return the end of its output."""
        return "\n".join(self.log.read_text("utf-8", "replace").splitlines()[-count:])

    def kill(self) -> None:
        """End it at once, as a crash would."""
        self._process.kill()
        self._process.wait(_END_PATIENCE)

    def end(self) -> bool:
        """Ask it to end, and make it; tell whether it needed no more than to be asked."""
        if self.running:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(_END_PATIENCE)
            except subprocess.TimeoutExpired:
                self.kill()
                return False
        return True
