"""Lists: field selectors, list options, and pages of one consistent snapshot, as bytes.

Source: k8s.io/apimachinery pkg/fields/selector.go and pkg/apis/meta/internalversion/validation/validation.go;
k8s.io/kubernetes pkg/apis/core/v1/conversion.go (what a pod has); k8s.io/apiserver GetList in
pkg/storage/cacher/{cacher.go,delegator.go}, and pkg/storage/continue.go.
"""

import base64
import binascii
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import msgspec

from tests.fake_apiserver.faults import Kind
from tests.fake_apiserver.resources import PODS, Resource
from tests.fake_apiserver.statuses import (
    RejectedError,
    bad_request,
    expired_continue,
    expired_list,
    invalid_option,
    too_large_version,
    watch_list_disabled,
)
from tests.fake_apiserver.store import Collection, Snapshot, Stored

_ALL_FIELDS: Final = ("metadata.name", "metadata.namespace")
_POD_FIELDS: Final = (*_ALL_FIELDS, "status.phase", "spec.nodeName")


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """All requirements must hold. Without requirements it selects everything."""

    requirements: tuple[tuple[str, bool, str], ...] = ()  # field, whether it must be equal, value

    def matches(self, stored: Stored) -> bool:
        """Return whether an object is selected. A missing field is empty."""
        return all((_value(stored, field) == value) is equal for field, equal, value in self.requirements)


def parse_field_selector(text: str, resource: Resource) -> FieldSelector:
    """Read the `fieldSelector` of a request. Raises RejectedError (400)."""
    requirements = []
    for term in filter(None, text.split(",")):
        operator = next((each for each in ("!=", "==", "=") if each in term), "")
        if not operator:
            raise RejectedError(bad_request(f"invalid selector: '{text}'; can't understand '{term}'"))
        field, _, value = term.partition(operator)
        if field not in (_POD_FIELDS if resource is PODS else _ALL_FIELDS):
            raise RejectedError(bad_request(f"field label not supported: {field}"))
        requirements.append((field, operator != "!=", value))
    return FieldSelector(tuple(requirements))


def _value(stored: Stored, field: str) -> str:
    match field:
        case "metadata.name":
            return stored.name
        case "metadata.namespace":
            return stored.namespace
        case "status.phase":
            return stored.phase
        case _:
            return stored.node_name


# The list options of a request.

WatchListMode: TypeAlias = Literal["on", "off", "ignored"]
"""on: v1.34; off: the feature gate is off; ignored: a server without support for the parameters."""

_NOT_OLDER_THAN: Final = "NotOlderThan"
_EXACT: Final = "Exact"


@dataclass(frozen=True, slots=True)
class ListOptions:
    """The options of a list or watch. `version` is None if it is unset."""

    watch: bool
    version: int | None
    match: str
    selector: FieldSelector
    limit: int
    continue_token: str
    allow_bookmarks: bool
    initial_events: bool  # WatchList: the events end with a bookmark
    state_first: bool  # a watch begins with the state, by WatchList or, as in old servers, without a version
    timeout: float | None

    @property
    def exact(self) -> bool:
        """Whether exactly this version is requested, which includes an old client with a limit."""
        return self.match == _EXACT or (not self.match and self.limit > 0 and bool(self.version))


def kind_of(query: Mapping[str, str]) -> Kind:
    """Return the kind of a request by its query."""
    if _flag(query, "watch"):
        return "watch-list" if _flag(query, "sendInitialEvents") else "watch"
    return "page" if query.get("continue") else "list"


def parse_options(query: Mapping[str, str], resource: Resource, mode: WatchListMode) -> ListOptions:
    """Read the options of a request. Raises RejectedError."""
    if mode == "ignored":
        query = {key: value for key, value in query.items() if key not in {"sendInitialEvents", "resourceVersionMatch"}}
    watch = _flag(query, "watch")
    _validate(query, watch=watch, mode=mode)
    version = query.get("resourceVersion", "")
    if version and not version.isdecimal():
        raise RejectedError(bad_request(f"invalid resource version: {version}"))
    initial_events = _flag(query, "sendInitialEvents")
    legacy = watch and "sendInitialEvents" not in query and version in {"", "0"}
    if mode == "on" and legacy:
        initial_events = True
    return ListOptions(
        watch=watch,
        version=int(version) if version else None,
        match=query.get("resourceVersionMatch", ""),
        selector=parse_field_selector(query.get("fieldSelector", ""), resource),
        limit=int(query.get("limit") or 0),
        continue_token=query.get("continue", ""),
        allow_bookmarks=_flag(query, "allowWatchBookmarks"),
        initial_events=initial_events,
        state_first=initial_events or legacy,
        timeout=float(query["timeoutSeconds"]) if query.get("timeoutSeconds") else None,
    )


def _flag(query: Mapping[str, str], name: str) -> bool:
    return query.get(name, "false") in {"true", "1"}


def _validate(query: Mapping[str, str], *, watch: bool, mode: WatchListMode) -> None:
    initial_events, match = "sendInitialEvents" in query, query.get("resourceVersionMatch", "")
    if initial_events and (mode == "off" or not watch):
        raise RejectedError(watch_list_disabled())
    if initial_events and match != _NOT_OLDER_THAN:
        message = f"sendInitialEvents requires setting resourceVersionMatch to {_NOT_OLDER_THAN}"
        raise RejectedError(invalid_option("resourceVersionMatch", message))
    if match and (query.get("continue") or not (initial_events if watch else query.get("resourceVersion"))):
        raise RejectedError(invalid_option("resourceVersionMatch", "resourceVersionMatch is forbidden"))


# Pages.

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
    """Return a list, or a page of it. `current` is the version of the store. Raises RejectedError."""
    version, start = _place(options, current)
    if version > current:
        raise RejectedError(too_large_version(version, current))
    snapshot = collection.snapshot(version)
    if snapshot is None:
        if options.continue_token:
            raise RejectedError(expired_continue(_token(_LATEST, start)))
        raise RejectedError(expired_list())
    return _body(collection.resource, snapshot, start, options)


def _place(options: ListOptions, current: int) -> tuple[int, str]:
    """Return the version of the list, and its first key."""
    if options.continue_token:
        version, start = _parsed(options.continue_token)
        if options.version:
            raise RejectedError(bad_request("specifying resource version is not allowed when using continue"))
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
    raise RejectedError(bad_request("invalid continue token: continue key is not valid"))
