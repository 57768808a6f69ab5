"""The cost of an event: decoding its object from JSON, and applying it to the mirror, its counters and the cache.

The cache has classes of all kinds of pods. Each event updates their counters.
"""

import json
from collections.abc import Iterator
from itertools import chain
from typing import Final, NamedTuple

from app.objects.decode_node import decode_node
from app.objects.decode_pod import decode_pod
from core.events import Action, ClusterEvent
from tests.bench import cluster
from tests.bench.cluster import Object
from tests.bench.command import Size
from tests.bench.decisions import Decider, decoded, loaded, names_of, settle, timed
from tests.bench.report import Ratio, Rounds, Row, Section, Times
from tests.core.profile_parts import affinity_profile

_ROUNDS: Final = 5
_PODS_PER_ROUND: Final = 200
_NODES_PER_ROUND: Final = 40
_CLASSES_PER_KIND: Final = 25
_ADDED: Final = "a pod is added"
_RELABELED: Final = "a pod's label app changes"
_REPORTED: Final = "a pod's status changes"
_DELETED: Final = "a pod is deleted"
_HEARTBEAT: Final = "a node's heartbeat"
_NODE: Final = "a node's zone changes"


class Change(NamedTuple):
    """One event of a watch. The object changes again for the next event."""

    name: str
    action: Action
    object: Object
    is_node: bool = False


class Bench:
    """One cluster, and the seconds that events took, by name and round."""

    def __init__(self, size: Size) -> None:
        self._size = size
        self._apps = cluster.app_count(size.pods)
        self._mirror = loaded(size)
        self._decider = Decider(self._mirror, names_of(size), affinity_profile())
        self._pods = [
            decoded(cluster.incoming(kind, index, self._apps))
            for index in range(size.samples(_CLASSES_PER_KIND))
            for kind in cluster.KINDS
        ]
        self._version = 0
        self.decisions: list[list[float]] = []
        self.applied = Rounds()
        self.decoding = Rounds()
        settle()

    def round(self, number: int) -> None:
        """Decide for all pods, so that their classes are known, and apply events."""
        self.decisions.append([])
        for _ in range(2):
            self.decisions[-1] = [self._decider.with_names(pod) for pod in self._pods]
        self.applied.begin()
        for change in chain(self._of_pods(number), self._of_nodes(number)):
            self._apply(change)

    def _apply(self, change: Change) -> None:
        text = json.dumps(change.object).encode()
        decoding, found = timed(lambda: decode_node(text) if change.is_node else decode_pod(text))
        applying, _ = timed(lambda: self._mirror.apply(ClusterEvent(change.action, found)))
        self.decoding.add(change.name, decoding)
        self.applied.add(change.name, applying)

    def _of_pods(self, number: int) -> Iterator[Change]:
        per_round = self._size.samples(_PODS_PER_ROUND)
        for index in range(self._size.pods + number * per_round, self._size.pods + (number + 1) * per_round):
            pod = cluster.pod(index % self._size.pods, self._apps, self._size.nodes)
            pod["metadata"] |= {"name": f"event-{index}", "uid": f"event-{index}"}
            yield Change(_ADDED, "Add", self._versioned(pod))
            yield Change(_REPORTED, "Update", self._versioned(pod))
            pod["metadata"]["labels"]["app"] = cluster.app_name((index + 1) % self._apps)
            yield Change(_RELABELED, "Update", self._versioned(pod))
            yield Change(_DELETED, "Delete", self._versioned(pod))

    def _of_nodes(self, number: int) -> Iterator[Change]:
        per_round = self._size.samples(_NODES_PER_ROUND)
        for index in range(number * per_round, (number + 1) * per_round):
            node = cluster.node(index % self._size.nodes)
            yield Change(_HEARTBEAT, "Update", self._versioned(node), is_node=True)
            zone = node["metadata"]["labels"][cluster.ZONE]
            for changed in ("zone-elsewhere", zone):
                node["metadata"]["labels"][cluster.ZONE] = changed
                yield Change(_NODE, "Update", self._versioned(node), is_node=True)

    def _versioned(self, given: Object) -> Object:
        """Return an object with a new version, as each event needs one."""
        self._version += 1
        given["metadata"]["resourceVersion"] = str(self._version)
        return given


def measure(size: Size) -> Section:
    """Measure all kinds of events."""
    bench = Bench(size)
    for number in range(_ROUNDS):
        bench.round(number)
    decision, decoding, applied = Times.over(bench.decisions), bench.decoding.times(), bench.applied.times()
    rows = [
        Row(
            name,
            {"decoding": decoding[name], "mirror": applied[name]},
            ratios={"mirror to a decision": Ratio.of(rounds, bench.decisions)},
        )
        for name, rounds in bench.applied.of.items()
    ]
    note = f"A decision about a known class takes {decision.p50:.3f} ms (p50) here."
    return Section("events", f"What an event costs, {size}", rows, [note])
