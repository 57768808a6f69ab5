"""Lists, as a client of the fake API server gets them."""

import base64
import json

import httpx
import pytest

from tests.fake_apiserver.asking import NOT_TERMINAL, PARTIAL, PARTIAL_LIST, listed, names, pod, served
from tests.fake_apiserver.resources import NODES, PODS, RESOURCES
from tests.fake_apiserver.server import FakeApiServer
from tests.fake_apiserver.stored import Object


def put(server: FakeApiServer, *pod_names: str) -> None:
    for name in pod_names:
        server.create(PODS.path, pod(name))


async def all_pages(client: httpx.AsyncClient, **params: str) -> list[Object]:
    """List page by page to the end."""
    pages = [await listed(client, **params)]
    while token := pages[-1]["metadata"].get("continue"):
        pages.append(await listed(client, **params, **{"continue": token}))
    return pages


@pytest.mark.parametrize("path", RESOURCES)
@served()
async def test_every_resource_is_listed_under_its_kind(
    server: FakeApiServer, client: httpx.AsyncClient, path: str
) -> None:
    created = server.create(path, {"kind": "ignored", "apiVersion": "ignored", "metadata": {"name": "a"}, "spec": {}})
    page = await listed(client, path)
    resource = RESOURCES[path]
    assert (f"{resource.kind}List", resource.group_version) == (page["kind"], page["apiVersion"])
    assert page["metadata"] == {"resourceVersion": "2"}
    assert page["items"] == [created]
    assert created.keys() == {"metadata", "spec"}  # as in typed lists: no kind, no apiVersion
    assert created["metadata"].get("namespace") == ("default" if resource.namespaced else None)


@served()
async def test_an_empty_list_has_items(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    page = await listed(client)
    assert page == {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": []}
    assert server.requests[0].status == 200


@served()
async def test_pages_come_in_the_order_of_keys_and_say_how_many_remain(
    server: FakeApiServer, client: httpx.AsyncClient
) -> None:
    put(server, "e", "a", "c", "b", "d")
    server.create(PODS.path, {"metadata": {"name": "z", "namespace": "another"}})
    pages = await all_pages(client, limit="2")
    assert [names(page) for page in pages] == [["z", "a"], ["b", "c"], ["d", "e"]]
    assert [page["metadata"].get("remainingItemCount") for page in pages] == [4, 2, None]
    assert {"7"} == {page["metadata"]["resourceVersion"] for page in pages}
    assert [request.kind for request in server.requests] == ["list", "page", "page"]


@served()
async def test_a_limit_of_exactly_all_leaves_no_page(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    put(server, "a", "b")
    assert (await listed(client, limit="2"))["metadata"] == {"resourceVersion": "3"}


@served()
async def test_the_pages_of_a_list_are_one_snapshot_whatever_changes_meanwhile(
    server: FakeApiServer, client: httpx.AsyncClient
) -> None:
    put(server, "a", "b", "d")
    first = await listed(client, limit="1")
    server.delete(PODS.path, "b", "default")
    put(server, "c")
    server.update(PODS.path, pod("d", "Failed"))
    rest = await listed(client, limit="9", **{"continue": first["metadata"]["continue"]})
    assert names(rest) == ["b", "d"]
    assert rest["metadata"] == {"resourceVersion": "4"}
    assert rest["items"][1]["status"]["phase"] == "Running"
    assert names(await listed(client)) == ["a", "c", "d"]


@served()
async def test_two_paged_lists_keep_a_snapshot_each(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    put(server, "a", "b")
    earlier = await listed(client, limit="1")
    put(server, "c")
    later = await listed(client, limit="1")
    tokens = [page["metadata"]["continue"] for page in (earlier, later)]
    assert [names(await listed(client, **{"continue": token})) for token in tokens] == [["b"], ["b", "c"]]


@served()
async def test_a_compacted_continuation_is_expired_and_offers_to_go_on_inconsistently(
    server: FakeApiServer, client: httpx.AsyncClient
) -> None:
    put(server, "a", "b", "c")
    token = (await listed(client, limit="1"))["metadata"]["continue"]
    server.delete(PODS.path, "b", "default")
    server.compact(PODS.path)
    response = await client.get(PODS.path, params={"limit": "1", "continue": token})
    status = response.json()
    assert response.status_code == 410
    assert tuple(status[field] for field in ("kind", "apiVersion", "status", "reason", "code")) == (
        "Status",
        "v1",
        "Failure",
        "Expired",
        410,
    )
    assert status["message"].startswith("The provided continue parameter is too old to display a consistent list")
    page = await listed(client, **{"continue": status["metadata"]["continue"]})
    assert (names(page), page["metadata"]["resourceVersion"]) == (["c"], "5")


@served()
async def test_a_paged_list_goes_on_after_compaction_of_another_resource(
    server: FakeApiServer, client: httpx.AsyncClient
) -> None:
    put(server, "a", "b")
    token = (await listed(client, limit="1"))["metadata"]["continue"]
    server.compact(NODES.path)
    assert names(await listed(client, **{"continue": token})) == ["b"]


@pytest.mark.parametrize(
    "token",
    [
        "!",
        base64.urlsafe_b64encode(b"[]").decode(),
        base64.urlsafe_b64encode(json.dumps({"v": "meta.k8s.io/v2", "rv": 1, "start": "a"}).encode()).decode(),
        base64.urlsafe_b64encode(json.dumps({"v": "meta.k8s.io/v1", "rv": 0, "start": "a"}).encode()).decode(),
        base64.urlsafe_b64encode(json.dumps({"v": "meta.k8s.io/v1", "rv": 1, "start": ""}).encode()).decode(),
    ],
    ids=["no-base64", "no-token", "unknown-form", "no-version", "no-start"],
)
@served()
async def test_a_broken_token_is_a_bad_request(server: FakeApiServer, client: httpx.AsyncClient, token: str) -> None:
    status = await listed(client, **{"continue": token})
    assert (status["code"], status["reason"], server.requests[0].status) == (400, "BadRequest", 400)


@served()
async def test_a_version_beside_a_token_is_a_bad_request(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    put(server, "a", "b")
    token = (await listed(client, limit="1"))["metadata"]["continue"]
    status = await listed(client, resourceVersion="3", **{"continue": token})
    assert status["message"] == "specifying resource version is not allowed when using continue"


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"resourceVersion": "0", "limit": "1"}, (["a", "b", "c"], "4")),
        ({"resourceVersion": "3"}, (["a", "b", "c"], "4")),
        ({"resourceVersion": "3", "resourceVersionMatch": "NotOlderThan", "limit": "1"}, (["a"], "4")),
        ({"resourceVersion": "3", "resourceVersionMatch": "Exact"}, (["a", "b"], "3")),
        ({"resourceVersion": "3", "limit": "5"}, (["a", "b"], "3")),
    ],
    ids=["any-ignores-limit", "not-older", "not-older-with-limit", "exact", "exact-as-old-clients-ask"],
)
@served()
async def test_which_version_is_listed(
    server: FakeApiServer, client: httpx.AsyncClient, params: dict[str, str], expected: tuple[list[str], str]
) -> None:
    put(server, "a", "b", "c")
    page = await listed(client, **params)
    assert expected == (names(page), page["metadata"]["resourceVersion"])


@served()
async def test_a_past_version_is_told_exactly(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    put(server, "a", "b")
    server.delete(PODS.path, "a", "default")
    server.update(PODS.path, pod("b", "Failed"))
    put(server, "a")
    page = await listed(client, resourceVersion="3", resourceVersionMatch="Exact")
    assert [(item["metadata"]["name"], item["status"]["phase"]) for item in page["items"]] == [
        ("a", "Running"),
        ("b", "Running"),
    ]


@served()
async def test_an_exact_version_that_is_compacted_is_expired(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    put(server, "a")
    server.compact(PODS.path)
    put(server, "b")
    status = await listed(client, resourceVersion="1", resourceVersionMatch="Exact")
    assert (status["code"], status["message"]) == (410, "The resourceVersion for the provided list is too old.")


@served()
async def test_a_version_that_is_yet_to_come_is_a_timeout(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    put(server, "a")
    response = await client.get(PODS.path, params={"resourceVersion": "99"})
    assert response.status_code == 504
    assert response.headers["retry-after"] == "1"
    assert response.json() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "Timeout: Too large resource version: 99, current: 2",
        "reason": "Timeout",
        "details": {
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
            "retryAfterSeconds": 1,
        },
        "code": 504,
    }


@served()
async def test_selected_pages_may_end_with_an_empty_one_and_do_not_count(
    server: FakeApiServer, client: httpx.AsyncClient
) -> None:
    put(server, "a", "c")
    server.create(PODS.path, pod("b", "Failed"))
    server.create(PODS.path, pod("d", "Succeeded"))
    pages = await all_pages(client, limit="1", fieldSelector=NOT_TERMINAL)
    assert [names(page) for page in pages] == [["a"], ["c"], []]
    assert not any("remainingItemCount" in page["metadata"] for page in pages)


@served()
async def test_metadata_alone_is_listed_on_demand(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    created = server.create(PODS.path, pod("a", labels={"app": "x"}))
    page = (await client.get(PODS.path, headers={"Accept": PARTIAL_LIST})).json()
    assert page == {
        "kind": "PartialObjectMetadataList",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": "2"},
        "items": [
            {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": created["metadata"]},
        ],
    }


@served()
async def test_a_list_cannot_be_asked_for_as_one_object(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    response = await client.get(PODS.path, headers={"Accept": PARTIAL})
    assert response.status_code == server.requests[0].status == 406


@served()
async def test_a_long_list_comes_whole(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    put(server, *(f"p-{number:04d}" for number in range(1234)))
    assert [f"p-{number:04d}" for number in range(1234)] == names(await listed(client))


@pytest.mark.parametrize(("accepted", "encoding"), [("gzip", "gzip"), ("identity", None)], ids=["gzip", "identity"])
@served()
async def test_only_long_lists_are_compressed_and_only_where_the_client_accepts_it(
    server: FakeApiServer, client: httpx.AsyncClient, accepted: str, encoding: str | None
) -> None:
    put(server, "a")
    short = await client.get(PODS.path, headers={"Accept-Encoding": accepted})
    server.create(PODS.path, {"metadata": {"name": "b", "annotations": {"long": "x" * 200_000}}})
    long = await client.get(PODS.path, headers={"Accept-Encoding": accepted})
    assert [None, encoding] == [response.headers.get("content-encoding") for response in (short, long)]
    assert names(long.json()) == ["a", "b"]


@served()
async def test_any_text_comes_unescaped(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    text = "next\u0085line\u2028separator\u2029"
    server.create(PODS.path, {"metadata": {"name": "a", "annotations": {"text": text}}})
    response = await client.get(PODS.path)
    assert text.encode() in response.content
    assert response.json()["items"][0]["metadata"]["annotations"] == {"text": text}
