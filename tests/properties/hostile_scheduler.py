"""The kube-schedulers of a hostile cluster: their own views of the pods, their attempts and their bindings."""

import asyncio
import json
from typing import TYPE_CHECKING, Any, Final

from app.api_server.api_errors import ApiError
from tests.fake_apiserver.resources import PODS
from tests.fake_apiserver.single_objects import binding_path, status_path
from tests.fake_apiserver.store import Object
from tests.properties.simulated_api import SimulatedApi, SimulatedClient

if TYPE_CHECKING:
    from tests.properties.hostile_cluster import HostileCluster

HTTP_TIMEOUT: Final = 1.0
BACKOFF: Final = 1.0


class View:
    """The pods as a kube-scheduler's own watch shows them."""

    def __init__(self, api: SimulatedApi) -> None:
        self.is_late = False
        self.pods: dict[str, Object] = {}  # uid -> pod
        self._collection = api.store.collections[PODS.path]
        self._position = 0

    def catch_up(self) -> None:
        """Read all events, unless they are kept back."""
        events = [] if self.is_late else self._collection.events_from(self._position)
        assert events is not None
        self._position += len(events)
        for event in events:
            if event.after is not None:
                self.pods[event.after.uid] = event.after.object()
            elif event.before is not None:
                self.pods.pop(event.before.uid, None)


class KubeScheduler:
    """One kube-scheduler. It has one attempt at a time, binds in the background, and tries again after a second."""

    def __init__(self, cluster: "HostileCluster", name: str) -> None:
        self.name = name
        self.client = SimulatedClient(cluster.api, name)
        self.view = View(cluster.api)
        self.assumed: set[str] = set()
        self.bindings: set[asyncio.Task[None]] = set()
        self.is_idle = False
        """It begins no attempt."""
        self._tried: dict[str, float] = {}  # uid -> when it was tried last
        self._cluster = cluster

    def waiting(self) -> list[Object]:
        """Return the pods that it may try."""
        self.view.catch_up()
        return [
            pod
            for uid, pod in self.view.pods.items()
            if uid not in self.assumed
            and pod["spec"].get("schedulerName") == self.name
            and not pod["spec"].get("nodeName")
            and "deletionTimestamp" not in pod["metadata"]
        ]

    async def run(self) -> None:
        """Try all pods again and again, until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(1.0 if self.is_idle else self._cluster.random.uniform(0.02, 0.15))
            due = [
                pod
                for pod in ([] if self.is_idle else self.waiting())
                if loop.time() - self._tried.get(pod["metadata"]["uid"], -BACKOFF) >= BACKOFF
            ]
            if due:
                pod = self._cluster.random.choice(due)
                await self._attempt(pod)
                self._tried[pod["metadata"]["uid"]] = loop.time()

    async def restart(self) -> None:
        """Forget everything. What it had sent has landed by then."""
        await asyncio.gather(*self.bindings)
        self.assumed.clear()
        self._tried.clear()

    async def _attempt(self, pod: Object) -> None:
        cluster, uid = self._cluster, pod["metadata"]["uid"]
        nominated = pod.get("status", {}).get("nominatedNodeName")
        names = cluster.node_names()
        nodes: list[str] = []
        for listed in ([nominated], names) if nominated in names else (names,):
            response = await self._filter(pod, listed)
            if response is None or response["Error"]:
                await self._give_up(pod, "SchedulerError")
                return
            nodes = _nodes_of(response)
            if nodes:
                break
        if not nodes:
            await self._preempt(pod)
            await self._give_up(pod, "Unschedulable")
            return
        node = await self._prioritized(pod, nodes) if len(nodes) > 1 else nodes[0]
        self.assumed.add(uid)
        task = asyncio.create_task(self._bind(pod, node))
        self.bindings.add(task)
        task.add_done_callback(self.bindings.discard)

    async def _filter(self, pod: Object, names: list[str]) -> Any:  # noqa: ANN401 - JSON
        replica, laws = self._cluster.any_replica(), self._cluster.laws
        body = {"Pod": pod, "Nodes": None, "NodeNames": names}

        def responded(response: Any) -> None:  # noqa: ANN401 - JSON
            laws.check_filter(response, names)
            if not response["Error"] and self._cluster.decides:
                for node in _nodes_of(response):
                    laws.decided(replica, pod, node)

        response = await replica.request("filter", body, HTTP_TIMEOUT, responded)
        return None if self._cluster.loses_response() else response

    async def _prioritized(self, pod: Object, nodes: list[str]) -> str:
        body = {"Pod": pod, "Nodes": None, "NodeNames": nodes}
        response = await self._cluster.any_replica().request("prioritize", body, HTTP_TIMEOUT)
        if isinstance(response, list) and response:
            self._cluster.laws.check_prioritize(response, nodes)
            return str(max(response, key=lambda each: int(each["Score"]))["Host"])
        return nodes[0]

    async def _preempt(self, pod: Object) -> None:
        """Ask for victims, and evict those of the first node, in a profile that preempts."""
        if self._cluster.settings.preempt != "verb":
            return
        replica, laws = self._cluster.any_replica(), self._cluster.laws
        body = {"Pod": pod, "NodeNameToMetaVictims": {}}
        response = await replica.request(
            "preempt", body, HTTP_TIMEOUT, lambda found: laws.check_preempt(replica, pod, found)
        )
        for victims in [] if response is None else [*response["NodeNameToMetaVictims"].values()][:1]:
            for each in victims["Pods"]:
                self._cluster.terminate(each["UID"])

    async def _bind(self, pod: Object, node: str) -> None:
        metadata = pod["metadata"]
        try:
            if self._cluster.settings.bind:
                bound = await self._bound_by_kindred(pod, node)
            else:
                target = {"apiVersion": "v1", "kind": "Node", "name": node}
                body = {"metadata": {key: metadata[key] for key in ("name", "namespace", "uid")}, "target": target}
                await self.client.post(binding_path(metadata["name"]), json.dumps(body).encode())
                bound = True
        except ApiError:
            bound = False
        if not bound:
            self.assumed.discard(metadata["uid"])
            await self._give_up(pod, "SchedulerError")

    async def _bound_by_kindred(self, pod: Object, node: str) -> bool:
        metadata = pod["metadata"]
        args = {"PodName": metadata["name"], "PodNamespace": metadata["namespace"], "PodUID": metadata["uid"]}
        body = {**args, "Node": node}
        response = await self._cluster.any_replica().request("bind", body, HTTP_TIMEOUT, self._cluster.laws.check_bind)
        if self._cluster.random.random() < 0.1:  # a client that sends it again
            response = await self._cluster.any_replica().request("bind", body, HTTP_TIMEOUT)
        return response is not None and not response["Error"] and not self._cluster.loses_response()

    async def _give_up(self, pod: Object, reason: str) -> None:
        condition = {"type": "PodScheduled", "status": "False", "reason": reason, "message": reason}
        status: Object = {"conditions": [condition]}
        if reason == "SchedulerError":
            status["nominatedNodeName"] = None
        body = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": status}
        try:
            await self.client.patch(status_path(pod["metadata"]["name"]), json.dumps(body).encode())
        except ApiError:
            return


def _nodes_of(response: Any) -> list[str]:  # noqa: ANN401 - JSON
    if response["NodeNames"] is not None:
        return list(response["NodeNames"])
    return [item["metadata"]["name"] for item in response["Nodes"]["items"]]
