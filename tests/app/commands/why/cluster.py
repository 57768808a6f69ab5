"""A small API server in a thread, for one caller: objects, what is forbidden, and a service proxy.

It serves what `kindred why` asks. The fake API server of tests/fake_apiserver is for lists and watches.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import parse_qsl, urlsplit

import msgspec

from tests.app.asgi import ask
from tests.fake_apiserver.resources import RESOURCES
from tests.http_server import Handler, http_server

if TYPE_CHECKING:
    from fastapi import FastAPI

USER: Final = "dev"
_PATH: Final = re.compile(
    r"(?:/api/v1|/apis/(?P<group>[^/]+)/v1)(?:/namespaces/(?P<namespace>[^/]+))?/(?P<plural>[a-z]+)"
    r"(?:/(?P<name>[^/]+)(?:/(?P<part>proxy)(?P<rest>/.*)?)?)?"
)
_VERBS: Final[Mapping[str, str]] = {"GET": "get", "POST": "create"}
_OWNERS: Final = (
    "deployments",
    "daemonsets",
    "jobs",
    "limitranges",
    "resourcequotas",
    "priorityclasses",
    "runtimeclasses",
)
_ONE_BY_ONE: Final = 2
"""Objects in a page of a list, so that every list of more has several."""


class Requested(NamedTuple):
    """A request."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, list[str]]
    body: bytes


class SmallCluster:
    """The objects by plural, and who may do what; may be changed at any time."""

    def __init__(self) -> None:
        self.objects: dict[str, list[dict[str, Any]]] = {
            "nodes": [],
            "pods": [],
            "services": [],
            **{plural: [] for plural in _OWNERS},
            **{resource.plural: [] for resource in RESOURCES.values()},
        }
        self.forbidden: set[str] = set()
        """`VERB RESOURCE`, or `VERB RESOURCE NAMESPACE`."""
        self.absent: set[str] = set()
        """Plurals that the server does not have."""
        self.admission: Callable[[dict[str, Any]], dict[str, Any] | tuple[int, str]] = lambda pod: pod
        """Pod -> what would be stored with dryRun, or the code and message of a refusal."""
        self.admin: FastAPI | None = None
        """What the service proxy reaches."""
        self.git_version: str | None = "v1.36.2"
        """What `GET /version` says. None: it is not found."""
        self.requested: list[Requested] = []
        self.url = ""

    def add(self, plural: str, *objects: Mapping[str, Any]) -> None:
        """Add objects."""
        self.objects[plural] += map(dict, objects)

    def lists(self) -> list[str]:
        """Return the plurals that were listed, each once, in order."""
        found = [_PATH.fullmatch(each.path) for each in self.requested]
        return list(dict.fromkeys(each["plural"] for each in found if each is not None and not each["name"]))


class _Handler(Handler):
    cluster: SmallCluster

    def respond(self) -> None:
        url = urlsplit(self.path)
        headers = {name.lower(): self.headers.get_all(name, []) for name in self.headers}
        requested = Requested(self.command, url.path, dict(parse_qsl(url.query)), headers, self.body())
        self.cluster.requested.append(requested)
        found = _PATH.fullmatch(url.path)
        if url.path == "/version" and self.cluster.git_version is not None:
            self._send(200, {"gitVersion": self.cluster.git_version})
        elif found is not None and found["plural"] == "subjectaccessreviews":
            self._send(201, {"status": {"allowed": True}})
        elif found is None or found["plural"] in self.cluster.absent:
            self._status(404, "NotFound", "the server could not find the requested resource")
        else:
            self._response(requested, found)

    def _response(self, requested: Requested, found: re.Match[str]) -> None:
        plural, namespace, name, part = found["plural"], found["namespace"] or "", found["name"], found["part"]
        resource = f"{plural}/{part}" if part else plural
        verb = _VERBS[requested.method] if name or requested.method == "POST" else "list"
        if {f"{verb} {resource}", f"{verb} {resource} {namespace}"} & self.cluster.forbidden:
            text = f'{plural} is forbidden: User "{USER}" cannot {verb} resource "{resource}" in API group ""'
            self._status(403, "Forbidden", text)
        elif part == "proxy":
            self._proxy(requested, found["rest"])
        elif verb == "create":
            self._create(requested)
        elif name:
            self._get(plural, namespace, name)
        else:
            self._list(requested, plural, namespace)

    def _get(self, plural: str, namespace: str, name: str) -> None:
        for each in self.cluster.objects[plural]:
            if (each["metadata"]["name"], each["metadata"].get("namespace", "")) == (name, namespace):
                self._send(200, each)
                return
        self._status(404, "NotFound", f'{plural} "{name}" not found')

    def _create(self, requested: Requested) -> None:
        assert requested.query == {"dryRun": "All"}, "nothing else is created here"
        stored = self.cluster.admission(msgspec.json.decode(requested.body))
        if isinstance(stored, tuple):
            self._status(stored[0], "", stored[1])
        else:
            self._send(201, {**stored, "metadata": {**stored["metadata"], "name": "generated", "uid": "generated"}})

    def _list(self, requested: Requested, plural: str, namespace: str) -> None:
        items = [
            each
            for each in self.cluster.objects[plural]
            if (not namespace or each["metadata"]["namespace"] == namespace) and _selected(each, requested.query)
        ]
        begin = int(requested.query.get("continue", "0"))
        end = begin + min(_ONE_BY_ONE, int(requested.query.get("limit", len(items) or 1)))
        if "limit" not in requested.query:
            end = len(items)
        metadata = {"resourceVersion": "7", **({"continue": str(end)} if end < len(items) else {})}
        self._send(200, {"kind": "List", "metadata": metadata, "items": items[begin:end]})

    def _proxy(self, requested: Requested, rest: str) -> None:
        if self.cluster.admin is None:
            self._status(503, "ServiceUnavailable", 'no endpoints available for service "kindred-admin"')
            return
        # The API server takes the login out (k8s.io/apiserver pkg/endpoints/filters/authentication.go).
        headers = {
            name: values[0] for name, values in requested.headers.items() if name not in {"authorization", "host"}
        }
        query = urlsplit(self.path).query
        response = ask(self.cluster.admin, requested.method, f"{rest}?{query}", requested.body, headers)
        self._send(response.status_code, msgspec.json.decode(response.content))

    def _status(self, code: int, reason: str, message: str) -> None:
        self._send(code, {"kind": "Status", "code": code, "reason": reason, "message": message})

    def _send(self, code: int, value: object) -> None:
        self.reply(code, msgspec.json.encode(value))


def _selected(each: Mapping[str, Any], query: Mapping[str, str]) -> bool:
    """Return whether an object is selected by labels, with `=` alone."""
    labels = each["metadata"].get("labels", {})
    required = [part.split("=") for part in query.get("labelSelector", "").split(",") if part]
    return all(labels.get(key) == value for key, value in required)


@contextmanager
def small_cluster() -> Iterator[SmallCluster]:
    """Serve an empty cluster on a free port of this machine."""
    cluster = SmallCluster()
    handler = type("Handler", (_Handler,), {"cluster": cluster})
    with http_server(handler) as port:
        cluster.url = f"http://127.0.0.1:{port}"
        yield cluster
