"""The API server as the tests see it: objects made, changed and deleted by many requests at once."""

import ssl
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Final, TypeAlias, TypeVar

import httpx
import msgspec

from tests.e2e.programs import PATIENCE, wait_until

Manifest: TypeAlias = Mapping[str, Any]
T = TypeVar("T")
R = TypeVar("R")

NODES: Final = "/api/v1/nodes"
NAMESPACES: Final = "/api/v1/namespaces"
_WORKERS: Final = 12
_PAGE: Final = 5000  # objects
_DELETIONS: Final = 5  # of a collection, which the API server may break off
_MERGE: Final = {"Content-Type": "application/merge-patch+json"}
_APPLY: Final = {"Content-Type": "application/apply-patch+yaml"}
DELETE_AT_ONCE: Final = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
_PRIORITY_CLASSES: Final = "/apis/scheduling.k8s.io/v1/priorityclasses"
_TRIED: Final = f"{NAMESPACES}/default/pods?dryRun=All"
_APPLIED: Final = "fieldManager=kindred-e2e&force=true&fieldValidation=Strict"


def pods_path(namespace: str) -> str:
    """Return the collection of a namespace's pods."""
    return f"{NAMESPACES}/{namespace}/pods"


def path_of(manifest: Manifest) -> str:
    """Return where an object is, from its own words; the plural is what English makes of the kind."""
    version, kind, metadata = manifest["apiVersion"], manifest["kind"].lower(), manifest["metadata"]
    plural = f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}es" if kind.endswith("s") else f"{kind}s"
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    within = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
    return f"{root}{within}/{plural}/{metadata['name']}"


def condition_of(pod: Manifest) -> dict[str, Any]:
    """Return the condition PodScheduled of a pod, empty before its first attempt."""
    conditions = pod.get("status", {}).get("conditions", ())
    return next((each for each in conditions if each["type"] == "PodScheduled"), {})


class Api:
    """A client of the API server. All but `is_ready` raise httpx.HTTPError; a status is an error with its message."""

    def __init__(self, url: str, tls: ssl.SSLContext) -> None:
        # No expiry: httpcore closes a connection that is past it, though another thread has just been given it.
        limits = httpx.Limits(max_connections=_WORKERS + 2, keepalive_expiry=None)
        self._client = httpx.Client(base_url=url, verify=tls, timeout=60.0, limits=limits)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def is_ready(self) -> bool:
        """Whether the API server answers, and is done with what it does behind a start."""
        with suppress(httpx.HTTPError):
            return self._client.get("/readyz", timeout=2.0).status_code == httpx.codes.OK
        return False

    def request(self, method: str, path: str, body: object = None, *, headers: Mapping[str, str] | None = None) -> Any:  # noqa: ANN401  # JSON
        """Send one request and return the decoded answer."""
        content = msgspec.json.encode(body) if body is not None else None
        sent = {"Content-Type": "application/json", **(headers or {})} if content is not None else headers
        response = self._client.request(method, path, content=content, headers=sent)
        if response.is_error:
            raise httpx.HTTPStatusError(
                f"{method} {path}: {response.status_code} {response.text[:500]}",
                request=response.request,
                response=response,
            )
        return msgspec.json.decode(response.content)

    def metrics(self) -> str:
        """Return the API server's own metrics, as text."""
        return self._client.get("/metrics").raise_for_status().text

    def get(self, path: str) -> Any:  # noqa: ANN401  # JSON
        """Return one object."""
        return self.request("GET", path)

    def items(self, path: str) -> list[dict[str, Any]]:
        """Return all objects of a collection, page by page."""
        items: list[dict[str, Any]] = []
        token = ""
        while True:
            page = self.request("GET", f"{path}?limit={_PAGE}&continue={token}")
            items += page["items"]
            token = page["metadata"].get("continue", "")
            if not token:
                return items

    def create(self, path: str, manifest: Manifest) -> dict[str, Any]:
        """Make an object, with its status, which takes a request of its own."""
        made: dict[str, Any] = self.request("POST", path, manifest)
        if "status" in manifest:
            named = f"{path}/{made['metadata']['name']}/status"
            made = self.request("PATCH", named, {"status": manifest["status"]}, headers=_MERGE)
        return made

    def create_all(self, path: str, manifests: Iterable[Manifest]) -> list[dict[str, Any]]:
        """Make many objects at once; the order in which they are made is not said."""
        return self.at_once(lambda manifest: self.create(path, manifest), list(manifests))

    def create_priority(self, manifest: Manifest) -> None:
        """Make a PriorityClass, and wait until a pod may name it: the API server's admission knows it by a watch."""
        name = self.create(_PRIORITY_CLASSES, manifest)["metadata"]["name"]
        spec = {"priorityClassName": name, "containers": [{"name": "main", "image": "registry.invalid/none"}]}
        pod = {"metadata": {"name": "tried"}, "spec": spec}

        def is_admitted() -> bool:
            with suppress(httpx.HTTPStatusError):
                return bool(self.request("POST", _TRIED, pod))
            return False

        wait_until(is_admitted, PATIENCE, f"a pod of priority {name} admitted")

    def patch(self, path: str, change: Manifest) -> dict[str, Any]:
        """Change an object by a merge patch."""
        changed: dict[str, Any] = self.request("PATCH", path, change, headers=_MERGE)
        return changed

    def delete(self, path: str) -> None:
        """Delete one object at once; one that is gone is well."""
        with suppress(httpx.HTTPStatusError):
            self.request("DELETE", path, DELETE_AT_ONCE)

    def delete_all(self, path: str) -> None:
        """Delete all objects of a collection at once.

        The API server breaks off a request after 60 s, in which it deletes some 50,000 objects, or responds with 504.
        """
        for _ in range(_DELETIONS):
            try:
                self.request("DELETE", path, DELETE_AT_ONCE)
            except (httpx.RemoteProtocolError, httpx.ReadTimeout):
                continue
            except httpx.HTTPStatusError as error:
                if error.response.status_code != HTTPStatus.GATEWAY_TIMEOUT:
                    raise
            else:
                return
        self.request("DELETE", path, DELETE_AT_ONCE)

    def apply(self, manifest: Manifest) -> dict[str, Any]:
        """Make an object, or change it to what is said, as `kubectl apply --server-side` does."""
        applied: dict[str, Any] = self.request("PATCH", f"{path_of(manifest)}?{_APPLIED}", manifest, headers=_APPLY)
        return applied

    def at_once(self, work: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """Do the same for many items, a dozen at a time."""
        with ThreadPoolExecutor(_WORKERS) as pool:
            return list(pool.map(work, items))
