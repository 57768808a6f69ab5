"""The list options of a request, read and validated as a kube-apiserver does.

Source: k8s.io/apimachinery pkg/apis/meta/internalversion/{defaults.go,validation/validation.go}.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from tests.fake_apiserver.faults import Kind
from tests.fake_apiserver.field_selectors import FieldSelector, parse_field_selector
from tests.fake_apiserver.resources import Resource
from tests.fake_apiserver.statuses import RefusedError, bad_request, invalid_options

WatchListMode: TypeAlias = Literal["on", "off", "ignored"]
"""on: v1.34; off: the feature gate is off; ignored: a server without support for the parameters."""

_NOT_OLDER_THAN: Final = "NotOlderThan"
_EXACT: Final = "Exact"
_FORBIDDEN: Final = "FieldValueForbidden"


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
    """Read the options of a request. Raises RefusedError."""
    if mode == "ignored":
        query = {key: value for key, value in query.items() if key not in {"sendInitialEvents", "resourceVersionMatch"}}
    watch = _flag(query, "watch")
    _validate(query, watch=watch, mode=mode)
    version = query.get("resourceVersion", "")
    if version and not version.isdecimal():
        raise RefusedError(bad_request(f"invalid resource version: {version}"))
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
    errors = _watch_errors(query, mode) if watch else _list_errors(query)
    if errors:
        raise RefusedError(invalid_options(errors))


def _list_errors(query: Mapping[str, str]) -> list[tuple[str, str, str]]:
    errors = []
    match = query.get("resourceVersionMatch", "")
    if match and not query.get("resourceVersion"):
        errors.append(_forbidden("resourceVersionMatch", "is forbidden unless resourceVersion is provided"))
    if match and query.get("continue"):
        errors.append(_forbidden("resourceVersionMatch", "is forbidden when continue is provided"))
    if match not in {"", _EXACT, _NOT_OLDER_THAN}:
        errors.append(_unsupported(match, f'"{_EXACT}", "{_NOT_OLDER_THAN}", ""'))
    if match == _EXACT and query.get("resourceVersion") == "0":
        errors.append(_forbidden("resourceVersionMatch", '"exact" is forbidden for resourceVersion "0"'))
    if "sendInitialEvents" in query:
        errors.append(_forbidden("sendInitialEvents", "is forbidden for list"))
    return errors


def _watch_errors(query: Mapping[str, str], mode: WatchListMode) -> list[tuple[str, str, str]]:
    errors = []
    match = query.get("resourceVersionMatch", "")
    if "sendInitialEvents" in query:
        if match != _NOT_OLDER_THAN:
            message = f"Forbidden: sendInitialEvents requires setting resourceVersionMatch to {_NOT_OLDER_THAN}"
            errors.append(("resourceVersionMatch", _FORBIDDEN, message))
        if mode == "off":
            reason = "is forbidden for watch unless the WatchList feature gate is enabled"
            errors.append(_forbidden("sendInitialEvents", reason))
    elif match:
        reason = "is forbidden for watch unless sendInitialEvents is provided"
        errors.append(_forbidden("resourceVersionMatch", reason))
    if match not in {"", _NOT_OLDER_THAN}:
        errors.append(_unsupported(match, f'"{_NOT_OLDER_THAN}"'))
    if match and query.get("continue"):
        errors.append(_forbidden("resourceVersionMatch", "is forbidden when continue is provided"))
    return errors


def _forbidden(field: str, reason: str) -> tuple[str, str, str]:
    return field, _FORBIDDEN, f"Forbidden: {field} {reason}"


def _unsupported(value: str, supported: str) -> tuple[str, str, str]:
    message = f'Unsupported value: "{value}": supported values: {supported}'
    return "resourceVersionMatch", "FieldValueNotSupported", message
