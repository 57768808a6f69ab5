"""One pod by its name: what is read, what a binding changes, and when it is refused."""

import asyncio
from typing import Any

import httpx
import pytest

from tests.fake_apiserver.asking import pod, served, watching
from tests.fake_apiserver.faults import Action, Close, Stall, overloaded
from tests.fake_apiserver.resources import PODS
from tests.fake_apiserver.server import FakeApiServer
from tests.fake_apiserver.single_pod import binding_path, pod_path
from tests.fake_apiserver.stored import Object

TOKEN = "secret"  # noqa: S105 - of a fake
BINDING = binding_path("web")


def binding(uid: str = "", node: str = "n1", name: str = "web") -> Object:
    metadata = {"name": name, "namespace": "default", **({"uid": uid} if uid else {})}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": {"kind": "Node", "name": node}}


def node_of(server: FakeApiServer, name: str = "web") -> Any:  # noqa: ANN401 - JSON
    found = server.store.get(PODS.path, name, "default")
    assert found is not None
    return found["spec"].get("nodeName")


@served()
async def test_a_pod_is_read_by_its_name(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    created = server.create(PODS.path, pod("web", labels={"app": "web"}))
    response = await client.get(pod_path("web"))
    assert (response.status_code, response.json()) == (200, {"kind": "Pod", "apiVersion": "v1", **created})
    assert (server.requests[0].kind, server.requests[0].status, server.requests[0].ended) == ("get", 200, True)


@pytest.mark.parametrize("path", [pod_path("web"), pod_path("web", "shop")], ids=["name", "namespace"])
@served()
async def test_a_pod_that_is_not_there_is_not_found(
    server: FakeApiServer, client: httpx.AsyncClient, path: str
) -> None:
    server.create(PODS.path, pod("other"))
    status = (await client.get(path)).json()
    assert (status["code"], status["reason"], status["message"]) == (404, "NotFound", 'pods "web" not found')
    assert (await client.post(f"{path}/binding", json=binding())).json() == status


@pytest.mark.parametrize("with_uid", [True, False])
@served()
async def test_a_binding_sets_the_node_and_the_watch_tells_it(
    server: FakeApiServer, client: httpx.AsyncClient, *, with_uid: bool
) -> None:
    created = server.create(PODS.path, pod("web"))
    version = created["metadata"]["resourceVersion"]
    async with watching(client, resourceVersion=version) as watch:
        response = await client.post(BINDING, json=binding(created["metadata"]["uid"] if with_uid else ""))
        assert (response.status_code, response.json()["status"]) == (201, "Success")
        (event,) = await watch.events(1)
    assert (event["type"], event["object"]["spec"]) == ("MODIFIED", {"nodeName": "n1"})
    assert event["object"]["metadata"]["uid"] == created["metadata"]["uid"]
    assert server.requests.of(BINDING)[0].kind == "bind"


@pytest.mark.parametrize("node", ["n1", "n2"], ids=["same-node", "other-node"])
@served()
async def test_a_bound_pod_is_not_bound_again(server: FakeApiServer, client: httpx.AsyncClient, node: str) -> None:
    server.create(PODS.path, pod("web", node="n1"))
    status = (await client.post(BINDING, json=binding(node=node))).json()
    assert (status["code"], status["reason"]) == (409, "Conflict")
    expected = 'Operation cannot be fulfilled on pods/binding "web": pod web is already assigned to node "n1"'
    assert expected == status["message"]
    assert node_of(server) == "n1"


@served()
async def test_another_uid_is_a_conflict(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    server.create(PODS.path, pod("web"))
    status = (await client.post(BINDING, json=binding("another"))).json()
    assert (status["code"], status["reason"]) == (409, "Conflict")
    assert "Precondition failed: UID in precondition: another, UID in object meta: " in status["message"]
    assert node_of(server) is None


@served()
async def test_a_pod_that_is_being_deleted_is_not_bound(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    doomed = pod("web")
    doomed["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    server.create(PODS.path, doomed)
    status = (await client.post(BINDING, json=binding())).json()
    assert (status["code"], node_of(server)) == (409, None)
    assert status["message"].endswith("pod web is being deleted, cannot be assigned to a host")


@served()
async def test_the_name_in_the_binding_is_the_one_in_the_url(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    server.create(PODS.path, pod("web"))
    assert (await client.post(BINDING, json=binding(name="other"))).status_code == 400
    assert node_of(server) is None


@served(token=TOKEN)
async def test_method_and_token_count(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    server.create(PODS.path, pod("web"))
    assert (await client.post(BINDING, json=binding())).status_code == 401
    client.headers["Authorization"] = f"Bearer {TOKEN}"
    assert (await client.get(BINDING)).status_code == 405
    assert (await client.post(pod_path("web"), json={})).status_code == 405
    assert (await client.post(BINDING, json=binding())).status_code == 201


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        pytest.param(Close(), None, id="closed-before"),
        pytest.param(Close(reset=True), None, id="reset-before"),
        pytest.param(Close(after_head=True), "n1", id="closed-behind-the-head"),
        pytest.param(Stall(before_head=True), None, id="stalled-before"),
        pytest.param(Stall(), "n1", id="stalled-after"),
    ],
)
@served()
async def test_a_request_that_is_not_answered_has_been_carried_out_or_not(
    server: FakeApiServer, client: httpx.AsyncClient, action: Action, expected: str | None
) -> None:
    server.create(PODS.path, pod("web"))
    server.faults.add(action, None, "bind")
    with pytest.raises(httpx.TransportError):
        await client.post(BINDING, json=binding(), timeout=0.2)
    assert node_of(server) == expected


@served()
async def test_a_stalled_answer_comes_when_it_is_released(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    server.create(PODS.path, pod("web"))
    stall = Stall()
    server.faults.add(stall, BINDING, "bind")
    posting = asyncio.create_task(client.post(BINDING, json=binding()))
    await server.until(lambda: bool(server.requests.of(BINDING)))
    await asyncio.sleep(0.05)
    assert not posting.done()
    stall.release()
    assert (await posting).status_code == 201


@served()
async def test_a_binding_is_refused_as_any_request(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    server.create(PODS.path, pod("web"))
    server.faults.add(overloaded(7), BINDING)
    response = await client.post(BINDING, json=binding())
    assert (response.status_code, response.headers["retry-after"], node_of(server)) == (429, "7", None)
    assert (await client.post(BINDING, json=binding())).status_code == 201
