"""The plugin DynamicResources against upstream's own, in one run, in turns pod by pod, results compared node by node.

Upstream's plugin runs PreFilter and the Filter of each node in a process of its own (tests/e2e/go/cmd/intree-plugins),
which is built if it is missing, so this needs Go. Both sides count the CPU time of one pod. The objects were loaded
before: informers and the cache of claims there, the mirror here.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from app.objects.resources import RESOURCES
from core.equivalence.cache import CacheOptions, EquivalenceCache
from core.events import ClusterEvent, Kind
from core.framework.interface import Code
from core.mirror.cluster import ClusterMirror
from core.objects.devices import ResourceClaim, ResourceSlice
from core.objects.kinds import DeviceClass
from core.plugins import DEVICES
from core.profile import Profile
from core.releases.differences import rules_of
from core.releases.release import nearest
from core.scheduling_cycle import filter_nodes
from tests.bench import cluster, device_cluster
from tests.bench.cluster import Object
from tests.bench.command import Size
from tests.bench.decisions import decoded, names_of, settle
from tests.bench.intree_process import InTree, running
from tests.bench.live import BenchError
from tests.bench.report import Ratio, Rounds, Row, Section
from tests.conformance.engine import load
from tests.core.profile_parts import derive_states
from tests.cost.forked import Recorder, forked
from tests.e2e.binaries import RELEASES, BuildError, binaries, module_of

RELEASE: Final = "1.37"
NEW: Final = 0.2
"""Limit for the first pod of a class, as a share of upstream's time."""
KNOWN: Final = 0.02
"""The same for each further pod of a class, which has a claim of its own."""
MOST_MEMORY: Final = 80.0
"""Megabytes for 40,000 devices."""
_MOST_SECONDS: Final = 300
"""CPU seconds in which a cluster must be loaded."""
_PROFILE: Final = Profile(filters=(DEVICES(),), scores=())
_PROGRAM: Final = "intree-plugins"
_IN_TREE: Final = "in-tree, CPU"
_FIRST: Final = "first of a class, CPU"
_NEXT: Final = "next of a class, CPU"
_ROUNDS: Final = 4
_CLASSES: Final = 5
"""New classes in a round."""
_ALIKE: Final = 5
"""Further pods of each class."""
_NOTES: Final = (
    (
        "CPU time of PreFilter and of Filter for every node, with what collecting their garbage takes. In-tree is "
        f"Kubernetes {RELEASES[RELEASE]} with its default gates, with GOMAXPROCS 1 and no other plugin."
    ),
    "Not counted on either side: loading the objects, watch events, the snapshot of the nodes, Reserve and bindings.",
    (
        "Each class has a selector of its own that reads another set of attributes. Each pod has its own claim of a "
        "template. The nodes that fit, and the reasons of the others, are compared."
    ),
)


class Requested(NamedTuple):
    """A kind of pods, with the objects of its cluster."""

    name: str
    slices: Callable[[int], Iterator[Object]]
    claims: Callable[[int], Iterator[Object]]
    spec: Callable[[int], Object]


KINDS: Final = (
    Requested("one of 8 GPUs", device_cluster.whole_slices, device_cluster.whole_claims, device_cluster.one),
    Requested("8 with matchAttribute", device_cluster.whole_slices, device_cluster.whole_claims, device_cluster.eight),
    Requested(
        "a partition", device_cluster.partition_slices, device_cluster.partition_claims, device_cluster.a_partition
    ),
)


class _Loaded(msgspec.Struct, frozen=True):
    kubernetes: str = ""
    rejected: str = ""


class _Timed(msgspec.Struct, frozen=True):
    nanoseconds: int = 0
    failed: Mapping[str, Any] = {}
    rejected: str = ""


def _empty(size: Size) -> ClusterMirror:
    """Return a mirror of the nodes, which counts devices from now on."""
    mirror = load(cluster.namespaces(), cluster.nodes(size.nodes), (), rules=rules_of(nearest(RELEASE).release))
    derive_states(_PROFILE, mirror)
    return mirror


def _add(mirror: ClusterMirror, kind: Kind, objects: Iterable[Object]) -> None:
    decode = RESOURCES[kind].decode
    for each in objects:
        mirror.apply(ClusterEvent("Add", decode(msgspec.json.encode(each))))


def _add_devices(mirror: ClusterMirror, requested: Requested, nodes: int) -> None:
    _add(mirror, DeviceClass, [device_cluster.device_class()])
    _add(mirror, ResourceSlice, requested.slices(nodes))
    _add(mirror, ResourceClaim, requested.claims(nodes))


def memory_of(requested: Requested, size: Size) -> float:
    """Return the megabytes that a mirror takes for the devices of a cluster. Call it first, as it forks."""
    mirrors: list[ClusterMirror] = []

    def work(recorder: Recorder) -> None:
        def load_nodes() -> str:
            mirrors.append(_empty(size))
            return ""

        def load_devices() -> str:
            _add_devices(mirrors[0], requested, size.nodes)
            return ""

        recorder.step("nodes", load_nodes)
        recorder.step("devices", load_devices)

    *_, step = forked(work, _MOST_SECONDS)
    if step.ended:
        raise BenchError(f"loading the devices: {step.ended}")
    return step.retained / 1e6


class Bench:
    """One cluster, from the same objects in the mirror and in upstream's plugin."""

    def __init__(self, in_tree: InTree, size: Size, requested: Requested) -> None:
        self._in_tree = in_tree
        self._size = size
        self._requested = requested
        self._classes = size.samples(_CLASSES)
        self._pods = [*self._incoming()]
        self.mirror = _empty(size)
        _add_devices(self.mirror, requested, size.nodes)
        _add(self.mirror, ResourceClaim, (claim for _, claim in self._pods))
        self._cache = EquivalenceCache(self.mirror, _PROFILE.plugins, CacheOptions(mode="spec"))
        self._load_in_tree()
        settle()

    def _incoming(self) -> Iterator[tuple[Object, Object]]:
        """Make the pods of all rounds, class by class, with their claims."""
        for number in range(_ROUNDS * self._classes):
            for at in range(1 + _ALIKE):
                yield device_cluster.incoming(f"in-{number}-{at}", self._requested.spec(number + 1))

    def _load_in_tree(self) -> None:
        nodes = self._size.nodes
        self._in_tree.send(
            {
                "namespaces": [*cluster.namespaces()],
                "nodes": [*cluster.nodes(nodes)],
                "pods": [],
                "pod": self._pods[0][0],
                "deviceclasses": [device_cluster.device_class()],
                "resourceslices": [*self._requested.slices(nodes)],
                "resourceclaims": [*self._requested.claims(nodes), *(claim for _, claim in self._pods)],
            }
        )
        loaded = self._in_tree.receive(_Loaded)
        if loaded.rejected or loaded.kubernetes != RELEASES[RELEASE]:
            raise BenchError(f"{_PROGRAM} {loaded.kubernetes}: {loaded.rejected}")

    def row(self, memory: float) -> Row:
        """Measure. `memory` is that of the devices. Raises BenchError if a result differs from upstream's."""
        self._ask(self._pods[0][0])  # warms the allocator
        samples = Rounds(_IN_TREE, _FIRST, _NEXT)
        pods = iter([pod for pod, _ in self._pods])
        for _ in range(_ROUNDS):
            samples.begin()
            for _ in range(self._classes):
                fitting = self._turn(samples, next(pods), [next(pods) for _ in range(_ALIKE)])
        in_tree = samples.of[_IN_TREE]
        return Row(
            self._requested.name,
            samples.times(),
            {"nodes that fit": float(fitting), "memory of the devices, MB": memory},
            {
                "first to in-tree": Ratio.of(samples.of[_FIRST], in_tree, at_most=NEW),
                "next to in-tree": Ratio.of(samples.of[_NEXT], in_tree, at_most=KNOWN),
                f"memory, of {MOST_MEMORY:.0f} MB": Ratio.single(memory / MOST_MEMORY, at_most=1.0),
            },
        )

    def _turn(self, samples: Rounds, first: Object, others: Sequence[Object]) -> int:
        """Judge the first pods of a class on both sides, and the others here. Return how many nodes fit."""
        seconds, failed = self._ask(first)
        samples.add(_IN_TREE, seconds)
        for heading, pods in ((_FIRST, [first]), (_NEXT, others)):
            for pod in pods:
                spent, found = self._judge(pod)
                samples.add(heading, spent)
                if found != failed:
                    differing = [node for node in {*found, *failed} if found.get(node) != failed.get(node)]
                    node = min(differing)
                    raise BenchError(
                        f"{pod['metadata']['name']}: {len(differing)} nodes differ, as {node}: in-tree "
                        f"{failed.get(node)}, here {found.get(node)}"
                    )
        return self._size.nodes - len(failed)

    def _ask(self, pod: Object) -> tuple[float, Mapping[str, Any]]:
        self._in_tree.send(pod)
        timed = self._in_tree.receive(_Timed)
        if timed.rejected:
            raise BenchError(f"{_PROGRAM}: {timed.rejected}")
        return timed.nanoseconds / 1e9, timed.failed

    def _judge(self, v1_pod: Object) -> tuple[float, Mapping[str, Any]]:
        pod, names = decoded(v1_pod), names_of(self._size)
        batch = self.mirror.batch(names)
        began = time.process_time()
        verdicts = filter_nodes(_PROFILE, self._cache.evaluation(pod), batch)
        spent = time.process_time() - began
        statuses = [verdicts.status(at) for at in range(len(names))]
        return spent, {
            name: {"code": each.code.label, "reasons": [*each.reasons]}
            for name, each in zip(names, statuses, strict=True)
            if each.code is not Code.SUCCESS
        }


def measure(size: Size) -> Section:
    """Measure all kinds of pods. Raises BenchError without upstream's plugin, and where its results differ."""
    try:
        program = binaries([_PROGRAM], module_of(RELEASES[RELEASE]))[_PROGRAM]
    except BuildError as error:
        raise BenchError(str(error)) from None
    memory = [memory_of(requested, size) for requested in KINDS]
    rows = []
    for requested, megabytes in zip(KINDS, memory, strict=True):
        with running([str(program), "-timed"]) as in_tree:
            rows.append(Bench(in_tree, size, requested).row(megabytes))
    title = f"Devices against the in-tree plugin, {size.nodes:,} nodes of {device_cluster.PER_NODE} devices"
    return Section("devices", title, rows, list(_NOTES))
