"""Events of events.k8s.io/v1, created.

Source: k8s.io/kubernetes pkg/apis/core/validation/events.go (ValidateEventCreate).
"""

import re
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from tests.fake_apiserver.faults import Kind
from tests.fake_apiserver.resources import EVENTS
from tests.fake_apiserver.statuses import RefusedError, failure
from tests.fake_apiserver.store import Store
from tests.fake_apiserver.wire import Request

_PATH: Final = re.compile(r"/apis/events\.k8s\.io/v1/namespaces/(?P<namespace>[^/]+)/events")
_LONGEST: Final = {"reportingController": 316, "reportingInstance": 128, "action": 128, "reason": 128}
_LONGEST_NOTE: Final = 1024
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LONGEST_NAME: Final = 253
_MICRO_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


@dataclass(frozen=True, slots=True)
class EventRequest:
    """A request to create an Event in a namespace."""

    namespace: str
    kind: Kind = "create"
    method: str = "POST"

    def answer(self, store: Store, request: Request) -> tuple[int, bytes]:
        """Create the Event. Return status and body. Raises RefusedError."""
        body = msgspec.json.decode(request.body)
        problem = _problem(body, self.namespace)
        name = body["metadata"]["name"]
        if problem:
            raise RefusedError(failure(422, "Invalid", f'Event.events.k8s.io "{name}" is invalid: {problem}'))
        if store.get(EVENTS.path, name, self.namespace) is not None:
            raise RefusedError(failure(409, "AlreadyExists", f'events.events.k8s.io "{name}" already exists'))
        created = store.create(EVENTS.path, {**body, "metadata": {**body["metadata"], "namespace": self.namespace}})
        return 201, msgspec.json.encode({"kind": EVENTS.kind, "apiVersion": EVENTS.group_version, **created})


def event_request(request: Request) -> EventRequest | None:
    """Read the path. None if it is another one."""
    found = _PATH.fullmatch(request.path)
    return EventRequest(found["namespace"]) if found is not None else None


def events_path(namespace: str = "default") -> str:
    """Return the path at which Events are created."""
    return f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"


def _problem(event: Any, namespace: str) -> str:  # noqa: ANN401 - JSON
    """Return the first error that the API server would report. Empty if the Event is valid."""
    name = event["metadata"]["name"]
    if len(name) > _LONGEST_NAME or not _SUBDOMAIN.fullmatch(name):
        return "metadata.name: Invalid value: a lowercase RFC 1123 subdomain"
    if event["regarding"].get("namespace") != namespace:
        return "involvedObject.namespace: Invalid value: does not match event.namespace"
    if not _MICRO_TIME.fullmatch(event.get("eventTime") or ""):
        return "eventTime: Required value"
    for field, longest in _LONGEST.items():
        if not 0 < len(event.get(field) or "") <= longest:
            return f"{field}: Required value, of at most {longest} characters"
    if event.get("type") not in {"Normal", "Warning"}:
        return "type: Invalid value: has invalid value"
    return "message: Invalid value" if len(event.get("note") or "") > _LONGEST_NOTE else ""
