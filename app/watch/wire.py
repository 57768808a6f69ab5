"""The envelopes of list and watch: pages and event lines, with each object left as bytes.

Source: k8s.io/apimachinery meta/v1 types.go (ListMeta, WatchEvent) and the WatchList bookmark of KEP-3157.
"""

import re
from typing import Final, Literal

import msgspec

from app.objects.decode import DecodeError, decoding

_INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"
_FEW_BYTES: Final = 8 * 1024 * 1024  # elements of smaller pages are not counted
_MAX_ELEMENTS: Final = 5_000_000
"""JSON elements in one page. An item of two bytes of JSON takes about 100 bytes of memory."""
_BYTES_AN_ELEMENT: Final = 10  # of a list without pages, which may have GBs
_VERSION: Final = re.compile(r"[1-9][0-9]*")


class _ListMeta(msgspec.Struct, rename="camel", gc=False):
    resource_version: str | None = None
    continue_: str | None = msgspec.field(default=None, name="continue")


class _Page(msgspec.Struct, gc=False):
    metadata: _ListMeta | None = None
    items: list[msgspec.Raw] | None = None


class ListPage(msgspec.Struct, frozen=True, gc=False):
    """One page of a list. `continue_token` is empty on the last page."""

    items: list[msgspec.Raw]
    resource_version: str
    continue_token: str


class WatchEvent(msgspec.Struct, frozen=True, gc=False):
    """One line of a watch, with the object as bytes. The effect of an unknown type on the object is unknown."""

    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]
    object: msgspec.Raw


class _BookmarkMetadata(msgspec.Struct, rename="camel", gc=False):
    resource_version: str | None = None
    annotations: dict[str, str] | None = None


class _Bookmark(msgspec.Struct, gc=False):
    metadata: _BookmarkMetadata | None = None


class Bookmark(msgspec.Struct, frozen=True, gc=False):
    """The version of the watch, and whether it is the end of the initial events."""

    resource_version: str
    initial_events_end: bool


_page_decoder: Final = msgspec.json.Decoder(_Page)
_event_decoder: Final = msgspec.json.Decoder(WatchEvent)
_bookmark_decoder: Final = msgspec.json.Decoder(_Bookmark)


def decode_page(body: bytes) -> ListPage:
    """Decode a page of a list. Raises DecodeError."""
    if len(body) > _FEW_BYTES and body.count(b",") > max(_MAX_ELEMENTS, len(body) // _BYTES_AN_ELEMENT):
        raise DecodeError("", f"a page of {len(body)} bytes with too many elements")
    page = decoding(_page_decoder.decode, body)
    metadata = page.metadata or _ListMeta()
    if not metadata.resource_version:
        raise DecodeError("metadata.resourceVersion", "required")
    return ListPage(page.items or [], metadata.resource_version, metadata.continue_ or "")


def decode_event(line: bytes) -> WatchEvent:
    """Decode a line of a watch. Raises DecodeError."""
    return decoding(_event_decoder.decode, line)


def decode_bookmark(raw: msgspec.Raw) -> Bookmark:
    """Decode the object of a BOOKMARK. Raises DecodeError."""
    metadata = decoding(_bookmark_decoder.decode, raw).metadata or _BookmarkMetadata()
    if not metadata.resource_version:
        raise DecodeError("metadata.resourceVersion", "required")
    return Bookmark(
        metadata.resource_version,
        (metadata.annotations or {}).get(_INITIAL_EVENTS_END) == "true",
    )


def is_older(version: str, other: str) -> bool:
    """Return whether a resource version is older than another of the same resource. False for unknown forms.

    Source: k8s.io/apimachinery pkg/util/resourceversion CompareResourceVersion (v0.35).
    """
    forms = _VERSION.fullmatch(version), _VERSION.fullmatch(other)
    return all(forms) and (len(version), version) < (len(other), other)
