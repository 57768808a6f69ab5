"""An admin port with `explain_access: review`, and an API server that says which namespaces each caller may see."""

import asyncio
import json
from collections.abc import Collection, Mapping
from http import HTTPStatus
from typing import Any, Final, NamedTuple

from fastapi import FastAPI
from starlette.types import Message

from app.api_server.access_reviews import AccessReviews
from app.api_server.client import ApiClient, ConnectionFailedError, StatusError
from app.feeds.release import ReleaseTracker
from app.server.ports import Port
from app.settings.limits import DEFAULTS
from app.settings.settings import Settings
from app.telemetry.metrics import Metrics
from app.verbs.endpoint import ExtenderApp
from app.wiring.apps import Verbs, create_admin_port, create_scheduler_ports, create_verbs
from app.wiring.cluster import dumped_cluster
from app.wiring.engine import create_engine, served_profile
from core.mirror.cluster import ClusterMirror
from tests.app.asgi import ASGI_REQUEST
from tests.builders import NodeBuilder, PodBuilder, labelled, make_node, make_pod, term

ALL: Final = ("",)


class ReviewingServer(ApiClient):
    """Answers reviews: token -> namespaces whose pods may be listed, `""` for all."""

    def __init__(self, allowed: Mapping[str, Collection[str]]) -> None:
        self.allowed = allowed
        self.requested: list[tuple[str, str, dict[str, Any]]] = []  # token, path, spec
        self.problem: StatusError | ConnectionFailedError | None = None
        self.now = 0.0

    async def post_as(self, token: str, path: str, body: bytes) -> bytes:
        if self.problem is None and token not in self.allowed:
            raise StatusError(HTTPStatus.UNAUTHORIZED, "Unauthorized", "Unauthorized")
        return self._response(token, path, json.loads(body)["spec"])

    def reviews(self) -> AccessReviews:
        return AccessReviews(self, lambda: self.now)

    def _response(self, who: str, path: str, spec: dict[str, Any]) -> bytes:
        self.requested.append((who, path, spec))
        if self.problem is not None:
            raise self.problem
        allowed = spec["resourceAttributes"]["namespace"] in self.allowed.get(who, ())
        return json.dumps({"kind": "Review", "status": {"allowed": allowed}}).encode()


class LimitedService(NamedTuple):
    """A service over a mirror that follows nothing, whose callers are reviewed by a ReviewingServer."""

    admin: FastAPI
    extender: ExtenderApp
    verbs: Verbs
    port: Port


def limited_service(mirror: ClusterMirror, server: ReviewingServer | None, **settings: Any) -> LimitedService:  # noqa: ANN401  # as Settings has them
    """Wire a service up; without a server, callers see everything."""
    of_ports = Settings(admin="127.0.0.1:0", **settings)
    metrics = Metrics(mirror, lambda: 0.0)
    profile = served_profile(of_ports)
    cluster = dumped_cluster(of_ports, ReleaseTracker(of_ports, mirror), metrics, DEFAULTS)
    if server is not None:
        cluster = cluster._replace(reviews=server.reviews())
    engine = create_engine(of_ports, mirror, profile, cluster, metrics=metrics, limits=DEFAULTS)
    verbs = create_verbs(of_ports, engine, cluster, metrics=metrics, limits=DEFAULTS)
    extender = create_scheduler_ports(of_ports, engine, cluster, verbs, metrics=metrics, limits=DEFAULTS)[0].app
    admin = create_admin_port(of_ports, engine, cluster, verbs, limits=DEFAULTS, sources={}, samples=())
    assert isinstance(extender, ExtenderApp)
    return LimitedService(admin.app, extender, verbs, admin)


def first_of_stream(app: FastAPI, path: str, headers: Mapping[str, str]) -> tuple[int, bytes]:
    """Return the status and the first piece of a response that has no end."""
    sent: list[Message] = []

    async def main() -> None:
        come = asyncio.Event()

        async def receive() -> Message:
            await asyncio.Event().wait()
            raise AssertionError

        async def send(message: Message) -> None:
            sent.append(message)
            if message["type"] == "http.response.body":
                come.set()

        pairs = [(name.lower().encode(), value.encode()) for name, value in {"host": "localhost", **headers}.items()]
        scope = {**ASGI_REQUEST, "method": "GET", "path": path, "raw_path": path.encode(), "headers": pairs}
        serving = asyncio.create_task(app(scope, receive, send))
        await come.wait()
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)

    asyncio.run(main())
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])


OURS: Final = "ours"
THEIRS: Final = "theirs"
HIDDEN: Final = "hidden-7f3a"
"""In the name, and so in the uid, of every pod of THEIRS."""
SEEN: Final = "visible-4c1d"
"""In the name of every pod of OURS."""
NODES: Final = ("n1", "n2", "n3")
ZONE: Final = "topology.kubernetes.io/zone"
ALLOWED: Final = {"of-ours": (OURS,), "of-all": ALL, "of-none": ()}
DISK: Final = {"name": "d", "gcePersistentDisk": {"pdName": "disk"}}


def ours(name: str) -> PodBuilder:
    return make_pod(f"{SEEN}-{name}").in_namespace(OURS)


def theirs(name: str) -> PodBuilder:
    return make_pod(f"{HIDDEN}-{name}").in_namespace(THEIRS).uid(f"uid-{HIDDEN}-{name}")


def everywhere(**labels: str) -> dict[str, Any]:
    return term(ZONE, labelled(**labels), namespace_selector={})


def nodes() -> list[NodeBuilder]:
    return [make_node(name).label(ZONE, f"z-{name}").allocatable(cpu=4, memory="8Gi", pods=20) for name in NODES]
