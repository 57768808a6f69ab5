"""What any pod and the scheduler can do and learn, as docs/security.md has it: a test for each cell of its table.

They call processes that have the settings of the shipped overlays, at a fake API server.
"""

import asyncio
import re
import signal
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from tests.app.commands.test_serve import ended, kubeconfig, until_async
from tests.app.server.tls.secrets import Certificates, MountedSecret
from tests.app.serving import PATIENCE, Service, kindred
from tests.app.verbs.evicting.evicting_setting import GIVEN_UP
from tests.builders import labelled, make_node, make_pod, term
from tests.fake_apiserver import FakeApiServer
from tests.fake_apiserver.faults import refuse
from tests.fake_apiserver.resources import NODES, PODS
from tests.fake_apiserver.statuses import forbidden
from tests.fake_apiserver.store import Object
from tests.manifests.kustomize import MANIFESTS

SECRET: Final = "hidden-7f3a"  # noqa: S105  # a mark in every name that the requests do not have
NODE: Final = "node-1"
OTHER_NODE: Final = f"node-{SECRET}"
HOSTNAME: Final = "kubernetes.io/hostname"
REPLICA: Final = f"kindred-{SECRET}"
USER: Final = f"user-{SECRET}"
VERBS: Final = ("filter", "prioritize", "bind", "preempt")
PROBES: Final = ("/livez", "/readyz", "/version", "/metrics", "/openapi.json")
OPEN: Final = ("score-offload",)
"""The overlays whose scheduler's port needs no certificate."""
GUARDED: Final = ("full-offload", "decide")


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("authority") / "ca")


def overlay(name: str, folder: Path, authority: Certificates) -> dict[str, str]:
    """Return the settings of an overlay as variables: free ports, and certificates that are here."""
    variables = {
        "KINDRED_CONFIG": str(MANIFESTS / "overlays" / name / "kindred.yaml"),
        "KINDRED_LISTEN": "0.0.0.0:0",
        "KINDRED_ADMIN": "127.0.0.1:0",
        "KINDRED_HEALTH_PORT": "0",
        "POD_NAME": REPLICA,
        "POD_NAMESPACE": "kindred",
        "KINDRED_GRACE_PERIOD": "2",
        "KINDRED_TEST_LIMITS": '{"settle": 0}',
    }
    if name in GUARDED:
        secret = MountedSecret(folder / "secret", authority.secret())
        variables["KINDRED_TLS_DIRECTORY"] = str(secret.file(""))
        variables["KINDRED_TLS_CLIENT_NAMES"] = "system:kube-scheduler"
    return variables


class Running:
    """A process with the settings of an overlay, and the addresses of its ports."""

    def __init__(self, service: Service, server: FakeApiServer) -> None:
        self.service = service
        self.server = server

    def _url(self, announced: str) -> str:
        (found,) = re.findall(announced, self.service.stdout)
        return re.sub(r"//[^:]+:", "//127.0.0.1:", found)

    @property
    def scheduler_url(self) -> str:
        return self._url(r"answers at (\S+)")

    @property
    def health_url(self) -> str:
        return self._url(r"Health and metrics at (\S+)/readyz")

    @property
    def admin_url(self) -> str:
        return self._url(r"Debugging at (\S+)/debug")

    async def until_ready(self) -> None:
        async def ready() -> bool:
            async with httpx.AsyncClient(timeout=PATIENCE) as client:
                return (await client.get(f"{self.health_url}/readyz")).is_success

        await until_async(ready)


@asynccontextmanager
async def running(
    name: str, folder: Path, authority: Certificates, *, broken: bool = False
) -> AsyncIterator[tuple[Running, Object]]:
    """Start a process with the settings of an overlay, at an API server with a pod that waits.

    `broken`: the API server never lets it list pods.
    """
    async with FakeApiServer() as server:
        for node in (NODE, OTHER_NODE):
            server.create(NODES.path, make_node(node).label(HOSTNAME, node).allocatable(cpu=4, pods=10).obj())
        server.create(PODS.path, make_pod(f"placed-{SECRET}").in_namespace(f"ns-{SECRET}").on(OTHER_NODE).obj())
        waiting = server.create(PODS.path, waiting_pod())
        if broken:
            server.faults.add(refuse(forbidden(USER, "list", PODS)), PODS.path, times=None)
        environment = overlay(name, folder, authority)
        arguments = ("serve", "--kubeconfig", kubeconfig(folder, server.url))
        with kindred(folder, *arguments, environment=environment, module="tests.quick") as one:
            await until_async(lambda: announced(one))
            found = Running(one, server)
            if not broken:
                await found.until_ready()
            yield found, waiting
            one.process.send_signal(signal.SIGTERM)  # it closes its connections to the server
            assert await ended(one) == 0


def waiting_pod() -> Object:
    pod = make_pod("waiting").obj()
    pod["spec"]["schedulerName"] = "kindred"
    return pod


async def announced(service: Service) -> bool:
    return "Debugging at " in service.stdout and "Health and metrics at " in service.stdout


def bodies(pod: Object) -> dict[str, Any]:
    """Return a request of each verb, about one pod and one node."""
    metadata = pod["metadata"]
    args = {"Pod": pod, "NodeNames": [NODE]}
    named = {"PodName": metadata["name"], "PodNamespace": metadata["namespace"], "PodUID": metadata["uid"]}
    offer = {NODE: {"Pods": [{"UID": "victim"}], "NumPDBViolations": 0}}
    return {
        "filter": args,
        "prioritize": args,
        "bind": {**named, "Node": NODE},
        "preempt": {"Pod": pod, "NodeNameToMetaVictims": offer},
    }


def placed(server: FakeApiServer, pod: Object) -> str:
    """Return the node that the API server has for a pod."""
    found = server.store.get(PODS.path, pod["metadata"]["name"], pod["metadata"]["namespace"])
    node: str = (found or {"spec": {}})["spec"].get("nodeName", "")
    return node


def rendered(response: httpx.Response) -> str:
    """Return all of a response in one text."""
    return f"{response.status_code} {dict(response.headers)} {response.text}"


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(scenario)


# Any pod of the cluster


@pytest.mark.parametrize("name", OPEN)
def test_any_pod_can_have_nodes_filtered_and_scored_and_nothing_bound_chosen_or_evicted(
    name: str, tmp_path: Path, authority: Certificates
) -> None:
    async def scenario() -> None:
        async with running(name, tmp_path, authority) as (one, waiting), httpx.AsyncClient(timeout=PATIENCE) as client:
            one.server.requests.clear()
            responses = {
                verb: (await client.post(f"{one.scheduler_url}/{verb}", json=body)).json()
                for verb, body in bodies(waiting).items()
            }
            assert responses["filter"]["NodeNames"] == [NODE]
            assert [each["Host"] for each in responses["prioritize"]] == [NODE]
            assert "KINDRED_BIND=true" in responses["bind"]["Error"]
            assert "KINDRED_PREEMPT=verb" in responses["preempt"]["Error"]
            assert responses["preempt"]["NodeNameToMetaVictims"] == {}
            assert one.server.requests.of(None, "get", "bind") == []
            assert placed(one.server, waiting) == ""
            assert (await client.post(f"{one.scheduler_url}/filter", json=bodies(waiting)["filter"])).json()[
                "NodeNames"
            ] == [NODE], "and the first answer has no effect on the second"

    run(scenario())


@pytest.mark.parametrize("broken", [False, True], ids=["ready", "not-ready"])
@pytest.mark.parametrize("name", OPEN)
def test_any_pod_learns_no_name_that_its_request_does_not_have(
    name: str, tmp_path: Path, authority: Certificates, *, broken: bool
) -> None:
    async def scenario() -> None:
        async with (
            running(name, tmp_path, authority, broken=broken) as (one, waiting),
            httpx.AsyncClient(timeout=PATIENCE) as client,
        ):
            if broken:
                await until_async(lambda: reported_by_admin(one, authority, USER))
            secrets = (SECRET, one.server.url.removeprefix("http://"), "forbidden")
            paths = (*PROBES, "/nowhere", "/debug/mirror", "/debug/config", "/", "/explain", *map("/{}".format, VERBS))
            for url in (one.scheduler_url, one.health_url):
                for path in paths:
                    learned = rendered(await client.get(url + path))
                    assert [each for each in secrets if each in learned] == [], path
            for verb, body in bodies(waiting).items():
                for headers in ({}, {"Kindred-Cache": "off"}, {"Kindred-Dry-Run": "true"}):
                    learned = rendered(await client.post(f"{one.scheduler_url}/{verb}", json=body, headers=headers))
                    assert [each for each in secrets if each in learned] == [], verb
            ready = await client.get(f"{one.health_url}/readyz")
            assert ready.status_code == (503 if broken else 200)
            assert ready.json()["problems"] == (["the mirror is not synced"] if broken else [])

    run(scenario())


async def reported_by_admin(one: Running, authority: Certificates, text: str) -> bool:
    async with httpx.AsyncClient(verify=authority.client_tls(), timeout=PATIENCE) as client:
        return text in (await client.get(f"{one.admin_url}/readyz")).text


@pytest.mark.parametrize("name", GUARDED)
def test_any_pod_can_do_nothing_where_a_verb_has_an_effect_and_learns_only_sums_and_kinds_of_problems(
    name: str, tmp_path: Path, authority: Certificates
) -> None:
    async def scenario() -> None:
        async with running(name, tmp_path, authority, broken=True) as (one, waiting):
            await until_async(lambda: reported_by_admin(one, authority, USER))
            for certificate in ("", "stranger"):
                async with httpx.AsyncClient(verify=authority.client_tls(certificate), timeout=PATIENCE) as client:
                    for verb, body in bodies(waiting).items():
                        await rejected(client, "POST", f"{one.scheduler_url}/{verb}", body)
                    for path in PROBES:
                        await rejected(client, "GET", f"{one.scheduler_url}{path}")
            async with httpx.AsyncClient(timeout=PATIENCE) as client:
                for path in PROBES:
                    learned = rendered(await client.get(one.health_url + path))
                    for secret in (SECRET, one.server.url.removeprefix("http://"), "forbidden"):
                        assert secret not in learned, path
                for verb, body in bodies(waiting).items():
                    assert (await client.post(f"{one.health_url}/{verb}", json=body)).status_code == 404

    run(scenario())


async def rejected(client: httpx.AsyncClient, method: str, url: str, body: object = None) -> None:
    """Send a request that the port must not serve."""
    try:
        response = await client.request(method, url, json=body)
    except httpx.TransportError:
        return
    assert response.status_code == 403


# The scheduler's certificate


def test_the_scheduler_can_have_a_waiting_pod_bound_and_no_other(tmp_path: Path, authority: Certificates) -> None:
    async def scenario() -> None:
        async with (
            running("full-offload", tmp_path, authority) as (one, waiting),
            httpx.AsyncClient(verify=authority.client_tls("scheduler"), timeout=PATIENCE) as client,
        ):
            invented = {**bodies(waiting)["bind"], "PodName": "invented", "PodUID": "invented"}
            response = (await client.post(f"{one.scheduler_url}/bind", json=invented)).json()
            assert response["Error"] != ""
            assert one.server.requests.of(None, "bind") == []
            response = (await client.post(f"{one.scheduler_url}/bind", json=bodies(waiting)["bind"])).json()
            assert response == {"Error": ""}
            assert placed(one.server, waiting) == NODE

    run(scenario())


def test_the_scheduler_can_have_a_node_chosen(tmp_path: Path, authority: Certificates) -> None:
    async def scenario() -> None:
        async with (
            running("decide", tmp_path, authority) as (one, waiting),
            httpx.AsyncClient(verify=authority.client_tls("scheduler"), timeout=PATIENCE) as client,
        ):
            response = (await client.post(f"{one.scheduler_url}/filter", json=bodies(waiting)["filter"])).json()
            (node,) = response["Nodes"]["items"]
            assert (node["metadata"]["name"] in {NODE, OTHER_NODE}, response["Error"]) == (True, "")
            metrics = (await client.get(f"{one.scheduler_url}/metrics")).text
            assert "kindred_mirror_assumed_pods 1.0" in metrics

    run(scenario())


def test_the_scheduler_can_have_a_pod_evicted_for_a_more_important_one(tmp_path: Path, authority: Certificates) -> None:
    async def scenario() -> None:
        async with (
            running("decide", tmp_path, authority) as (one, _),
            httpx.AsyncClient(verify=authority.client_tls("scheduler"), timeout=PATIENCE) as client,
        ):
            one.server.create(PODS.path, make_pod("victim").requests(cpu=4).on(NODE).obj())
            one.server.create(PODS.path, make_pod("stays").requests(cpu=4).priority(10).on(OTHER_NODE).obj())
            important = make_pod("important").requests(cpu=4).priority(10).obj()
            important["spec"]["schedulerName"] = "kindred"
            important["status"] = {"conditions": [GIVEN_UP]}
            waits = one.server.create(PODS.path, important)

            async def evicted() -> bool:
                await client.post(f"{one.scheduler_url}/filter", json=bodies(waits)["filter"])
                return bool(one.server.requests.of(None, "delete"))

            await until_async(evicted)
            (request,) = one.server.requests.of(None, "delete")
            assert request.path.endswith("/pods/victim")

    run(scenario())


def test_the_scheduler_learns_uids_of_victims(tmp_path: Path, authority: Certificates) -> None:
    async def scenario() -> None:
        async with (
            running("full-offload", tmp_path, authority) as (one, _),
            httpx.AsyncClient(verify=authority.client_tls("scheduler"), timeout=PATIENCE) as client,
        ):
            repelled = make_pod("repelled").priority(10).required_anti_affinity(term(HOSTNAME, labelled(app="web")))
            waits = one.server.create(PODS.path, repelled.obj())
            victim = one.server.create(PODS.path, make_pod("victim").label("app", "web").on(NODE).obj())

            async def learned() -> bool:
                request = {"Pod": waits, "NodeNameToMetaVictims": {NODE: {"Pods": [], "NumPDBViolations": 0}}}
                response = await client.post(f"{one.scheduler_url}/preempt", json=request)
                return victim["metadata"]["uid"] in response.text

            await until_async(learned)

    run(scenario())


def test_the_scheduler_learns_names_of_nodes_where_any_node_may_be_chosen(
    tmp_path: Path, authority: Certificates
) -> None:
    async def scenario() -> None:
        async with (
            running("decide", tmp_path, authority) as (one, waiting),
            httpx.AsyncClient(verify=authority.client_tls("scheduler"), timeout=PATIENCE) as client,
        ):
            one.server.create(PODS.path, make_pod("full").requests(cpu=4).on(NODE).obj())

            async def chosen() -> bool:
                response = await client.post(f"{one.scheduler_url}/filter", json=bodies(waiting)["filter"])
                return OTHER_NODE in response.text

            await until_async(chosen)

    run(scenario())


def test_the_scheduler_learns_the_leader_and_the_state_of_each_watch(tmp_path: Path, authority: Certificates) -> None:
    async def scenario() -> None:
        async with (
            running("full-offload", tmp_path, authority) as (one, _),
            httpx.AsyncClient(verify=authority.client_tls("scheduler"), timeout=PATIENCE) as client,
        ):
            reported = (await client.get(f"{one.scheduler_url}/readyz")).json()
            assert reported["leader"].startswith(f"{REPLICA}_")
            assert reported["resources"]["pods"]["synced"] is True
            assert (await client.get(f"{one.scheduler_url}/debug/mirror")).status_code == 404
            assert (await client.get(f"{one.scheduler_url}/debug/config")).status_code == 404

    run(scenario())
