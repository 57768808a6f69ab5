"""Compares the mirror with a fresh list of one kind. The list comes object by object and is not stored.

Source: k8s.io/kubernetes pkg/scheduler/backend/cache/debugger/comparer.go, which compares only names and UIDs.
"""

from collections.abc import Iterator

import msgspec

from core.events import Kind, Object
from core.mirror.cluster import ClusterMirror
from core.objects.kinds import Namespace
from core.objects.node import Node
from core.objects.pod import Pod

_VERSION = "resource_version"


class Difference(msgspec.Struct, frozen=True, gc=False):
    """An object that differs between the list and the mirror."""

    name: str
    """NAMESPACE/NAME, or the name where the kind has no namespaces."""
    uid: str
    """The UID in the mirror, else in the list. The mirror has no UID of a namespace."""
    fields: tuple[str, ...] = ()
    """The fields that differ, if both have the object."""


class Differences(msgspec.Struct, kw_only=True):
    """The differences of one kind, ordered by name."""

    listed: int = 0
    """Objects in the list that the mirror should hold, without unreadable objects and assumed pods."""
    missed: list[Difference] = []
    """Objects that are only in the list."""
    redundant: list[Difference] = []
    """Objects that are only in the mirror."""
    differing: list[Difference] = []
    """Objects that are in both and not equal. A different resource version alone counts in `other_versions`."""
    assumed: list[Difference] = []
    """Assumed pods. The list may show them on another node or without a node, and both can be right."""
    unreadable: int = 0
    """Objects in the list that could not be decoded. They are not compared."""
    other_versions: int = 0
    """Objects that differ only in the resource version."""

    def __bool__(self) -> bool:
        """Whether anything is missed, redundant or differing."""
        return bool(self.missed or self.redundant or self.differing)

    def persisting(self, earlier: "Differences") -> "Differences":
        """Return only the differences that `earlier` has in the same field, for the same object (name, UID)."""

        def in_both(field: str) -> list[Difference]:
            before = {(each.name, each.uid) for each in getattr(earlier, field)}
            return [each for each in getattr(self, field) if (each.name, each.uid) in before]

        in_both_lists = {field: in_both(field) for field in ("missed", "redundant", "differing")}
        return msgspec.structs.replace(self, **in_both_lists)


class Comparer:
    """One comparison of one kind: `add` every object of the list, exhaust `finish`, read `differences`.

    The mirror may change during the comparison, and the list is of one moment. So a difference can be a matter of
    timing, until a second comparison finds it again. Besides the differences, only the keys of the mirror's objects are
    stored.
    """

    def __init__(self, mirror: ClusterMirror, kind: Kind) -> None:
        self._mirror = mirror
        self._kind = kind
        # The mirror stores only the labels of a namespace.
        self._fields: tuple[str, ...] = ("labels",) if kind is Namespace else kind.__struct_fields__
        self._assumed = mirror.assumed if kind is Pod else {}
        self._seen: set[str] = set()  # keys in the list that the mirror holds, or that are not compared
        self._found = Differences()

    def add(self, listed: Object) -> None:
        """Compare an object of the list. A pod that has ended should not be in the mirror."""
        if isinstance(listed, Pod):
            listed = self._mirror.counted(listed)
        key = self._key(listed.full_name, listed.uid)
        if key in self._assumed:
            self._seen.add(key)
            return
        if isinstance(listed, Pod) and listed.terminal:
            return
        self._found.listed += 1
        stored = self._stored(key)
        if stored is None:
            self._found.missed.append(Difference(listed.full_name, listed.uid))
            return
        self._seen.add(self._key(stored.full_name, stored.uid))  # the mirror's string: the list's would stay in memory
        if stored != listed:
            self._compare(stored, listed)

    def pass_over(self, full_name: str, uid: str) -> None:
        """Record an object of the list that could not be decoded, so that it is not compared."""
        self._found.unreadable += 1
        self._seen.add(self._key(full_name, uid))

    def finish(self) -> Iterator[None]:
        """Find the objects that only the mirror has, in steps, so that the caller can yield in between."""
        for key in self._stored_keys():
            if key not in self._seen and key not in self._assumed:
                stored = self._stored(key)
                if stored is not None:  # None if it was removed since the first step
                    self._found.redundant.append(Difference(stored.full_name, stored.uid))
            yield

    def differences(self) -> Differences:
        """Return the differences, in order."""
        found = self._found
        found.assumed = [Difference(known.pod.full_name, uid) for uid, known in self._assumed.items()]
        for part in (found.missed, found.redundant, found.differing, found.assumed):
            part.sort(key=lambda difference: (difference.name, difference.uid))
        return found

    def _compare(self, stored: Object, listed: Object) -> None:
        fields = tuple(field for field in self._fields if getattr(stored, field) != getattr(listed, field))
        if fields == (_VERSION,):
            self._found.other_versions += 1
        elif fields:
            self._found.differing.append(Difference(stored.full_name, stored.uid, fields))

    def _key(self, full_name: str, uid: str) -> str:
        return uid if self._kind is Pod else full_name

    def _stored_keys(self) -> list[str]:
        """Return the keys of the mirror's objects, also of pending pods and of pods on unknown nodes."""
        if self._kind is Pod:
            rows = self._mirror.pods.rows
            return [*rows, *(pod.uid for pod in self._mirror.pending if pod.uid not in rows)]
        if self._kind is Node:
            return [*self._mirror.nodes.known.values]
        return [*(self._mirror.namespaces if self._kind is Namespace else self._mirror.objects(self._kind))]

    def _stored(self, key: str) -> Object | None:
        if self._kind is Pod:
            return self._mirror.pods.get(key) or self._mirror.pending.get(key)
        if self._kind is Node:  # a name that occurs only in pods is no node
            info = self._mirror.nodes.known.values.get(key)
            return None if info is None else info.node
        if self._kind is Namespace:
            labels = self._mirror.namespaces.get(key)
            return None if labels is None else Namespace(key, labels)
        return self._mirror.objects(self._kind).get(key)
