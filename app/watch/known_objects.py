"""The objects of one resource in the API server's last version, and the changes by each new one.

Source: Replace and Update of client-go's DeltaFIFO and Store, for a consumer that needs only the differences.
"""

from collections.abc import Callable, Iterator, Mapping

from core.events import ClusterEvent, Object


class KnownObjects:
    """full name -> object. Versions are compared for equality only; their order is the server's secret.

    A change is recorded once `apply` has taken it, so the next sync repeats a change for which `apply` raised.
    """

    def __init__(self, apply: Callable[[ClusterEvent], None]) -> None:
        self._objects: dict[str, Object] = {}
        self._apply = apply

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[Object]:
        return iter(self._objects.values())

    def of_version(self, full_name: str, uid: str, resource_version: str) -> Object | None:
        """Return an object if it is known in just this version."""
        known = self._objects.get(full_name)
        if known is None or not resource_version:
            return None
        return known if (known.uid, known.resource_version) == (uid, resource_version) else None

    def put(self, told: Object) -> None:
        """Take over an object that was added or modified."""
        name = told.full_name
        known = self._objects.get(name)
        if known is None:
            self._apply(ClusterEvent("Add", told))
        elif known.uid != told.uid:
            # Deleted and created again under the same name, and the deletion was not told.
            self.drop(name)
            self._apply(ClusterEvent("Add", told))
        elif told.resource_version and known.resource_version == told.resource_version:
            return  # The mirror has the known one: after a list there would be two of each object.
        else:
            self._apply(ClusterEvent("Update", told))
        self._objects[name] = told

    def drop(self, full_name: str, uid: str = "") -> None:
        """Take over a deletion, of the object with the uid if one is given; `apply` gets its last known state."""
        known = self._objects.get(full_name)
        if known is not None and uid in {"", known.uid}:
            self._apply(ClusterEvent("Delete", known))
            del self._objects[full_name]

    def drop_predecessor(self, full_name: str, uid: str) -> None:
        """Take over that an object of another uid has the name now, when only its identity could be read."""
        known = self._objects.get(full_name)
        if known is not None and uid and known.uid != uid:
            self.drop(full_name)

    def clear(self) -> None:
        """Take over that there is no object any more."""
        for name in list(self._objects):
            self.drop(name)

    def replace(self, present: Mapping[str, Object], unreadable: Mapping[str, str]) -> Iterator[None]:
        """Take over a whole list, one object at each step, so that the caller can let others run in between.

        `unreadable` are objects, full name -> uid, that are present, but could not be decoded: their last known state
        stays. No other change may come between the steps.
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
