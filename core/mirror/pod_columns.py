"""Pods as rows of columns, so that a request counts pods by array arithmetic, without a loop over pods."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

import msgspec
import numpy as np

from core.mirror.pod_store import PodStore
from core.mirror.topology import BoolArray, Int32Array, IntpArray, grown
from core.objects.affinity import PodMatcher
from core.objects.labels import Operator, Requirement, Selector
from core.objects.pod import Pod

_NO_VALUE: Final = -1
_FREE: Final = -1
NO_TERMS: Final = -1
"""The term set of a pod without inter-pod affinity."""
_SPARE_VALUES: Final = 1024
_MAX_LABEL_COLUMNS: Final = 256
# Units of work (core/mirror/work.py) to find pods, measured at 50,000 pods in 3,000 groups.
_PER_MATCHER: Final = 20_000
_PER_REQUIREMENT: Final = 4_000
_PER_VALUE: Final = 100
_PER_GROUP_COMPARED: Final = 2
_PER_GROUP_READ: Final = 200
_PER_NAMESPACE: Final = 500
_PER_POD: Final = 5

_FEW_GROUPS: Final = 6
"""Up to this number of pod groups, each is found by its own pass, at 15 us over 150,000 pods.

A look-up of every pod's group takes 100 us.
"""

_encoder: Final = msgspec.msgpack.Encoder()
SelectsNamespace = Callable[[PodMatcher, str], bool]


_MAX_VISITED: Final = 20_000


class ValueColumn:
    """The id of a string for every pod group: of its namespace, or of its value of one label key."""

    __slots__ = ("ids", "of_group")

    def __init__(self) -> None:
        self.ids: dict[str, int] = {}
        self.of_group: Int32Array = np.full(16, _NO_VALUE, np.int32)

    def assign(self, group: int, value: str | None) -> None:
        """Set the value of a group. None means that the group does not have the label key."""
        if group >= len(self.of_group):
            self.of_group = grown(self.of_group, group + 1, _NO_VALUE)
        self.of_group[group] = _NO_VALUE if value is None else self.ids.setdefault(value, len(self.ids))

    def among(self, values: Iterable[str], groups: int) -> BoolArray:
        """Return for each of the first `groups` groups whether it has one of the values."""
        ids = [self.ids[value] for value in values if value in self.ids]
        of_group = self.of_group[:groups]
        among: BoolArray = of_group == ids[0] if len(ids) == 1 else np.isin(of_group, ids)
        return among


class PodGroups:
    """Distinct (namespace, labels) of pods. These are all the fields of a pod that a PodMatcher reads.

    Label columns are made for the keys that selectors have requested. A group id is reused after its last pod is
    removed.
    """

    def __init__(self) -> None:
        self._ids: dict[bytes, int] = {}  # namespace and labels -> group; as a text they take a fifth of the memory
        self._of_labels: dict[int, int] = {}  # id of the labels of an example -> its group
        self._pods: list[int] = []  # group -> number of pods
        self._example: list[Pod] = []  # group -> a pod with its namespace and labels, stale where free
        self._free: list[int] = []
        self._namespace = ValueColumn()
        self._labels: dict[str, ValueColumn] = {}
        self._label_keys: dict[str, int] = {}  # label key -> number of groups with the key; no key has 0

    def acquire(self, pod: Pod) -> int:
        """Return the group of a pod, and add the pod to it."""
        # Pods of a controller mostly share their labels, and the example of a group keeps its own alive.
        group = self._of_labels.get(id(pod.labels))
        if group is None or self._example[group].namespace != pod.namespace:
            group = self._found(pod)
        self._pods[group] += 1
        return group

    def _found(self, pod: Pod) -> int:
        identity = _identity(pod)
        group = self._ids.get(identity)
        if group is None:
            group = self._ids[identity] = self._new(pod)
            self._of_labels[id(pod.labels)] = group
            self._forget_stale_values()  # only now: columns are rebuilt from the groups that have an identity
        return group

    def release(self, group: int) -> None:
        """Remove one pod from a group."""
        self._pods[group] -= 1
        if not self._pods[group]:
            pod = self._example[group]
            del self._ids[_identity(pod)]
            if self._of_labels.get(id(pod.labels)) == group:  # not of another namespace, with the same labels
                del self._of_labels[id(pod.labels)]
            self._free.append(group)
            self._count_labels(pod, -1)

    @property
    def extent(self) -> int:
        """Number of existing groups, including free ones."""
        return len(self._pods)

    def values_of(self, key: str) -> set[str]:
        """Return the values that pods have of a label. Empty for very many groups, because it visits each."""
        if key not in self._label_keys or len(self._ids) > _MAX_VISITED:
            return set()
        labels = (self._example[group].labels for group in self._ids.values())
        return {each[key] for each in labels if key in each}

    def any_in(self, namespace: str) -> bool:
        """Return whether a namespace has pods."""
        value = self._namespace.ids.get(namespace)
        if value is None:
            return False
        groups = np.flatnonzero(self._namespace.of_group[: len(self._pods)] == value)
        return any(self._pods[group] for group in groups.tolist())  # a free group keeps the namespace that it had last

    def in_namespace(self, namespace: str) -> IntpArray:
        """Return the groups of a namespace. Free groups may be included."""
        return self._namespace.among((namespace,), len(self._pods)).nonzero()[0]

    def selected(self, matchers: Iterable[PodMatcher], selects_namespace: SelectsNamespace) -> BoolArray:
        """Return for each group whether all the matchers select its pods. The value of a free group has no meaning."""
        selected = np.ones(len(self._pods), np.bool_)
        for matcher in matchers:
            selected &= self._in_namespaces(matcher, selects_namespace)
            selected &= self._with_labels(matcher.selector)
        return selected

    def work(self, matchers: Iterable[PodMatcher]) -> int:
        """Return the units of work of `selected`, summed over the matchers."""
        units = 0
        new_columns = set()
        for matcher in matchers:
            units += _PER_MATCHER + _PER_VALUE * len(matcher.namespaces)
            if not (matcher.namespace_selector.everything or matcher.namespace_selector.nothing):
                requirements = 1 + len(matcher.namespace_selector.requirements)
                units += _PER_NAMESPACE * requirements * len(self._namespace.ids)
            for requirement in matcher.selector.requirements:
                units += _PER_REQUIREMENT + _PER_VALUE * len(requirement.values) + _PER_GROUP_COMPARED * self.extent
                if requirement.key in self._label_keys and requirement.key not in self._labels:
                    new_columns.add(requirement.key)
        return units + _PER_GROUP_READ * self.extent * len(new_columns)

    def _new(self, pod: Pod) -> int:
        if self._free:
            group = self._free.pop()
            self._example[group] = pod
        else:
            group = len(self._pods)
            self._pods.append(0)
            self._example.append(pod)
        self._count_labels(pod, 1)
        self._namespace.assign(group, pod.namespace)
        for key, column in self._labels.items():
            column.assign(group, pod.labels.get(key))
        return group

    def _count_labels(self, pod: Pod, delta: int) -> None:
        keys = self._label_keys
        for key in pod.labels:
            number = keys.get(key, 0) + delta
            if number:
                keys[key] = number
            else:
                del keys[key]

    def _forget_stale_values(self) -> None:
        # Without a limit, a label with a value per pod would make the ids of a column grow without end.
        limit = 2 * len(self._ids) + _SPARE_VALUES
        if len(self._namespace.ids) > limit:
            self._namespace = self._column(lambda pod: pod.namespace)
        for key, column in self._labels.items():
            if len(column.ids) > limit:
                self._labels[key] = self._label_column(key)

    def _in_namespaces(self, matcher: PodMatcher, selects_namespace: SelectsNamespace) -> BoolArray:
        if matcher.namespace_selector.everything:
            return np.ones(len(self._pods), np.bool_)
        if matcher.namespace_selector.nothing:
            return self._namespace.among(matcher.namespaces, len(self._pods))
        names = [name for name in self._namespace.ids if selects_namespace(matcher, name)]
        return self._namespace.among(names, len(self._pods))

    def _with_labels(self, selector: Selector) -> BoolArray:
        if selector.nothing:
            return np.zeros(len(self._pods), np.bool_)
        selected = np.ones(len(self._pods), np.bool_)
        for requirement in selector.requirements:
            selected &= self._meeting(requirement)
        return selected

    def _meeting(self, requirement: Requirement) -> BoolArray:
        # a missing key needs no column: a pod may name thousands of such keys
        if requirement.key not in self._label_keys:
            met = requirement.operator in {Operator.NOT_IN, Operator.DOES_NOT_EXIST}
            return np.full(len(self._pods), met, np.bool_)
        column = self._labels.get(requirement.key)
        if column is None:
            if len(self._labels) >= _MAX_LABEL_COLUMNS:
                self._labels.clear()  # a bound, not a cache policy: each is rebuilt in a millisecond
            column = self._labels[requirement.key] = self._label_column(requirement.key)
        if requirement.operator is Operator.IN:
            return column.among(requirement.values, len(self._pods))
        if requirement.operator is Operator.NOT_IN:
            return ~column.among(requirement.values, len(self._pods))
        present: BoolArray = column.of_group[: len(self._pods)] != _NO_VALUE
        return present if requirement.operator is Operator.EXISTS else ~present

    def _label_column(self, key: str) -> ValueColumn:
        return self._column(lambda pod: pod.labels.get(key))

    def _column(self, value_of: Callable[[Pod], str | None]) -> ValueColumn:
        column = ValueColumn()
        column.of_group = np.full(max(16, len(self._pods)), _NO_VALUE, np.int32)
        for group in self._ids.values():
            column.assign(group, value_of(self._example[group]))
        return column


def _identity(pod: Pod) -> bytes:
    return _encoder.encode((pod.namespace, sorted(pod.labels.items())))


class PodColumns:
    """The pods of the mirror: uid -> row, and row -> pod, slot of its node, and group."""

    def __init__(self) -> None:
        self.rows: dict[str, int] = {}  # pod uid -> row
        self.pods = PodStore()
        self.groups = PodGroups()
        self.least_priority = 2**31 - 1
        """Of all pods so far. A pod of this priority or a lower one can preempt no other."""
        self.slot_of_row: Int32Array = np.full(16, _FREE, np.int32)  # -1: node unknown, or the row is free
        self.term_set_of_row: Int32Array = np.full(16, NO_TERMS, np.int32)  # stale where the row is free
        self._group_of_row: Int32Array = np.full(16, _FREE, np.int32)
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def has_free_rows(self) -> bool:
        """Whether pods have left rows that no other pod has yet."""
        return bool(self._free)

    def get(self, uid: str) -> Pod | None:
        """Return the pod with the UID if the mirror holds it, else None."""
        row = self.rows.get(uid)
        return None if row is None else self.pods[row]

    def insert(self, pod: Pod, term_set: int) -> int:
        """Assign a row to a pod with a term set. The caller sets the slot after it has counted the pod.

        A pod that already has a row gets a second one, which covers the first until `uncover`.
        """
        if self._free:
            row = self._free.pop()
            self.pods[row] = pod
        else:
            row = len(self.pods)
            self.pods.append(pod)
            self._grow()
        self.term_set_of_row[row] = term_set
        self.least_priority = min(self.least_priority, pod.priority)
        self.rows[pod.uid] = row
        self._group_of_row[row] = self.groups.acquire(pod)
        return row

    def extend(self, pods: Sequence[Pod], term_sets: Sequence[int], slots: Sequence[int]) -> Sequence[int]:
        """Assign rows to pods without one, with the slots of their nodes. No row may be free: see `insert`."""
        first = len(self.pods)
        self.pods.extend(pods)
        self._grow()
        self.slot_of_row[first : len(self.pods)] = slots
        self.term_set_of_row[first : len(self.pods)] = term_sets
        self._group_of_row[first : len(self.pods)] = [*map(self.groups.acquire, pods)]
        self.least_priority = min(self.least_priority, *[pod.priority for pod in pods])
        rows = [*range(first, len(self.pods))]  # a NodeInfo gets the same numbers: others would take 32 bytes a pod
        self.rows.update(zip([pod.uid for pod in pods], rows, strict=True))
        return rows

    def _grow(self) -> None:
        if (needed := len(self.pods)) > len(self.slot_of_row):
            self.slot_of_row = grown(self.slot_of_row, needed, _FREE)
            self.term_set_of_row = grown(self.term_set_of_row, needed, NO_TERMS)
            self._group_of_row = grown(self._group_of_row, needed, _FREE)

    def remove(self, pod: Pod) -> None:
        """Free the row of a pod. Its slot must already be -1."""
        self._release(self.rows.pop(pod.uid))

    def uncover(self, uid: str, row: int) -> None:
        """Free the row of a pod as `remove` does, and make the covered row its row again."""
        covering, self.rows[uid] = self.rows[uid], row
        self._release(covering)

    def work(self, conjunctions: Sequence[Sequence[PodMatcher]]) -> int:
        """Return the units of work of `slots_of`, summed over the conjunctions."""
        return self.groups.work(chain.from_iterable(conjunctions)) + _PER_POD * len(self.pods) * len(conjunctions)

    def slots_of(self, matchers: Iterable[PodMatcher], selects_namespace: SelectsNamespace) -> Int32Array:
        """Return the slot of each pod on a known node that all the matchers select."""
        return self.slot_of_row.take(self.rows_on_nodes(matchers, selects_namespace))

    def rows_on_nodes(self, matchers: Iterable[PodMatcher], selects_namespace: SelectsNamespace) -> IntpArray:
        """Return the row of each pod on a known node that all the matchers select."""
        if not self.rows:
            return np.empty(0, np.intp)
        groups = self.groups.selected(matchers, selects_namespace).nonzero()[0]
        if not len(groups):
            return np.empty(0, np.intp)
        selected = self._rows_of(groups)
        # A free row keeps its last group, but has no slot.
        return selected[self.slot_of_row.take(selected) >= 0]

    def placed_alike(self) -> Iterator[tuple[int, Pod]]:
        """Yield for each pod on a known node its slot, and what it is like (see PodStore.like). No pod is made."""
        rows = np.flatnonzero(self.slot_of_row[: len(self.pods)] != _FREE)
        return zip(self.slot_of_row[rows].tolist(), map(self.pods.like, rows.tolist()), strict=True)

    def in_namespace(self, namespace: str) -> list[Pod]:
        """Return the pods of a namespace. A pass over all 150,000 pods of a cluster takes 0.1 s instead."""
        groups = self.groups.in_namespace(namespace)
        rows = self._rows_of(groups).tolist() if self.rows else ()
        # A free row keeps its last group and its last pod.
        return [self.pods[row] for row in rows if self.rows.get(self.pods.uids[row]) == row]

    def rows_with(self, term_sets: Collection[int]) -> IntpArray:
        """Return the row of each pod on a known node with one of these term sets."""
        of_row = self.term_set_of_row[: len(self.pods)]
        rows = np.isin(of_row, [*term_sets]).nonzero()[0]
        return rows[self.slot_of_row.take(rows) >= 0]

    def _release(self, row: int) -> None:
        self.groups.release(int(self._group_of_row[row]))
        self._free.append(row)

    def _rows_of(self, groups: IntpArray) -> IntpArray:
        """Return the rows of the pods of some groups. Free rows may be included."""
        group_of_row = self._group_of_row[: len(self.pods)]
        if len(groups) > _FEW_GROUPS:
            selected = np.zeros(self.groups.extent, np.bool_)
            selected[groups] = True
            return selected.take(group_of_row).nonzero()[0]
        chosen: BoolArray = np.zeros(len(group_of_row), np.bool_)
        for group in groups.astype(np.int32):  # a number of the same width: else numpy widens the column first
            chosen |= group_of_row == group
        return chosen.nonzero()[0]


def namespace_is_selected(matcher: PodMatcher, name: str, labels: Mapping[str, str] | None) -> bool:
    """Return whether an *incoming* pod's term selects the pods of a namespace. `labels` None: no such Namespace object.

    Upstream resolves a namespaceSelector to the names of existing Namespaces, so it never selects a missing namespace.
    The exception is `{}`, which upstream does not resolve (plugin.go, mergeAffinityTermNamespacesIfNotEmpty).
    """
    if name in matcher.namespaces or matcher.namespace_selector.everything:
        return True
    return labels is not None and matcher.namespace_selector.matches(labels)
