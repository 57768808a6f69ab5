"""Requests that are not for a list: one pod, a Lease, an Event, the version, and APIs outside of the store.

A pod is read, bound to a node through its `binding` subresource, its status patched, or deleted. A Lease is created,
read and replaced, as in leader election. An Event is created.

Source: k8s.io/kubernetes pkg/registry/core/pod/storage/storage.go (BindingREST; only name, uid and target of a Binding
are validated), pkg/registry/core/pod/strategy.go (CheckGracefulDelete), pkg/apis/coordination/validation/validation.go,
pkg/apis/core/validation/events.go (ValidateEventCreate); k8s.io/apiserver pkg/registry/rest/delete.go,
pkg/registry/generic/registry/store.go (a replacement needs the object's present version), pkg/server/routes/version.go;
k8s.io/api core/v1 types.go (patchStrategy, patchMergeKey).
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

import msgspec

from tests.fake_apiserver.faults import Kind
from tests.fake_apiserver.resources import EVENTS, LEASES, PODS, Resource
from tests.fake_apiserver.statuses import RejectedError, bad_request, conflict, failure, no_such_object
from tests.fake_apiserver.store import Object, Store
from tests.fake_apiserver.wire import Request

Response: TypeAlias = tuple[int, bytes]
"""Status and body."""
Respond: TypeAlias = Callable[[Request], Response]

VERSION_PATH: Final = "/version"
_POD: Final = re.compile(r"/api/v1/namespaces/(?P<namespace>[^/]+)/pods/(?P<name>[^/]+?)(?:/(?P<part>binding|status))?")
_LEASE: Final = re.compile(
    r"/apis/coordination\.k8s\.io/v1/namespaces/(?P<namespace>[^/]+)/leases(?:/(?P<name>[^/]+))?"
)
_EVENTS: Final = re.compile(r"/apis/events\.k8s\.io/v1/namespaces/(?P<namespace>[^/]+)/events")


@dataclass(frozen=True, slots=True)
class SingleRequest:
    """A request with its kind, the method that it has to have, and what carries it out. That raises RejectedError."""

    kind: Kind
    method: str
    response: Callable[[Store], Response]


def single_request(request: Request, git_version: str, other_apis: Mapping[str, Respond]) -> SingleRequest | None:
    """Read method and path. None if the path is of nothing here."""
    if request.path == VERSION_PATH:
        return SingleRequest("version", "GET", lambda _store: _version(git_version))
    if respond := other_apis.get(request.path):
        return SingleRequest("get", "GET", lambda _store: respond(request))
    if found := _POD.fullmatch(request.path):
        return _pod_request(request, **found.groupdict())
    if found := _LEASE.fullmatch(request.path):
        return _lease_request(request, **found.groupdict())
    if found := _EVENTS.fullmatch(request.path):
        namespace = found["namespace"]
        return SingleRequest("create", "POST", lambda store: _create_event(store, namespace, _decoded(request)))
    return None


def _decoded(request: Request) -> Any:  # noqa: ANN401 - JSON
    return msgspec.json.decode(request.body or b"{}")


def _encoded(resource: Resource, found: Object) -> bytes:
    return msgspec.json.encode({"kind": resource.kind, "apiVersion": resource.group_version, **found})


def _create(store: Store, resource: Resource, namespace: str, body: Object) -> Response:
    name = body["metadata"]["name"]
    if store.get(resource.path, name, namespace) is not None:
        details = {"name": name, "group": resource.group, "kind": resource.plural}
        message = f'{resource.plural}.{resource.group} "{name}" already exists'
        raise RejectedError(failure(409, "AlreadyExists", message, details))
    created = store.create(resource.path, {**body, "metadata": {**body["metadata"], "namespace": namespace}})
    return 201, _encoded(resource, created)


def _version(git_version: str) -> Response:
    major, _, rest = git_version.removeprefix("v").partition(".")
    info = {"major": major, "minor": rest.partition(".")[0], "gitVersion": git_version, "platform": "linux/amd64"}
    return 200, msgspec.json.encode(info)


# Pods.


def pod_path(name: str, namespace: str = "default") -> str:
    """Return the path of a pod."""
    return f"/api/v1/namespaces/{namespace}/pods/{name}"


def binding_path(name: str, namespace: str = "default") -> str:
    """Return the path at which a pod is bound."""
    return f"{pod_path(name, namespace)}/binding"


def status_path(name: str, namespace: str = "default") -> str:
    """Return the path at which the status of a pod is patched."""
    return f"{pod_path(name, namespace)}/status"


def _pod_request(request: Request, namespace: str, name: str, part: str | None) -> SingleRequest:
    def carried_out(act: Callable[[Store, Object, Any], Response]) -> Callable[[Store], Response]:
        def response(store: Store) -> Response:
            found = store.get(PODS.path, name, namespace)
            if found is None:
                raise RejectedError(no_such_object(PODS, name))
            return act(store, found, _decoded(request))

        return response

    if part == "binding":
        return SingleRequest("bind", "POST", carried_out(_bind))
    if part == "status":
        media_type = request.headers.get("content-type")
        return SingleRequest(
            "patch", "PATCH", carried_out(lambda store, pod, patch: _patch_status(store, pod, patch, media_type))
        )
    if request.method == "DELETE":
        return SingleRequest("delete", "DELETE", carried_out(_delete))
    return SingleRequest("get", "GET", carried_out(lambda _store, pod, _body: (200, _encoded(PODS, pod))))


def _bind(store: Store, pod: Object, binding: Object) -> Response:
    """Set the node of a pod without a node (setPodNodeAndMetadata)."""
    metadata = pod["metadata"]
    name, uid = metadata["name"], binding["metadata"].get("uid")
    if binding["metadata"]["name"] != name:
        raise RejectedError(bad_request("name in URL does not match name in Binding object"))
    if uid and uid != metadata["uid"]:
        key = f"/registry/pods/{metadata['namespace']}/{name}"
        precondition = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {metadata['uid']}"
        error = (
            f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: {precondition}"
        )
        raise RejectedError(conflict("pods", name, error))
    if metadata.get("deletionTimestamp"):
        raise RejectedError(
            conflict("pods/binding", name, f"pod {name} is being deleted, cannot be assigned to a host")
        )
    node = pod.get("spec", {}).get("nodeName")
    if node:
        raise RejectedError(conflict("pods/binding", name, f'pod {name} is already assigned to node "{node}"'))
    spec = {**pod.get("spec", {}), "nodeName": binding["target"]["name"]}
    store.update(PODS.path, {**pod, "spec": spec})
    return 201, msgspec.json.encode(
        {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
    )


def _delete(store: Store, pod: Object, options: Object) -> Response:
    """Delete a pod without a node at once. A pod on a node terminates, and the test must delete it like a kubelet."""
    metadata = pod["metadata"]
    uid = (options.get("preconditions") or {}).get("uid")
    if uid and uid != metadata["uid"]:
        error = (
            f"the UID in the precondition ({uid}) does not match the UID in record ({metadata['uid']}). The object "
            "might have been deleted and then recreated"
        )
        raise RejectedError(conflict("pods", metadata["name"], error))
    if not pod.get("spec", {}).get("nodeName"):
        pod = store.delete(PODS.path, metadata["name"], metadata["namespace"])
    elif not metadata.get("deletionTimestamp"):
        deleted_at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        pod = store.update(PODS.path, {**pod, "metadata": {**metadata, "deletionTimestamp": deleted_at}})
    return 200, _encoded(PODS, pod)


def _patch_status(store: Store, pod: Object, patch: Object, media_type: str | None) -> Response:
    """Merge a status. Conditions are merged by their types. null removes a member."""
    if media_type != "application/strategic-merge-patch+json":
        raise RejectedError(failure(415, "UnsupportedMediaType", "the body of the request was in an unknown format"))
    metadata = pod["metadata"]
    uid = patch.get("metadata", {}).get("uid", metadata["uid"])
    if uid != metadata["uid"]:
        message = f'Pod "{metadata["name"]}" is invalid: metadata.uid: Invalid value: "{uid}": field is immutable'
        raise RejectedError(failure(422, "Invalid", message))
    before, patched = pod.get("status", {}), dict(patch.get("status", {}))
    conditions = {each["type"]: each for each in before.get("conditions", ())}
    for condition in patched.pop("conditions", ()):
        conditions[condition["type"]] = {**conditions.get(condition["type"], {}), **condition}
    status = {**before, **patched, **({"conditions": [*conditions.values()]} if conditions else {})}
    status = {key: value for key, value in status.items() if value is not None}
    return 200, _encoded(PODS, store.update(PODS.path, {**pod, "status": status}))


# Leases.


def leases_path(namespace: str = "default") -> str:
    """Return the path at which Leases are created."""
    return f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"


def lease_path(name: str, namespace: str = "default") -> str:
    """Return the path of a Lease."""
    return f"{leases_path(namespace)}/{name}"


def _lease_request(request: Request, namespace: str, name: str | None) -> SingleRequest:
    def response(store: Store) -> Response:
        if name is None:
            return _create(store, LEASES, namespace, _valid(_decoded(request)))
        found = store.get(LEASES.path, name, namespace)
        if found is None:
            raise RejectedError(no_such_object(LEASES, name))
        if request.method == "PUT":
            found = _replace(store, found, _valid(_decoded(request)))
        return 200, _encoded(LEASES, found)

    if name is None:
        return SingleRequest("create", "POST", response)
    return (
        SingleRequest("update", "PUT", response) if request.method == "PUT" else SingleRequest("get", "GET", response)
    )


def _replace(store: Store, found: Object, body: Object) -> Object:
    if body["metadata"].get("resourceVersion") != found["metadata"]["resourceVersion"]:
        error = "the object has been modified; please apply your changes to the latest version and try again"
        raise RejectedError(conflict("leases.coordination.k8s.io", found["metadata"]["name"], error))
    return store.update(LEASES.path, body)


def _valid(lease: Object) -> Object:
    if lease["spec"].get("leaseDurationSeconds", 1) <= 0:
        message = "spec.leaseDurationSeconds: Invalid value: must be greater than 0"
        raise RejectedError(failure(422, "Invalid", f'Lease "{lease["metadata"]["name"]}" is invalid: {message}'))
    return lease


# Events.

_LONGEST: Final = {"reportingController": 316, "reportingInstance": 128, "action": 128, "reason": 128}
_LONGEST_NOTE: Final = 1024
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LONGEST_NAME: Final = 253
_MICRO_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


def events_path(namespace: str = "default") -> str:
    """Return the path at which Events are created."""
    return f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"


def _create_event(store: Store, namespace: str, event: Object) -> Response:
    problem = _problem(event, namespace)
    if problem:
        message = f'Event.events.k8s.io "{event["metadata"]["name"]}" is invalid: {problem}'
        raise RejectedError(failure(422, "Invalid", message))
    return _create(store, EVENTS, namespace, event)


def _problem(event: Object, namespace: str) -> str:
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
