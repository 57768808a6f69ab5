"""ExtenderArgs as kube-scheduler sends them: compact JSON, in either form, with another start of the order each time.

All pieces are encoded before the first request. A simulated scheduler only joins them.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec

from tests.bench import cluster, dressed
from tests.bench.dressed import whole_node

Form: TypeAlias = Literal["NodeNames", "Nodes"]
"""The form of the nodes in a request: names if the extender is `nodeCacheCapable`, else whole objects."""

_BEFORE: Final[Mapping[Form, bytes]] = {
    "NodeNames": b',"Nodes":null,"NodeNames":[',
    "Nodes": b',"Nodes":{"metadata":{},"items":[',
}
_AFTER: Final[Mapping[Form, bytes]] = {"NodeNames": b"]}", "Nodes": b']},"NodeNames":null}'}
_PODS_PER_KIND: Final = 25  # one for each Deployment
_REPLICAS: Final = 4
_STARTS: Final = 97  # starts of the order of nodes; a prime, so that each pod gets all starts


class RequestFileError(Exception):
    """A file that does not hold ExtenderArgs."""


class Nodes:
    """The encoded nodes of requests."""

    def __init__(self, form: Form, pieces: Mapping[str, bytes]) -> None:
        """`pieces`: name -> the node's JSON in a body, which is its name or the object."""
        self.form = form
        self.pieces = pieces
        lengths = [len(piece) + 1 for piece in pieces.values()]  # with a comma
        self._starts = list(itertools.accumulate(lengths[:-1], initial=0))
        self._length = sum(lengths) - 1
        # Every order is a slice of the doubled nodes. A join of 5,000 pieces would take longer than a response.
        self._twice = memoryview(b",".join([*pieces.values(), *pieces.values()]))

    def from_(self, start: int) -> memoryview:
        """Return all nodes, in the order that begins with the node at `start`."""
        return self._twice[self._starts[start] : self._starts[start] + self._length]

    def some(self, names: Iterable[str]) -> bytes:
        """Return the nodes of these names. Raises KeyError for an unknown name."""
        return b",".join(map(self.pieces.__getitem__, names))

    def body(self, pod: bytes, nodes: bytes | memoryview) -> bytes:
        """Return ExtenderArgs with a pod and some nodes."""
        return b"".join((b'{"Pod":', pod, _BEFORE[self.form], nodes, _AFTER[self.form]))


class Question(NamedTuple):
    """The first request of a scheduling cycle: the body of `filter`, with all nodes."""

    pod: bytes
    nodes: Nodes
    body: bytes

    def about(self, names: Sequence[str]) -> bytes:
        """Return the body of `prioritize`, with the nodes that passed. Raises KeyError for an unknown name."""
        return self.nodes.body(self.pod, self.nodes.some(names))


def questions(nodes: Nodes, pods: Sequence[bytes]) -> Iterator[Question]:
    """Yield requests for the pods in turns, without end. There must be a node and a pod."""
    count = len(nodes.pieces)
    turns = min(count, _STARTS)
    starts = itertools.cycle([turn * count // turns for turn in range(turns)])
    for pod, start in zip(itertools.cycle(pods), starts, strict=False):  # both are endless
        yield Question(pod, nodes, nodes.body(pod, nodes.from_(start)))


def cluster_questions(form: Form, nodes: int, pods: int) -> Iterator[Question]:
    """Yield requests with all nodes of the bench cluster of that size, for pods of Deployments of every kind."""
    names = map(cluster.node_name, range(nodes))
    pieces = {name: _piece(form, index) for index, name in enumerate(names)}
    return questions(Nodes(form, pieces), incoming_pods(cluster.app_count(pods)))


def incoming_pods(apps: int) -> list[bytes]:
    """Encode pods of Deployments, their kinds in turns, and one replica of each Deployment after the other."""
    kinds = list(enumerate(cluster.KINDS))
    return [
        msgspec.json.encode(
            dressed.of_deployment(cluster.incoming(kind, index, apps), index * len(kinds) + number, replica)
        )
        for replica in range(_REPLICAS)
        for index in range(_PODS_PER_KIND)
        for number, kind in kinds
    ]


def file_questions(path: Path) -> tuple[Form, Iterator[Question]]:
    """Yield the requests of a file of ExtenderArgs, with keys in any case. Raises RequestFileError with the file."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=dict[str, msgspec.Raw])
        args = msgspec.convert({key.lower(): raw for key, raw in found.items()}, _Args)
        form, pieces = _pieces(args)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RequestFileError(f"{path}: {error}") from None
    if not pieces:
        raise RequestFileError(f"{path}: neither NodeNames nor Nodes.items")
    return form, questions(Nodes(form, pieces), [_compact(args.pod)])


class _Metadata(msgspec.Struct):
    name: str


class _Node(msgspec.Struct):
    metadata: _Metadata


class _NodeList(msgspec.Struct):
    items: list[msgspec.Raw] | None = None


class _Args(msgspec.Struct):
    pod: msgspec.Raw
    nodes: msgspec.Raw = msgspec.field(default_factory=lambda: msgspec.Raw(b"null"))
    nodenames: msgspec.Raw = msgspec.field(default_factory=lambda: msgspec.Raw(b"null"))


def _piece(form: Form, index: int) -> bytes:
    return whole_node(index) if form == "Nodes" else msgspec.json.encode(cluster.node_name(index))


def _pieces(args: _Args) -> tuple[Form, Mapping[str, bytes]]:
    names = msgspec.json.decode(args.nodenames, type=list[str] | None)
    if names is not None:
        return "NodeNames", {name: msgspec.json.encode(name) for name in names}
    nodes = msgspec.json.decode(args.nodes, type=_NodeList | None)
    items = (nodes.items or []) if nodes is not None else []
    return "Nodes", {msgspec.json.decode(item, type=_Node).metadata.name: _compact(item) for item in items}


def _compact(raw: msgspec.Raw) -> bytes:
    return msgspec.json.format(bytes(raw), indent=-1)
