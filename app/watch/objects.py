"""The objects of one resource: decoded, collected by a sync, and known in the API server's last version.

Source of KnownObjects: Replace and Update of client-go's DeltaFIFO and Store, for a consumer that needs only the
differences.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import msgspec

from app.objects.decode import DecodeError
from app.objects.resources import decode_identity
from app.process.logs import one_line
from app.watch.freshness import ResourceState
from app.watch.stream import MAX_LINE_BYTES
from core.events import ClusterEvent, Object
from core.objects.pod import Pod

log = logging.getLogger(__name__)

_FEW_BYTES: Final = 1024 * 1024  # elements of smaller objects are not counted
_MAX_ELEMENTS: Final = 500_000
"""JSON elements of one object. A decoded element takes up to 80 bytes, even if its JSON is short. In an object that an
API server has validated, an element has at least about ten bytes of JSON: 1.5 MiB are 150,000 elements."""


class Unreadable(msgspec.Struct, frozen=True, gc=False):
    """An object with only a readable identity, or not even that. Unreadable parts are empty."""

    full_name: str = ""
    uid: str = ""
    resource_version: str = ""


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


class Listing:
    """The present objects."""

    def __init__(self) -> None:
        self.present: dict[str, Object] = {}  # full name -> object
        self.unreadable: dict[str, str] = {}  # full name -> uid, empty if the uid is unreadable, too

    def close(self) -> None:
        """Drop the objects at once. The error that ended a sync may keep this listing alive for a while."""
        self.present.clear()
        self.unreadable.clear()

    def add(self, told: Object | Unreadable) -> None:
        """Add an object. If it is unreadable but was readable before, the readable state stays."""
        if isinstance(told, Unreadable):
            self.unreadable[told.full_name] = told.uid
        else:
            self.present[told.full_name] = told

    def remove(self, told: Object | Unreadable) -> None:
        """Remove an object that was deleted during the sync."""
        self.present.pop(told.full_name, None)
        self.unreadable.pop(told.full_name, None)


def _refuse_too_large(raw: msgspec.Raw, size: int) -> None:
    if size > MAX_LINE_BYTES:
        raise DecodeError("", f"an object of more than {MAX_LINE_BYTES} bytes")
    if bytes(raw).count(b",") > _MAX_ELEMENTS:
        raise DecodeError("", f"an object of more than {_MAX_ELEMENTS} elements")


class ObjectReader:
    """Decodes the objects of one resource, and counts errors in the resource's state."""

    def __init__(self, state: ResourceState) -> None:
        self._state = state
        self._decode = state.resource.decode

    def read(self, raw: msgspec.Raw) -> Object | Unreadable:
        """Return the fields of an object that the core needs."""
        size = memoryview(raw).nbytes
        self._state.read_objects += 1
        self._state.read_bytes += size
        try:
            if size > _FEW_BYTES:
                _refuse_too_large(raw, size)
            decoded = self._decode(raw)
        except DecodeError as error:
            return self._unreadable(raw, error)
        if isinstance(decoded, Pod) and decoded.affinity.errors:
            self._report_terms(decoded)
        return decoded

    def read_unless_known(self, raw: msgspec.Raw, known: KnownObjects) -> Object | Unreadable:
        """Return the known object, or decode the object if it has another version.

        Without this, a list of 150,000 known pods would take the memory of 150,000 further Pods for a while.
        """
        if known:
            try:
                unchanged = known.of_version(*decode_identity(raw))
            except DecodeError:
                unchanged = None  # `read` reports the error
            if unchanged is not None:
                return unchanged
        return self.read(raw)

    def _unreadable(self, raw: msgspec.Raw, error: DecodeError) -> Unreadable:
        try:
            identity = Unreadable(*decode_identity(raw))
        except DecodeError:
            identity = Unreadable()
        self._state.decode_errors += 1
        name = identity.full_name or "an object without a readable name"
        log.warning("%s: skipped %s: %s", self._state.plural, one_line(name), one_line(str(error)))
        return identity

    def _report_terms(self, pod: Pod) -> None:
        # kube-scheduler keeps such a pod, too, without the invalid list of terms (NodeInfo.AddPod).
        self._state.decode_errors += 1
        for error in pod.affinity.errors:
            log.warning(
                "pods: %s: kept without its %s: spec.affinity.%s: %s",
                one_line(pod.full_name),
                error.group,
                one_line(error.field),
                one_line(error.message),
            )
