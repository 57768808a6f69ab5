"""One pod by its name: what a deletion and a patch of its status change, and when they are refused."""

from typing import Any

import httpx
import pytest

from tests.fake_apiserver.asking import pod, served, watching
from tests.fake_apiserver.faults import Action, Close, Stall
from tests.fake_apiserver.resources import PODS
from tests.fake_apiserver.server import FakeApiServer
from tests.fake_apiserver.single_pod import pod_path, status_path
from tests.fake_apiserver.stored import Object

PATCH = {"Content-Type": "application/strategic-merge-patch+json"}
WEB, STATUS = pod_path("web"), status_path("web")
DOOMED = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}


async def delete(client: httpx.AsyncClient, path: str = WEB, **precondition: str) -> httpx.Response:
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": precondition}
    return await client.request("DELETE", path, json=options, timeout=0.2)


async def patch(client: httpx.AsyncClient, body: Object) -> httpx.Response:
    return await client.patch(STATUS, json=body, headers=PATCH)


def stored(server: FakeApiServer) -> Any:  # noqa: ANN401 - JSON
    return server.store.get(PODS.path, "web", "default")


@served()
async def test_a_pod_without_a_node_goes_at_once_and_the_watch_tells_it(
    server: FakeApiServer, client: httpx.AsyncClient
) -> None:
    created = server.create(PODS.path, pod("web"))
    async with watching(client, resourceVersion=created["metadata"]["resourceVersion"]) as watch:
        response = await delete(client, uid=created["metadata"]["uid"])
        assert (response.status_code, response.json()["metadata"]["name"]) == (200, "web")
        assert await watch.told(1) == ["DELETED web"]
    assert stored(server) is None
    assert (await delete(client)).json()["reason"] == "NotFound"
    assert server.requests.of(WEB)[0].kind == "delete"


@served()
async def test_a_pod_on_a_node_terminates_and_is_there_until_it_is_let_go(
    server: FakeApiServer, client: httpx.AsyncClient
) -> None:
    server.create(PODS.path, pod("web", node="n1"))
    assert (await delete(client)).status_code == 200
    first = stored(server)
    assert first["metadata"]["deletionTimestamp"].endswith("Z")
    assert (await delete(client)).status_code == 200
    assert stored(server) == first, "again, it changes nothing"


@served()
async def test_another_uid_is_not_deleted(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    server.create(PODS.path, pod("web"))
    status = (await delete(client, uid="another")).json()
    assert (status["code"], status["reason"]) == (409, "Conflict")
    assert "the UID in the precondition (another) does not match the UID in record (" in status["message"]
    assert stored(server) is not None


@served()
async def test_a_deletion_needs_no_options(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    server.create(PODS.path, pod("web"))
    assert (await client.delete(WEB)).status_code == 200
    assert stored(server) is None


@served()
async def test_conditions_are_merged_by_their_types_and_the_rest_of_the_pod_stays(
    server: FakeApiServer, client: httpx.AsyncClient
) -> None:
    ready = {"type": "Ready", "status": "True"}
    created = server.create(PODS.path, {**pod("web", node="n1"), "status": {"phase": "Running", "conditions": [ready]}})
    body = {"metadata": {"uid": created["metadata"]["uid"]}, "status": {"conditions": [DOOMED]}}
    assert (await patch(client, body)).status_code == 200
    again = {"status": {"conditions": [{"type": "DisruptionTarget", "message": "why"}]}}
    assert (await patch(client, again)).json()["status"]["conditions"] == [ready, {**DOOMED, "message": "why"}]
    assert stored(server)["spec"] == created["spec"]
    assert stored(server)["status"]["phase"] == "Running"
    assert [request.kind for request in server.requests] == ["patch", "patch"]


@served()
async def test_a_member_is_set_and_taken_away(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    server.create(PODS.path, pod("web", phase="Pending"))
    await patch(client, {"status": {"nominatedNodeName": "n1"}})
    assert stored(server)["status"] == {"phase": "Pending", "nominatedNodeName": "n1"}
    await patch(client, {"status": {"nominatedNodeName": None}})
    assert stored(server)["status"] == {"phase": "Pending"}


@served()
async def test_the_status_of_another_uid_is_not_patched(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    server.create(PODS.path, pod("web"))
    response = await patch(client, {"metadata": {"uid": "another"}, "status": {"nominatedNodeName": "n1"}})
    message = 'Pod "web" is invalid: metadata.uid: Invalid value: "another": field is immutable'
    assert (response.status_code, response.json()["message"]) == (422, message)
    assert "nominatedNodeName" not in stored(server)["status"]


@served()
async def test_a_patch_that_is_plain_json_and_other_methods_are_refused(
    server: FakeApiServer, client: httpx.AsyncClient
) -> None:
    server.create(PODS.path, pod("web"))
    assert (await client.patch(STATUS, json={})).status_code == 415
    assert (await client.get(STATUS)).status_code == 405
    assert (await client.patch(WEB, json={}, headers=PATCH)).status_code == 405


@pytest.mark.parametrize(
    ("action", "done"),
    [
        pytest.param(Close(), False, id="closed-before"),
        pytest.param(Close(after_head=True), True, id="closed-behind-the-head"),
        pytest.param(Stall(before_head=True), False, id="stalled-before"),
        pytest.param(Stall(), True, id="stalled-after"),
    ],
)
@served()
async def test_a_deletion_that_is_not_answered_has_been_carried_out_or_not(
    server: FakeApiServer, client: httpx.AsyncClient, action: Action, *, done: bool
) -> None:
    server.create(PODS.path, pod("web"))
    server.faults.add(action, None, "delete")
    with pytest.raises(httpx.TransportError):
        await delete(client)
    assert (stored(server) is None) == done
