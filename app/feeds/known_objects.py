"""The objects of one resource that are known, and the present ones of a list: what differs is passed on.

Source of KnownObjects: Replace and Update of client-go's DeltaFIFO and Store, for a consumer that needs only the
differences.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Final, TypeAlias

import msgspec

from core.events import ClusterEvent, Object
from core.objects.pod import Pod

ADDED_AT_ONCE: Final = 64
"""Objects of a list that are added in one step. Nodes take a millisecond."""


class Unreadable(msgspec.Struct, frozen=True, gc=False):
    """An object with only a readable identity, or not even that. Unreadable parts are empty."""

    full_name: str = ""
    uid: str = ""
    resource_version: str = ""


Add: TypeAlias = Callable[[Sequence[Object]], Sequence[Object]]


class KnownObjects:
    """The objects by their full names. Versions are opaque, and are compared only for equality.

    A change is recorded after `apply` returns. If `apply` raises, the next sync repeats the change.
    """

    def __init__(self, apply: Callable[[ClusterEvent], None], add: Add = lambda added: added) -> None:
        """`add` adds some of the unknown objects of a list at once, and returns those that are left to `apply`."""
        # namespace or "" -> name -> see `entry_of`. The texts of full names would take 80 bytes a pod more than names.
        self._objects: dict[str, dict[str, Object | str]] = {}  # without empty ones: namespaces come and go
        self._number = 0
        self._apply = apply
        self._add = add

    def __len__(self) -> int:
        return self._number

    def __iter__(self) -> Iterator[Object]:
        return map(self.object_of, chain.from_iterable(map(dict.values, self._objects.values())))

    def entry_of(self, stored: Object, *, as_added: bool = False) -> Object | str:  # noqa: ARG002  # for KnownPods
        """Return how a known object is stored here: as it is, unless it is elsewhere already.

        `as_added`: the mirror has just added it as it is.
        """
        return stored

    def object_of(self, entry: Object | str) -> Object:
        """Return the object of a result of `entry_of`."""
        return entry  # type: ignore[return-value]  # only KnownPods holds texts

    def _entry(self, stored: Object) -> Object | str:
        return self._objects.get(stored.namespace, {}).get(stored.name, stored)

    def _named(self, full_name: str) -> Object | None:
        namespace, _, name = full_name.rpartition("/")
        return self._get(namespace, name)

    def _get(self, namespace: str, name: str) -> Object | None:
        entry = self._objects.get(namespace, {}).get(name)
        return None if entry is None else self.object_of(entry)

    def of_version(self, full_name: str, uid: str, resource_version: str) -> Object | None:
        """Return an object if it is known in this version."""
        known = self._named(full_name)
        if known is None or not resource_version:
            return None
        return known if (known.uid, known.resource_version) == (uid, resource_version) else None

    def put(self, stored: Object) -> None:
        """Apply an added or modified object."""
        known = self._get(stored.namespace, stored.name)
        if known is None:
            self._apply(ClusterEvent("Add", stored))
            self._number += 1
        elif known.uid != stored.uid:
            # The object was deleted and created again under the same name, and the deletion was missed.
            self.drop(stored.full_name)
            self._apply(ClusterEvent("Add", stored))
            self._number += 1
        elif stored.resource_version and known.resource_version == stored.resource_version:
            return  # keep the known object, or there would be two of each object after a list
        else:
            self._apply(ClusterEvent("Update", stored))
        self._objects.setdefault(stored.namespace, {})[stored.name] = self.entry_of(stored)

    def drop(self, full_name: str, uid: str = "") -> None:
        """Apply a deletion. With a uid, only if the known object has it. `apply` gets the object's last known state."""
        known = self._named(full_name)
        if known is not None and uid in {"", known.uid}:
            self._apply(ClusterEvent("Delete", known))
            namespace, _, name = full_name.rpartition("/")
            of_namespace = self._objects[namespace]
            del of_namespace[name]
            if not of_namespace:
                del self._objects[namespace]
            self._number -= 1

    def drop_predecessor(self, full_name: str, uid: str) -> None:
        """Drop the object of that name if its uid differs. For a new object with only a readable identity."""
        known = self._named(full_name)
        if known is not None and uid and known.uid != uid:
            self.drop(full_name)

    def clear(self) -> None:
        """Drop all objects."""
        for namespace, names in [(namespace, [*objects]) for namespace, objects in self._objects.items()]:
            for name in names:
                self.drop(_full_name(namespace, name))

    def replace(self, listing: "Listing") -> Iterator[None]:
        """Apply a whole list, one object per step, or some new ones, so that the caller can yield the loop in between.

        The last known state of an object stays if it could not be decoded. No other change may be applied between the
        steps.
        """
        if listing.is_applied:
            self.put_new(listing)
            if not listing.removed:
                return
        yield from self._drop_unlisted(listing)
        if not listing.is_applied:
            left = (each for each in listing.objects if not isinstance(each, str))
            yield from self._put_all(each for each in left if (each.uid or each.full_name) not in listing.removed)

    def put_new(self, listing: "Listing") -> None:
        """Apply the objects that have been added to a list since the last call."""
        new = listing.objects[listing.applied :]
        for _ in self._put_all(each for each in new if not isinstance(each, str)):
            pass
        listing.objects[listing.applied :] = [each if isinstance(each, str) else self._entry(each) for each in new]
        listing.applied = len(listing.objects)

    def _put_all(self, objects: Iterable[Object]) -> Iterator[None]:
        added: dict[tuple[str, str], Object] = {}
        for stored in objects:
            yield
            key = stored.namespace, stored.name
            if key not in added and stored.name not in self._objects.get(stored.namespace, ()):
                added[key] = stored
                if len(added) == ADDED_AT_ONCE:
                    self._add_all(added)
            else:
                self._add_all(added)
                self.put(stored)
        self._add_all(added)

    def _drop_unlisted(self, listing: "Listing") -> Iterator[None]:
        unlisted: dict[str, set[str]] = {}  # namespace -> names: one set of all names would take 30 bytes a pod
        for each in listing.objects if self else ():
            stored = self.object_of(each)
            names = unlisted.get(stored.namespace)
            if names is None:
                names = unlisted[stored.namespace] = set(self._objects.get(stored.namespace, ()))
            if (stored.uid or stored.full_name) not in listing.removed:
                names.discard(stored.name)
            if not names:
                unlisted[stored.namespace] = set()  # without the memory of the names that it had
            yield
        for namespace, objects in list(self._objects.items()):
            for name in [_full_name(namespace, each) for each in unlisted.get(namespace, objects)]:
                if name in listing.unreadable:
                    self.drop_predecessor(name, listing.unreadable[name])
                else:
                    self.drop(name)
                yield

    def _add_all(self, added: dict[tuple[str, str], Object]) -> None:
        """Apply unknown objects, each of another name, and empty the dict."""
        if not added:
            return
        left = self._add([*added.values()])
        for each in left:
            del added[each.namespace, each.name]
        for (namespace, name), stored in added.items():
            self._objects.setdefault(namespace, {})[name] = self.entry_of(stored, as_added=True)
        self._number += len(added)
        added.clear()
        for each in left:
            self.put(each)


def _full_name(namespace: str, name: str) -> str:
    return f"{namespace}/{name}" if namespace else name


class KnownPods(KnownObjects):
    """The pods by their full names. Of those that the mirror holds as they are known, only the UID is kept here."""

    def __init__(self, apply: Callable[[ClusterEvent], None], add: Add, get_pod: Callable[[str], Pod | None]) -> None:
        """`get_pod` returns a pod of the mirror, to which `apply` and `add` pass the changes."""
        super().__init__(apply, add)
        self._get_pod = get_pod

    def entry_of(self, stored: Object, *, as_added: bool = False) -> Object | str:
        """Return the UID of a pod if the mirror holds it in this state, else the pod."""
        is_mirrored = stored.uid and (as_added or self._get_pod(stored.uid) == stored)
        return stored.uid if is_mirrored else stored

    def object_of(self, entry: Object | str) -> Object:
        """Return the pod of a result of `entry_of`."""
        # A pod leaves the mirror only by an event, which this here applies, unless two pods have one UID.
        return (self._get_pod(entry) or Pod(entry, "", "")) if isinstance(entry, str) else entry


class Listing:
    """The present objects, in a list: a dict by their names would need a text for each of them."""

    def __init__(self, *, is_applied: bool = False) -> None:
        self.is_applied = is_applied
        """Nothing was known before, and each object is applied as it comes: else all pods exist once more at a time."""
        self.applied = 0
        """How many of `objects` are applied, if they are as they come."""
        self.objects: list[Object | str] = []  # see KnownObjects.entry_of; the last one of a name counts
        self.removed: set[str] = set()  # uids, or names of objects without a uid, which no API server sends
        self.unreadable: dict[str, str] = {}  # full name -> uid, empty if the uid is unreadable, too

    def close(self) -> None:
        """Drop the objects at once. The error that ended a sync may keep this listing alive for a while."""
        self.objects.clear()
        self.unreadable.clear()

    def add(self, stored: Object | Unreadable | str) -> None:
        """Add an object, or one that is known as KnownObjects.entry_of. An unreadable one leaves its readable state."""
        if isinstance(stored, Unreadable):
            self.unreadable[stored.full_name] = stored.uid
        else:
            self.objects.append(stored)
            if self.removed:
                self.removed.discard(stored if isinstance(stored, str) else stored.uid or stored.full_name)

    def remove(self, stored: Object | Unreadable) -> None:
        """Remove an object that was deleted during the sync, or that the field selector leaves out since then."""
        self.removed.add(stored.uid or stored.full_name)
        self.unreadable.pop(stored.full_name, None)
