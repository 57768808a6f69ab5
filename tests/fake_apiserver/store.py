"""The state of the fake cluster: objects of all resources under one resourceVersion, with a history for the watches.

Objects and events are JSON bytes, with the few fields that the server itself reads.
Source: the behaviour of a kube-apiserver's watch cache (k8s.io/apiserver pkg/storage/cacher/watch_cache.go).
"""

import itertools
import uuid
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any, Final, TypeAlias

import msgspec

from tests.fake_apiserver.resources import PODS, RESOURCES, Resource

Object: TypeAlias = dict[str, Any]

_METADATA_FIRST: Final = ("name", "generateName", "namespace", "uid", "resourceVersion", "creationTimestamp")


class Stored:
    """One version of one object.

    `rest` is the object's JSON without the opening brace, as in a typed list: no kind, no apiVersion, metadata first.
    So a page is one join of such bytes, and an event line adds kind and apiVersion in front.
    """

    __slots__ = ("key", "name", "namespace", "node_name", "phase", "rest", "uid", "version")

    def __init__(self, namespace: str, name: str, uid: str, version: int, rest: bytes) -> None:
        self.key = f"{namespace}/{name}" if namespace else name  # the order of lists
        self.namespace = namespace
        self.name = name
        self.uid = uid
        self.version = version
        self.rest = rest
        self.phase = ""  # of pods, as the field selector reads it
        self.node_name = ""  # the same

    def at_version(self, version: int) -> bytes:
        """Return `rest` with another resourceVersion, as in a DELETED event."""
        # The first occurrence is the object's own: only name, namespace and uid are before it, and quotes within them
        # are escaped.
        return self.rest.replace(_version_field(self.version), _version_field(version), 1)

    def object(self) -> Object:
        """Decode the object."""
        decoded: Object = msgspec.json.decode(b"{" + self.rest)
        return decoded


def encode(body: Object, metadata: Object) -> bytes:
    """Encode an object as `Stored.rest`, with other metadata."""
    first = {key: metadata[key] for key in _METADATA_FIRST if key in metadata}
    ordered: Object = {"metadata": first | metadata}
    ordered.update((key, value) for key, value in body.items() if key not in {"kind", "apiVersion", "metadata"})
    return msgspec.json.encode(ordered)[1:]


class Event:
    """One change of one object. `before` is None for a creation, `after` for a deletion."""

    __slots__ = ("_lines", "after", "before", "version")

    def __init__(self, version: int, before: Stored | None, after: Stored | None) -> None:
        self.version = version
        self.before = before
        self.after = after
        self._lines: dict[bytes, bytes] = {}  # begin of a line -> line; encoded once for all watches

    def line(self, begin: bytes, *, deleted: bool) -> bytes:
        """Return the line of a watch. `begin` is a result of `event_begin`, and identifies the type."""
        line = self._lines.get(begin)
        if line is None:
            line = self._lines[begin] = b"%s%s}\n" % (begin, self._rest(deleted=deleted))
        return line

    def _rest(self, *, deleted: bool) -> bytes:
        if not deleted and self.after is not None:
            return self.after.rest
        assert self.before is not None
        return self.before.at_version(self.version)


def event_begin(event_type: str, resource: Resource) -> bytes:
    """Return the text before `Stored.rest` in an event line. `}` and a line feed follow `rest`."""
    return b'{"type":"%s","object":{"kind":"%s","apiVersion":"%s",' % (
        event_type.encode(),
        resource.kind.encode(),
        resource.group_version.encode(),
    )


def _version_field(version: int) -> bytes:
    return b'"resourceVersion":"%d"' % version


DEFAULT_HISTORY: Final = 20_000
_SNAPSHOTS: Final = 16  # paged lists of one resource that may be in progress before the oldest expires


class Snapshot:
    """All objects of one resource at one resourceVersion, in the order of their keys."""

    __slots__ = ("items", "version")

    def __init__(self, version: int, items: list[Stored]) -> None:
        self.version = version
        self.items = items

    def index_of(self, key: str) -> int:
        """Return the position of the first object whose key is not before this one."""
        low, high = 0, len(self.items)
        while low < high:
            middle = (low + high) // 2
            if self.items[middle].key < key:
                low = middle + 1
            else:
                high = middle
        return low


class Collection:
    """The objects of one resource, and their events."""

    def __init__(self, resource: Resource, history: int) -> None:
        self.resource = resource
        self.objects: dict[str, Stored] = {}  # key -> object
        self.floor = 0  # a watch from an older version is expired
        self.listeners: list[Callable[[], None]] = []  # called after each event, in their order
        self._history = history
        self._events: list[Event] = []
        self._dropped = 0  # events before self._events
        self._snapshots: dict[int, Snapshot] = {}  # version -> snapshot, oldest first

    @property
    def end(self) -> int:
        """The position behind the last event."""
        return self._dropped + len(self._events)

    def position_after(self, version: int) -> int:
        """Return the position of the first event that is newer than a version."""
        return self._dropped + bisect_right(self._events, version, key=lambda event: event.version)

    def events_from(self, position: int) -> list[Event] | None:
        """Return the events from a position on. None if some of them are no longer kept."""
        if position < self._dropped:
            return None
        return self._events[position - self._dropped :]

    def record(self, event: Event) -> None:
        """Add an event, and call the listeners."""
        self._events.append(event)
        if len(self._events) >= 2 * self._history:  # in blocks, so that one event costs little
            self._drop(len(self._events) - self._history)
        for listener in self.listeners:
            listener()

    def compact(self, version: int) -> None:
        """Drop all events and snapshots. Only watches from this version, or a newer one, can continue."""
        self._drop(len(self._events))
        self.floor = version
        self._snapshots.clear()

    def snapshot(self, version: int) -> Snapshot | None:
        """Return the state at a past version. None if it is no longer kept."""
        known = self._snapshots.get(version)
        if known is not None or version < self.floor:
            return known
        objects = self.objects
        undone = [event for event in self._events if event.version > version]
        if undone:
            objects = dict(objects)
            for event in reversed(undone):
                _undo(objects, event)
        made = Snapshot(version, sorted(objects.values(), key=attrgetter("key")))
        while len(self._snapshots) >= _SNAPSHOTS:
            del self._snapshots[next(iter(self._snapshots))]
        self._snapshots[version] = made
        return made

    def _drop(self, count: int) -> None:
        if count:
            self.floor = max(self.floor, self._events[count - 1].version)
            del self._events[:count]
            self._dropped += count


class Store:
    """All collections with one version counter. Objects may be any JSON, because nothing is validated."""

    def __init__(self, history: int = DEFAULT_HISTORY, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        """Keep at least `history` events of each resource before older versions expire."""
        self.version = 1
        self._now = now
        self.collections: Mapping[str, Collection] = {
            path: Collection(resource, history) for path, resource in RESOURCES.items()
        }
        self._uids: Iterator[uuid.UUID] = (uuid.UUID(int=(0xFA4E << 112) | n) for n in itertools.count(1))

    def create(self, path: str, body: Object) -> Object:
        """Create an object, with uid and creationTimestamp if it has none. Returns it as stored."""
        collection = self.collections[path]
        created = self._now().strftime("%Y-%m-%dT%H:%M:%SZ")
        metadata = {"uid": str(next(self._uids)), "creationTimestamp": created} | _metadata(collection, body)
        stored = self._stored(collection, body, metadata)
        if stored.key in collection.objects:
            raise ValueError(f"{collection.resource.plural} {stored.key} already exists")
        self._put(collection, None, stored)
        return stored.object()

    def update(self, path: str, body: Object) -> Object:
        """Replace an object. It keeps uid and creationTimestamp. Returns it as stored."""
        collection = self.collections[path]
        metadata = _metadata(collection, body)
        before = self._known(collection, metadata)
        retained = before.object()["metadata"]
        metadata |= {key: retained[key] for key in ("uid", "creationTimestamp") if key in retained}
        stored = self._stored(collection, body, metadata)
        self._put(collection, before, stored)
        return stored.object()

    def delete(self, path: str, name: str, namespace: str = "") -> Object:
        """Delete an object, at once. Returns it as it was."""
        collection = self.collections[path]
        before = self._known(collection, {"name": name, "namespace": namespace})
        self._remove(collection, before)
        return before.object()

    def get(self, path: str, name: str, namespace: str = "") -> Object | None:
        """Return an object as it is stored."""
        stored = self.collections[path].objects.get(f"{namespace}/{name}" if namespace else name)
        return stored.object() if stored is not None else None

    def objects(self, path: str) -> list[Object]:
        """Return all objects of a resource as they are stored."""
        return [stored.object() for stored in self.collections[path].objects.values()]

    def compact(self, path: str) -> None:
        """Expire all versions of a resource before the current one, and all its paged lists in progress."""
        self.collections[path].compact(self.version)

    # Below: methods for bytes, for clusters that are too large to handle as objects.

    def load(self, path: str, items: Iterable[Stored]) -> None:
        """Add objects without events, as if they existed before the server started."""
        collection = self.collections[path]
        for stored in items:
            collection.objects[stored.key] = stored
            self.version = max(self.version, stored.version)
        collection.compact(self.version)

    def put(self, path: str, before: Stored | None, after: Stored) -> None:
        """Create an object (`before` is None) or replace one. `after.version` must be `version + 1`."""
        assert after.version == self.version + 1
        self._put(self.collections[path], before, after)

    def remove(self, path: str, stored: Stored) -> None:
        """Delete an object."""
        self._remove(self.collections[path], stored)

    def _known(self, collection: Collection, metadata: Object) -> Stored:
        namespace, name = metadata.get("namespace") or "", metadata["name"]
        return collection.objects[f"{namespace}/{name}" if namespace else name]

    def _stored(self, collection: Collection, body: Object, metadata: Object) -> Stored:
        version = self.version + 1
        metadata["resourceVersion"] = str(version)
        stored = Stored(
            metadata.get("namespace") or "", metadata["name"], metadata["uid"], version, encode(body, metadata)
        )
        if collection.resource is PODS:
            stored.phase = _text(body, "status", "phase")
            stored.node_name = _text(body, "spec", "nodeName")
        return stored

    def _put(self, collection: Collection, before: Stored | None, after: Stored) -> None:
        self.version = after.version
        collection.objects[after.key] = after
        collection.record(Event(after.version, before, after))

    def _remove(self, collection: Collection, before: Stored) -> None:
        del collection.objects[before.key]
        self.version += 1
        collection.record(Event(self.version, before, None))


def _undo(objects: dict[str, Stored], event: Event) -> None:
    if event.after is not None:
        del objects[event.after.key]
    if event.before is not None:
        objects[event.before.key] = event.before


def _metadata(collection: Collection, body: Object) -> Object:
    """Copy the metadata of an object. Without a namespace, it gets `default`."""
    metadata = {key: value for key, value in body["metadata"].items() if value is not None}
    if collection.resource.namespaced:
        metadata.setdefault("namespace", "default")
    return metadata


def _text(body: Object, part: str, field: str) -> str:
    """Read a field. A field of a wrong type counts as empty."""
    found = body.get(part)
    value = found.get(field) if isinstance(found, dict) else None
    return value if isinstance(value, str) else ""
