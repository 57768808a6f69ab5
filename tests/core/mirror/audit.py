"""Recounts by plain loops the values that the mirror updates by increments, and reports differences."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from core.mirror.affinity_counts import MatchTerms, OwnerCounter, OwnerTerm, owner_terms
from core.mirror.cluster import ClusterMirror
from core.mirror.node_figures import Figures
from core.mirror.node_info import NO_SLOT, NodeInfo, NodeTable
from core.mirror.placement import AssumedPod
from core.mirror.pod_columns import NO_TERMS, PodColumns
from core.mirror.topology import DomainCounts
from core.objects.pod import Pod
from tests.core.decoded import by_value

_FIGURES: Final = ("guaranteed_allocatable", "guaranteed_requested", "best_effort_allocatable", "best_effort_requested")


def audit(mirror: ClusterMirror) -> list[str]:
    """Recount everything, and return the differences."""
    auditor = Auditor(mirror.nodes, mirror.pods)
    return [
        *audit_counters(mirror),
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
            if sorted(info.rows) != sorted(on):
                yield f"{name}: has the rows {sorted(info.rows)}, its pods are in {sorted(on)}"
            slots = {int(self._pods.slot_of_row[row]) for row in on} | {info.slot}
            known = self._nodes.slots.get(name, NO_SLOT)
            if slots != {known} or (info.node is None) != (known == NO_SLOT):
                yield f"{name}: its slot and those of its pods are {slots}, and should be {known}"
            if info.node is None and not on:
                yield f"{name}: neither a known node nor named by a pod"

    def figures(self, retained: Figures) -> Iterator[str]:
        """Sum the allocatable resources of nodes and the requests of pods."""
        cluster: dict[str, Counter[str]] = {figure: Counter() for figure in _FIGURES}
        for name, info in self._nodes.infos.items():
            recounted = _recounted(info, self._on.get(name, {}).values())
            yield from _differing(name, info.figures, recounted)
            for figure, amounts in recounted.items():
                cluster[figure].update(amounts if info.node else {})
        yield from _differing("the cluster", retained, cluster)

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
        ordered = node_generations(self._nodes)
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
            if self._pods.get(uid) != each.pod:
                yield f"{each.pod.full_name}: is assumed as {each.pod}, and held as {self._pods.get(uid)}"


def node_generations(nodes: NodeTable) -> list[tuple[str, int]]:
    """Return the known nodes with the generations of their last changes, the least recently changed first."""
    return list(nodes.known._generations.items())  # noqa: SLF001  # readers get only the changed values


def _recounted(info: NodeInfo, pods: Iterable[Pod]) -> dict[str, Counter[str]]:
    allocatable = Counter(info.node.allocatable if info.node else {})
    requested: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}  # best effort or not
    for pod in pods:
        requested[pod.best_effort].update(pod.requests)
        requested[pod.best_effort]["pods"] += 1
    left = allocatable - requested[False]  # subtraction of Counters, so no amount is negative
    return dict(zip(_FIGURES, (allocatable, requested[False], left, requested[True]), strict=True))


def _differing(name: str, retained: Figures, recounted: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    for figure, amounts in recounted.items():
        nonzero = {resource: amount for resource, amount in amounts.items() if amount}
        if getattr(retained, figure) != nonzero:
            yield f"{name}: {figure} is {getattr(retained, figure)}, recounted {nonzero}"


# The term counters of inter-pod affinity. What they hold shows nowhere else, so this looks inside.


def owner_counts(mirror: ClusterMirror) -> dict[str, dict[str, int]]:
    """Return each owner counter as topology value -> pods, under a name that depends only on the term."""
    return {_rendered(term): by_value(counter) for term, counter in _owners(mirror).items()}


def match_counts(mirror: ClusterMirror) -> dict[str, dict[str, int]]:
    """Return each match counter as topology value -> pods, under a name that depends only on the terms."""
    return {_rendered(terms): by_value(counter) for terms, counter in _matches(mirror).items()}


def audit_counters(mirror: ClusterMirror) -> list[str]:
    """Recount all term counters by a plain loop over the pods, and return the differences."""
    owners: dict[str, dict[str, int]] = {name: {} for name in owner_counts(mirror)}
    matches: dict[str, dict[str, int]] = {name: {} for name in match_counts(mirror)}
    for row in mirror.pods.rows.values():
        pod = mirror.pods.pods[row]
        node = mirror.nodes.infos[pod.node_name].node
        if node is None:
            continue
        labels = node.labels
        for owner_term in owner_terms(pod.affinity):
            _count_value(owners.setdefault(_rendered(owner_term), {}), labels, owner_term.term.topology_key)
        for terms in _matches(mirror):
            if mirror.affinity.matches.selects_all(terms.matchers, pod):
                _count_value(matches[_rendered(terms)], labels, terms.topology_key)
    return _misnumbered(mirror) + [
        f"{name}: counted {retained.get(name)}, recounted {values}"
        for retained, recounts in ((owner_counts(mirror), owners), (match_counts(mirror), matches))
        for name, values in recounts.items()
        if retained.get(name) != values
    ]


def _misnumbered(mirror: ClusterMirror) -> list[str]:
    """Return the pods and terms that are recorded under a wrong term set."""
    sets = mirror.affinity._term_sets  # noqa: SLF001  # see above
    numbers = {affinity: term_set.number for affinity, term_set in sets.items()}
    of_term: dict[OwnerTerm, set[int]] = {}
    for affinity, number in numbers.items():
        for owner_term in owner_terms(affinity):
            of_term.setdefault(owner_term, set()).add(number)
    wrong = [f"{len(numbers) - len(set(numbers.values()))} term sets have the number of another"]
    found = wrong * (len(numbers) != len(set(numbers.values())))
    for row in mirror.pods.rows.values():
        pod, retained = mirror.pods.pods[row], int(mirror.pods.term_set_of_row[row])
        if retained != numbers.get(pod.affinity, NO_TERMS):
            found.append(f"{pod.full_name}: term set {retained}")
    for owner_term, counter in _owners(mirror).items():
        if counter.term_sets != of_term.get(owner_term):
            found.append(f"{_rendered(owner_term)}: term sets {counter.term_sets}")
    return found


def _owners(mirror: ClusterMirror) -> dict[OwnerTerm, OwnerCounter]:
    return mirror.affinity._owners  # noqa: SLF001  # see above


def _matches(mirror: ClusterMirror) -> Mapping[MatchTerms, DomainCounts]:
    return mirror.affinity.matches._counters  # noqa: SLF001  # see above


def _count_value(into: dict[str, int], labels: Mapping[str, str], key: str) -> None:
    if key in labels:
        into[labels[key]] = into.get(labels[key], 0) + 1


def _rendered(value: object) -> str:
    return msgspec.json.encode(value, order="deterministic").decode()
