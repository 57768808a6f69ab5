"""`bind` over HTTP, with an API server that fails: what becomes of the pod, and of its assumption."""

import asyncio
import re
import time
from collections.abc import Callable

import msgspec
import pytest

from app.verbs.endpoint import ExtenderApp
from app.verbs.request import Request, VerbResponse
from tests.app.feeds.following import scenario
from tests.app.verbs.binding.binding_setting import FORBIDDEN, N1, N2, WEB, Scheduler, loner, scheduling, until
from tests.builders import make_pod
from tests.core.mirror.audit import audit
from tests.fake_apiserver import FakeApiServer
from tests.fake_apiserver.faults import Action, Close, Response, Stall, overloaded, refuse
from tests.fake_apiserver.resources import PODS
from tests.fake_apiserver.single_objects import binding_path
from tests.fake_apiserver.statuses import internal_error, too_many_requests, unavailable


@pytest.mark.parametrize(
    ("action", "times", "posted"),
    [
        pytest.param(overloaded(0), 1, 2, id="429"),
        pytest.param(refuse(unavailable()), 2, 3, id="503-twice"),
        pytest.param(refuse(internal_error()), 1, 2, id="500"),
    ],
)
@scenario()
async def test_what_passes_is_tried_again(server: FakeApiServer, action: Action, times: int, posted: int) -> None:
    async with scheduling(server, N1) as scheduler:
        server.faults.add(action, None, "bind", times=times)
        pod = await scheduler.pending(WEB)
        assert await scheduler.decide(pod, "n1") == ""
        assert scheduler.requested() == ["bind"] * posted
        assert scheduler.node_of(pod) == "n1"


@scenario()
async def test_retry_after_is_waited_for(server: FakeApiServer) -> None:
    async with scheduling(server, N1) as scheduler:
        server.faults.add(refuse(too_many_requests(1)), None, "bind")
        began = time.monotonic()
        assert await scheduler.decide(scheduler.create(WEB), "n1") == ""
        assert 1.0 <= time.monotonic() - began < 3


@pytest.mark.parametrize(
    ("action", "posted", "error"),
    [
        pytest.param(
            FORBIDDEN, 1, 'the RBAC rule that is missing: apiGroups: [""], resources: ["pods/binding"]', id="403"
        ),
        pytest.param(overloaded(60), 1, "429 Too Many Requests", id="429-for-longer-than-there-is-time"),
        pytest.param(refuse(unavailable()), 3, "503 ServiceUnavailable", id="503-always"),
        pytest.param(Response(200, b"<html>", {"Content-Type": "text/html"}), 1, "text/html", id="login-page"),
        pytest.param(Close(), 1, "Server disconnected without sending a response", id="closed"),
        pytest.param(Close(reset=True), 1, "Connection reset by peer", id="reset"),
        pytest.param(Stall(before_head=True), 1, "the API server did not respond within 0.7", id="silence"),
    ],
)
@scenario()
async def test_a_binding_that_failed_is_forgotten_and_can_be_tried_again(
    server: FakeApiServer, action: Action, posted: int, error: str
) -> None:
    async with scheduling(server, N1, http_timeout=1.25) as scheduler:
        fault = server.faults.add(action, None, "bind", times=None)
        pod = scheduler.create(loner("first"))
        assert error in await scheduler.decide(pod, "n1")
        assert scheduler.requested().count("bind") == posted
        assert (scheduler.node_of(pod), scheduler.is_assumed(pod)) == ("", False)
        assert await scheduler.filter(scheduler.create(loner("second")), "n1") == ["n1"]
        server.faults.remove(fault)
        assert await scheduler.decide(pod, "n1") == ""


async def waited(scheduler: Scheduler, seconds: float) -> str:
    """Ask for the binding of a pod to n1 after a time in the queue. Return the error."""
    metadata = (await scheduler.pending(WEB))["metadata"]
    args = {"PodName": "web", "PodNamespace": "default", "PodUID": metadata["uid"], "Node": "n1"}
    app = scheduler.service.app
    assert isinstance(app, ExtenderApp)
    response = app.verbs["/bind"].verb.run(Request(msgspec.json.encode(args), waited=seconds))
    assert not isinstance(response, VerbResponse)
    return (await response).error


@scenario()
async def test_a_binding_has_the_time_that_its_request_has_not_waited_for_its_turn(server: FakeApiServer) -> None:
    async with scheduling(server, N1, http_timeout=2.5) as scheduler:
        server.faults.add(Stall(before_head=True), None, "bind")
        within = re.fullmatch(r"the API server did not respond within (\S+) s", await waited(scheduler, 1.0))
        assert within is not None
        assert float(within[1]) <= 0.5


@scenario()
async def test_without_time_for_the_response_nothing_is_posted(server: FakeApiServer) -> None:
    """Else a pod could be bound after kube-scheduler had given the binding up."""
    async with scheduling(server, N1, http_timeout=1.25) as scheduler:
        assert await scheduler.bind(await scheduler.pending(loner("first")), "n1") == ""  # there is a connection now
        assert await waited(scheduler, 0.8) == "no time is left to post the binding"
        assert scheduler.requested() == ["bind"]
        assert not scheduler.mirror.assumed


@scenario()
async def test_without_a_connection_nothing_is_bound(server: FakeApiServer) -> None:
    async with scheduling(server, N1) as scheduler:
        pod = await scheduler.pending(WEB)
        scheduler.stall_watch()
        unasked = scheduler.create(make_pod("unasked"))
        await scheduler.filter(pod, "n1")
        async with server.refusing_connections(drop=True):
            assert (await scheduler.bind(pod, "n1")).endswith("Connection refused")
            error = await scheduler.bind(unasked, "n1")
            assert error.startswith("pod default/unasked could not be read: ")
        assert not scheduler.is_assumed(pod)


@pytest.mark.parametrize(
    "action", [Close(after_head=True), Close(after_head=True, reset=True), Stall()], ids=["closed", "reset", "silence"]
)
@scenario()
async def test_a_binding_whose_answer_is_lost_is_found_to_have_succeeded(server: FakeApiServer, action: Action) -> None:
    async with scheduling(server, N1, http_timeout=1.25) as scheduler:
        pod = await scheduler.pending(WEB)
        scheduler.stall_watch()
        server.faults.add(action, None, "bind")
        assert await scheduler.decide(pod, "n1") == ""
        assert scheduler.requested() == ["bind", "get"]
        assert (scheduler.node_of(pod), scheduler.is_assumed(pod)) == ("n1", True)


@scenario()
async def test_a_success_behind_an_error_of_the_server_is_success(server: FakeApiServer) -> None:
    async with scheduling(server, N1) as scheduler:
        pod = await scheduler.pending(WEB)
        scheduler.stall_watch()
        server.faults.add(refuse(internal_error()), binding_path("web"))
        binding = asyncio.create_task(scheduler.decide(pod, "n1"))
        await server.until(lambda: scheduler.requested() == ["bind"])
        server.update(PODS.path, {**pod, "spec": {**pod["spec"], "nodeName": "n1"}})  # what etcd took all the same
        assert await binding == ""
        assert scheduler.requested() == ["bind", "bind", "get"]


@pytest.mark.parametrize(
    ("action", "bound"), [(Close(), False), (Close(after_head=True), True)], ids=["not-bound", "bound"]
)
@pytest.mark.parametrize("look", [Close, lambda: refuse(unavailable()), Stall], ids=["closed", "503", "silence"])
@scenario()
async def test_what_is_not_known_counts_until_it_is(
    server: FakeApiServer, action: Action, look: Callable[[], Action], *, bound: bool
) -> None:
    async with scheduling(server, N1, N2, http_timeout=0.75) as scheduler:
        pod = await scheduler.pending(loner("first"))
        stall = scheduler.stall_watch()
        server.faults.add(action, None, "bind")
        fault = server.faults.add(look(), None, "get", times=None)
        assert (await scheduler.decide(pod, "n1")).endswith("; whether the pod is bound is not known")
        assert scheduler.mirror.assumed[pod["metadata"]["uid"]].deadline is not None
        assert "could not be read" in await scheduler.bind(pod, "n1")
        assert await scheduler.filter(scheduler.create(loner("second")), "n1", "n2") == ["n2"]
        server.faults.remove(fault)
        error = await scheduler.bind(pod, "n2")
        assert error == ("pod default/first is bound to another node" if bound else "")
        stall.release()
        await until(lambda: scheduler.is_added(pod, "n1" if bound else "n2"))


@scenario()
async def test_a_pod_whose_binding_is_not_known_does_not_count_when_it_comes_again(server: FakeApiServer) -> None:
    async with scheduling(server, N1) as scheduler:
        pod = await scheduler.pending(loner("first"))
        scheduler.stall_watch()
        server.faults.add(Close(), None, "bind")
        fault = server.faults.add(Close(), None, "get", times=None)
        assert (await scheduler.decide(pod, "n1")).endswith("; whether the pod is bound is not known")
        assert await scheduler.filter(scheduler.create(loner("second")), "n1") == []
        assert await scheduler.filter(pod, "n1") == ["n1"]
        server.faults.remove(fault)
        assert await scheduler.bind(pod, "n1") == ""
        assert audit(scheduler.mirror) == []


@pytest.mark.parametrize(
    ("action", "bound"), [(Close(), False), (Close(after_head=True), True)], ids=["not-bound", "bound"]
)
@scenario()
async def test_a_pod_whose_binding_is_not_known_is_read_before_it_is_decided_for_again(
    server: FakeApiServer, action: Action, *, bound: bool
) -> None:
    """Else it would wait until the time of its place is over, or its place would be given away."""
    nodes = [node.allocatable(pods=10) for node in (N1, N2)]
    async with scheduling(server, *nodes, decide="listed-nodes", profile="full") as scheduler:
        pod = await scheduler.pending(loner("first"))
        scheduler.stall_watch()
        server.faults.add(action, None, "bind")
        fault = server.faults.add(Close(), None, "get", times=None)
        assert (await scheduler.bind(pod, "n1")).endswith("; whether the pod is bound is not known")
        for _ in range(2):
            error = (await scheduler.ask("filter", pod, "n1", "n2")).json()["Error"]
            assert error.startswith("pod default/first may be bound to n1, and could not be read: ")
        assert scheduler.mirror.assumed[pod["metadata"]["uid"]].pod.node_name == "n1"
        server.faults.remove(fault)
        await scheduler.filter(pod, "n2")
        assert scheduler.mirror.assumed[pod["metadata"]["uid"]].pod.node_name == ("n1" if bound else "n2")
        assert (await scheduler.bind(pod, "n2") == "") is not bound
        assert audit(scheduler.mirror) == []


@scenario()
async def test_the_place_of_a_pod_that_others_have_bound_is_not_given_away_by_a_decision(server: FakeApiServer) -> None:
    nodes = [node.allocatable(pods=10) for node in (N1, N2)]
    async with scheduling(server, *nodes, decide="listed-nodes", profile="full") as scheduler:
        pod = await scheduler.pending(loner("first"))
        scheduler.stall_watch()
        server.update(PODS.path, {**pod, "spec": {**pod["spec"], "nodeName": "n2"}})
        assert await scheduler.bind(pod, "n1") == "pod default/first is bound to another node"
        error = (await scheduler.ask("filter", pod, "n1", "n2")).json()["Error"]
        assert error == "pod default/first is bound to n2, or is being bound there, but not in the watch yet"
        assert await scheduler.filter(scheduler.create(loner("second")), "n2") == []


@scenario()
async def test_a_pod_that_others_have_bound_counts_where_a_decision_has_read_it(server: FakeApiServer) -> None:
    nodes = [node.allocatable(pods=10) for node in (N1, N2)]
    async with scheduling(server, *nodes, decide="listed-nodes", profile="full") as scheduler:
        pod = await scheduler.pending(loner("first"))
        scheduler.stall_watch()
        assert await scheduler.filter(pod, "n1") == ["n1"]
        server.update(PODS.path, {**pod, "spec": {**pod["spec"], "nodeName": "n2"}})
        error = (await scheduler.ask("filter", pod, "n1", "n2")).json()["Error"]
        assert error == "pod default/first is bound to n2, or is being bound there, but not in the watch yet"
        assert await scheduler.filter(scheduler.create(loner("second")), "n2") == []
        assert await scheduler.filter(scheduler.create(loner("third")), "n1") == ["n1"]


@scenario()
async def test_what_the_watch_tells_while_nothing_else_does_counts(server: FakeApiServer) -> None:
    async with scheduling(server, N1, http_timeout=1.25) as scheduler:
        pod = await scheduler.pending(WEB)
        server.faults.add(Stall(), None, "bind")
        server.faults.add(refuse(unavailable()), None, "get", times=None)
        assert await scheduler.decide(pod, "n1") == ""


@pytest.mark.parametrize("why", ["conflict", "refused"])
@scenario()
async def test_the_other_members_of_a_gang_lose_their_places_when_the_first_binding_fails(
    server: FakeApiServer, why: str
) -> None:
    """Else they would run without it: its place is free, and another pod may take it."""
    nodes = (each.allocatable(cpu=1, memory="1Gi", pods=9) for each in (N1, N2))
    async with scheduling(server, *nodes, decide="listed-nodes", profile="full") as scheduler:
        pods = [await scheduler.pending(make_pod(name).requests(cpu=1).of_group("g", 2, 3600)) for name in "ab"]
        (name,) = await scheduler.filter(pods[0], "n1", "n2")
        assert scheduler.is_assumed(pods[1])
        if why == "refused":
            server.faults.add(FORBIDDEN, None, "bind")
        else:
            other = scheduler.create(make_pod("other").requests(cpu=1).on(name))
            await until(lambda: scheduler.is_added(other, name))
        assert await scheduler.bind(pods[0], name)
        await until(lambda: not scheduler.is_assumed(pods[1]))
        assert not scheduler.is_assumed(pods[0])


@scenario()
async def test_a_bound_member_keeps_its_place_when_the_only_one_that_was_decided_for_fails(
    server: FakeApiServer,
) -> None:
    """It was bound by the decision of an earlier leader, and the present one had reserved a place for it."""
    nodes = (each.allocatable(cpu=1, memory="1Gi", pods=9) for each in (N1, N2))
    async with scheduling(server, *nodes, decide="listed-nodes", profile="full") as scheduler:
        pods = [await scheduler.pending(make_pod(name).requests(cpu=1).of_group("g", 2, 3600)) for name in "ab"]
        (name,) = await scheduler.filter(pods[0], "n1", "n2")
        place = scheduler.mirror.assumed[pods[1]["metadata"]["uid"]].pod.node_name
        scheduler.stall_watch()
        assert await scheduler.bind(pods[1], place) == ""
        server.faults.add(FORBIDDEN, None, "bind")
        assert await scheduler.bind(pods[0], name)
        assert await scheduler.filter(scheduler.create(make_pod("other").requests(cpu=1)), place) == []


@scenario()
async def test_a_pod_that_the_watch_is_late_with_is_bound_as_it_was_decided_for(server: FakeApiServer) -> None:
    async with scheduling(server, N1.allocatable(pods=10), decide="listed-nodes", profile="full") as scheduler:
        pod = await scheduler.pending(make_pod("first"))
        scheduler.stall_watch()
        labels = {"metadata": {**pod["metadata"], "labels": {"app": "db"}}}
        server.update(PODS.path, {**pod, **labels})
        changed = server.store.get(PODS.path, "first", "default")
        assert changed is not None
        assert await scheduler.decide(changed, "n1") == ""
        assert await scheduler.filter(scheduler.create(loner("second")), "n1") == []
