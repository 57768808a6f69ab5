"""Preemption by Kindred itself, with a fake API server: who is evicted for a pod that only Kindred keeps off."""

import asyncio
import json
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from app.settings.settings import Settings
from app.wiring.main import create_service
from core.mirror.cluster import ClusterMirror
from tests.app.feeds.following import scenario
from tests.app.verbs.binding.binding_setting import N1, N2, Scheduler, scheduling, until
from tests.app.verbs.evicting.evicting_setting import (
    DB,
    GIVEN_UP,
    IMPORTANT,
    WEB,
    attempt,
    deleted,
    give_up,
    patched,
    release,
    requests,
    running,
    stored,
    terminates,
    until_counted,
    web,
    writes,
)
from tests.builders import PodBuilder, make_pod
from tests.fake_apiserver import FakeApiServer
from tests.fake_apiserver.resources import POD_DISRUPTION_BUDGETS, PODS
from tests.fake_apiserver.single_objects import pod_path
from tests.fake_apiserver.store import Object


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.verbs.evictor._PAUSE", 0.05)
    monkeypatch.setattr("app.verbs.evictor._LONGER_PAUSE", 0.1)
    monkeypatch.setattr("app.verbs.effects._PATIENCE", -1.0)  # refusals are told at once


# A pod that only Kindred keeps off all nodes.


@scenario()
async def test_the_node_is_nominated_the_victim_marked_and_deleted_and_then_the_pod_fits(
    server: FakeApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "app.verbs.executor")
    async with scheduling(server, N1, preempt="evict") as scheduler:
        await running(scheduler, web("victim", "n1", 3), make_pod("bystander").on("n1"))
        pod = scheduler.create(IMPORTANT)
        await attempt(scheduler, pod, "n1")
        await until_counted(scheduler, preempted=1)
        assert writes(scheduler) == [patched("p"), patched("victim"), deleted("victim")]
        assert stored(scheduler, "p")["status"]["nominatedNodeName"] == "n1"
        assert stored(scheduler, "p")["status"]["conditions"] == [GIVEN_UP]
        (mark,) = stored(scheduler, "victim")["status"]["conditions"]
        assert mark.pop("lastTransitionTime").endswith("Z")
        assert mark == {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": "mine: preempting to accommodate a higher priority pod",
        }
        assert terminates(scheduler, "victim", "bystander") == [True, False]
        expected = "default/p (priority 10) is to get n1; evicted 1 of default/victim (priority 3)"
        assert expected in caplog.text
        assert await scheduler.metric("kindred_preemption_victims_total") == 1
        release(scheduler, "victim")
        await until(lambda: scheduler.mirror.pod_count() == 1)
        assert await scheduler.filter(pod, "n1") == ["n1"]


@scenario()
async def test_writes_are_for_the_uid_that_was_found(server: FakeApiServer) -> None:
    async with scheduling(server, N1, preempt="evict") as scheduler:
        (victim,) = await running(scheduler, web("victim", "n1"))
        pod = scheduler.create(IMPORTANT)
        await attempt(scheduler, pod, "n1")
        await until_counted(scheduler, preempted=1)
        nominated, marked, doomed = (json.loads(request.body) for request in requests(scheduler))
        assert nominated == {"metadata": {"uid": pod["metadata"]["uid"]}, "status": {"nominatedNodeName": "n1"}}
        assert marked["metadata"] == {"uid": victim["metadata"]["uid"]}
        assert doomed["preconditions"] == {"uid": victim["metadata"]["uid"]}


@pytest.mark.parametrize(
    ("pods", "victims"),
    [
        pytest.param([web("a", "n1", 5), web("b", "n2", 3)], ["b"], id="the-least-important"),
        pytest.param([web("a", "n1", 3), web("b", "n1", 3), web("c", "n2", 3)], ["c"], id="the-fewest"),
        pytest.param([web("a", "n1", 10), web("b", "n2", 9)], ["b"], id="not-of-equal-priority"),
        pytest.param([web("a", "n1", 1), web("b", "n1", 2), web("c", "n2", 10)], ["b", "a"], id="all-that-must"),
    ],
)
@scenario()
async def test_the_node_where_it_does_the_least_harm_is_taken(
    server: FakeApiServer, pods: list[PodBuilder], victims: list[str]
) -> None:
    async with scheduling(server, N1, N2, preempt="evict") as scheduler:
        await running(scheduler, *pods)
        await attempt(scheduler, scheduler.create(IMPORTANT), "n1", "n2")
        await until_counted(scheduler, preempted=1)
        assert writes(scheduler) == [patched("p"), *(write(name) for name in victims for write in (patched, deleted))]


@scenario()
async def test_a_budget_is_not_violated_where_there_is_another_way(server: FakeApiServer) -> None:
    budget = {
        "metadata": {"name": "b", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"guarded": "yes"}}},
        "status": {"disruptionsAllowed": 0},
    }
    server.create(POD_DISRUPTION_BUDGETS.path, budget)
    async with scheduling(server, N1, N2, preempt="evict") as scheduler:
        await running(scheduler, web("a", "n1", 1).label("guarded", "yes"), web("b", "n2", 2))
        await attempt(scheduler, scheduler.create(IMPORTANT), "n1", "n2")
        await until_counted(scheduler, preempted=1)
        assert terminates(scheduler, "a", "b") == [False, True]


@scenario()
async def test_a_victim_that_terminates_already_is_left_alone(server: FakeApiServer) -> None:
    async with scheduling(server, N1, preempt="evict") as scheduler:
        await running(scheduler, web("a", "n1").terminating(), web("b", "n1"))
        await attempt(scheduler, scheduler.create(IMPORTANT), "n1")
        await until_counted(scheduler, preempted=1)
        assert writes(scheduler) == [patched("p"), patched("b"), deleted("b")]


@scenario()
async def test_a_pod_that_is_given_up_a_little_later_gets_another_turn(server: FakeApiServer) -> None:
    async with scheduling(server, N1, preempt="evict") as scheduler:
        await running(scheduler, web("victim", "n1"))
        pod = scheduler.create(IMPORTANT)
        assert await scheduler.filter(pod, "n1") == []
        await server.until(lambda: bool(server.requests.of(pod_path("p"), "get")))
        give_up(scheduler, pod)
        await until_counted(scheduler, preempted=1)


# Victims that take their time.


@scenario()
async def test_while_its_victims_terminate_nobody_else_is_evicted_for_a_pod(server: FakeApiServer) -> None:
    async with scheduling(server, N1, N2, preempt="evict") as scheduler:
        await running(scheduler, web("a", "n1", 1), web("b", "n2", 2))
        pod = scheduler.create(IMPORTANT)
        await attempt(scheduler, pod, "n1", "n2")
        await until_counted(scheduler, preempted=1)
        for times in (1, 2):
            assert await scheduler.filter(stored(scheduler, "p"), "n1", "n2") == []
            await until_counted(scheduler, preempted=1, waits=times)
        assert terminates(scheduler, "a", "b") == [True, False]
        assert scheduler.requested() == ["get"], "nor is the server asked about it again"


@scenario()
async def test_a_pod_that_fits_once_the_victims_of_another_are_gone_waits_too(server: FakeApiServer) -> None:
    async with scheduling(server, N1, N2, preempt="evict") as scheduler:
        await running(scheduler, web("a", "n1", 1), web("b", "n2", 2))
        await attempt(scheduler, scheduler.create(IMPORTANT), "n1", "n2")
        await until_counted(scheduler, preempted=1)
        await attempt(scheduler, scheduler.create(replace(IMPORTANT, name="q")), "n1", "n2")
        await until_counted(scheduler, preempted=1, waits=1)
        assert terminates(scheduler, "a", "b") == [True, False]


@scenario()
async def test_a_pod_that_does_not_fit_beside_the_one_that_the_room_is_kept_for_preempts_at_once(
    server: FakeApiServer,
) -> None:
    async with scheduling(server, N1, N2, preempt="evict") as scheduler:
        await running(scheduler, web("a", "n1", 1), web("b", "n2", 2))
        loner = IMPORTANT.label("app", "db").required_anti_affinity(WEB, DB)
        await attempt(scheduler, scheduler.create(loner), "n1", "n2")
        await until_counted(scheduler, preempted=1)
        await until(lambda: bool(scheduler.mirror.pending.nominated_for("n1")))
        await attempt(scheduler, scheduler.create(replace(loner, name="q")), "n1", "n2")
        await until_counted(scheduler, preempted=2)
        assert terminates(scheduler, "a", "b") == [True, True]


@scenario()
async def test_where_others_have_made_no_room_for_it_a_pod_preempts_at_once(server: FakeApiServer) -> None:
    async with scheduling(server, N1, N2, preempt="evict") as scheduler:
        await running(scheduler, web("a", "n1", 1), web("keeps-q-off", "n1", 10).label("app", "db"), web("b", "n2", 2))
        await attempt(scheduler, scheduler.create(IMPORTANT), "n1")
        await until_counted(scheduler, preempted=1)
        q = make_pod("q").priority(10).required_anti_affinity(WEB, DB)
        await attempt(scheduler, scheduler.create(q), "n1", "n2")
        await until_counted(scheduler, preempted=2)
        assert terminates(scheduler, "a", "b") == [True, True]


@scenario()
async def test_once_its_victims_are_gone_a_pod_that_still_fits_nowhere_preempts_again(server: FakeApiServer) -> None:
    async with scheduling(server, N1, preempt="evict") as scheduler:
        await running(scheduler, web("a", "n1", 1))
        pod = scheduler.create(IMPORTANT)
        await attempt(scheduler, pod, "n1")
        await until_counted(scheduler, preempted=1)
        release(scheduler, "a")
        await running(scheduler, web("b", "n1", 1))
        await until(lambda: scheduler.mirror.pod_count() == 1)
        await attempt(scheduler, stored(scheduler, "p"), "n1")
        await until_counted(scheduler, preempted=2)
        assert terminates(scheduler, "b") == [True]


# Pods for which nobody is evicted.


async def gone(scheduler: Scheduler, pod: Object) -> None:
    scheduler.server.delete(PODS.path, pod["metadata"]["name"], "default")


async def another_of_its_name(scheduler: Scheduler, pod: Object) -> None:
    await gone(scheduler, pod)
    give_up(scheduler, scheduler.create(IMPORTANT))


async def bound(scheduler: Scheduler, pod: Object) -> None:
    scheduler.server.update(PODS.path, {**pod, "spec": {**pod["spec"], "nodeName": "n2"}})


async def on_its_way_out(scheduler: Scheduler, pod: Object) -> None:
    metadata = {**pod["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
    scheduler.server.update(PODS.path, {**pod, "metadata": metadata})


async def not_given_up(scheduler: Scheduler, pod: Object) -> None:
    pass


async def failed_otherwise(scheduler: Scheduler, pod: Object) -> None:
    give_up(scheduler, pod, conditions=[{**GIVEN_UP, "reason": "SchedulerError"}])


async def nominated_by_the_scheduler(scheduler: Scheduler, pod: Object) -> None:
    give_up(scheduler, pod, nominatedNodeName="n2")


async def room_is_made(scheduler: Scheduler, pod: Object) -> None:
    give_up(scheduler, pod)
    release(scheduler, "victim")
    await until(lambda: scheduler.mirror.pod_count() == 0)


async def requested_again_and_fits_elsewhere(scheduler: Scheduler, pod: Object) -> None:
    give_up(scheduler, pod)
    assert await scheduler.filter(pod, "n1", "n2") == ["n2"]


@pytest.mark.parametrize(
    ("then", "result"),
    [
        (gone, "settled"),
        (another_of_its_name, "settled"),
        (bound, "settled"),
        (on_its_way_out, "settled"),
        (not_given_up, "not_given_up"),
        (failed_otherwise, "not_given_up"),
        (nominated_by_the_scheduler, "nominated"),
        (room_is_made, "fits"),
        (requested_again_and_fits_elsewhere, "fits"),
    ],
    ids=lambda each: each.__name__.replace("_", "-") if callable(each) else each,
)
@scenario()
async def test_nobody_is_evicted_for_a_pod_that_cannot_or_need_not_have_it(
    server: FakeApiServer, then: Callable[[Scheduler, Object], Any], result: str
) -> None:
    async with scheduling(server, N1, N2, preempt="evict") as scheduler:
        await running(scheduler, web("victim", "n1"))
        pod = scheduler.create(IMPORTANT)
        assert await scheduler.filter(pod, "n1") == []
        await then(scheduler, pod)
        await until_counted(scheduler, **{result: 1})
        assert writes(scheduler) == []


@scenario()
async def test_nobody_is_evicted_for_a_pod_that_the_server_has_never_had(server: FakeApiServer) -> None:
    async with scheduling(server, N1, preempt="evict") as scheduler:
        await running(scheduler, web("victim", "n1"))
        for name in ("simulated", "../../nodes/n1", ".."):
            simulated = {**IMPORTANT.obj(), "metadata": {"name": name, "namespace": "default", "uid": name}}
            assert await scheduler.filter(simulated, "n1") == []
        await until_counted(scheduler, settled=3)
        assert writes(scheduler) == []


@scenario()
async def test_a_pod_that_no_eviction_helps_or_that_has_a_node_left_gets_no_turn(server: FakeApiServer) -> None:
    async with scheduling(server, N1, N2, preempt="evict") as scheduler:
        await running(scheduler, web("victim", "n1"))
        assert await scheduler.filter(scheduler.create(IMPORTANT), "n1", "n2") == ["n2"]
        nowhere = make_pod("x").priority(10).required_affinity(DB)
        assert await scheduler.filter(scheduler.create(nowhere), "n1", "n2") == []
        await asyncio.sleep(0.2)
        assert scheduler.requested() == []


@scenario()
async def test_a_member_of_a_scheduling_group_gets_no_turn(server: FakeApiServer) -> None:
    """kube-scheduler preempts for all members together, and for none of a group that would still not fit."""
    async with scheduling(server, N1, preempt="evict") as scheduler:
        await running(scheduler, web("victim", "n1"))
        await attempt(scheduler, scheduler.create(IMPORTANT.in_scheduling_group("g")), "n1")
        await asyncio.sleep(0.2)
        assert scheduler.requested() == []
        assert writes(scheduler) == []


@scenario()
async def test_a_stale_mirror_evicts_nobody(server: FakeApiServer) -> None:
    async with scheduling(server, N1, preempt="evict", stale_after=1) as scheduler:
        await running(scheduler, web("victim", "n1"))
        pod = scheduler.create(IMPORTANT)
        scheduler.stall_watch()
        await asyncio.sleep(1.2)
        assert "stale" in (await scheduler.ask("filter", pod, "n1")).json()["Error"]
        await asyncio.sleep(0.2)
        assert scheduler.requested() == []


@scenario()
async def test_the_verb_alone_evicts_nobody(server: FakeApiServer) -> None:
    async with scheduling(server, N1, preempt="verb") as scheduler:
        await running(scheduler, web("victim", "n1"))
        await attempt(scheduler, scheduler.create(IMPORTANT), "n1")
        await asyncio.sleep(0.2)
        assert scheduler.requested() == []
        assert writes(scheduler) == []


@scenario()
async def test_the_verb_is_answered_too(server: FakeApiServer) -> None:
    async with scheduling(server, N1, preempt="evict") as scheduler:
        (victim,) = await running(scheduler, web("victim", "n1"))
        response = await scheduler.preempt(scheduler.create(IMPORTANT), {"n1": [victim]})
        assert [*response] == ["NodeNameToMetaVictims"]
        assert response["NodeNameToMetaVictims"].keys() == {"n1"}


def test_over_a_dump_there_is_nobody_to_evict() -> None:
    assert create_service(Settings(preempt="evict"), ClusterMirror(), None).background == ()
