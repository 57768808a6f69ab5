"""`bind` over HTTP, with a fake API server: what becomes of the pod there, and of its assumption here."""

import asyncio

import pytest

from app.settings.settings import Settings
from app.wiring.main import create_service
from tests.app.asgi import ask
from tests.app.feeds.following import scenario
from tests.app.questions import shop
from tests.app.verbs.binding.binding_setting import FORBIDDEN, N1, N2, WEB, loner, scheduling, until
from tests.core.mirror.audit import audit
from tests.fake_apiserver import FakeApiServer
from tests.fake_apiserver.faults import Close, Stall
from tests.fake_apiserver.resources import PODS

# A pod that can be bound.


@scenario()
async def test_a_pod_is_bound_and_counts_until_the_watch_confirms_it(server: FakeApiServer) -> None:
    async with scheduling(server, N1) as scheduler:
        pod = scheduler.create(WEB)
        stall = scheduler.stall_watch()
        assert await scheduler.decide(pod, "n1") == ""
        assert (scheduler.node_of(pod), scheduler.is_assumed(pod)) == ("n1", True)
        stall.release()
        await until(lambda: scheduler.is_added(pod, "n1"))
        assert audit(scheduler.mirror) == []


@scenario()
async def test_a_pod_that_the_watch_has_shown_is_not_read(server: FakeApiServer) -> None:
    async with scheduling(server, N1) as scheduler:
        assert await scheduler.decide(await scheduler.pending(WEB), "n1") == ""
        assert scheduler.requested() == ["bind"]


@scenario()
async def test_a_pod_that_was_decided_for_is_not_read_because_reads_are_limited_to_100_a_second(
    server: FakeApiServer,
) -> None:
    async with scheduling(server, N1.allocatable(pods=10), decide="listed-nodes", profile="full") as scheduler:
        assert await scheduler.decide(await scheduler.pending(WEB), "n1") == ""
        assert scheduler.requested() == ["bind"]


@scenario()
async def test_a_pod_that_the_watch_has_not_shown_is_read_from_the_server(server: FakeApiServer) -> None:
    async with scheduling(server, N1, N2) as scheduler:
        scheduler.stall_watch()
        assert await scheduler.bind(scheduler.create(loner("first")), "n1") == ""
        pod = scheduler.create(loner("second"))
        assert "anti-affinity rules" in await scheduler.bind(pod, "n1")
        assert await scheduler.bind(pod, "n2") == ""
        assert scheduler.requested() == ["get", "bind", "get", "get", "bind"]


@scenario()
async def test_a_pod_asked_about_counts_only_under_its_own_name(server: FakeApiServer) -> None:
    async with scheduling(server, N1) as scheduler:
        pod = await scheduler.pending(WEB)
        await scheduler.filter(pod, "n1")
        assert await scheduler.bind(pod, "n1", PodName="other") == "no pending pod default/other has this uid"
        assert scheduler.requested() == []


@scenario()
async def test_an_assumption_that_the_watch_never_confirms_expires(server: FakeApiServer) -> None:
    async with scheduling(server, N1, assumed_pod_ttl=1) as scheduler:
        pod = scheduler.create(loner("first"))
        scheduler.stall_watch()
        assert await scheduler.decide(pod, "n1") == ""
        assert await scheduler.filter(scheduler.create(loner("second")), "n1") == []
        await until(lambda: not scheduler.is_assumed(pod))
        assert scheduler.mirror.get_pod(pod["metadata"]["uid"]) is None


@scenario()
async def test_a_pod_that_is_nominated_after_the_filter_is_no_conflict(server: FakeApiServer) -> None:
    async with scheduling(server, N1) as scheduler:
        pod = scheduler.create(loner("first"))
        assert await scheduler.filter(pod, "n1") == ["n1"]
        scheduler.create(loner("second").nominated("n1"))
        await until(lambda: bool(scheduler.mirror.pending.nominated_for("n1")))
        assert await scheduler.filter(pod, "n1") == []
        assert await scheduler.bind(pod, "n1") == ""


# A pod that a hard rule keeps off.


@scenario()
async def test_two_pods_that_repel_each_other_do_not_get_one_node_while_the_watch_is_late(
    server: FakeApiServer,
) -> None:
    async with scheduling(server, N1, N2) as scheduler:
        first, second = scheduler.create(loner("first")), scheduler.create(loner("second"))
        stall = scheduler.stall_watch()
        for pod in (first, second):
            assert await scheduler.filter(pod, "n1", "n2") == ["n1", "n2"]
        assert await scheduler.bind(first, "n1") == ""
        error = await scheduler.bind(second, "n1")
        assert error == "pod default/second does not fit on n1: node(s) didn't match pod anti-affinity rules"
        assert (scheduler.node_of(first), scheduler.node_of(second)) == ("n1", "")
        assert not scheduler.is_assumed(second)
        assert await scheduler.metric('kindred_binds_total{result="conflict"}') == 1
        assert await scheduler.decide(second, "n1", "n2") == ""
        assert scheduler.node_of(second) == "n2"
        stall.release()
        await until(lambda: scheduler.is_added(first, "n1") and scheduler.is_added(second, "n2"))


@scenario()
async def test_of_many_bindings_at_once_one_gets_the_node(server: FakeApiServer) -> None:
    async with scheduling(server, N1) as scheduler:
        scheduler.stall_watch()
        pods = [scheduler.create(loner(f"db-{number}")) for number in range(20)]
        for pod in pods[::2]:  # the others are read in between
            assert await scheduler.filter(pod, "n1") == ["n1"]
        errors = await asyncio.gather(*(scheduler.bind(pod, "n1") for pod in pods))
        assert errors.count("") == 1
        assert [scheduler.node_of(pod) for pod in pods].count("n1") == 1


@pytest.mark.parametrize(
    ("node", "reason"),
    [
        pytest.param("n9", "node(s) unknown to the extender", id="unknown"),
        pytest.param("n2", "node(s) out of the scheduler's partition", id="out-of-partition"),
    ],
)
@scenario()
async def test_a_node_that_cannot_be_judged_is_refused(server: FakeApiServer, node: str, reason: str) -> None:
    async with scheduling(server, N1, N2, partition='{"out":["n2"]}') as scheduler:
        pod = scheduler.create(WEB)
        assert await scheduler.bind(pod, node) == f"pod default/web does not fit on {node}: {reason}"
        assert scheduler.node_of(pod) == ""


@scenario()
async def test_a_pod_that_takes_too_much_work_is_refused_with_the_field_unless_it_passes_untouched(
    server: FakeApiServer,
) -> None:
    async with scheduling(server, N1, bypass_namespaces=["spared"]) as scheduler:
        scheduler.mirror.work.limit = 10_000
        pod, spared = scheduler.create(loner("db")), scheduler.create(loner("db").in_namespace("spared"))
        error = await scheduler.bind(pod, "n1")
        assert error.startswith("pod default/db: Pod.spec.affinity: too much work: 1 entries, ")
        assert await scheduler.bind(spared, "n1") == ""
        assert (scheduler.node_of(pod), scheduler.is_assumed(pod), scheduler.node_of(spared)) == ("", False, "n1")
        assert await scheduler.metric('kindred_binds_total{result="too_much_work"}') == 1


# A pod that is bound already, or on its way.


@scenario()
async def test_a_pod_that_the_watch_has_shown_on_the_node_is_bound(server: FakeApiServer) -> None:
    async with scheduling(server, N1, N2) as scheduler:
        pod = scheduler.create(WEB.on("n1"))
        await until(lambda: scheduler.is_added(pod, "n1"))
        assert await scheduler.bind(pod, "n1") == ""
        assert await scheduler.bind(pod, "n2") == "pod default/web is bound to another node"
        assert scheduler.requested() == []


@scenario()
async def test_a_binding_that_succeeded_succeeds_again_while_the_watch_is_late(server: FakeApiServer) -> None:
    async with scheduling(server, N1, N2) as scheduler:
        pod = await scheduler.pending(loner("first"))
        scheduler.stall_watch()
        assert [await scheduler.decide(pod, "n1"), await scheduler.bind(pod, "n1")] == ["", ""]
        assert await scheduler.bind(pod, "n2") == "pod default/first is bound to another node"
        assert scheduler.requested() == ["bind", "get", "get"]
        assert scheduler.is_assumed(pod)


@pytest.mark.parametrize("requested", [True, False], ids=["asked-about", "not-asked-about"])
@pytest.mark.parametrize(
    ("node", "error"),
    [("n1", ""), ("n2", "pod default/first is bound to another node")],
    ids=["same-node", "other-node"],
)
@scenario()
async def test_a_pod_that_somebody_else_bound_counts_where_it_is(
    server: FakeApiServer, node: str, error: str, *, requested: bool
) -> None:
    async with scheduling(server, N1, N2) as scheduler:
        pod = scheduler.create(loner("first"))
        scheduler.stall_watch()
        if requested:
            await scheduler.filter(pod, "n1", "n2")
        server.update(PODS.path, {**pod, "spec": {**pod["spec"], "nodeName": "n1"}})
        assert await scheduler.bind(pod, node) == error
        assert await scheduler.filter(scheduler.create(loner("second")), "n1", "n2") == ["n2"]


@scenario()
async def test_a_pod_that_has_its_node_by_an_earlier_attempt_is_bound(server: FakeApiServer) -> None:
    async with scheduling(server, N1, N2) as scheduler:
        pod = await scheduler.pending(WEB)
        scheduler.stall_watch()
        server.update(PODS.path, {**pod, "spec": {**pod["spec"], "nodeName": "n1"}})
        assert await scheduler.bind(pod, "n1") == ""
        assert scheduler.requested() == ["bind", "get"]


@scenario()
async def test_the_same_binding_twice_at_once_is_posted_once(server: FakeApiServer) -> None:
    async with scheduling(server, N1, N2) as scheduler:
        pod = await scheduler.pending(loner("first"))
        stall = Stall(before_head=True)
        server.faults.add(stall, None, "bind")
        binding = [asyncio.create_task(scheduler.bind(pod, "n1")) for _ in range(3)]
        await server.until(lambda: scheduler.requested() == ["bind"])
        assert await scheduler.bind(pod, "n2") == "pod default/first is being bound to another node"
        assert not any(task.done() for task in binding)
        stall.release()
        assert await asyncio.gather(*binding) == ["", "", ""]
        assert scheduler.requested() == ["bind"]


@scenario()
async def test_the_same_binding_twice_at_once_fails_alike(server: FakeApiServer) -> None:
    async with scheduling(server, N1) as scheduler:
        server.faults.add(FORBIDDEN, None, "bind")
        pod = scheduler.create(WEB)
        one, other = await asyncio.gather(scheduler.bind(pod, "n1"), scheduler.bind(pod, "n1"))
        assert one == other != ""
        assert await scheduler.bind(pod, "n1") == ""


@scenario()
async def test_a_binding_goes_on_when_its_caller_goes_away(server: FakeApiServer) -> None:
    async with scheduling(server, N1) as scheduler:
        pod = scheduler.create(WEB)
        stall = Stall(before_head=True)
        server.faults.add(stall, None, "bind")
        binding = asyncio.create_task(scheduler.bind(pod, "n1"))
        await server.until(lambda: "bind" in scheduler.requested())
        binding.cancel()
        await asyncio.wait([binding])
        stall.release()
        await until(lambda: scheduler.is_added(pod, "n1"))


@scenario()
async def test_a_decision_replaces_no_binding_that_is_posted_or_done(server: FakeApiServer) -> None:
    """The scheduler has started anew, or has given up the call. The place must not be given away."""
    nodes = [node.allocatable(pods=10) for node in (N1, N2)]
    async with scheduling(server, *nodes, decide="listed-nodes", profile="full") as scheduler:
        pod = await scheduler.pending(loner("first"))
        scheduler.stall_watch()
        stall = Stall(before_head=True)
        server.faults.add(stall, None, "bind")
        binding = asyncio.create_task(scheduler.decide(pod, "n1"))
        await server.until(lambda: "bind" in scheduler.requested())
        for other in ("second", "third"):
            error = (await scheduler.ask("filter", pod, "n1", "n2")).json()["Error"]
            assert error == "pod default/first is bound to n1, or is being bound there, but not in the watch yet"
            assert await scheduler.filter(scheduler.create(loner(other)), "n1") == []
            stall.release()
            await asyncio.wait([binding])
        assert binding.result() == ""


# A pod that is not the one that was decided.


@scenario()
async def test_a_pod_of_another_uid_is_not_bound(server: FakeApiServer) -> None:
    async with scheduling(server, N1) as scheduler:
        pod = scheduler.create(WEB)
        await scheduler.filter(pod, "n1")
        server.delete(PODS.path, "web", "default")
        successor = scheduler.create(WEB)
        scheduler.stall_watch()
        expected = "no pending pod default/web has this uid"
        assert await scheduler.bind(pod, "n1") == expected
        assert await scheduler.bind(pod, "n1", PodUID="never-asked-about") == expected
        assert (scheduler.node_of(successor), scheduler.is_assumed(pod)) == ("", False)


@scenario()
async def test_a_successor_that_the_watch_has_not_shown_is_not_bound(server: FakeApiServer) -> None:
    async with scheduling(server, N1) as scheduler:
        pod = await scheduler.pending(WEB)
        scheduler.stall_watch()
        server.delete(PODS.path, "web", "default")
        successor = scheduler.create(WEB)
        assert await scheduler.bind(pod, "n1") != ""
        assert (scheduler.node_of(successor), scheduler.is_assumed(pod)) == ("", False)


@pytest.mark.parametrize("rendered", [True, False], ids=["shown", "not-shown"])
@scenario()
async def test_a_pod_that_is_gone_is_not_bound(server: FakeApiServer, *, rendered: bool) -> None:
    async with scheduling(server, N1) as scheduler:
        pod = await scheduler.pending(WEB) if rendered else None
        scheduler.stall_watch()
        pod = pod or scheduler.create(WEB)
        server.delete(PODS.path, "web", "default")
        error = await scheduler.bind(pod, "n1")
        assert 'pods "web" not found' in error if rendered else error == "no pending pod default/web has this uid"
        assert not scheduler.is_assumed(pod)


@pytest.mark.parametrize("requested", [True, False], ids=["asked-about", "not-asked-about"])
@scenario()
async def test_a_pod_that_is_being_deleted_is_not_bound(server: FakeApiServer, *, requested: bool) -> None:
    async with scheduling(server, N1) as scheduler:
        pod = scheduler.create(WEB.terminating())
        if requested:
            await scheduler.filter(pod, "n1")
        assert (await scheduler.bind(pod, "n1")).endswith("pod web is being deleted, cannot be assigned to a host")
        assert (scheduler.node_of(pod), scheduler.is_assumed(pod)) == ("", False)


@scenario()
async def test_a_pod_that_has_ended_is_not_bound(server: FakeApiServer) -> None:
    async with scheduling(server, N1) as scheduler:
        pod = scheduler.create(WEB.phase("Failed"))
        assert await scheduler.bind(pod, "n1") == "pod default/web has ended"
        await scheduler.filter(pod, "n1")
        assert await scheduler.bind(pod, "n1") == "no pending pod default/web has this uid"
        assert scheduler.node_of(pod) == ""


# Whatever else.


@scenario()
async def test_what_became_of_bindings_is_counted_and_timed(server: FakeApiServer) -> None:
    async with scheduling(server, N1, N2) as scheduler:
        first, second = scheduler.create(loner("first")), scheduler.create(loner("second"))
        errors = [
            await scheduler.bind(first, "n1"),
            await scheduler.bind(first, "n1"),
            await scheduler.bind(first, "n2"),
            await scheduler.bind(second, "n1"),
            await scheduler.bind(second, "n1", PodUID=""),
            await scheduler.bind(second, "n1", PodUID="other"),
        ]
        server.faults.add(Close(), None, "bind")
        errors.append(await scheduler.bind(second, "n2"))
        assert [bool(error) for error in errors] == [False, False, True, True, True, True, True]
        for result, count in {
            "bound": 1,
            "already_bound": 1,
            "bound_elsewhere": 1,
            "conflict": 1,
            "invalid": 1,
            "refused": 1,
            "unreachable": 1,
            "unknown": 0,
        }.items():
            assert await scheduler.metric(f'kindred_binds_total{{result="{result}"}}') == count, result
        assert await scheduler.metric('kindred_request_duration_seconds_count{verb="bind"}') == 7


@scenario()
async def test_nothing_is_bound_before_the_mirror_is_complete(server: FakeApiServer) -> None:
    async with scheduling(server, N1, following=False) as scheduler:
        pod = scheduler.create(WEB)
        assert (await scheduler.bind(pod, "n1")).startswith("the mirror is not synced: ")
        assert scheduler.requested() == []
        assert await scheduler.metric('kindred_stale_requests_total{verb="bind"}') == 1


@scenario()
async def test_a_stale_mirror_binds_nothing(server: FakeApiServer) -> None:
    async with scheduling(server, N1, stale_after=1) as scheduler:
        pod = scheduler.create(WEB)
        scheduler.stall_watch()
        await asyncio.sleep(1.2)
        assert (await scheduler.bind(pod, "n1")).startswith("the mirror is stale: ")


def test_without_a_cluster_there_is_nothing_to_bind_in() -> None:
    app = create_service(Settings(bind=True), shop(), None).app
    body = b'{"PodName":"p","PodNamespace":"default","PodUID":"u","Node":"a1"}'
    response = ask(app, "POST", "/bind", body)
    assert response.status_code == 200
    assert response.content == b'{"Error":"there is no cluster to bind in: the mirror comes from a dump"}'
