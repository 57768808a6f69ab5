"""Runs a command with limits of time and output, because a plugin may print or wait without end."""

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO, Final, NamedTuple

_AT_ONCE: Final = 64 * 1024  # bytes, as much as a pipe holds


class CommandError(Exception):
    """A command that was killed. The message names the exceeded limit."""


class Output(NamedTuple):
    """The output of a command, and its exit status. The status is negative for a signal."""

    printed: bytes
    complaint: bytes
    status: int


def run_bounded(command: Sequence[str], environment: Mapping[str, str], seconds: float, most: int) -> Output:
    """Run a command without a shell or a terminal. `most`: limit in bytes of standard output, and of standard error.

    Past a limit, the whole process group is killed. If a process has left the group and holds a pipe, this function
    still returns in time, and that process continues. Raises CommandError, OSError.
    """
    process = subprocess.Popen(  # noqa: S603  # the command of the user's kubeconfig, without a shell
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # A process group of its own, so that children of the command end with it.
        start_new_session=True,
        bufsize=0,
    )
    until = time.monotonic() + seconds
    with process:
        try:
            printed, complaint = _read(process, until, most)
            status = process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            _kill(process)
            raise CommandError(f"no response within {seconds:g} s") from None
        except BaseException:
            _kill(process)
            raise
    return Output(printed, complaint, status)


def _read(process: subprocess.Popen[bytes], until: float, most: int) -> tuple[bytes, bytes]:
    """Return both outputs when both have ended. Raises CommandError, TimeoutExpired."""
    streams: dict[str, tuple[IO[bytes] | None, bytearray]] = {
        "standard output": (process.stdout, bytearray()),
        "standard error": (process.stderr, bytearray()),
    }
    with selectors.DefaultSelector() as waiting:
        for name, (stream, _) in streams.items():
            if stream is not None:
                waiting.register(stream, selectors.EVENT_READ, name)
        while waiting.get_map():
            # Checked before each wait, or a command that prints without a pause would never reach the limit.
            left = until - time.monotonic()
            if left <= 0:
                raise subprocess.TimeoutExpired(process.args, left)
            for key, _ in waiting.select(left):
                read = os.read(key.fd, _AT_ONCE)
                gathered = streams[key.data][1]
                gathered += read
                if len(gathered) > most:
                    raise CommandError(f"more than {most} bytes on {key.data}")
                if not read:
                    waiting.unregister(key.fileobj)
    printed, complaint = (bytes(gathered) for _, gathered in streams.values())
    return printed, complaint


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):  # the group ended meanwhile, or has another owner
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()
