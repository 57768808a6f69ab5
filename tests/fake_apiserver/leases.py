"""Leases by their names: created, read and replaced, as in leader election.

Source: k8s.io/apiserver pkg/registry/generic/registry/store.go (a replacement needs the object's present version)
and k8s.io/kubernetes pkg/apis/coordination/validation/validation.go.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from tests.fake_apiserver.faults import Kind
from tests.fake_apiserver.resources import LEASES
from tests.fake_apiserver.statuses import RefusedError, conflict, failure, no_such_object
from tests.fake_apiserver.store import Store
from tests.fake_apiserver.stored import Object
from tests.fake_apiserver.wire import Request

_PATH: Final = re.compile(r"/apis/coordination\.k8s\.io/v1/namespaces/(?P<namespace>[^/]+)/leases(?:/(?P<name>[^/]+))?")
_METHODS: Final[Mapping[Kind, str]] = {"get": "GET", "create": "POST", "update": "PUT"}
_MODIFIED: Final = "the object has been modified; please apply your changes to the latest version and try again"


@dataclass(frozen=True, slots=True)
class LeaseRequest:
    """A request for a Lease. `create` has no name."""

    namespace: str
    name: str
    kind: Kind

    @property
    def method(self) -> str:
        """The HTTP method of the request."""
        return _METHODS[self.kind]

    def answer(self, store: Store, request: Request) -> tuple[int, bytes]:
        """Carry out the request. Return status and body. Raises RefusedError."""
        if self.kind == "create":
            return 201, _encoded(_create(store, self.namespace, msgspec.json.decode(request.body)))
        found = store.get(LEASES.path, self.name, self.namespace)
        if found is None:
            raise RefusedError(no_such_object(LEASES, self.name))
        if self.kind == "update":
            found = _replace(store, found, msgspec.json.decode(request.body))
        return 200, _encoded(found)


def lease_request(request: Request) -> LeaseRequest | None:
    """Read method and path. None if it is another path."""
    found = _PATH.fullmatch(request.path)
    if found is None:
        return None
    kind: Kind = "create" if found["name"] is None else "update" if request.method == "PUT" else "get"
    return LeaseRequest(found["namespace"], found["name"] or "", kind)


def lease_path(name: str, namespace: str = "default") -> str:
    """Return the path of a Lease."""
    return f"{leases_path(namespace)}/{name}"


def leases_path(namespace: str = "default") -> str:
    """Return the path at which Leases are created."""
    return f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"


def _create(store: Store, namespace: str, body: Object) -> Object:
    _validate(body)
    name = body["metadata"]["name"]
    if store.get(LEASES.path, name, namespace) is not None:
        details = {"name": name, "group": LEASES.group, "kind": LEASES.plural}
        raise RefusedError(
            failure(409, "AlreadyExists", f'leases.coordination.k8s.io "{name}" already exists', details)
        )
    return store.create(LEASES.path, {**body, "metadata": {**body["metadata"], "namespace": namespace}})


def _replace(store: Store, found: Object, body: Object) -> Object:
    _validate(body)
    if body["metadata"].get("resourceVersion") != found["metadata"]["resourceVersion"]:
        raise RefusedError(conflict("leases.coordination.k8s.io", found["metadata"]["name"], _MODIFIED))
    return store.update(LEASES.path, body)


def _validate(body: Object) -> None:
    if body["spec"].get("leaseDurationSeconds", 1) <= 0:
        message = "spec.leaseDurationSeconds: Invalid value: must be greater than 0"
        raise RefusedError(failure(422, "Invalid", f'Lease "{body["metadata"]["name"]}" is invalid: {message}'))


def _encoded(lease: Object) -> bytes:
    return msgspec.json.encode({"kind": LEASES.kind, "apiVersion": LEASES.group_version, **lease})
