"""The pods that a constraint counts on each node, updated by every event, so that no request loops over pods.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/podtopologyspread/common.go (countPodsMatchSelector).
"""

from collections import OrderedDict, deque
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain, count, islice
from operator import attrgetter
from typing import Final

import numpy as np

from core.mirror.changes import PodChange
from core.mirror.cluster import ClusterMirror
from core.mirror.pod_columns import namespace_is_selected
from core.mirror.term_index import TermIndex
from core.mirror.topology import Int64Array, IntpArray, TopologyCounts
from core.objects.affinity import PodMatcher
from core.objects.labels import NOTHING, Selector
from core.objects.pod import Pod, SpreadConstraint

MAX_POD_COUNTERS: Final = 2048
"""How many counters are kept. One costs about 8 KB if it counts pods on 50 nodes, and 113 KB on 5,000."""
MAX_BYTES: Final = 16 * 2**20
"""Approximate size limit of the kept counters. Each counts with its size when it was made."""
_COUNTER_BYTES: Final = 5_000
"""Size of a counter with its last changes, of which each takes 90 bytes."""
_REMEMBERED: Final = 32
"""How many of the last changes a counter tells."""
_NODE_BYTES: Final = 100
_MAX_NODE_BYTES: Final = 30_000
"""Maximum size of the numbers by node: a dict, or an array if many nodes have pods."""
_ARRAY_BYTES: Final = 16
"""Size of a node with pods in `PodCounter.by_slot`."""
_VALUE_BYTES: Final = 200
"""Size of a value in a selector: its text, its place in the selector, and its entry in the index of counters."""

# Units of work, see core/mirror/work.py.
_PER_CONSTRAINT: Final = 40_000
_PER_NODE: Final = 5
_FEW_CONSTRAINTS: Final = 8
"""Up to this many constraints, the work is never too much. Ordinary pods have no more, so their work is not summed."""

_SENTINELS: Final = 2  # TopologyCounts does not use the last two sums
_births: Final = count(step=1 << 32)
"""First versions of counters, so far apart that no two counters ever have the same version."""

_selects_namespace: Final = partial(namespace_is_selected, labels=None)


class PodCounter:
    """Numbers of pods per node slot. Every change gives `version` a value that no counter had."""

    __slots__ = ("_arrays", "_changes", "_counts", "nbytes", "version")

    def __init__(self, counts: TopologyCounts, size: int = 0) -> None:
        """`size` is the size of the selector that selects the pods."""
        self._counts = counts
        self._arrays: tuple[IntpArray, Int64Array] | None = None
        of_nodes = min(_NODE_BYTES * counts.nonzero, _MAX_NODE_BYTES) + _ARRAY_BYTES * counts.nonzero
        self.nbytes = _COUNTER_BYTES + _VALUE_BYTES * size + of_nodes
        self.version = next(_births)
        self._changes: deque[tuple[int, int]] = deque(maxlen=_REMEMBERED)

    @property
    def counts_any(self) -> bool:
        """Whether any node has a counted pod."""
        return self._counts.nonzero > 0

    def add(self, slot: int, delta: int) -> None:
        """Add a pod to the count of its node's slot (delta 1), or remove it (delta -1)."""
        self._counts.add(slot, delta)
        self._arrays = None
        self._changes.append((slot, delta))
        self.version += 1

    def since(self, version: int) -> Sequence[tuple[int, int]] | None:
        """Return the changes since a version, as in `add`. None: they are too many, or it is of another counter."""
        number = self.version - version
        return [*islice(reversed(self._changes), number)] if 0 <= number <= len(self._changes) else None

    def on(self, slot: int) -> int:
        """Return the number of pods on the node of a slot."""
        return self._counts.get(slot)

    def by_slot(self) -> tuple[IntpArray, Int64Array]:
        """Return the slots of the nodes with counted pods, and the number of pods on each. Made once for a version."""
        if self._arrays is None:
            self._arrays = self._counts.arrays()
        return self._arrays

    def per_slot(self, capacity: int) -> Int64Array:
        """Return the number of pods on the node of each slot. NO_SLOT reads 0."""
        numbers = np.zeros(capacity + _SENTINELS, np.int64)
        self._counts.add_into(numbers)
        return numbers


class PodCounts:
    """Counters of the placed pods by namespace and selector, for recent requests.

    Terminating pods are not counted (kubernetes issue 87621). The columns of pods do not mark them, so this class
    records them separately, and subtracts them from a new counter.
    """

    hears: Final = (PodChange,)

    def __init__(self, mirror: ClusterMirror) -> None:
        self._mirror = mirror
        self._counters: OrderedDict[PodMatcher, PodCounter] = OrderedDict()  # least recently used first
        self._index: TermIndex[PodMatcher] = TermIndex()
        self._terminating: dict[str, dict[str, tuple[int, Pod]]] = {}  # namespace -> uid -> (slot, pod)
        self._none = PodCounter(TopologyCounts())
        self._since_pre_filter: dict[
            str, PodCounter
        ] = {}  # namespace -> pods added since PreFilter, less those removed
        self.nbytes = 0
        for slot, pod in mirror.placed_pods(attrgetter("terminating")):
            self._note_terminating(pod, slot, 1)

    def terminating(self) -> Iterator[str]:
        """Yield the UIDs of the terminating pods on known nodes."""
        yield from chain.from_iterable(self._terminating.values())

    def of(self, namespace: str, selector: Selector) -> PodCounter:
        """Return how many pods of the namespace the selector selects. Stale after the next event.

        The empty selector `{}`, which matches every pod elsewhere, counts no pods here. But pods that AddPod and
        RemovePod report do count (filtering.go, updateWithPod).
        """
        if selector.nothing:
            return self._none
        if selector.everything:
            return self._since_pre_filter.get(namespace, self._none)
        matcher = PodMatcher(frozenset((namespace,)), NOTHING, selector)
        counter = self._counters.get(matcher)
        if counter is not None:
            self._counters.move_to_end(matcher)
            return counter
        counter = self._counters[matcher] = PodCounter(self._counted(namespace, matcher), selector.size)
        self._index.add(matcher, matcher)
        self.nbytes += counter.nbytes
        while len(self._counters) > MAX_POD_COUNTERS or self.nbytes > MAX_BYTES:
            oldest, dropped = self._counters.popitem(last=False)
            self._index.remove(oldest)
            self.nbytes -= dropped.nbytes
        return counter

    def charge(self, namespace: str, constraints: Sequence[SpreadConstraint], nodes: int) -> None:
        """Charge the work of judging nodes by constraints before it is done. Raises WorkLimitError."""
        if len(constraints) <= _FEW_CONSTRAINTS:
            return
        matchers = (PodMatcher(frozenset((namespace,)), NOTHING, each.selector) for each in constraints)
        new = [(matcher,) for matcher in matchers if matcher not in self._counters]
        units = len(constraints) * (_PER_CONSTRAINT + _PER_NODE * nodes) + self._mirror.pods.work(new)
        self._mirror.work.spend(units, "spec.topologySpreadConstraints", len(constraints))

    def changed(self, change: PodChange) -> None:
        """Update the counters for a pod that is added or removed, changes its labels, or begins to terminate."""
        before, after = change.before, change.after
        if before is not None and after is not None and _counts_alike(before, after):
            return
        if change.after_pre_filter:
            self._count_since_pre_filter(before, change.slot, -1)
            self._count_since_pre_filter(after, change.slot, 1)
        if before is not None:
            self._count(before, change.slot, -1)
        if after is not None:
            self._count(after, change.slot, 1)

    def _count(self, pod: Pod, slot: int, delta: int) -> None:
        if pod.terminating:
            self._note_terminating(pod, slot, delta)
            return
        for matcher in self._index.selected(
            pod.namespace, pod.labels, lambda matcher: matcher.selector.matches(pod.labels)
        ):
            self._counters[matcher].add(slot, delta)

    def _count_since_pre_filter(self, pod: Pod | None, slot: int, delta: int) -> None:
        """Count for the empty selector. Forks are undone in the end, and then no count is left."""
        if pod is not None:
            counter = self._since_pre_filter.setdefault(pod.namespace, PodCounter(TopologyCounts()))
            counter.add(slot, delta)
            if not counter.counts_any:
                del self._since_pre_filter[pod.namespace]

    def _note_terminating(self, pod: Pod, slot: int, delta: int) -> None:
        if delta > 0:
            self._terminating.setdefault(pod.namespace, {})[pod.uid] = (slot, pod)
            return
        pods = self._terminating[pod.namespace]
        del pods[pod.uid]
        if not pods:
            del self._terminating[pod.namespace]

    def _counted(self, namespace: str, matcher: PodMatcher) -> TopologyCounts:
        counts = TopologyCounts.of(self._mirror.pods.slots_of((matcher,), _selects_namespace))
        for slot, pod in self._terminating.get(namespace, {}).values():
            if matcher.selector.matches(pod.labels):
                counts.add(slot, -1)
        return counts


def _counts_alike(before: Pod, after: Pod) -> bool:
    return (
        before.terminating == after.terminating
        and before.namespace == after.namespace
        and before.labels == after.labels
    )
