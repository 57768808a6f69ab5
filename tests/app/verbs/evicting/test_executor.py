"""What follows on evictions: nominations that end, nominations that hold, and Events; all with a fake API server."""

import json
import socket
from collections.abc import Callable
from typing import Any

import pytest

from tests.app.feeds.following import scenario
from tests.app.verbs.binding.binding_setting import N1, N2, Scheduler, scheduling, until
from tests.app.verbs.evicting.evicting_setting import (
    IMPORTANT,
    WEB,
    attempt,
    counted,
    deleted,
    give_up,
    patched,
    release,
    running,
    stored,
    terminates,
    until_counted,
    web,
    writes,
)
from tests.builders import make_pod
from tests.fake_apiserver import FakeApiServer
from tests.fake_apiserver.faults import Action, Close, Stall, refuse
from tests.fake_apiserver.resources import EVENTS
from tests.fake_apiserver.single_objects import events_path, status_path
from tests.fake_apiserver.statuses import forbidden, unavailable
from tests.fake_apiserver.store import Object

FORBIDDEN = refuse(forbidden("eve", "create", EVENTS))


@pytest.fixture(autouse=True)
def short_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.verbs.evictor._PAUSE", 0.02)
    monkeypatch.setattr("app.verbs.evictor._LONGER_PAUSE", 0.04)
    monkeypatch.setattr("app.verbs.effects._PATIENCE", -1.0)  # refusals are told at once
    monkeypatch.setattr("app.verbs.executor._PAUSES", (0.01, 0.02))
    monkeypatch.setattr("app.verbs.executor._MAX_LENGTH", 0.5)


def events(scheduler: Scheduler) -> list[Any]:
    """Return the Events that the server has."""
    return scheduler.server.objects(EVENTS.path)


async def pending(scheduler: Scheduler, name: str, priority: int, node: str) -> Object:
    """Create a pod that waits for its nominated node, until the watch has shown it."""
    pod = scheduler.create(make_pod(name).priority(priority).nominated(node))
    await until(lambda: pod["metadata"]["uid"] in scheduler.mirror.pending)
    return pod


def nominated(scheduler: Scheduler, *names: str) -> list[str]:
    """Return the nominated nodes of pods of the server."""
    return [stored(scheduler, name)["status"].get("nominatedNodeName", "") for name in names]


# Nominations of less important pods.


@scenario()
async def test_less_important_pods_that_are_nominated_for_the_node_are_no_longer(server: FakeApiServer) -> None:
    async with scheduling(server, N1, N2, preempt="evict") as scheduler:
        await running(scheduler, web("a", "n1"))
        for name, priority, node in (("lower", 9, "n1"), ("equal", 10, "n1"), ("elsewhere", 9, "n2")):
            await pending(scheduler, name, priority, node)
        await attempt(scheduler, scheduler.create(IMPORTANT), "n1")
        await until_counted(scheduler, preempted=1)
        assert nominated(scheduler, "p", "lower", "equal", "elsewhere") == ["n1", "", "n1", "n2"]
        assert writes(scheduler) == [patched("p"), patched("a"), deleted("a"), patched("lower")]


@scenario()
async def test_a_pod_whose_binding_waits_stays_nominated(server: FakeApiServer) -> None:
    """After a fail-over its nomination is all that shows its place."""
    async with scheduling(server, N1, preempt="evict") as scheduler:
        await running(scheduler, web("a", "n1"))
        waits = await pending(scheduler, "lower", 9, "n1")
        scheduler.mirror.assume(scheduler.mirror.pending.nominated_for("n1")[waits["metadata"]["uid"]], "n1", 0.0)
        await attempt(scheduler, scheduler.create(IMPORTANT), "n1")
        await until_counted(scheduler, preempted=1)
        assert nominated(scheduler, "p", "lower") == ["n1", "n1"]


@scenario()
async def test_nominations_stay_where_a_victim_could_not_be_evicted(server: FakeApiServer) -> None:
    async with scheduling(server, N1, preempt="evict") as scheduler:
        await running(scheduler, web("a", "n1"))
        await pending(scheduler, "lower", 9, "n1")
        server.faults.add(FORBIDDEN, status_path("a"), "patch", times=None)
        await attempt(scheduler, scheduler.create(IMPORTANT), "n1")
        await until_counted(scheduler, failed=1)
        assert nominated(scheduler, "lower") == ["n1"]
        assert events(scheduler) == []


@scenario()
async def test_a_nomination_that_cannot_be_cleared_is_told_and_ends_nothing(
    server: FakeApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with scheduling(server, N1, preempt="evict") as scheduler:
        await running(scheduler, web("a", "n1"))
        await pending(scheduler, "one", 9, "n1")
        await pending(scheduler, "two", 9, "n1")
        server.faults.add(FORBIDDEN, status_path("one"), "patch", times=None)
        await attempt(scheduler, scheduler.create(IMPORTANT), "n1")
        await until_counted(scheduler, preempted=1)
        assert nominated(scheduler, "one", "two") == ["n1", ""]
        assert len(events(scheduler)) == 1
    assert "preemption: default/p: default/one stays nominated for n1: PATCH " in caplog.text


@scenario()
async def test_a_preemptor_that_loses_its_node_to_a_more_important_one_does_not_get_it_back(
    server: FakeApiServer,
) -> None:
    async with scheduling(server, N1, preempt="evict") as scheduler:
        await running(scheduler, web("a", "n1"))
        await attempt(scheduler, scheduler.create(IMPORTANT), "n1")
        await until_counted(scheduler, preempted=1)
        await running(scheduler, web("b", "n1", 15))
        await until(lambda: bool(scheduler.mirror.pending.nominated_for("n1")))
        await attempt(scheduler, scheduler.create(make_pod("q").priority(20).required_anti_affinity(WEB)), "n1")
        await until_counted(scheduler, preempted=2)
        assert nominated(scheduler, "p", "q") == ["", "n1"]
        await until(lambda: len(scheduler.mirror.pending.nominated_for("n1")) == 1)
        await attempt(scheduler, stored(scheduler, "p"), "n1")
        await until_counted(scheduler, preempted=2, waits=1)
        assert nominated(scheduler, "p", "q") == ["", "n1"]


# Nominations that are lost while the victims are going.


async def lose_the_nomination(scheduler: Scheduler, pod: Object) -> None:
    """Do what kube-scheduler does after an attempt in a profile without PostFilter plugins."""
    give_up(scheduler, stored(scheduler, pod["metadata"]["name"]), nominatedNodeName=None)
    await until(lambda: not scheduler.mirror.pending.nominated_for("n1"))


@scenario()
async def test_a_nomination_that_is_lost_while_the_victims_are_going_is_set_again(
    server: FakeApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.verbs.evictor._PAUSE", 1.0)  # it is lost before the turn
    async with scheduling(server, N1, N2, preempt="evict") as scheduler:
        await running(scheduler, web("a", "n1", 1), web("b", "n2", 2))
        pod = scheduler.create(IMPORTANT)
        await attempt(scheduler, pod, "n1", "n2")
        await until_counted(scheduler, preempted=1)
        await until(lambda: bool(scheduler.mirror.pending.nominated_for("n1")))
        assert await scheduler.filter(stored(scheduler, "p"), "n1", "n2") == []
        await lose_the_nomination(scheduler, pod)
        await until_counted(scheduler, preempted=1, waits=1)
        assert nominated(scheduler, "p") == ["n1"]
        assert terminates(scheduler, "a", "b") == [True, False]


@pytest.mark.parametrize("gone", [True, False], ids=["no-pod", "nominated-elsewhere"])
@scenario()
async def test_a_pod_that_needs_it_no_longer_is_not_nominated_again(server: FakeApiServer, *, gone: bool) -> None:
    async with scheduling(server, N1, N2, preempt="evict") as scheduler:
        await running(scheduler, web("a", "n1", 1), web("b", "n2", 2))
        pod = scheduler.create(IMPORTANT)
        await attempt(scheduler, pod, "n1", "n2")
        await until_counted(scheduler, preempted=1)
        await until(lambda: bool(scheduler.mirror.pending.nominated_for("n1")))
        await lose_the_nomination(scheduler, pod)
        scheduler.stall_watch()
        if gone:
            release(scheduler, "p")
        else:
            give_up(scheduler, stored(scheduler, "p"), nominatedNodeName="n2")
        before = len(writes(scheduler))
        assert await scheduler.filter(pod, "n1", "n2") == []
        await until_counted(scheduler, preempted=1, waits=1)
        assert len(writes(scheduler)) == before


# Events.


@scenario()
async def test_each_victim_that_was_deleted_has_an_event(server: FakeApiServer) -> None:
    async with scheduling(server, N1, preempt="evict") as scheduler:
        pods = [web("a", "n1", 2), web("b", "n1", 1), web("goes-already", "n1").terminating(), web("gone", "n1")]
        victims = {each["metadata"]["name"]: each for each in await running(scheduler, *pods)}
        scheduler.stall_watch()
        release(scheduler, "gone")
        pod = scheduler.create(IMPORTANT)
        await attempt(scheduler, pod, "n1")
        await until_counted(scheduler, preempted=1)
        uid = pod["metadata"]["uid"]
        written = {each["regarding"]["name"]: each for each in events(scheduler)}
        assert written.keys() == {"a", "b"}
        for name, event in written.items():
            assert event["regarding"]["uid"] == victims[name]["metadata"]["uid"]
            assert (event["related"]["name"], event["related"]["uid"]) == ("p", uid)
            assert event["note"] == f"Preempted by pod {uid} on node n1"
            assert (event["reason"], event["action"], event["type"]) == ("Preempted", "Preempting", "Normal")
            assert event["reportingController"] == "mine"
            assert event["reportingInstance"] == f"mine-{socket.gethostname()}"


@pytest.mark.parametrize(
    ("action", "message"),
    [
        pytest.param(lambda: FORBIDDEN, '["events"], verbs: ["create"]', id="403"),
        pytest.param(lambda: refuse(unavailable()), "2 of 2 Events were not written", id="503-always"),
        pytest.param(Close, "2 of 2 Events were not written", id="closed"),
        pytest.param(lambda: Stall(before_head=True), "2 of 2 Events were not written", id="silence"),
    ],
)
@scenario()
async def test_events_that_cannot_be_written_are_told_once_and_end_nothing(
    server: FakeApiServer, caplog: pytest.LogCaptureFixture, action: Callable[[], Action], message: str
) -> None:
    async with scheduling(server, N1, preempt="evict") as scheduler:
        await running(scheduler, web("a", "n1", 2), web("b", "n1", 1))
        server.faults.add(action(), events_path(), "create", times=None)
        await attempt(scheduler, scheduler.create(IMPORTANT), "n1")
        await until_counted(scheduler, preempted=1)
        assert terminates(scheduler, "a", "b") == [True, True]
        assert {json.loads(each.body)["regarding"]["name"] for each in server.requests.of(events_path())} == {"a"}
        assert await counted(scheduler) == {"preempted": 1}
    assert message in caplog.text
    assert caplog.text.count("Events were not written") == 1


@scenario()
async def test_an_event_that_the_server_cannot_take_now_is_written_later(server: FakeApiServer) -> None:
    async with scheduling(server, N1, preempt="evict") as scheduler:
        await running(scheduler, web("a", "n1"))
        server.faults.add(refuse(unavailable()), events_path(), "create", times=2)
        await attempt(scheduler, scheduler.create(IMPORTANT), "n1")
        await until_counted(scheduler, preempted=1)
        assert len(events(scheduler)) == 1
