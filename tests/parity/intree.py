"""The real plugins as a process (tests/e2e/go/cmd/intree-plugins): a case goes in, its `expected` comes out."""

import subprocess
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from threading import Thread
from types import TracebackType
from typing import IO, Final, Self

import msgspec

from tests.parity.random_nodes import V1

PROGRAM: Final = "intree-plugins"


class Reply(msgspec.Struct, frozen=True):
    """The result of the plugins. Exactly one member is set."""

    expected: V1 | None = None
    panic: str = ""
    rejected: str = ""
    """Why the case could not be decoded or scored."""


class InTree:
    """The running program. It is a context manager, and the program ends with the block.

    A plugin that panics outside of the program's own thread ends the program. It is restarted for the next case.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self._process = self._started()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def replies(self, cases: Sequence[V1]) -> Iterator[Reply]:
        """Yield the reply to each case, while the program works on the next ones.

        Take all replies before the next call.
        """
        left = [*cases]
        while left:
            # A thread writes, because a pipe holds only some cases, and the program waits until replies are read.
            writer = Thread(target=_write, args=(self._process, left))
            writer.start()
            responded = 0
            for line in islice(iter(_pipe(self._process.stdout).readline, b""), len(left)):
                responded += 1
                yield msgspec.json.decode(line, type=Reply)
            writer.join()
            if responded < len(left):
                self._end()
                self._process = self._started()
                responded += 1
                yield Reply(panic="the program ended")
            left = left[responded:]

    def reply(self, case: V1) -> Reply:
        """Return the reply to one case."""
        return next(iter([*self.replies([case])]))

    def _started(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603  # our own program
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )

    def _end(self) -> None:
        self._process.kill()  # the program has no state to save
        self._process.communicate()


def _write(process: subprocess.Popen[bytes], cases: Iterable[V1]) -> None:
    pipe = _pipe(process.stdin)
    try:
        for case in cases:
            pipe.write(msgspec.json.encode(case) + b"\n")
        pipe.flush()
    except BrokenPipeError:
        return  # the reader detects that the program has ended


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None  # because of PIPE
    return pipe
