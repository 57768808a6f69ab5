"""The whole service beside a fake API server, asked over HTTP as kube-scheduler asks."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final
from unittest.mock import patch

import httpx

from app.api_server.credentials import Credentials
from app.api_server.tls import ClusterAccess
from app.settings.limits import DEFAULTS, Limits
from app.settings.settings import Settings
from app.wiring.main import Service, create_service
from core.mirror.cluster import ClusterMirror
from tests.builders import NodeBuilder, PodBuilder, labelled, make_node, make_pod, term
from tests.fake_apiserver import FakeApiServer, Stall
from tests.fake_apiserver.faults import Kind, refuse
from tests.fake_apiserver.resources import NODES, PODS
from tests.fake_apiserver.statuses import forbidden
from tests.fake_apiserver.store import Object

HOSTNAME: Final = "kubernetes.io/hostname"
PATIENCE: Final = 60.0  # seconds
POD_KINDS: Final[tuple[Kind, ...]] = ("get", "bind")

N1, N2 = (make_node(name).label(HOSTNAME, name) for name in ("n1", "n2"))
WEB: Final = make_pod("web").label("app", "web")
FORBIDDEN: Final = refuse(forbidden("eve", "create", PODS))


def loner(name: str) -> PodBuilder:
    """Make a pod that wants no other of its kind on its node."""
    return make_pod(name).label("app", "db").required_anti_affinity(term(HOSTNAME, labelled(app="db")))


class Scheduler:
    """Asks a service that follows a fake API server."""

    def __init__(
        self, server: FakeApiServer, service: Service, mirror: ClusterMirror, client: httpx.AsyncClient
    ) -> None:
        self.server = server
        self.service = service
        self.mirror = mirror
        self._client = client

    def create(self, pod: PodBuilder) -> Object:
        """Create a pod; the server gives it a uid."""
        body = pod.obj()
        del body["metadata"]["uid"]
        return self.server.create(PODS.path, body)

    async def pending(self, pod: PodBuilder) -> Object:
        """Create a pod, and wait until the watch has shown it."""
        created = self.create(pod)
        await until(lambda: created["metadata"]["uid"] in self.mirror.pending)
        return created

    def node_of(self, pod: Object) -> str:
        """Return the node that the server has for the pod of a name. Empty if none, or no pod."""
        found = self.server.store.get(PODS.path, pod["metadata"]["name"], pod["metadata"]["namespace"])
        node: str = (found or {"spec": {}})["spec"].get("nodeName", "")
        return node

    async def filter(self, pod: Object, *nodes: str) -> list[str]:
        """Ask where a pod fits."""
        response = await self._post("filter", {"Pod": pod, "NodeNames": nodes})
        assert response["Error"] == ""
        names: list[str] = response["NodeNames"]
        return names

    async def bind(self, pod: Object, node: str, **other: str) -> str:
        """Have a pod bound; give the error. `other` replaces arguments."""
        metadata = pod["metadata"]
        args = {"PodName": metadata["name"], "PodNamespace": metadata["namespace"], "PodUID": metadata["uid"]}
        response = await self._post("bind", {**args, "Node": node, **other})
        assert response.keys() == {"Error"}
        error: str = response["Error"]
        assert error.isprintable()
        return error

    async def decide(self, pod: Object, *nodes: str) -> str:
        """Ask where a pod fits and bind it to the first of these; give the error."""
        return await self.bind(pod, (await self.filter(pod, *nodes))[0])

    async def preempt(self, pod: Object, offers: Mapping[str, Sequence[Object]]) -> Any:  # noqa: ANN401 - JSON
        """Ask where preemption helps, with the victims on each node; give the answer."""
        victims = {
            node: {"Pods": [{"UID": each["metadata"]["uid"]} for each in pods], "NumPDBViolations": 0}
            for node, pods in offers.items()
        }
        return await self._post("preempt", {"Pod": pod, "NodeNameToMetaVictims": victims})

    async def is_ready(self) -> bool:
        """Return whether /readyz says so."""
        return (await self._client.get("/readyz")).is_success

    async def readiness(self) -> Any:  # noqa: ANN401 - JSON
        """Return what /readyz says."""
        return (await self._client.get("/readyz")).json()

    async def metric(self, name: str) -> float:
        """Return the value of a sample."""
        return (await self.metrics(name))[0]

    async def metrics(self, *names: str) -> list[float]:
        """Return the values of samples, of one scrape."""
        lines = (await self._client.get("/metrics")).text.splitlines()
        values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
        return [float(values[name]) for name in names]

    def stall_watch(self) -> Stall:
        """Let the watch of pods tell nothing more until it is released."""
        stall = Stall()
        assert self.server.disturb(stall, PODS.path) == 1
        return stall

    def requested(self) -> list[str]:
        """Return the kinds of requests for single pods so far."""
        return [request.kind for request in self.server.requests.of(None, *POD_KINDS)]

    def is_added(self, pod: Object, node: str) -> bool:
        """Return whether the watch has shown the pod on a node."""
        uid = pod["metadata"]["uid"]
        known = self.mirror.get_pod(uid)
        return known is not None and known.node_name == node and not self.mirror.is_assumed(uid)

    def is_assumed(self, pod: Object) -> bool:
        return self.mirror.is_assumed(pod["metadata"]["uid"])

    async def ask(
        self, verb: str, pod: Object, *nodes: str, headers: Mapping[str, str] | None = None
    ) -> httpx.Response:
        """Ask a question about a pod; give the whole response."""
        return await self._client.post(f"/{verb}", json={"Pod": pod, "NodeNames": nodes}, headers=headers)

    async def send(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> bytes:
        """Send a request to the scheduler's port; give the body of the response, which has status 200."""
        response = await self._client.request(method, path, json=body, headers=headers)
        assert response.status_code == 200
        return response.content

    async def send_bytes(self, verb: str, body: bytes) -> None:
        """Send any bytes to a verb."""
        await self._client.post(f"/{verb}", content=body)

    async def _post(self, verb: str, args: dict[str, Any]) -> Any:  # noqa: ANN401 - JSON
        response = await self._client.post(f"/{verb}", json=args)
        assert response.status_code == 200
        return response.json()


@asynccontextmanager
async def scheduling(  # noqa: PLR0913  # what a story sets
    server: FakeApiServer,
    *nodes: NodeBuilder,
    following: bool = True,
    ready: bool = True,
    limits: Limits = DEFAULTS,
    pod: str = "",
    assumed_pod_ttl: float = 0,
    **settings: object,
) -> AsyncIterator[Scheduler]:
    """Serve beside a server that has these nodes, and wait until it is ready, if it is to be.

    `following`: whether it follows the server at all. `pod`: NAMESPACE/NAME of the replica.
    """
    for node in nodes:
        server.create(NODES.path, node.obj())
    configured = Settings.model_validate({"bind": True, **settings})
    mirror = ClusterMirror(assumed_pod_ttl or configured.assumed_pod_ttl)
    access = ClusterAccess(source="test", server=server.url, tls=None)
    of_pod = dict(zip(("POD_NAMESPACE", "POD_NAME"), pod.split("/"), strict=True)) if pod else {}
    with patch.dict(os.environ, of_pod):
        service = create_service(configured, mirror, Credentials(access, None), limits=limits)
    running = [asyncio.create_task(start()) for start in service.background] if following else []
    transport = httpx.ASGITransport(service.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://kindred", timeout=PATIENCE) as client:
        try:
            if following and ready:
                await _until_ready(client, running)
            yield Scheduler(server, service, mirror, client)
        finally:
            if not following:  # only the watch, when it ends, closes the connections to the server
                running = [asyncio.create_task(start()) for start in service.background]
                await asyncio.sleep(0)
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition of the service, which tells nobody."""
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


async def _until_ready(client: httpx.AsyncClient, running: Sequence["asyncio.Task[None]"]) -> None:
    async with asyncio.timeout(PATIENCE):
        while (await client.get("/readyz")).status_code != 200:
            assert not any(task.done() for task in running)
            await asyncio.sleep(0.005)
