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
    """What the plugins said. One of its members is set."""

    expected: V1 | None = None
    panic: str = ""
    refused: str = ""
    """Why the case could not be decoded or scored."""


class InTree:
    """The running program. As a context manager it has ended behind the block.

    A plugin that panics outside of the program's own thread ends it; it is started again for the next case.
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

        All have to be taken before the next cases are given.
        """
        left = [*cases]
        while left:
            # Written by a thread: a pipe holds but a part of them, and the program waits until replies are read.
            writer = Thread(target=_write, args=(self._process, left))
            writer.start()
            answered = 0
            for line in islice(iter(_pipe(self._process.stdout).readline, b""), len(left)):
                answered += 1
                yield msgspec.json.decode(line, type=Reply)
            writer.join()
            if answered < len(left):
                self._end()
                self._process = self._started()
                answered += 1
                yield Reply(panic="the program ended")
            left = left[answered:]

    def reply(self, case: V1) -> Reply:
        """Ask about one case."""
        return next(iter([*self.replies([case])]))

    def _started(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603  # our own program
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )

    def _end(self) -> None:
        self._process.kill()  # it has nothing to save
        self._process.communicate()


def _write(process: subprocess.Popen[bytes], cases: Iterable[V1]) -> None:
    pipe = _pipe(process.stdin)
    try:
        for case in cases:
            pipe.write(msgspec.json.encode(case) + b"\n")
        pipe.flush()
    except BrokenPipeError:
        return  # the reader finds that the program has ended


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None  # because of PIPE
    return pipe
