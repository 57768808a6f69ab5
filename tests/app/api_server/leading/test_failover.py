"""Two processes that are elected, at one API server: who is ready, and when the other is after the leader has gone."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.app.commands.test_serve import kubeconfig, until_async
from tests.app.serving import ANY_PORT, PATIENCE, Service, kindred
from tests.builders import make_node, make_pod
from tests.fake_apiserver import FakeApiServer
from tests.fake_apiserver.resources import LEASES, NODES, PODS

DURATION, RENEW, RETRY = 4.0, 3.0, 0.2
LIMITS = json.dumps({"lease_duration": DURATION, "lease_renew_deadline": RENEW, "lease_retry_period": RETRY})


class Replica:
    """A process, asked over HTTP."""

    def __init__(self, service: Service, client: httpx.AsyncClient) -> None:
        self.process = service.process
        self.service = service
        self._client = client

    async def readiness(self) -> dict[str, Any]:
        body: dict[str, Any] = (await self._client.get(f"{self.service.url}/readyz")).json()
        return body

    async def is_ready(self) -> bool:
        return (await self.readiness())["ready"] is True

    async def bind(self, pod: dict[str, Any], node: str) -> str:
        metadata = pod["metadata"]
        args = {"PodName": metadata["name"], "PodNamespace": metadata["namespace"], "PodUID": metadata["uid"]}
        response = await self._client.post(f"{self.service.url}/bind", json={**args, "Node": node})
        error: str = response.json()["Error"]
        return error

    async def ended(self) -> int:
        return await asyncio.to_thread(self.process.wait, PATIENCE)


@asynccontextmanager
async def replicas(folder: Path, servers: dict[str, FakeApiServer]) -> AsyncIterator[list[Replica]]:
    """Start a replica of each name at a server, one after the other: the first leads."""
    with ExitStack() as stack:
        async with httpx.AsyncClient(timeout=PATIENCE) as client:
            started: list[Replica] = []
            for name, server in servers.items():
                (folder / name).mkdir()
                environment = {
                    "KINDRED_BIND": "true",
                    "KINDRED_LEADER_ELECTION": "kindred",
                    "POD_NAMESPACE": "ours",
                    "POD_NAME": name,
                    "KINDRED_TEST_LIMITS": LIMITS,
                }
                config = kubeconfig(folder / name, server.url)
                arguments = ("serve", "--kubeconfig", config, *ANY_PORT)
                starting = kindred(folder / name, *arguments, environment=environment, module="tests.quick")
                # In a thread: this loop has to serve what the process asks.
                service = await asyncio.to_thread(stack.enter_context, starting)
                replica = Replica(service, client)
                started.append(replica)
                await until_async(replica.is_ready if len(started) == 1 else lambda: follows(replica))  # noqa: B023  # awaited here
            yield started


async def follows(replica: Replica) -> bool:
    return bool((await replica.readiness())["problems"] == ["another replica leads: first"])


def fill(server: FakeApiServer) -> dict[str, Any]:
    """Make a node, and a pod to be bound."""
    server.create(NODES.path, make_node("n1").obj())
    return server.create(PODS.path, make_pod("p").obj())


def test_a_leader_that_was_stopped_decides_nothing_when_it_goes_on_and_one_that_ends_is_followed_at_once(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with FakeApiServer() as server:
            pod = fill(server)
            async with replicas(tmp_path, {"first": server, "second": server}) as (first, second):
                assert (await second.bind(pod, "n1")).startswith("not leading: another replica leads: first")
                first.process.send_signal(signal.SIGSTOP)
                requested = asyncio.create_task(first.bind(pod, "n1"))  # waits in its socket
                await until_async(second.is_ready)  # once the lease has run out
                first.process.send_signal(signal.SIGCONT)
                assert (await requested).startswith("not leading: ")
                assert server.requests.of(None, "bind") == []
                await until_async(lambda: problem_of(first, "another replica leads: second"))
                assert await second.is_ready()
                second.process.send_signal(signal.SIGTERM)
                took = await until_async(first.is_ready)
                assert took < DURATION, "without waiting for the lease to run out, and without a drain delay"
                assert await second.ended() == 0
                assert server.objects(LEASES.path)[0]["spec"]["leaseTransitions"] == 2
                assert await first.bind(pod, "n1") == ""

    asyncio.run(scenario())


async def problem_of(replica: Replica, problem: str) -> bool:
    return problem in (await replica.readiness())["problems"]
