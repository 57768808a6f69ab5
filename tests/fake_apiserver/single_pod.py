"""One pod by its name: read, or bound to a node through its `binding` subresource.

Source: k8s.io/kubernetes pkg/registry/core/pod/storage/storage.go (BindingREST). Of a Binding, name, uid and target
count; nothing else of it is validated.
"""

import re
from dataclasses import dataclass
from typing import Final

import msgspec

from tests.fake_apiserver.faults import Kind
from tests.fake_apiserver.resources import PODS
from tests.fake_apiserver.statuses import RefusedError, bad_request, conflict, no_such_object
from tests.fake_apiserver.store import Store
from tests.fake_apiserver.stored import Object

_PATH: Final = re.compile(r"/api/v1/namespaces/(?P<namespace>[^/]+)/pods/(?P<name>[^/]+?)(?P<binding>/binding)?")


@dataclass(frozen=True, slots=True)
class SinglePod:
    """What a path below `pods` names."""

    namespace: str
    name: str
    kind: Kind

    @property
    def method(self) -> str:
        """The one method that is served there."""
        return "POST" if self.kind == "bind" else "GET"


def single_pod(path: str) -> SinglePod | None:
    """Read a path; None if it is another one."""
    found = _PATH.fullmatch(path)
    return found and SinglePod(found["namespace"], found["name"], "bind" if found["binding"] else "get")


def answer(store: Store, asked: SinglePod, body: bytes) -> tuple[int, bytes]:
    """Do what is asked; return status and body. Raises RefusedError."""
    found = store.get(PODS.path, asked.name, asked.namespace)
    if found is None:
        raise RefusedError(no_such_object(PODS, asked.name))
    if asked.kind == "get":
        return 200, msgspec.json.encode({"kind": "Pod", "apiVersion": "v1", **found})
    _bind(store, found, msgspec.json.decode(body))
    success = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
    return 201, msgspec.json.encode(success)


def binding_path(name: str, namespace: str = "default") -> str:
    """Return where a pod is bound."""
    return f"{pod_path(name, namespace)}/binding"


def pod_path(name: str, namespace: str = "default") -> str:
    """Return where a pod is read."""
    return f"/api/v1/namespaces/{namespace}/pods/{name}"


def _bind(store: Store, pod: Object, binding: Object) -> None:
    """Set the node of a pod that has none (setPodNodeAndMetadata)."""
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
