"""The in-tree plugin as a process of its own (tests/e2e/go/cmd/intree-affinity): told of a cluster, then asked."""

import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Final, Literal, TypeAlias, TypeVar

import msgspec

from tests.bench.cluster import Object
from tests.bench.live import BenchError

PROGRAM: Final = "intree-affinity"
_MAX_SHOWN: Final = 3

Kind: TypeAlias = Literal["namespace", "node", "pod"]
Line = TypeVar("Line")


class Description(msgspec.Struct, frozen=True):
    """What the answers are of. `nodes` and `pods` are those of the snapshot."""

    go: str
    kubernetes: str
    gomaxprocs: int
    parallelism: int
    nodes: int
    pods: int


class Answer(msgspec.Struct, frozen=True):
    """A decision: normalised scores of the nodes that fit, and the time from PreFilter to NormalizeScore."""

    nanoseconds: int
    scores: dict[str, int]

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self.nanoseconds / 1e9


class InTree:
    """The running program. First all objects of the cluster are sent, then the snapshot is taken, then pods are asked.

    What it is asked raises BenchError if it has ended.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def sent(self, kind: Kind, objects: Iterable[Object]) -> Iterator[Object]:
        """Yield objects of the cluster, each when the program was sent it: so whoever takes them has the same."""
        for each in objects:
            self._send({kind: each})
            yield each

    def take_snapshot(self) -> Description:
        """End the cluster."""
        self._send({})
        return self._receive(Description)

    def ask(self, v1_pod: Object) -> Answer:
        """Filter all nodes for a pod, and score those that fit."""
        self._send(v1_pod)
        return self._receive(Answer)

    def _send(self, value: object) -> None:
        try:
            _pipe(self._process.stdin).write(msgspec.json.encode(value) + b"\n")
        except BrokenPipeError:
            raise self._ended() from None

    def _receive(self, kind: type[Line]) -> Line:
        try:
            _pipe(self._process.stdin).flush()
        except BrokenPipeError:
            raise self._ended() from None
        line = _pipe(self._process.stdout).readline()
        if not line:
            raise self._ended()
        return msgspec.json.decode(line, type=kind)

    def _ended(self) -> BenchError:
        return BenchError(f"{PROGRAM} ended with status {self._process.wait()}")


@contextmanager
def running(command: Sequence[str]) -> Iterator[InTree]:
    """Run the program, which ends with the block."""
    with subprocess.Popen(  # noqa: S603  # our own program
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        try:
            yield InTree(process)
        finally:
            process.kill()  # it has nothing to save, and its input may be half sent


def difference(in_tree: Mapping[str, int], ours: Mapping[str, int]) -> str:
    """Tell by some nodes how our scores of the nodes that fit are others than in-tree's; empty if they agree."""
    if in_tree == ours:
        return ""
    differing = [name for name in sorted({*in_tree, *ours}) if in_tree.get(name) != ours.get(name)]
    shown = [
        f"{name} in-tree {_verdict(in_tree.get(name))}, ours {_verdict(ours.get(name))}"
        for name in differing[:_MAX_SHOWN]
    ]
    return f"{len(differing)} nodes differ: {'; '.join(shown)}"


def _verdict(score: int | None) -> str:
    return "does not fit" if score is None else str(score)


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None  # because of PIPE
    return pipe
