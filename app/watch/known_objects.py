"""The objects of one resource in the API server's last version, and the changes by each new version.

Source: Replace and Update of client-go's DeltaFIFO and Store, for a consumer that needs only the differences.
"""

from collections.abc import Callable, Iterator, Mapping

from core.events import ClusterEvent, Object


class KnownObjects:
    """full name -> object. Versions are opaque, and are compared only for equality.

    A change is recorded after `apply` returns. If `apply` raises, the next sync repeats the change.
    """

    def __init__(self, apply: Callable[[ClusterEvent], None]) -> None:
        self._objects: dict[str, Object] = {}
        self._apply = apply

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[Object]:
        return iter(self._objects.values())

    def of_version(self, full_name: str, uid: str, resource_version: str) -> Object | None:
        """Return an object if it is known in this version."""
        known = self._objects.get(full_name)
        if known is None or not resource_version:
            return None
        return known if (known.uid, known.resource_version) == (uid, resource_version) else None

    def put(self, told: Object) -> None:
        """Apply an added or modified object."""
        name = told.full_name
        known = self._objects.get(name)
        if known is None:
            self._apply(ClusterEvent("Add", told))
        elif known.uid != told.uid:
            # The object was deleted and created again under the same name, and the deletion was missed.
            self.drop(name)
            self._apply(ClusterEvent("Add", told))
        elif told.resource_version and known.resource_version == told.resource_version:
            return  # keep the known object, or there would be two of each object after a list
        else:
            self._apply(ClusterEvent("Update", told))
        self._objects[name] = told

    def drop(self, full_name: str, uid: str = "") -> None:
        """Apply a deletion. With a uid, only if the known object has it. `apply` gets the object's last known state."""
        known = self._objects.get(full_name)
        if known is not None and uid in {"", known.uid}:
            self._apply(ClusterEvent("Delete", known))
            del self._objects[full_name]

    def drop_predecessor(self, full_name: str, uid: str) -> None:
        """Drop the object of that name if its uid differs. For a new object with only a readable identity."""
        known = self._objects.get(full_name)
        if known is not None and uid and known.uid != uid:
            self.drop(full_name)

    def clear(self) -> None:
        """Drop all objects."""
        for name in list(self._objects):
            self.drop(name)

    def replace(self, present: Mapping[str, Object], unreadable: Mapping[str, str]) -> Iterator[None]:
        """Apply a whole list, one object per step, so that the caller can yield the loop in between.

        `unreadable` (full name -> uid) are objects that are present but could not be decoded. Their last known state
        stays. No other change may be applied between the steps.
        """
        for name in list(self._objects):
            if name in unreadable:
                self.drop_predecessor(name, unreadable[name])
            elif name not in present:
                self.drop(name)
            yield
        for told in present.values():
            self.put(told)
            yield
