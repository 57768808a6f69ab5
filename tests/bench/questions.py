"""Requests of `filter` and `prioritize` as kube-scheduler makes them: pods of a Deployment, names in a moving order."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import msgspec

from tests.bench import cluster, dressed
from tests.bench.dressed import whole_node

PODS_PER_KIND: Final = 25
_STRIDE: Final = 997  # a prime, so that every start is used once before one is repeated


@dataclass(frozen=True, slots=True)
class Form:
    """A form of request: the number of nodes, whether they are whole objects, and the headers."""

    name: str
    nodes: int
    whole: bool = False
    headers: tuple[tuple[str, str], ...] = ()


class Requested(NamedTuple):
    """A pod, as JSON, and the names of the nodes in their order."""

    pod: bytes
    names: list[str]

    def fitting(self, response: bytes) -> "Requested":
        """Return the same with only the nodes that `filter` passed on."""
        result = _decode_result(response)
        failed = result.failed.keys() | result.unresolvable.keys()
        return Requested(self.pod, [name for name in self.names if name not in failed])


class _Result(msgspec.Struct):
    failed: dict[str, str] = msgspec.field(name="FailedNodes")
    unresolvable: dict[str, str] = msgspec.field(name="FailedAndUnresolvableNodes")


_decode_result: Final = msgspec.json.Decoder(_Result).decode


class Questions:
    """Requests for a cluster, with kinds of pods in turns. The pods have controllers, so that they have a class."""

    def __init__(self, nodes: int, pods: int) -> None:
        self._names = [cluster.node_name(index) for index in range(nodes)]
        self._whole: list[bytes] = []
        apps = cluster.app_count(pods)
        self._pods = [
            msgspec.json.encode(dressed.of_deployment(cluster.incoming(kind, index, apps), index * 10 + number, 0))
            for index in range(PODS_PER_KIND)
            for number, kind in enumerate(cluster.KINDS)
        ]
        self._turn = 0

    def of(self, form: Form, count: int) -> Iterator[Requested]:
        """Make `count` requests, each with its names in a new order."""
        for index in range(count):
            start = self._turn * _STRIDE % len(self._names)
            self._turn += 1
            names = (self._names[start:] + self._names[:start])[: form.nodes]
            yield Requested(self._pods[index % len(self._pods)], names)

    def body(self, requested: Requested, form: Form) -> bytes:
        """Return ExtenderArgs in Go's form, without spaces."""
        if not form.whole:
            return b'{"Pod":%s,"Nodes":null,"NodeNames":%s}' % (requested.pod, msgspec.json.encode(requested.names))
        if not self._whole:
            self._whole = [whole_node(index) for index in range(len(self._names))]
        items = b",".join([self._whole[int(name.removeprefix("node-"))] for name in requested.names])
        return b'{"Pod":%s,"Nodes":{"metadata":{},"items":[%s]},"NodeNames":null}' % (requested.pod, items)
