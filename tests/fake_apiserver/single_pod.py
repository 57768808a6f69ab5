"""One pod by its name: read, bound to a node through its `binding` subresource, its status patched, or deleted.

Source: k8s.io/kubernetes pkg/registry/core/pod/storage/storage.go (BindingREST). Only name, uid and target of a Binding
are validated. For deletion: pkg/registry/core/pod/strategy.go (CheckGracefulDelete) and k8s.io/apiserver
pkg/registry/rest/delete.go. For patches: k8s.io/api core/v1 types.go (patchStrategy, patchMergeKey).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import msgspec

from tests.fake_apiserver.faults import Kind
from tests.fake_apiserver.resources import PODS
from tests.fake_apiserver.statuses import RefusedError, bad_request, conflict, failure, no_such_object
from tests.fake_apiserver.store import Store
from tests.fake_apiserver.stored import Object
from tests.fake_apiserver.wire import Request

_PATH: Final = re.compile(
    r"/api/v1/namespaces/(?P<namespace>[^/]+)/pods/(?P<name>[^/]+?)(?:/(?P<part>binding|status))?"
)
_METHODS: Final[Mapping[Kind, str]] = {"get": "GET", "bind": "POST", "delete": "DELETE", "patch": "PATCH"}
_STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"


@dataclass(frozen=True, slots=True)
class SinglePod:
    """A request for the pod that its path names."""

    namespace: str
    name: str
    kind: Kind

    @property
    def method(self) -> str:
        """The HTTP method of the request."""
        return _METHODS[self.kind]

    def answer(self, store: Store, request: Request) -> tuple[int, bytes]:
        """Carry out the request. Return status and body. Raises RefusedError."""
        return _answer(store, self, request)


def single_pod(request: Request) -> SinglePod | None:
    """Read method and path. None if it is another path."""
    found = _PATH.fullmatch(request.path)
    if found is None:
        return None
    whole: Kind = "delete" if request.method == "DELETE" else "get"
    kind: Kind = "bind" if found["part"] == "binding" else "patch" if found["part"] else whole
    return SinglePod(found["namespace"], found["name"], kind)


def _answer(store: Store, asked: SinglePod, request: Request) -> tuple[int, bytes]:
    found = store.get(PODS.path, asked.name, asked.namespace)
    if found is None:
        raise RefusedError(no_such_object(PODS, asked.name))
    match asked.kind:
        case "bind":
            _bind(store, found, msgspec.json.decode(request.body))
            success = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
            return 201, msgspec.json.encode(success)
        case "delete":
            found = _delete(store, found, msgspec.json.decode(request.body or b"{}"))
        case "patch":
            if request.headers.get("content-type") != _STRATEGIC_MERGE_PATCH:
                raise RefusedError(
                    failure(415, "UnsupportedMediaType", "the body of the request was in an unknown format")
                )
            found = _patch_status(store, found, msgspec.json.decode(request.body))
    return 200, msgspec.json.encode({"kind": "Pod", "apiVersion": "v1", **found})


def binding_path(name: str, namespace: str = "default") -> str:
    """Return the path at which a pod is bound."""
    return f"{pod_path(name, namespace)}/binding"


def status_path(name: str, namespace: str = "default") -> str:
    """Return the path at which the status of a pod is patched."""
    return f"{pod_path(name, namespace)}/status"


def pod_path(name: str, namespace: str = "default") -> str:
    """Return the path of a pod."""
    return f"/api/v1/namespaces/{namespace}/pods/{name}"


def _bind(store: Store, pod: Object, binding: Object) -> None:
    """Set the node of a pod without a node (setPodNodeAndMetadata)."""
    metadata = pod["metadata"]
    name, uid = metadata["name"], binding["metadata"].get("uid")
    if binding["metadata"]["name"] != name:
        raise RefusedError(bad_request("name in URL does not match name in Binding object"))
    if uid and uid != metadata["uid"]:
        key = f"/registry/pods/{metadata['namespace']}/{name}"
        precondition = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {metadata['uid']}"
        error = (
            f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: {precondition}"
        )
        raise RefusedError(conflict("pods", name, error))
    if metadata.get("deletionTimestamp"):
        raise RefusedError(conflict("pods/binding", name, f"pod {name} is being deleted, cannot be assigned to a host"))
    node = pod.get("spec", {}).get("nodeName")
    if node:
        raise RefusedError(conflict("pods/binding", name, f'pod {name} is already assigned to node "{node}"'))
    spec = {**pod.get("spec", {}), "nodeName": binding["target"]["name"]}
    store.update(PODS.path, {**pod, "spec": spec})


def _delete(store: Store, pod: Object, options: Object) -> Object:
    """Delete a pod without a node at once. A pod on a node terminates, and the test must delete it like a kubelet."""
    metadata = pod["metadata"]
    uid = (options.get("preconditions") or {}).get("uid")
    if uid and uid != metadata["uid"]:
        error = (
            f"the UID in the precondition ({uid}) does not match the UID in record ({metadata['uid']}). The object "
            "might have been deleted and then recreated"
        )
        raise RefusedError(conflict("pods", metadata["name"], error))
    if not pod.get("spec", {}).get("nodeName"):
        return store.delete(PODS.path, metadata["name"], metadata["namespace"])
    if metadata.get("deletionTimestamp"):
        return pod
    deleted_at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return store.update(PODS.path, {**pod, "metadata": {**metadata, "deletionTimestamp": deleted_at}})


def _patch_status(store: Store, pod: Object, patch: Object) -> Object:
    """Merge a status. Conditions are merged by their types. null removes a member."""
    metadata = pod["metadata"]
    uid = patch.get("metadata", {}).get("uid", metadata["uid"])
    if uid != metadata["uid"]:
        message = f'Pod "{metadata["name"]}" is invalid: metadata.uid: Invalid value: "{uid}": field is immutable'
        raise RefusedError(failure(422, "Invalid", message))
    before, patched = pod.get("status", {}), dict(patch.get("status", {}))
    conditions = {each["type"]: each for each in before.get("conditions", ())}
    for condition in patched.pop("conditions", ()):
        conditions[condition["type"]] = {**conditions.get(condition["type"], {}), **condition}
    status = {**before, **patched, **({"conditions": [*conditions.values()]} if conditions else {})}
    return store.update(
        PODS.path, {**pod, "status": {key: value for key, value in status.items() if value is not None}}
    )
