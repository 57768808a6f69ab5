"""Lists: pages of one consistent snapshot, as bytes.

Source: k8s.io/apiserver pkg/storage/{continue.go,interfaces.go}, pkg/storage/cacher/{cacher.go,delegator.go} GetList.
"""

import base64
import binascii
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from tests.fake_apiserver.options import ListOptions
from tests.fake_apiserver.resources import Resource
from tests.fake_apiserver.statuses import (
    RefusedError,
    bad_request,
    expired_continue,
    expired_list,
    too_large_version,
)
from tests.fake_apiserver.store import Collection, Snapshot
from tests.fake_apiserver.stored import Stored

_PART_ITEMS: Final = 500
_LATEST: Final = -1  # the version in a token that continues without a snapshot
_CONTINUE_FORM: Final = "meta.k8s.io/v1"


@dataclass(frozen=True, slots=True)
class Body:
    """A list as JSON: the text before the items, the items in the form of `Stored.rest`, and the text behind them."""

    begin: bytes
    items: list[bytes]
    end: bytes

    def parts(self) -> Iterator[bytes]:
        """Join the items, a few hundred at a time."""
        yield self.begin
        for first in range(0, len(self.items), _PART_ITEMS):
            yield (b",{" if first else b"{") + b",{".join(self.items[first : first + _PART_ITEMS])
        yield self.end


def list_page(collection: Collection, options: ListOptions, current: int) -> Body:
    """Return a list, or a page of it. `current` is the version of the store. Raises RefusedError."""
    version, start = _place(options, current)
    if version > current:
        raise RefusedError(too_large_version(version, current))
    snapshot = collection.snapshot(version)
    if snapshot is None:
        if options.continue_token:
            raise RefusedError(expired_continue(_token(_LATEST, start)))
        raise RefusedError(expired_list())
    return _body(collection.resource, snapshot, start, options)


def _place(options: ListOptions, current: int) -> tuple[int, str]:
    """Return the version of the list, and its first key."""
    if options.continue_token:
        version, start = _parsed(options.continue_token)
        if options.version:
            raise RefusedError(bad_request("specifying resource version is not allowed when using continue"))
        return (current if version == _LATEST else version), start
    if options.version and (options.exact or options.version > current):
        return options.version, ""
    return current, ""


def _body(resource: Resource, snapshot: Snapshot, start: str, options: ListOptions) -> Body:
    items: list[Stored] = []
    position = snapshot.index_of(start) if start else 0
    limit = 0 if options.version == 0 else options.limit  # the limit is ignored if any version is acceptable
    if not options.selector.requirements:
        items = snapshot.items[position : position + limit] if limit else snapshot.items[position:]
        position += len(items)
    else:
        while position < len(snapshot.items) and (not limit or len(items) < limit):
            if options.selector.matches(snapshot.items[position]):
                items.append(snapshot.items[position])
            position += 1
    metadata: dict[str, Any] = {"resourceVersion": str(snapshot.version)}
    remaining = len(snapshot.items) - position
    if remaining:
        # If no further object is selected, the last page is empty, as with a real server.
        metadata["continue"] = _token(snapshot.version, items[-1].key + "\0")
        if not options.selector.requirements:
            metadata["remainingItemCount"] = remaining
    return _encoded(resource, metadata, items)


def _encoded(resource: Resource, metadata: dict[str, Any], items: list[Stored]) -> Body:
    head = {"kind": f"{resource.kind}List", "apiVersion": resource.group_version, "metadata": metadata}
    return Body(msgspec.json.encode(head)[:-1] + b',"items":[', [stored.rest for stored in items], b"]}\n")


def _token(version: int, start: str) -> str:
    token = msgspec.json.encode({"v": _CONTINUE_FORM, "rv": version, "start": start})
    return base64.urlsafe_b64encode(token).rstrip(b"=").decode()


def _parsed(token: str) -> tuple[int, str]:
    try:
        decoded = msgspec.json.decode(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        if decoded["v"] == _CONTINUE_FORM and decoded["rv"] and decoded["start"]:
            return int(decoded["rv"]), str(decoded["start"])
    except (binascii.Error, msgspec.DecodeError, LookupError, TypeError, ValueError):
        pass
    raise RefusedError(bad_request("invalid continue token: continue key is not valid"))
