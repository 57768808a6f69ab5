"""A request has no more power than its caller: sequences that once deleted, bound or reserved what they should not."""

import asyncio
import time
from dataclasses import replace
from typing import Any, Final

import pytest

from app.settings.limits import Limits
from app.verbs.pods import READS_OF_A_NAME
from tests.app.feeds.following import scenario
from tests.app.verbs.binding.binding_setting import HOSTNAME, Scheduler, loner, scheduling, until
from tests.app.verbs.evicting.evicting_setting import give_up, writes
from tests.builders import make_node, make_pod
from tests.fake_apiserver import FakeApiServer
from tests.fake_apiserver.resources import PODS
from tests.fake_apiserver.store import Object

DRY: Final = {"Kindred-Dry-Run": "true"}
N1, N2 = (make_node(name).label(HOSTNAME, name).allocatable(cpu="4", pods=10) for name in ("n1", "n2"))
CONTROL: Final = replace(N2, name="control").label(HOSTNAME, "control").taint("control-plane", "", "NoSchedule")
TO_EVERYTHING: Final = {"operator": "Exists"}
DECIDE: Final[dict[str, Any]] = {
    "decide": "listed-nodes",
    "limits": Limits(settle=0.0),
    "profile": "full",
}


def forged(pod: Object, **spec: object) -> Object:
    """Return a copy of a pod with another spec: no requests, and whatever is given."""
    return {**pod, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


def repelling_everything(pod: Object) -> Object:
    repelled = {"labelSelector": {}, "topologyKey": HOSTNAME, "namespaceSelector": {}}
    return forged(pod, affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [repelled]}})


async def placed(scheduler: Scheduler, name: str, node: str, *, cpu: int, priority: int = 0) -> Object:
    """Run a pod."""
    pod = scheduler.create(make_pod(name).requests(cpu=cpu).priority(priority).on(node))
    await until(lambda: scheduler.mirror.is_mirrored(pod["metadata"]["uid"]))
    return pod


# Dry runs.


@pytest.mark.parametrize("scope", ["listed-nodes", "any-node"])
@scenario()
async def test_a_dry_run_evicts_no_pod(server: FakeApiServer, scope: str) -> None:
    settings = {**DECIDE, "decide": scope, "preempt": "evict"}
    async with scheduling(server, N1, N2, **settings) as scheduler:
        await placed(scheduler, "victim", "n2", cpu=4)
        if scope == "any-node":
            await placed(scheduler, "other", "n1", cpu=4, priority=50)
        pod = await scheduler.pending(make_pod("p").requests(cpu=4).priority(10))
        pod = give_up(scheduler, pod)
        response = await scheduler.ask("filter", pod, "n2", headers=DRY)
        assert response.json()["NodeNames"] == []
        await asyncio.sleep(2.0)  # a turn of the evictor comes after 1 s
        assert writes(scheduler) == []


@scenario()
async def test_a_dry_run_of_filter_leaves_no_pod_to_bind(server: FakeApiServer) -> None:
    async with scheduling(server, N1, CONTROL, profile="full", bind=True) as scheduler:
        pod = await scheduler.pending(make_pod("p").requests(cpu=1))
        assert await scheduler.filter(pod, "n1", "control") == ["n1"]
        await scheduler.ask("filter", forged(pod, tolerations=[TO_EVERYTHING]), "control", headers=DRY)
        assert "does not fit on control" in await scheduler.bind(pod, "control")
        assert scheduler.node_of(pod) == ""


@scenario()
async def test_a_dry_run_of_filter_does_not_change_the_next_answer_of_preempt(server: FakeApiServer) -> None:
    async with scheduling(server, N1, N2, profile="full", preempt="verb") as scheduler:
        one, other = [await placed(scheduler, f"r{number}", f"n{number}", cpu=4) for number in (1, 2)]
        pod = await scheduler.pending(make_pod("p").requests(cpu=4).priority(10))
        before = await scheduler.preempt(pod, {"n1": [one]})
        await scheduler.ask("filter", pod, "n2", headers=DRY)
        assert await scheduler.preempt(pod, {"n1": [one]}) == before
        assert other["metadata"]["uid"] not in str(before)


@scenario()
async def test_a_dry_run_of_bind_binds_no_pod_that_passes_untouched_while_the_mirror_is_stale(
    server: FakeApiServer,
) -> None:
    async with scheduling(server, N1, stale_after=2, bypass_namespaces=["default"], bind=True) as scheduler:
        pod = await scheduler.pending(make_pod("p"))
        assert await scheduler.filter(pod, "n1") == ["n1"]
        scheduler.stall_watch()
        await asyncio.sleep(2.3)
        metadata = pod["metadata"]
        args = {"PodName": "p", "PodNamespace": "default", "PodUID": metadata["uid"], "Node": "n1"}
        response = await scheduler.send("POST", "/bind", args, DRY)
        assert b"stale" in response
        assert (scheduler.node_of(pod), scheduler.requested()) == ("", [])
        assert await scheduler.bind(pod, "n1") == ""


@pytest.mark.parametrize(
    ("node", "reported"),
    [
        pytest.param("n1", "pod default/p may be bound to n1", id="fits"),
        pytest.param("control", "pod default/p does not fit on control: node(s) had untolerated taint", id="conflict"),
    ],
)
@scenario()
async def test_a_dry_run_of_bind_says_whether_the_pod_may_be_bound(
    server: FakeApiServer, node: str, reported: str
) -> None:
    async with scheduling(server, N1, CONTROL, profile="full", bind=True) as scheduler:
        pod = await scheduler.pending(make_pod("p"))
        args = {"PodName": "p", "PodNamespace": "default", "PodUID": pod["metadata"]["uid"], "Node": node}
        response = (await scheduler.send("POST", "/bind", args, DRY)).decode()
        assert f"a dry run, so nothing was bound: {reported}" in response
        assert (scheduler.node_of(pod), scheduler.requested(), scheduler.is_assumed(pod)) == ("", [], False)


@scenario()
async def test_a_dry_run_of_bind_does_not_meet_the_pod_itself(server: FakeApiServer) -> None:
    async with scheduling(server, N1, bind=True) as scheduler:
        pod = await scheduler.pending(loner("p"))
        scheduler.stall_watch()
        args = {"PodName": "p", "PodNamespace": "default", "PodUID": pod["metadata"]["uid"], "Node": "n1"}
        assert await scheduler.bind(pod, "n1") == ""
        response = (await scheduler.send("POST", "/bind", args, DRY)).decode()
        assert "so nothing was bound: pod default/p may be bound to n1" in response
        assert scheduler.is_assumed(pod)


# The pod is the API server's.


@pytest.mark.parametrize("uid", ["guessed", "fa4e0000-0000-0000-0000-00000000ffff"])
@scenario()
async def test_a_bind_with_a_guessed_uid_does_not_show_the_uid(server: FakeApiServer, uid: str) -> None:
    async with scheduling(server, N1, bind=True) as scheduler:
        pod = await scheduler.pending(make_pod("db-0"))
        error = await scheduler.bind(pod, "n1", PodUID=uid)
        assert error == "no pending pod default/db-0 has this uid"


@pytest.mark.parametrize("name", ["n1", "control"])
@scenario()
async def test_a_forged_filter_binds_no_pod_to_a_node_that_it_does_not_fit(server: FakeApiServer, name: str) -> None:
    async with scheduling(server, N1, CONTROL, profile="full", bind=True) as scheduler:
        await placed(scheduler, "full", "n1", cpu=4)
        pod = await scheduler.pending(make_pod("p").requests(cpu=1))
        assert await scheduler.filter(forged(pod, tolerations=[TO_EVERYTHING]), name) == [name]
        assert f"does not fit on {name}" in await scheduler.bind(pod, name)
        assert scheduler.node_of(pod) == ""


@scenario()
async def test_a_forged_pod_is_assumed_with_the_spec_that_the_api_server_has(server: FakeApiServer) -> None:
    async with scheduling(server, N1, N2, **DECIDE) as scheduler:
        pod, other = await scheduler.pending(make_pod("p").requests(cpu=1)), await scheduler.pending(make_pod("q"))
        assert len(await scheduler.filter(repelling_everything(pod), "n1", "n2")) == 1
        assert scheduler.is_assumed(pod)
        for node in ("n1", "n2"):
            assert await scheduler.filter(other, node) == [node]


@scenario()
async def test_a_forged_request_frees_nothing_of_what_a_decision_has_reserved(server: FakeApiServer) -> None:
    async with scheduling(server, N1, **DECIDE) as scheduler:
        pod, other = [await scheduler.pending(make_pod(name).requests(cpu=4)) for name in "ab"]
        assert await scheduler.filter(pod, "n1") == ["n1"]
        assert await scheduler.filter(forged(pod), "n1") == ["n1"]
        assert await scheduler.filter(other, "n1") == []


@pytest.mark.parametrize("metadata", [{"namespace": "other", "name": "zz"}, {"name": "zz"}, {"namespace": "other"}])
@scenario()
async def test_a_pod_of_another_name_under_a_known_uid_is_not_assumed(
    server: FakeApiServer, metadata: dict[str, str]
) -> None:
    async with scheduling(server, N1, **DECIDE) as scheduler:
        pod = await scheduler.pending(make_pod("a"))
        renamed = {**pod, "metadata": {**pod["metadata"], **metadata}}
        assert await scheduler.filter(renamed, "n1") == ["n1"]
        assert scheduler.mirror.assumed == {}


@scenario()
async def test_a_pod_of_another_scheduler_is_not_assumed_whatever_the_request_says(server: FakeApiServer) -> None:
    settings = {**DECIDE, "decide_schedulers": ["kindred"]}
    async with scheduling(server, N1, **settings) as scheduler:
        pod = await scheduler.pending(make_pod("a"))
        assert await scheduler.filter(forged(pod, schedulerName="kindred"), "n1") == ["n1"]
        assert scheduler.mirror.assumed == {}


@scenario()
async def test_preempt_is_for_the_priority_that_the_api_server_has(server: FakeApiServer) -> None:
    async with scheduling(server, N1, profile="full", preempt="verb") as scheduler:
        await placed(scheduler, "r", "n1", cpu=4, priority=5)
        pod = await scheduler.pending(make_pod("p").requests(cpu=4).priority(1))
        response = await scheduler.preempt({**pod, "spec": {**pod["spec"], "priority": 1000}}, {"n1": []})
        assert response == {"NodeNameToMetaVictims": {}}


@scenario()
async def test_no_pod_is_preempted_for_a_pod_that_the_api_server_does_not_have(server: FakeApiServer) -> None:
    async with scheduling(server, N1, profile="full", preempt="verb") as scheduler:
        victim = await placed(scheduler, "r", "n1", cpu=4)
        pod = await scheduler.pending(make_pod("p").requests(cpu=4).priority(10))
        invented = {**pod, "metadata": {**pod["metadata"], "uid": "invented"}}
        response = await scheduler.preempt(invented, {"n1": [victim]})
        assert response == {"NodeNameToMetaVictims": {}, "Error": "no pending pod default/p has this uid"}
        assert len((await scheduler.preempt(pod, {"n1": [victim]}))["NodeNameToMetaVictims"]) == 1


@scenario()
async def test_a_scheduler_of_the_request_lets_no_pod_pass_untouched_while_the_mirror_is_stale(
    server: FakeApiServer,
) -> None:
    settings: dict[str, Any] = {"bypass_schedulers": ["passing"], "bind": True, "stale_after": 3}
    async with scheduling(server, N1, CONTROL, profile="TaintToleration", **settings) as scheduler:
        pod = await scheduler.pending(make_pod("p"))
        passing = {**pod, "spec": {**pod["spec"], "schedulerName": "passing"}}
        assert await scheduler.filter(passing, "control") == ["control"]
        assert "does not fit on control" in await scheduler.bind(pod, "control")
        scheduler.stall_watch()
        await asyncio.sleep(3.3)
        assert (await scheduler.filter(passing, "control")) == ["control"]
        assert (await scheduler.bind(pod, "control")).startswith("the mirror is stale: ")
        assert scheduler.node_of(pod) == ""


# Two copies of a pod that differ.


def changed(scheduler: Scheduler, pod: Object, cpu: str) -> Object:
    """Change what a pod requests at the API server; give the pod as it is then."""
    spec = {**pod["spec"], "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]}
    return scheduler.server.update(PODS.path, {**pod, "spec": spec})


@scenario()
async def test_a_request_that_is_newer_than_the_watch_is_decided_for_as_the_api_server_has_the_pod(
    server: FakeApiServer,
) -> None:
    async with scheduling(server, N1, **DECIDE) as scheduler:
        pod, other = [await scheduler.pending(make_pod(name).requests(cpu=1)) for name in "ab"]
        scheduler.stall_watch()
        newer = changed(scheduler, pod, "4")
        assert await scheduler.filter(newer, "n1") == ["n1"]
        assert scheduler.requested() == ["get"]
        assert await scheduler.filter(other, "n1") == []


@scenario()
async def test_a_request_that_is_older_than_the_watch_costs_one_look_up(server: FakeApiServer) -> None:
    async with scheduling(server, N1, **DECIDE) as scheduler:
        pod = await scheduler.pending(make_pod("a").requests(cpu=1))
        newer = changed(scheduler, pod, "3")
        await until(lambda: _version(scheduler, pod) == newer["metadata"]["resourceVersion"])
        for _ in range(3):
            assert await scheduler.filter(pod, "n1") == ["n1"]
            known = scheduler.mirror.get_pod(pod["metadata"]["uid"])
            assert known is not None
            assert known.requests["cpu"] == 3000
            scheduler.mirror.forget(known.uid)
        assert scheduler.requested() == ["get"]


@scenario()
async def test_a_status_that_differs_costs_no_look_up(server: FakeApiServer) -> None:
    async with scheduling(server, N1, **DECIDE) as scheduler:
        pod = await scheduler.pending(make_pod("a").requests(cpu=1))
        newer = give_up(scheduler, pod)
        assert newer["metadata"]["resourceVersion"] != pod["metadata"]["resourceVersion"]
        await until(lambda: _version(scheduler, pod) == newer["metadata"]["resourceVersion"])
        assert await scheduler.filter(pod, "n1") == ["n1"]
        assert scheduler.requested() == []


def _version(scheduler: Scheduler, pod: Object) -> str:
    known = scheduler.mirror.pending.get(pod["metadata"]["uid"])
    return known.resource_version if known is not None else ""


# Look-ups.


def test_binds_of_invented_pods_read_no_more_than_so_many_pods_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.verbs.pods.READS_A_SECOND", 20)

    @scenario()
    async def run(server: FakeApiServer) -> None:
        async with scheduling(server, N1, bind=True, http_timeout=6.25, limits=Limits(queue_limit=1000)) as scheduler:
            pod = await scheduler.pending(make_pod("p"))
            began = time.monotonic()
            invented = [{"PodName": f"x{number}", "PodUID": f"u{number}"} for number in range(300)]
            errors = await asyncio.gather(*(scheduler.bind(pod, "n1", **each) for each in invented))
            seconds = time.monotonic() - began
            assert all(errors)
            assert len(scheduler.requested()) <= 20 * (1 + seconds)
            assert any(error.endswith("more than 20 reads of pods a second") for error in errors)

    run()


@scenario()
async def test_one_name_is_read_so_many_times_a_second_whatever_the_uid(server: FakeApiServer) -> None:
    async with scheduling(server, N1, bind=True) as scheduler:
        pod = await scheduler.pending(make_pod("p"))
        began = time.monotonic()
        errors = [await scheduler.bind(pod, "n1", PodUID=f"u{number}") for number in range(50)]
        seconds = time.monotonic() - began
        assert len(scheduler.requested()) <= READS_OF_A_NAME * (1 + seconds)
        assert errors[-1] == "pod default/p could not be read: more than 5 reads of pod default/p a second"
        assert await scheduler.bind(pod, "n1") == "", "the watch has the pod itself, so it needs no look-up"


@pytest.mark.parametrize("verb", ["bind", "filter"])
@scenario()
async def test_that_a_pod_is_unknown_is_kept(server: FakeApiServer, verb: str) -> None:
    async with scheduling(server, N1, bind=True, **DECIDE) as scheduler:
        pod = await scheduler.pending(make_pod("p"))
        invented = {**pod, "metadata": {**pod["metadata"], "uid": "u"}}
        for _ in range(3):
            if verb == "bind":
                assert await scheduler.bind(invented, "n1") == "no pending pod default/p has this uid"
            else:
                assert await scheduler.filter(invented, "n1") == ["n1"]
        assert scheduler.requested() == ["get"]
