"""Compares the mirror with a fresh list of one kind. The list comes object by object and is not stored.

Source: k8s.io/kubernetes pkg/scheduler/backend/cache/debugger/comparer.go, which compares only names and UIDs.
"""

from collections.abc import Collection, Iterator
from typing import Protocol

import msgspec

from core.events import Kind, Object
from core.mirror.cluster import ClusterMirror
from core.objects.namespace import Namespace
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


class Differences(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The differences of one kind, ordered by name."""

    listed: int
    """Objects in the list that the mirror should hold, without unreadable objects and assumed pods."""
    missed: tuple[Difference, ...] = ()
    """Objects that are only in the list."""
    redundant: tuple[Difference, ...] = ()
    """Objects that are only in the mirror."""
    differing: tuple[Difference, ...] = ()
    """Objects that are in both and not equal. A different resource version alone counts in `other_versions`."""
    assumed: tuple[Difference, ...] = ()
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
        return msgspec.structs.replace(
            self,
            missed=_in_both(self.missed, earlier.missed),
            redundant=_in_both(self.redundant, earlier.redundant),
            differing=_in_both(self.differing, earlier.differing),
        )


def _in_both(now: tuple[Difference, ...], earlier: tuple[Difference, ...]) -> tuple[Difference, ...]:
    before = {(difference.name, difference.uid) for difference in earlier}
    return tuple(difference for difference in now if (difference.name, difference.uid) in before)


class Comparer:
    """One comparison of one kind: `add` every object of the list, exhaust `finish`, read `differences`.

    The mirror may change during the comparison, and the list is of one moment. So a difference can be a matter of
    timing, until a second comparison finds it again. Besides the differences, only the keys of the mirror's objects are
    stored.
    """

    def __init__(self, mirror: ClusterMirror, kind: Kind) -> None:
        self._mirror = mirror
        self._held = _held(mirror, kind)
        self._assumed = mirror.assumed if kind is Pod else {}
        self._seen: set[str] = set()  # keys in the list that the mirror holds, or that are not compared
        self._listed = 0
        self._missed: list[Difference] = []
        self._redundant: list[Difference] = []
        self._differing: list[Difference] = []
        self._unreadable = 0
        self._other_versions = 0

    def add(self, listed: Object) -> None:
        """Compare an object of the list. A pod that has ended should not be in the mirror."""
        if isinstance(listed, Pod):
            listed = self._mirror.counted(listed)
        key = self._held.key(listed)
        if key in self._assumed:
            self._seen.add(key)
            return
        if isinstance(listed, Pod) and listed.terminal:
            return
        self._listed += 1
        held = self._held.get(key)
        if held is None:
            self._missed.append(Difference(listed.full_name, listed.uid))
            return
        self._seen.add(self._held.key(held))  # the mirror's string: the list's would stay in memory
        if held != listed:
            self._compare(held, listed)

    def pass_over(self, full_name: str, uid: str) -> None:
        """Record an object of the list that could not be decoded, so that it is not compared."""
        self._unreadable += 1
        self._seen.add(self._held.key_by(full_name, uid))

    def finish(self) -> Iterator[None]:
        """Find the objects that only the mirror has, in steps, so that the caller can yield in between."""
        for key in list(self._held.keys()):
            if key not in self._seen and key not in self._assumed:
                held = self._held.get(key)
                if held is not None:  # None if it was removed since the first step
                    self._redundant.append(Difference(held.full_name, held.uid))
            yield

    def differences(self) -> Differences:
        """Return the differences."""
        return Differences(
            listed=self._listed,
            missed=_sorted(self._missed),
            redundant=_sorted(self._redundant),
            differing=_sorted(self._differing),
            assumed=_sorted([Difference(known.pod.full_name, uid) for uid, known in self._assumed.items()]),
            unreadable=self._unreadable,
            other_versions=self._other_versions,
        )

    def _compare(self, held: Object, listed: Object) -> None:
        fields = tuple(field for field in self._held.fields if getattr(held, field) != getattr(listed, field))
        if fields == (_VERSION,):
            self._other_versions += 1
        elif fields:
            self._differing.append(Difference(held.full_name, held.uid, fields))


def _sorted(differences: list[Difference]) -> tuple[Difference, ...]:
    return tuple(sorted(differences, key=lambda difference: (difference.name, difference.uid)))


class _Held(Protocol):
    """The objects of one kind that the mirror holds, by key."""

    fields: tuple[str, ...]
    """The mirror's state of an object."""

    def keys(self) -> Collection[str]: ...

    def get(self, key: str) -> Object | None: ...

    def key_by(self, full_name: str, uid: str) -> str: ...

    def key(self, known: Object) -> str: ...


class _ByName:
    def key_by(self, full_name: str, uid: str) -> str:  # noqa: ARG002 - pods go by the uid
        return full_name

    def key(self, known: Object) -> str:
        return known.full_name


class _Pods:
    """uid -> pod, including pods on unknown nodes and pending pods."""

    fields = Pod.__struct_fields__

    def __init__(self, mirror: ClusterMirror) -> None:
        self._pods = mirror.pods
        self._pending = mirror.pending

    def keys(self) -> Collection[str]:
        return [*self._pods.rows, *(pod.uid for pod in self._pending if pod.uid not in self._pods.rows)]

    def get(self, key: str) -> Object | None:
        return self._pods.get(key) or self._pending.get(key)

    def key_by(self, full_name: str, uid: str) -> str:  # noqa: ARG002 - all others go by the name
        return uid

    def key(self, known: Object) -> str:
        return known.uid


class _Nodes(_ByName):
    """name -> node, without names that occur only in pods."""

    fields = Node.__struct_fields__

    def __init__(self, mirror: ClusterMirror) -> None:
        self._known = mirror.nodes.known.values

    def keys(self) -> Collection[str]:
        return self._known.keys()

    def get(self, key: str) -> Object | None:
        info = self._known.get(key)
        return None if info is None else info.node


class _Namespaces(_ByName):
    """name -> namespace. The mirror stores only the labels."""

    fields: tuple[str, ...] = ("labels",)

    def __init__(self, mirror: ClusterMirror) -> None:
        self._labels = mirror.namespaces

    def keys(self) -> Collection[str]:
        return self._labels.keys()

    def get(self, key: str) -> Object | None:
        labels = self._labels.get(key)
        return None if labels is None else Namespace(key, labels)


class _Objects(_ByName):
    """full name -> object of a kind without a rule of its own."""

    def __init__(self, mirror: ClusterMirror, kind: Kind) -> None:
        self._objects = mirror.objects(kind)
        self.fields = kind.__struct_fields__

    def keys(self) -> Collection[str]:
        return self._objects.keys()

    def get(self, key: str) -> Object | None:
        return self._objects.get(key)


def _held(mirror: ClusterMirror, kind: Kind) -> _Held:
    if kind is Pod:
        return _Pods(mirror)
    if kind is Node:
        return _Nodes(mirror)
    if kind is Namespace:
        return _Namespaces(mirror)
    return _Objects(mirror, kind)
