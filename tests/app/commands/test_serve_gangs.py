"""`kindred serve` that decides: PodGroups are followed where there are any, and a gang that has started comes first."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from core.objects.groups import POD_GROUP_LABEL
from tests.app.commands.test_serve import kubeconfig, readiness, until_ready
from tests.app.serving import ANY_PORT, Service, kindred
from tests.app.verbs.deciding.deciding_setting import args
from tests.builders import PodBuilder, make_pod
from tests.core.gangs.gang_setting import node
from tests.fake_apiserver import Behaviour, FakeApiServer
from tests.fake_apiserver.resources import NODES, POD_GROUPS, PODS

NAMES: Final = ["n0", "n1"]
DECIDING: Final = {
    "KINDRED_PROFILE": "full",
    "KINDRED_DECIDE": "any-node",
    "KINDRED_TEST_LIMITS": '{"settle": 0.1}',
}
GROUP: Final = {"metadata": {"name": "train", "namespace": "default"}, "spec": {"minMember": 3}}
A, B, C = (make_pod(name).label(POD_GROUP_LABEL, "train").requests(cpu=1) for name in "abc")
OTHER: Final = make_pod("other").requests(cpu=2)
ABSENT: Final = Behaviour(absent={POD_GROUPS.path})
FORBIDDEN: Final = Behaviour(forbidden={POD_GROUPS.path})
RULE: Final = 'apiGroups: ["scheduling.x-k8s.io"], resources: ["podgroups"], verbs: ["list", "watch"]'


def fill(server: FakeApiServer) -> None:
    for name in NAMES:
        server.create(NODES.path, node(name).obj())
    for pod in (A.on("n0"), B, C, OTHER):
        server.create(PODS.path, pod.obj())


async def decided(service: Service, pod: PodBuilder) -> dict[str, Any]:
    async with httpx.AsyncClient() as client:
        answer: dict[str, Any] = (await client.post(f"{service.url}/filter", content=args(pod, NAMES))).json()
    assert answer["Error"] == ""
    return answer


def node_of(answer: dict[str, Any]) -> str:
    items: list[dict[str, Any]] = answer["Nodes"]["items"]
    name: str = items[0]["metadata"]["name"]
    return name


def run(folder: Path, behaviour: Behaviour, scenario: Callable[[FakeApiServer, Service], Awaitable[None]]) -> None:
    async def serve() -> None:
        async with FakeApiServer(behaviour) as server:
            fill(server)
            if POD_GROUPS.path not in behaviour.absent | behaviour.forbidden:
                server.create(POD_GROUPS.path, GROUP)
            command = ("serve", "--kubeconfig", kubeconfig(folder, server.url), *ANY_PORT)
            with kindred(folder, *command, environment=DECIDING, module="tests.quick") as service:
                await until_ready(service)
                await scenario(server, service)
                assert "Traceback" not in service.stderr

    asyncio.run(serve())


def test_the_rest_of_a_gang_that_has_started_has_its_places_before_the_first_decision(tmp_path: Path) -> None:
    async def scenario(_: FakeApiServer, service: Service) -> None:
        refused = await decided(service, OTHER)
        assert refused["FailedNodes"] | refused["FailedAndUnresolvableNodes"]
        assert {node_of(await decided(service, pod)) for pod in (B, C)} <= set(NAMES)

    run(tmp_path, Behaviour(), scenario)


@pytest.mark.parametrize(
    ("behaviour", "told"),
    [
        pytest.param(
            ABSENT, "podgroups: the API server does not have scheduling.x-k8s.io/v1alpha1, skipped", id="absent"
        ),
        pytest.param(FORBIDDEN, RULE.replace('"', r"\""), id="forbidden"),
    ],
)
def test_where_pod_groups_cannot_be_followed_only_their_members_wait(
    tmp_path: Path, behaviour: Behaviour, told: str
) -> None:
    async def scenario(_: FakeApiServer, service: Service) -> None:
        waits = await decided(service, B)
        assert json.dumps(waits).count("group default/train: PodGroup default/train does not exist") == 1
        assert node_of(await decided(service, OTHER)) == "n1"
        assert service.stderr.count(told) == 1, service.stderr
        code, state = await readiness(service)
        assert (code, state["resources"]["podgroups"]["serves"]) == (200, False)

    run(tmp_path, behaviour, scenario)
