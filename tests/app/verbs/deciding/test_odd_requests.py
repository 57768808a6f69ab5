"""Requests that kube-scheduler seldom sends, over HTTP: each has its response, and no assumption leaks."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.app.feeds.following import scenario
from tests.app.verbs.binding.binding_setting import HOSTNAME, Scheduler, loner, scheduling, until
from tests.builders import make_node, make_pod
from tests.core.mirror.audit import audit
from tests.fake_apiserver import FakeApiServer
from tests.fake_apiserver.resources import NODES as NODE_OBJECTS
from tests.fake_apiserver.resources import PODS
from tests.fake_apiserver.store import Object

NODES = [make_node(name).label(HOSTNAME, name).allocatable(cpu="4", pods=10) for name in ("n1", "n2")]
SCOPES = pytest.mark.parametrize("scope", ["listed-nodes", "any-node"])
DECISIONS = tuple(
    f'kindred_decisions_total{{outcome="{outcome}"}}'
    for outcome in ("assumed", "replaced", "not_assumed", "no_fit", "refused")
)
ASSUMED = "kindred_mirror_assumed_pods"


@asynccontextmanager
async def deciding(server: FakeApiServer, scope: str) -> AsyncIterator[Scheduler]:
    """Serve with two nodes; in the end nothing may be assumed, once all pods are gone."""
    async with scheduling(server, *NODES, decide=scope, profile="full") as scheduler:
        yield scheduler
        for pod in server.objects(PODS.path):
            server.delete(PODS.path, pod["metadata"]["name"], pod["metadata"]["namespace"])
        await until(lambda: not scheduler.mirror.pending and not scheduler.mirror.pod_count())
        assert scheduler.mirror.assumed == {}
        assert audit(scheduler.mirror) == []


async def pending(scheduler: Scheduler, name: str = "p") -> Object:
    """Create a pod, and wait until the watch has shown it."""
    pod = scheduler.create(loner(name))
    await until(lambda: pod["metadata"]["uid"] in scheduler.mirror.pending)
    return pod


async def responded(scheduler: Scheduler, pod: Object, *nodes: str) -> Any:  # noqa: ANN401 - JSON
    response = await scheduler.ask("filter", pod, *nodes)
    assert response.status_code == 200
    return response.json()


def chosen(response: Any) -> str:  # noqa: ANN401 - JSON
    """Return the one node of an answer, in either form."""
    assert response["Error"] == ""
    names = response["NodeNames"] or [
        item["metadata"]["name"] for item in (response["Nodes"] or {"items": []})["items"]
    ]
    assert len(names) == 1
    return str(names[0])


@SCOPES
@scenario()
async def test_an_unknown_node_is_not_chosen(server: FakeApiServer, scope: str) -> None:
    async with deciding(server, scope) as scheduler:
        pod = await pending(scheduler)
        assert chosen(await responded(scheduler, pod, "n9", "n2")) in {"n2"} | (
            {"n1"} if scope == "any-node" else set()
        )
        assert scheduler.is_assumed(pod)


@scenario()
async def test_an_unknown_node_alone_has_a_reason(server: FakeApiServer) -> None:
    async with deciding(server, "listed-nodes") as scheduler:
        pod = await pending(scheduler)
        response = await responded(scheduler, pod, "n9")
        assert (response["NodeNames"], response["Error"]) == ([], "")
        assert response["FailedNodes"] | response["FailedAndUnresolvableNodes"] == {
            "n9": "node(s) unknown to the extender"
        }
        assert not scheduler.is_assumed(pod)


@scenario()
async def test_unknown_nodes_alone_are_no_matter_where_any_node_will_do(server: FakeApiServer) -> None:
    async with deciding(server, "any-node") as scheduler:
        pod = await pending(scheduler)
        assert chosen(await responded(scheduler, pod, "n9")) in {"n1", "n2"}


@SCOPES
@pytest.mark.parametrize(
    ("nodes", "error"),
    [
        pytest.param((), "NodeNames: is empty; there is no node to choose from", id="none"),
        pytest.param(("n1", "n1"), "NodeNames[1]: n1 is at position 0 already", id="a-node-twice"),
    ],
)
@scenario()
async def test_a_list_of_nodes_that_is_wrong_is_an_error(
    server: FakeApiServer, scope: str, nodes: tuple[str, ...], error: str
) -> None:
    async with deciding(server, scope) as scheduler:
        pod = await pending(scheduler)
        assert (await responded(scheduler, pod, *nodes))["Error"] == error
        assert not scheduler.is_assumed(pod)


@SCOPES
@pytest.mark.parametrize("version", [True, False], ids=["written-by-an-api-server", "manifest"])
@scenario()
async def test_a_pod_without_a_uid_is_answered_and_not_assumed(
    server: FakeApiServer, scope: str, *, version: bool
) -> None:
    async with deciding(server, scope) as scheduler:
        pod = await pending(scheduler)
        gone = {"uid"} if version else {"uid", "resourceVersion"}
        metadata = {key: value for key, value in pod["metadata"].items() if key not in gone}
        assert chosen(await responded(scheduler, {**pod, "metadata": metadata}, "n1", "n2"))
        assert scheduler.mirror.assumed == {}


@SCOPES
@pytest.mark.parametrize("late", [False, True], ids=["as-it-is-now", "as-it-was-before"])
@scenario()
async def test_a_pod_that_is_bound_is_answered_with_its_node_and_not_assumed(
    server: FakeApiServer, scope: str, *, late: bool
) -> None:
    async with deciding(server, scope) as scheduler:
        pod = await pending(scheduler)
        bound = server.update(PODS.path, {**pod, "spec": {**pod["spec"], "nodeName": "n2"}})
        await until(lambda: scheduler.is_added(pod, "n2"))
        for _ in range(8):  # one of two equal nodes is taken at random
            assert chosen(await responded(scheduler, pod if late else bound, "n1", "n2")) == "n2"
        assert scheduler.is_added(pod, "n2")
        assert await scheduler.metrics(*DECISIONS) == [0, 0, 8, 0, 0]


def resized(cpu: str, node: str = "n2") -> Object:
    """Return a pod on a node that has 1 CPU there, and asks for another amount."""
    pod = make_pod("p").requests(cpu=cpu).on(node).obj()
    del pod["metadata"]["uid"]
    pod["spec"]["containers"][0]["name"] = "main"
    pod["status"] = {
        "phase": "Running",
        "conditions": [{"type": "PodResizePending", "status": "True", "reason": "Deferred"}],
        "containerStatuses": [
            {"name": "main", "allocatedResources": {"cpu": "1"}, "resources": {"requests": {"cpu": "1"}}}
        ],
    }
    return pod


@SCOPES
@pytest.mark.parametrize("headers", [{}, {"Kindred-Dry-Run": "true"}], ids=["request", "dry-run"])
@pytest.mark.parametrize(
    ("cpu", "nodes", "failed"),
    [
        pytest.param("3", ("n1", "n2"), {}, id="fits-without-what-it-has-there-itself"),
        pytest.param("3500m", ("n1", "n2"), {"n2": "Insufficient cpu"}, id="fits-on-the-other-node-alone"),
        pytest.param("5", ("n1", "n2"), {"n2": "Insufficient cpu"}, id="fits-nowhere"),
        pytest.param(
            "2",
            ("n1",),
            {"n1": "decision of kindred: the pod is on node n2, which is not in the request"},
            id="is-on-a-node-that-is-not-asked-about",
        ),
    ],
)
@scenario()
async def test_a_pod_that_is_resized_in_place_gets_its_own_node_or_none(  # noqa: PLR0913  # columns of the table
    server: FakeApiServer,
    scope: str,
    headers: dict[str, str],
    *,
    cpu: str,
    nodes: tuple[str, ...],
    failed: dict[str, str],
) -> None:
    async with deciding(server, scope) as scheduler:
        next_to = make_pod("beside").requests(cpu="1").on("n2").obj()
        pod, _ = server.create(PODS.path, resized(cpu)), server.create(PODS.path, next_to)
        await until(lambda: scheduler.mirror.pod_count() == 2)
        before = scheduler.mirror.get_pod(pod["metadata"]["uid"])
        response = (await scheduler.ask("filter", pod, *nodes, headers=headers)).json()
        if failed:
            assert (response["NodeNames"], response["Nodes"], response["Error"]) == ([], None, "")
        else:
            assert chosen(response) == "n2"
        assert response["FailedNodes"] | response["FailedAndUnresolvableNodes"] == failed
        assert scheduler.mirror.get_pod(pod["metadata"]["uid"]) == before
        assert scheduler.mirror.assumed == {}
        assert scheduler.requested() == []


@SCOPES
@scenario()
async def test_a_pod_that_is_resized_is_judged_by_its_requests_alone_as_in_tree(
    server: FakeApiServer, scope: str
) -> None:
    async with deciding(server, scope) as scheduler:
        node = server.store.get(NODE_OBJECTS.path, "n2", "")
        assert node is not None
        server.update(NODE_OBJECTS.path, {**node, "spec": {**node.get("spec", {}), "unschedulable": True}})
        pod = resized("2")
        pod["spec"] |= {"schedulingGroup": {"podGroupName": "g"}, "resourceClaims": [{"name": "gpu"}]}
        pod = server.create(PODS.path, pod)
        await until(lambda: scheduler.mirror.pod_count() == 1)
        assert chosen(await responded(scheduler, pod, "n1", "n2")) == "n2"


@SCOPES
@scenario()
async def test_a_pod_that_the_watch_does_not_show_bound_yet_gets_the_node_of_the_request_or_none(
    server: FakeApiServer, scope: str
) -> None:
    async with deciding(server, scope) as scheduler:
        pod = await pending(scheduler)
        stall = scheduler.stall_watch()
        bound = server.update(PODS.path, {**pod, "spec": {**pod["spec"], "nodeName": "n2"}})
        for _ in range(8):
            assert chosen(await responded(scheduler, bound, "n1", "n2")) == "n2"
        response = await responded(scheduler, bound, "n1")
        assert (response["NodeNames"], response["Nodes"]) == ([], None)
        assert [each.pod.node_name for each in scheduler.mirror.assumed.values()] == ["n2"], "a GET has shown it there"
        stall.release()


@scenario()
async def test_a_profile_without_the_plugin_for_the_named_node_moves_no_bound_pod(server: FakeApiServer) -> None:
    async with scheduling(server, *NODES, decide="listed-nodes", profile="affinity") as scheduler:
        pod = server.create(PODS.path, resized("2"))
        await until(lambda: scheduler.mirror.pod_count() == 1)
        for _ in range(8):
            assert chosen(await responded(scheduler, pod, "n1", "n2")) == "n2"


@pytest.mark.parametrize("profile", ["affinity", "full"])
@scenario()
async def test_a_bound_pod_is_not_in_its_own_way_where_all_nodes_that_fit_are_answered(
    server: FakeApiServer, profile: str
) -> None:
    async with scheduling(server, *NODES, profile=profile) as scheduler:
        pod = resized("3")
        pod["metadata"] |= {"labels": {"app": "db"}}
        pod["spec"] |= {"affinity": loner("p").obj()["spec"]["affinity"]}
        pod = server.create(PODS.path, pod)
        await until(lambda: scheduler.mirror.pod_count() == 1)
        before = await responded(scheduler, pod, "n2")
        assert (before["NodeNames"], before["Error"]) == (["n2"], "")
        assert ("n1" in (await responded(scheduler, pod, "n1", "n2"))["NodeNames"]) is (profile == "affinity")
        assert scheduler.mirror.pod_count() == 1
        assert audit(scheduler.mirror) == []


@scenario()
async def test_a_bound_pod_gets_its_node_as_the_request_has_it(server: FakeApiServer) -> None:
    async with deciding(server, "listed-nodes") as scheduler:
        pod = server.create(PODS.path, resized("2"))
        await until(lambda: scheduler.mirror.pod_count() == 1)
        items = [node.obj() for node in NODES]
        body = await scheduler.send("POST", "/filter", {"Pod": pod, "Nodes": {"items": items}})
        assert json.loads(body)["Nodes"]["items"] == [items[1]]


@SCOPES
@pytest.mark.parametrize(
    ("membership", "group"),
    [
        pytest.param(
            {"workloadRef": {"name": "w", "podGroup": "g", "podGroupReplicaKey": "0"}}, "default/w/g/0", id="1.35"
        ),
        pytest.param({"schedulingGroup": {"podGroupName": "g"}}, "default/g", id="1.36"),
    ],
)
@scenario()
async def test_a_pod_that_kube_scheduler_places_with_its_group_gets_no_node_here(
    server: FakeApiServer, scope: str, membership: Object, group: str
) -> None:
    async with deciding(server, scope) as scheduler:
        member = loner("p").obj()
        del member["metadata"]["uid"]
        member["spec"] |= membership
        pod = server.create(PODS.path, member)
        await until(lambda: pod["metadata"]["uid"] in scheduler.mirror.pending)
        assert (await responded(scheduler, pod, "n1", "n2"))["Error"] == (
            f"pod default/p is in the scheduling group {group}, which needs all in-tree filters: "
            "name a scheduler whose profile keeps them, KINDRED_DECIDE_GROUPS_SCHEDULER"
        )
        assert scheduler.mirror.assumed == {}


@SCOPES
@scenario()
async def test_of_two_questions_for_one_pod_at_once_the_last_answer_counts(server: FakeApiServer, scope: str) -> None:
    async with deciding(server, scope) as scheduler:
        pod, other = await pending(scheduler), await pending(scheduler, "q")
        responses = await asyncio.gather(*(responded(scheduler, pod, "n1", "n2") for _ in range(2)))
        assert await scheduler.metrics(ASSUMED, *DECISIONS) == [1, 1, 1, 0, 0, 0]
        known = scheduler.mirror.get_pod(pod["metadata"]["uid"])
        assert known is not None
        assert known.node_name in {chosen(response) for response in responses}
        assert chosen(await responded(scheduler, other, "n1", "n2")) != known.node_name


@SCOPES
@scenario()
async def test_a_deleted_pod_that_is_asked_about_late_is_answered_and_not_assumed(
    server: FakeApiServer, scope: str
) -> None:
    async with deciding(server, scope) as scheduler:
        pod = await pending(scheduler)
        chosen(await responded(scheduler, pod, "n1", "n2"))
        server.delete(PODS.path, "p", "default")
        await until(lambda: not scheduler.is_assumed(pod))
        assert chosen(await responded(scheduler, pod, "n1", "n2"))
        assert not scheduler.is_assumed(pod)
        assert scheduler.requested() == ["get"]


@SCOPES
@scenario()
async def test_a_pod_that_was_looked_up_once_and_then_deleted_is_looked_up_again(
    server: FakeApiServer, scope: str
) -> None:
    async with deciding(server, scope) as scheduler:
        stall = scheduler.stall_watch()
        pod = scheduler.create(loner("p"))
        chosen(await responded(scheduler, pod, "n1", "n2"))
        assert scheduler.is_assumed(pod)
        stall.release()
        await until(lambda: pod["metadata"]["uid"] in scheduler.mirror.pending)
        server.delete(PODS.path, "p", "default")
        await until(lambda: not scheduler.is_assumed(pod))
        assert chosen(await responded(scheduler, pod, "n1", "n2"))
        assert not scheduler.is_assumed(pod)
        assert scheduler.requested() == ["get", "get"]


@scenario()
async def test_a_dry_run_is_answered_and_changes_nothing(server: FakeApiServer) -> None:
    async with deciding(server, "listed-nodes") as scheduler:
        pod = await pending(scheduler)
        chosen(await responded(scheduler, pod, "n1", "n2"))
        before = scheduler.mirror.get_pod(pod["metadata"]["uid"])
        response = await scheduler.ask("filter", pod, "n1", "n2", headers={"Kindred-Dry-Run": "true"})
        assert chosen(response.json())
        assert scheduler.mirror.get_pod(pod["metadata"]["uid"]) == before
