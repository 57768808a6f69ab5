"""When results of plugins become invalid: one store per event, one comparison per request."""

from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable
from itertools import islice
from typing import Final, TypeAlias

import numpy as np

from core.events import Kind
from core.framework.interface import Plugin
from core.framework.invalidation import NODE_LIFE, Operation, Scope, Touches
from core.mirror.changes import NamespaceChange, NodeChange, ObjectChange, PodChange
from core.mirror.node_info import NO_SLOT
from core.objects.kinds import Namespace
from core.objects.node import Node
from core.objects.pod import Pod

ClusterChange: TypeAlias = NodeChange | PodChange | NamespaceChange | ObjectChange

NEVER: Final = -1
"""Time of a row or of a ranking without results. All times of the cache are later."""
_REMEMBERED_CHANGES: Final = 256
"""After more changes than this, a comparison of all nodes costs no more."""


_Rule: TypeAlias = tuple["Validity", Touches, Scope, tuple[str, str]]
"""What becomes invalid, when, for which nodes, and how it is counted."""


class Validity:
    """Times at which the results of one plugin became invalid, by slot and for all nodes. 0: never."""

    __slots__ = ("all_at", "changed_at", "counts", "last_at", "others_at", "reads_counters")

    def __init__(self, capacity: int) -> None:
        self.changed_at = np.zeros(capacity, np.int64)
        self.all_at = 0
        self.last_at = 0  # the latest time of any slot or of all
        self.others_at = 0  # of the last change of anything but a pod that a rule names, counters included
        self.reads_counters = False  # whether the plugin also reads counters, which have versions
        self.counts: Counter[tuple[str, str]] = Counter()  # (kind, operation) -> invalidations

    def grow(self, capacity: int) -> None:
        """Extend to `capacity` slots."""
        if capacity > len(self.changed_at):
            self.changed_at = np.append(self.changed_at, np.zeros(capacity - len(self.changed_at), np.int64))


class Validities:
    """The validity of every plugin. Changes advance it by the rules that the plugins declare."""

    def __init__(self, plugins: Iterable[Plugin], capacity: int) -> None:
        self.now = 1
        """Number of the last change. A result computed now is valid until the next change."""
        self.all_at = 0
        """The latest time at which all results of any plugin became invalid."""
        self.capacity = capacity
        """Number of slots of every validity."""
        self.others_at = 0
        """The time of the last change of anything but a pod."""
        self._slots: deque[int] = deque(maxlen=_REMEMBERED_CHANGES)  # NO_SLOT: no cell is invalid, and no pod changed
        self.of: dict[str, Validity] = {}
        self._rules: dict[tuple[Kind, Operation], list[_Rule]] = defaultdict(list)
        for plugin in plugins:
            validity = self.of.setdefault(plugin.name, Validity(capacity))
            for rule in (*NODE_LIFE, *plugin.invalidated_by):
                if rule.scope is Scope.COUNTERS:
                    validity.reads_counters = True
                    if rule.kind is Pod:
                        continue
                for operation in rule.operations:
                    counted = rule.kind.__name__, operation.value
                    self._rules[rule.kind, operation].append((validity, rule.touches, rule.scope, counted))

    def changed(self, change: ClusterChange, capacity: int) -> None:
        """Apply a change of a mirror with `capacity` slots."""
        self.now += 1
        before, after = change.before, change.after
        if capacity > self.capacity:
            self.grow(capacity)
        if isinstance(change, PodChange):
            kind: Kind = Pod
            slot = touched = change.slot  # a counter may have changed, too
        else:
            kind, slot = _subject(change)
            touched, self.others_at = NO_SLOT, self.now
        for validity, touches, scope, counted in self._rules.get((kind, operation_of(before, after)), ()):
            if touches(before, after):
                if kind is not Pod:
                    validity.others_at = self.now
                if scope is Scope.COUNTERS:
                    continue
                validity.last_at = self.now
                if scope is Scope.ALL:
                    validity.all_at = self.all_at = self.now
                elif slot != NO_SLOT:
                    validity.changed_at[slot] = self.now
                validity.counts[counted] += 1
                touched = slot
        self._slots.append(touched)

    def grow(self, capacity: int) -> None:
        """Extend every validity to `capacity` slots."""
        self.capacity = max(self.capacity, capacity)
        for validity in self.of.values():
            validity.grow(capacity)

    def slots_since(self, as_of: int) -> Collection[int] | None:
        """Return the slots with an invalid cell or a changed pod after a time, or None if the time is too long ago."""
        changes = self.now - as_of
        if changes > len(self._slots):
            return None
        found = {*islice(reversed(self._slots), changes)}
        found.discard(NO_SLOT)
        return found


def operation_of(before: object | None, after: object | None) -> Operation:
    """Return the operation for the states of an object before and after."""
    if before is None:
        return Operation.ADD
    return Operation.DELETE if after is None else Operation.UPDATE


def _subject(change: NodeChange | NamespaceChange | ObjectChange) -> tuple[Kind, int]:
    if isinstance(change, NodeChange):
        return Node, change.slot
    if isinstance(change, NamespaceChange):
        return Namespace, NO_SLOT
    return change.kind, change.slot
