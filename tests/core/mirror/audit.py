"""Recounts by plain loops the values that the mirror updates by increments, and reports differences."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NO_SLOT, NodeInfo, NodeTable
from core.mirror.placement import AssumedPod
from core.mirror.pod_columns import PodColumns
from core.mirror.resource_figures import Figures
from core.objects.pod import Pod

_FIGURES: Final = ("guaranteed_allocatable", "guaranteed_requested", "best_effort_allocatable", "best_effort_requested")


def audit(mirror: ClusterMirror) -> list[str]:
    """Recount everything, and return the differences."""
    auditor = Auditor(mirror.nodes, mirror.pods)
    return [
        *mirror.affinity.audit(),
        *auditor.placement(),
        *auditor.figures(mirror.figures),
        *auditor.partition(),
        *auditor.generations(mirror.generation),
        *auditor.assumed(mirror.assumed),
    ]


class Auditor:
    """Checks the parts of a mirror. Each check yields the differences as text. No difference is expected."""

    def __init__(self, nodes: NodeTable, pods: PodColumns) -> None:
        self._nodes = nodes
        self._pods = pods
        self._on: dict[str, dict[int, Pod]] = {}  # node name -> row -> pod
        for row in pods.rows.values():
            self._on.setdefault(pods.pods[row].node_name, {})[row] = pods.pods[row]

    def placement(self) -> Iterator[str]:
        """Check that each pod is on the node that it names, and that each name has a node or a pod."""
        for name, info in self._nodes.infos.items():
            on = self._on.get(name, {})
            if info.rows != set(on):
                yield f"{name}: has the rows {sorted(info.rows)}, its pods are in {sorted(on)}"
            slots = {int(self._pods.slot_of_row[row]) for row in on} | {info.slot}
            known = self._nodes.slots.get(name, NO_SLOT)
            if slots != {known} or (info.node is None) != (known == NO_SLOT):
                yield f"{name}: its slot and those of its pods are {slots}, and should be {known}"
            if info.node is None and not on:
                yield f"{name}: neither a known node nor named by a pod"

    def figures(self, kept: Figures) -> Iterator[str]:
        """Sum the allocatable resources of nodes and the requests of pods."""
        cluster: dict[str, Counter[str]] = {figure: Counter() for figure in _FIGURES}
        for name, info in self._nodes.infos.items():
            recounted = _recounted(info, self._on.get(name, {}).values())
            yield from _differing(name, info.figures, recounted)
            for figure, amounts in recounted.items():
                cluster[figure].update(amounts if info.node else {})
        yield from _differing("the cluster", kept, cluster)

    def partition(self) -> Iterator[str]:
        """Apply the partition's rule to every node."""
        for slot, node in self._nodes:
            inside = self._nodes.partition.includes(node.name, node.labels)
            if inside != self._nodes.in_partition[slot]:
                yield f"{node.name}: is {'in' if inside else 'out of'} the partition, and the column says the contrary"
            if self._nodes.partition.whole and not inside:
                yield f"{node.name}: is out of a partition that is said to be whole"

    def generations(self, last: int) -> Iterator[str]:
        """Check that the known nodes are in the order of their changes, and that no generation exceeds the mirror's."""
        ordered = list(self._nodes.known.generations())
        ascending = [generation for _, generation in ordered]
        if ascending != sorted(set(ascending)):
            yield f"the nodes are not in the order of their generations: {ordered}"
        known = {name: info.generation for name, info in self._nodes.infos.items() if info.node is not None}
        if known != dict(ordered) or known.keys() != self._nodes.known.values.keys():
            yield f"the nodes have the generations {known}, and are listed with {ordered}"
        if any(info.generation > last for info in self._nodes.infos.values()):
            yield f"a node is ahead of the mirror's generation {last}"

    def assumed(self, assumed: Mapping[str, AssumedPod]) -> Iterator[str]:
        """Check that each assumed pod counts on the node where it was assumed."""
        for uid, each in assumed.items():
            if self._pods.get(uid) is not each.pod:
                yield f"{each.pod.full_name}: is assumed as {each.pod}, and held as {self._pods.get(uid)}"


def _recounted(info: NodeInfo, pods: Iterable[Pod]) -> dict[str, Counter[str]]:
    allocatable = Counter(info.node.allocatable if info.node else {})
    requested: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}  # best effort or not
    for pod in pods:
        requested[pod.best_effort].update(pod.requests)
        requested[pod.best_effort]["pods"] += 1
    left = allocatable - requested[False]  # subtraction of Counters, so no amount is negative
    return dict(zip(_FIGURES, (allocatable, requested[False], left, requested[True]), strict=True))


def _differing(name: str, kept: Figures, recounted: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    for figure, amounts in recounted.items():
        nonzero = {resource: amount for resource, amount in amounts.items() if amount}
        if getattr(kept, figure) != nonzero:
            yield f"{name}: {figure} is {getattr(kept, figure)}, recounted {nonzero}"
