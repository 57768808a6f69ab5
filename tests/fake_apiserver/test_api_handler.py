"""How requests are answered: who may ask, and what goes wrong before or instead of an answer."""

import asyncio
from collections.abc import Mapping

import httpx
import pytest

from tests.fake_apiserver.asking import WATCH_LIST, listed, names, pod, served, watching
from tests.fake_apiserver.faults import (
    KINDS,
    Action,
    Answer,
    Close,
    Cut,
    Gzip,
    Kind,
    Stall,
    Undecodable,
    overloaded,
    refuse,
    unready,
)
from tests.fake_apiserver.resources import NODES, PODS, REPLICA_SETS
from tests.fake_apiserver.server import FakeApiServer
from tests.fake_apiserver.statuses import (
    Status,
    expired_continue,
    expired_watch,
    internal_error,
    too_large_version,
    too_many_requests,
    unauthorized,
    unavailable,
    watch_list_disabled,
)

TOKEN = "secret"  # noqa: S105 - of a fake
AUTHORIZED = {"Authorization": "Bearer secret"}


@pytest.mark.parametrize(
    ("headers", "expected"),
    [({}, 401), ({"Authorization": "Bearer wrong"}, 401), ({"Authorization": "secret"}, 401), (AUTHORIZED, 200)],
    ids=["none", "wrong", "no-bearer", "right"],
)
@served(token=TOKEN)
async def test_a_token_is_required(
    server: FakeApiServer, client: httpx.AsyncClient, headers: dict[str, str], expected: int
) -> None:
    response = await client.get(PODS.path, headers=headers)
    assert response.status_code == server.requests[0].status == expected
    if expected == 401:
        assert response.json() == {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": "Unauthorized",
            "reason": "Unauthorized",
            "code": 401,
        }


@served(token=TOKEN)
async def test_a_changed_token_lets_running_watches_be(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    client.headers.update(AUTHORIZED)
    async with watching(client, resourceVersion="1") as watch:
        server.behaviour.token = TOKEN[::-1]
        assert (await listed(client))["code"] == 401
        server.create(PODS.path, pod("a"))
        assert await watch.told(1) == ["ADDED a"]


@pytest.mark.parametrize(
    ("path", "params", "message"),
    [
        (
            PODS.path,
            {},
            'pods is forbidden: User "eve" cannot list resource "pods" in API group "" at the cluster scope',
        ),
        (
            REPLICA_SETS.path,
            {"watch": "true", **WATCH_LIST},
            (
                'replicasets.apps is forbidden: User "eve" cannot watch resource "replicasets" in API group "apps" '
                "at the cluster scope"
            ),
        ),
    ],
    ids=["list", "watch-in-a-group"],
)
@served(user="eve", forbidden={PODS.path, REPLICA_SETS.path})
async def test_a_forbidden_resource_is_refused_as_rbac_does(
    server: FakeApiServer, client: httpx.AsyncClient, path: str, params: dict[str, str], message: str
) -> None:
    status = await listed(client, path, **params)
    assert (status["code"], status["reason"], status["message"]) == (403, "Forbidden", message)
    assert (await listed(client, NODES.path))["kind"] == "NodeList"
    server.behaviour.forbidden = set()
    assert (await client.get(PODS.path)).status_code == 200


@served()
async def test_unknown_paths_and_methods_are_refused(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    missing = await client.get("/api/v1/podz")
    assert (missing.status_code, missing.json()["reason"]) == (404, "NotFound")
    assert (await client.get("/_control/stats")).status_code == 404
    assert (await client.post(PODS.path, json={})).status_code == 405
    assert [request.path for request in server.requests] == [PODS.path]


QUERIES: Mapping[Kind, dict[str, str]] = {
    "list": {},
    "page": {"continue": "x"},
    "watch": {"watch": "true", "resourceVersion": "1"},
    "watch-list": {"watch": "true", **WATCH_LIST},
}


@pytest.mark.parametrize(
    "status",
    [
        expired_watch(1, 9),
        expired_continue(),
        watch_list_disabled(),
        internal_error(),
        unavailable(),
        too_large_version(9, 1),
        unauthorized(),
        too_many_requests(),
    ],
    ids=lambda status: f"{status['code']}-{status['reason']}",
)
@pytest.mark.parametrize("kind", KINDS)
@served()
async def test_any_kind_of_request_is_refused_by_any_status(
    server: FakeApiServer, client: httpx.AsyncClient, kind: Kind, status: Status
) -> None:
    others = [each for each in KINDS if each != kind]
    server.faults.add(refuse(unavailable("of another kind")), PODS.path, *others, times=None)
    server.faults.add(refuse(unavailable("of another path")), NODES.path, times=None)
    server.faults.add(refuse(status), PODS.path, kind)
    response = await client.get(PODS.path, params=QUERIES[kind])
    assert response.status_code == server.requests[0].status == status["code"]
    assert response.headers["content-type"] == "application/json"
    assert response.json() == status


@pytest.mark.parametrize("action", [overloaded(7), unready(7)], ids=["plain-text", "status"])
@served()
async def test_too_many_requests_tell_when_to_come_again(
    server: FakeApiServer, client: httpx.AsyncClient, action: Answer
) -> None:
    server.faults.add(action)
    response = await client.get(PODS.path)
    assert (response.status_code, response.headers["retry-after"]) == (429, "7")
    assert (await client.get(PODS.path)).status_code == 200


@served()
async def test_an_answer_may_be_nonsense(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    server.faults.add(Answer(200, b"<html>", {"Content-Type": "text/html"}))
    assert (await client.get(PODS.path)).text == "<html>"


@pytest.mark.parametrize(
    ("action", "error"),
    [
        (Close(), httpx.RemoteProtocolError),
        (Close(reset=True), httpx.ReadError),
        (Close(after_head=True), httpx.RemoteProtocolError),
        (Cut(extra=20), httpx.RemoteProtocolError),
    ],
    ids=["no-answer", "reset", "behind-the-head", "cut"],
)
@served()
async def test_a_list_is_broken_off_once(
    server: FakeApiServer, client: httpx.AsyncClient, action: Action, error: type[Exception]
) -> None:
    server.faults.add(action, PODS.path, "list")
    server.create(PODS.path, pod("a"))
    with pytest.raises(error):
        await client.get(PODS.path)
    assert names(await listed(client)) == ["a"]


@served()
async def test_a_cut_list_ends_where_it_is_told_to(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    server.faults.add(Cut(extra=20))
    async with client.stream("GET", PODS.path) as response:
        chunks = response.aiter_raw()
        assert await anext(chunks) == b'{"kind":"PodList","a'
        with pytest.raises(httpx.RemoteProtocolError):
            await anext(chunks)


@served()
async def test_a_list_stalls_in_its_midst(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    stall = Stall()
    server.faults.add(stall)
    server.create(PODS.path, pod("a"))
    async with client.stream("GET", PODS.path) as response:
        chunks = response.aiter_raw()
        first = await anext(chunks)
        waiting = asyncio.ensure_future(anext(chunks))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        stall.release()
        whole = first + await waiting
    assert b'"name":"a"' in whole
    assert whole.endswith(b"]}\n")


@served()
async def test_a_short_list_is_compressed_though_nobody_asked(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    server.faults.add(Gzip())
    response = await client.get(PODS.path)
    assert response.headers["content-encoding"] == "gzip"
    assert response.json()["kind"] == "PodList"


@served()
async def test_one_item_of_a_list_is_undecodable(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    server.faults.add(Undecodable(after=1))
    for name in ("a", "b", "c"):
        server.create(PODS.path, pod(name, labels={"app": name}))
    labels = [item["metadata"]["labels"] for item in (await listed(client))["items"]]
    assert labels == [{"app": "a"}, ["not", "a", "map"], {"app": "c"}]
    assert server.objects(PODS.path)[1]["metadata"]["labels"] == {"app": "b"}


@served()
async def test_an_undecodable_object_may_be_in_the_store(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    server.create(PODS.path, {"metadata": {"name": "a", "labels": ["x"]}, "spec": 1, "status": None})
    assert [item["metadata"]["labels"] for item in (await listed(client))["items"]] == [["x"]]


@served()
async def test_requests_are_logged_with_what_was_asked(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    clock = asyncio.get_running_loop().time
    began = clock()
    await listed(client, limit="1", resourceVersion="0")
    await listed(client, NODES.path)
    async with watching(client, resourceVersion="1") as watch:
        server.create(PODS.path, pod("a"))
        await watch.lines(1)
        assert [(each.kind, each.status, each.events, each.ended) for each in server.requests] == [
            ("list", 200, 0, True),
            ("list", 200, 0, True),
            ("watch", 200, 1, False),
        ]
    logged = server.requests.of(PODS.path, "list")
    assert [dict(each.query) for each in logged] == [{"limit": "1", "resourceVersion": "0"}]
    assert logged[0].headers["accept-encoding"] == "identity"
    assert began <= logged[0].time <= clock()
    assert [len(server.requests.of(*of)) for of in ((None, "list"), (NODES.path,), (None, "page"))] == [2, 1, 0]
    server.requests.clear()
    assert len(server.requests) == 0
