"""Objects and events in the store: JSON bytes, and the few fields that the server itself reads."""

from typing import Any, Final, TypeAlias

import msgspec

from tests.fake_apiserver.resources import Resource

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
