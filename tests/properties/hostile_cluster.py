"""A cluster that makes it hard for Kindred: two replicas, kube-schedulers, and others who do what they like.

All of it runs in one process, in virtual time. `SimulatedApi` owns the truth. Each way to it has faults, and each watch
can be kept back. What must hold is in `laws.py`.
"""

import asyncio
import json
import os
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final
from unittest.mock import patch

from app.api_server.credentials import Credentials
from app.api_server.tls import ClusterAccess
from app.feeds.freshness import SyncStatus
from app.feeds.reflector import Reflector
from app.settings.settings import Settings
from app.wiring.main import Service, create_service
from core.mirror.cluster import ClusterMirror
from tests.builders import PodBuilder, labelled, make_node, make_pod, term
from tests.fake_apiserver.resources import NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS
from tests.fake_apiserver.store import Object
from tests.properties.hostile_scheduler import HTTP_TIMEOUT, KubeScheduler
from tests.properties.laws import TTL, Laws
from tests.properties.simulated_api import SimulatedApi, SimulatedClient

HOSTNAME: Final = "kubernetes.io/hostname"
NODE_NAMES: Final = ("n1", "n2", "n3")
SCHEDULERS: Final = ("kindred", "second")
OTHER: Final = "another-scheduler"
MOST_WAITING: Final = 5
STALE_AFTER: Final = 20.0
_ACCESS: Final = Credentials(ClusterAccess(source="test", server="http://simulated", tls=None), None)

_PODS: Final[dict[str, Callable[[PodBuilder], PodBuilder]]] = {
    "small": lambda pod: pod.requests(cpu="1"),
    "big": lambda pod: pod.requests(cpu="2"),
    "loner": lambda pod: pod.label("app", "db").required_anti_affinity(term(HOSTNAME, labelled(app="db"))),
    "port": lambda pod: pod.host_port(8080),
    "claim": lambda pod: pod.volume({"name": "v", "persistentVolumeClaim": {"claimName": "claim"}}),
    "gang": lambda pod: pod.requests(cpu="1").of_group("gang", 2, 5),
}
KINDS: Final = tuple(_PODS)


def pod_of(kind: str, name: str, scheduler: str, priority: int) -> Object:
    """Return a new pod of a kind."""
    pod = _PODS[kind](make_pod(name).image("web")).priority(priority).scheduler(scheduler).obj()
    del pod["metadata"]["uid"]
    return pod


class Replica:
    """A process of Kindred."""

    def __init__(self, api: SimulatedApi, name: str, settings: Settings) -> None:
        self.name = name
        self.client = SimulatedClient(api, name)
        self.mirror = ClusterMirror(TTL)
        of_pod = {"POD_NAMESPACE": "default", "POD_NAME": name}
        with patch.dict(os.environ, of_pod), patch("app.wiring.cluster.ApiClient", lambda _: self.client):
            self.service: Service = create_service(settings, self.mirror, _ACCESS)
        self._background = [asyncio.create_task(start()) for start in self.service.background]
        self.requests: set[asyncio.Task[None]] = set()

    def leads(self) -> bool:
        """Return whether it may decide."""
        return self.service.state.may_decide()

    def is_stale(self) -> bool:
        """Return whether its mirror is too old for a decision."""
        return self.service.state.freshness.status() is not SyncStatus.FRESH

    def is_background(self) -> bool:
        """Return whether the present task serves no request."""
        return asyncio.current_task() in self._background

    async def kill(self) -> None:
        """End it, with all that is under way."""
        tasks = [*self._background, *self.requests]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def has_failed(self) -> bool:
        """Return whether background work has ended, which never ends."""
        return any(task.done() for task in self._background)

    def reflectors(self) -> list[Reflector]:
        """Return what follows the server."""
        return list(self.service.background[0].__self__.reflectors)  # type: ignore[attr-defined]  # of Watcher.run

    async def request(
        self,
        verb: str,
        body: Object,
        seconds: float,
        responded: Callable[[Any], None] = lambda _: None,
        headers: Sequence[tuple[bytes, bytes]] = (),
    ) -> Any:  # noqa: ANN401 - JSON
        """Return the response to a request. None: there was none within so many seconds.

        `responded` gets it in the step in which it is made, whether anybody receives it or not.
        """
        left, parts, done = asyncio.Event(), [json.dumps(body).encode()], asyncio.Event()
        found: list[Any] = []

        async def receive() -> Object:
            if parts:
                return {"type": "http.request", "body": parts.pop(), "more_body": False}
            await left.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:  # noqa: ANN401 - ASGI
            if message["type"] == "http.response.body":
                found.append(json.loads(message["body"]))
                responded(found[0])
                done.set()

        endpoint = self.service.app.verbs[f"/{verb}"]  # type: ignore[attr-defined]  # an ExtenderApp
        task = asyncio.create_task(endpoint({"type": "http", "headers": headers}, receive, send))
        self.requests.add(task)
        task.add_done_callback(self.requests.discard)
        try:
            async with asyncio.timeout(seconds):
                await done.wait()
        except TimeoutError:
            left.set()
            return None
        left.set()
        return found[0]


class HostileCluster:
    """All of them, and what may happen to them."""

    def __init__(self, random: Random, settings: Settings) -> None:
        self.random = random
        self.settings = settings
        self.decides = settings.decide != "off"
        self.api = SimulatedApi(random)
        self.store = self.api.store
        self.laws = Laws(self.api, kindred_binds=settings.bind, decides=self.decides)
        self.lost_responses = 0
        self._made = 0
        for name in ("kindred-0", "kindred-1"):
            self.store.create(PODS.path, make_pod(name).on("control").obj())
        for name in NODE_NAMES:
            self.create_node(name, 3)
        self.create_claim()
        self.replicas = [self._started(name) for name in ("kindred-0", "kindred-1")]
        self.schedulers = [KubeScheduler(self, name) for name in SCHEDULERS]
        self._tasks = [asyncio.create_task(each.run()) for each in self.schedulers]

    def _started(self, name: str) -> Replica:
        replica = Replica(self.api, name, self.settings)
        self.laws.follow(replica)
        return replica

    # Who asks whom.

    def any_replica(self) -> Replica:
        """Return the replica that a request reaches: mostly the one that leads."""
        leading = [each for each in self.replicas if each.leads()]
        return leading[0] if leading and self.random.random() < 0.95 else self.random.choice(self.replicas)

    def loses_response(self) -> bool:
        """Return whether the response of Kindred is lost on its way."""
        self.lost_responses -= self.lost_responses > 0
        return self.lost_responses > 0

    async def come_to_rest(self) -> None:
        """End all faults, and wait for what is under way."""
        self.heal()
        for scheduler in self.schedulers:
            scheduler.is_idle = True
        await asyncio.sleep(2 * HTTP_TIMEOUT)
        await asyncio.gather(*(task for each in self.schedulers for task in each.bindings))

    async def replace_replica(self, number: int) -> None:
        """Kill a process, and start another one."""
        await self.replicas[number].kill()
        self.replicas[number] = self._started(f"kindred-{number}")

    def problems(self) -> list[str]:
        """Return what is broken by now."""
        self.laws.check_places(self.replicas)
        ended = [each.name for each in self.replicas if each.has_failed()]
        ended += [each.name for each, task in zip(self.schedulers, self._tasks, strict=True) if task.done()]
        return [*self.laws.broken, *(f"{name} has ended" for name in ended)]

    # The truth.

    def node_names(self) -> list[str]:
        """Return the nodes that exist."""
        return sorted(self.store.collections[NODES.path].objects)

    def pods(self) -> list[Object]:
        """Return the pods, but for Kindred's own."""
        return [pod for pod in self.store.objects(PODS.path) if pod["spec"].get("nodeName") != "control"]

    def create_node(self, name: str, cpu: int) -> None:
        """Create a node, unless it exists."""
        if self.store.get(NODES.path, name) is None:
            self.store.create(NODES.path, make_node(name).label(HOSTNAME, name).allocatable(cpu=cpu, pods=110).obj())

    def delete_node(self, name: str) -> None:
        """Delete a node; its pods stay until somebody deletes them."""
        if self.store.get(NODES.path, name) is not None:
            self.store.delete(NODES.path, name)

    def create_claim(self) -> None:
        """Create the claim, which only one pod may use at a time, and its volume."""
        claim = {"name": "claim", "namespace": "default"}
        for path, name in ((PERSISTENT_VOLUME_CLAIMS.path, "claim"), (PERSISTENT_VOLUMES.path, "volume")):
            if self.store.get(path, name, "default" if name == "claim" else "") is not None:
                self.store.delete(path, name, "default" if name == "claim" else "")
        created = self.store.create(
            PERSISTENT_VOLUME_CLAIMS.path,
            {
                "metadata": {**claim, "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
                "spec": {"accessModes": ["ReadWriteOncePod"], "volumeName": "volume", "storageClassName": ""},
                "status": {"phase": "Bound"},
            },
        )
        reference = {**claim, "uid": created["metadata"]["uid"]}
        spec = {"capacity": {"storage": "1Gi"}, "claimRef": reference, "accessModes": ["ReadWriteOncePod"]}
        self.store.create(PERSISTENT_VOLUMES.path, {"metadata": {"name": "volume"}, "spec": spec})

    def create_pod(self, kind: str, scheduler: str, priority: int, name: str = "") -> Object:
        """Create a pod. Of too many that wait, which only cost time, the oldest one goes."""
        self._made += 1
        waiting = [pod for pod in self.pods() if not pod["spec"].get("nodeName")]
        if len(waiting) >= MOST_WAITING:
            self.remove(waiting[0])
        return self.store.create(PODS.path, pod_of(kind, name or f"p{self._made}", scheduler, priority))

    def bind(self, pod: Object, node: str) -> None:
        """Let another scheduler bind a pod, whatever is on the node."""
        self.laws.bound_by_others(pod["metadata"]["uid"])
        self.store.update(PODS.path, {**pod, "spec": {**pod["spec"], "nodeName": node}})

    def terminate(self, uid: str) -> None:
        """Delete a pod: at once if it has no node, else when its kubelet has ended it."""
        pod = next((each for each in self.pods() if each["metadata"]["uid"] == uid), None)
        if pod is None or "deletionTimestamp" in pod["metadata"]:
            return
        if pod["spec"].get("nodeName"):
            metadata = {**pod["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
            self.store.update(PODS.path, {**pod, "metadata": metadata})
        else:
            self.remove(pod)

    def remove(self, pod: Object) -> None:
        """Delete a pod at once."""
        self.store.delete(PODS.path, pod["metadata"]["name"], "default")

    def end(self, pod: Object) -> None:
        """Let a pod end by itself."""
        self.store.update(PODS.path, {**pod, "status": {**pod.get("status", {}), "phase": "Succeeded"}})

    async def end_all(self) -> None:
        """Kill everything."""
        tasks = [*self._tasks, *(task for each in self.schedulers for task in each.bindings)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for replica in self.replicas:
            await replica.kill()

    def heal(self) -> None:
        """End all faults, and deliver what was kept back."""
        self.lost_responses = 0
        for replica in self.replicas:
            replica.client.heal()
        for scheduler in self.schedulers:
            scheduler.client.heal()
            scheduler.view.is_late = False
