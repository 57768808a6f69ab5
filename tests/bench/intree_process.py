"""The in-tree plugin as a separate process (tests/e2e/go/cmd/intree-affinity): gets a cluster, then requests."""

import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Final, Literal, TypeAlias, TypeVar

import msgspec

from tests.bench.cluster import Object
from tests.bench.live import BenchError

PROGRAM: Final = "intree-affinity"
_MAX_RENDERED: Final = 3

Kind: TypeAlias = Literal["namespace", "node", "pod"]
Line = TypeVar("Line")


class Description(msgspec.Struct, frozen=True):
    """The source of the results. `nodes` and `pods` count the snapshot's objects."""

    go: str
    kubernetes: str
    gomaxprocs: int
    parallelism: int
    nodes: int
    pods: int


class Response(msgspec.Struct, frozen=True):
    """A decision: normalised scores of the nodes that fit, and the time from PreFilter to NormalizeScore."""

    nanoseconds: int
    scores: dict[str, int]

    @property
    def seconds(self) -> float:
        """Seconds of the decision."""
        return self.nanoseconds / 1e9


class InTree:
    """The running program. First send all objects of the cluster, then take the snapshot, then evaluate pods.

    Every method raises BenchError if the program has ended.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def sent(self, kind: Kind, objects: Iterable[Object]) -> Iterator[Object]:
        """Yield objects of the cluster, each after it was sent to the program. So the caller gets the same objects."""
        for each in objects:
            self.send({kind: each})
            yield each

    def take_snapshot(self) -> Description:
        """Make the snapshot of all sent objects."""
        self.send({})
        return self.receive(Description)

    def ask(self, v1_pod: Object) -> Response:
        """Filter all nodes for a pod, and score those that fit."""
        self.send(v1_pod)
        return self.receive(Response)

    def send(self, value: object) -> None:
        """Send a line."""
        try:
            _pipe(self._process.stdin).write(msgspec.json.encode(value) + b"\n")
        except BrokenPipeError:
            raise self._ended() from None

    def receive(self, kind: type[Line]) -> Line:
        """Return the next line."""
        try:
            _pipe(self._process.stdin).flush()
        except BrokenPipeError:
            raise self._ended() from None
        line = _pipe(self._process.stdout).readline()
        if not line:
            raise self._ended()
        return msgspec.json.decode(line, type=kind)

    def _ended(self) -> BenchError:
        return BenchError(f"{self._process.args!r} ended with status {self._process.wait()}")


@contextmanager
def running(command: Sequence[str]) -> Iterator[InTree]:
    """Run the program during the block."""
    with subprocess.Popen(  # noqa: S603  # our own program
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        try:
            yield InTree(process)
        finally:
            process.kill()  # the program has no state to save, and its input may be incomplete


def difference(in_tree: Mapping[str, int], ours: Mapping[str, int]) -> str:
    """Tell by some nodes how our scores of the nodes that fit are others than in-tree's. Empty if they agree."""
    if in_tree == ours:
        return ""
    differing = [name for name in sorted({*in_tree, *ours}) if in_tree.get(name) != ours.get(name)]
    rendered = [
        f"{name} in-tree {_verdict(in_tree.get(name))}, ours {_verdict(ours.get(name))}"
        for name in differing[:_MAX_RENDERED]
    ]
    return f"{len(differing)} nodes differ: {'; '.join(rendered)}"


def _verdict(score: int | None) -> str:
    return "does not fit" if score is None else str(score)


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None  # because of PIPE
    return pipe
