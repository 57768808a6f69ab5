"""Preemption by Kindred itself, with an API server that fails: who is evicted, and that the next pod gets its turn."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from app.verbs.evictor import Evaluator
from app.verbs.executor import Preemptions
from tests.app.feeds.following import scenario
from tests.app.verbs.binding.binding_setting import N1, N2, PATIENCE, scheduling, until
from tests.app.verbs.evicting.evicting_setting import (
    IMPORTANT,
    WEB,
    attempt,
    deleted,
    mirrored,
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
from tests.fake_apiserver.faults import Action, Close, Kind, Stall, overloaded, refuse
from tests.fake_apiserver.resources import PODS
from tests.fake_apiserver.single_objects import pod_path, status_path
from tests.fake_apiserver.statuses import forbidden, internal_error, unavailable

TWO = (web("a", "n1", 2), web("b", "n1", 1))  # they go in this order
FORBIDDEN = refuse(forbidden("eve", "patch", PODS))


@pytest.fixture(autouse=True)
def short_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.verbs.evictor._PAUSE", 0.02)
    monkeypatch.setattr("app.verbs.evictor._LONGER_PAUSE", 0.04)
    monkeypatch.setattr("app.verbs.effects._PATIENCE", -1.0)  # refusals are told at once
    monkeypatch.setattr("app.verbs.executor._PAUSES", (0.01, 0.02))


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.verbs.executor._MAX_LENGTH", 0.2)


@pytest.mark.parametrize(
    ("action", "kind", "path"),
    [
        pytest.param(overloaded(0), "get", pod_path("p"), id="look-429"),
        pytest.param(refuse(unavailable()), "patch", status_path("p"), id="nomination-503"),
        pytest.param(refuse(internal_error()), "patch", status_path("a"), id="mark-500"),
        pytest.param(refuse(unavailable()), "delete", pod_path("a"), id="deletion-503"),
    ],
)
@scenario()
async def test_what_passes_is_tried_again_in_the_same_turn(
    server: FakeApiServer, monkeypatch: pytest.MonkeyPatch, action: Action, kind: Kind, path: str
) -> None:
    monkeypatch.setattr("app.verbs.evictor._PAUSE", 0.2)
    monkeypatch.setattr("app.verbs.evictor._TURNS", 1)
    async with scheduling(server, N1, preempt="evict") as scheduler:
        await running(scheduler, *TWO)
        server.faults.add(action, path, kind, times=2)
        await attempt(scheduler, scheduler.create(IMPORTANT), "n1")
        await until_counted(scheduler, preempted=1)
        assert terminates(scheduler, "a", "b") == [True, True]
        assert len(server.requests.of(path, kind)) == 3


@pytest.mark.parametrize(
    "action",
    [
        pytest.param(lambda: FORBIDDEN, id="403"),
        pytest.param(lambda: refuse(unavailable()), id="503-always"),
        pytest.param(Close, id="closed"),
        pytest.param(lambda: Stall(before_head=True), id="silence"),
    ],
)
@pytest.mark.parametrize(
    ("kind", "path"), [("get", pod_path("p")), ("patch", status_path("p"))], ids=["look", "nominate"]
)
@pytest.mark.usefixtures("impatient")
@scenario()
async def test_a_pod_that_cannot_be_looked_at_or_nominated_evicts_nobody_and_has_more_turns(
    server: FakeApiServer, action: Callable[[], Action], kind: Kind, path: str
) -> None:
    async with scheduling(server, N1, preempt="evict") as scheduler:
        await running(scheduler, *TWO)
        fault = server.faults.add(action(), path, kind, times=None)
        pod = scheduler.create(IMPORTANT)
        await attempt(scheduler, pod, "n1")
        await until_counted(scheduler, failed=1)
        assert terminates(scheduler, "a", "b") == [False, False]
        server.faults.remove(fault)
        await attempt(scheduler, pod, "n1")
        await until_counted(scheduler, failed=1, preempted=1)


@pytest.mark.parametrize(
    ("path", "evicted"),
    [(status_path("p"), []), (status_path("a"), []), (pod_path("a"), ["a"])],
    ids=["nominate", "mark", "evict"],
)
@pytest.mark.parametrize("is_deleted", [False, True], ids=["gets-a-node", "is-deleted"])
@scenario()
async def test_nobody_more_is_evicted_for_a_pod_that_gets_a_node_or_is_deleted_meanwhile(
    server: FakeApiServer, monkeypatch: pytest.MonkeyPatch, path: str, evicted: list[str], *, is_deleted: bool
) -> None:
    """Its scheduler tries it again at any time, and each write may take seconds."""
    monkeypatch.setattr("app.verbs.executor._MAX_LENGTH", PATIENCE)
    async with scheduling(server, N1, preempt="evict") as scheduler:
        await running(scheduler, *TWO)
        stall = Stall(before_head=True)
        server.faults.add(stall, path, "delete" if path == pod_path("a") else "patch")
        pod = scheduler.create(IMPORTANT)
        await attempt(scheduler, pod, "n1")
        await until(lambda: not server.faults.pending)
        if is_deleted:
            server.delete(PODS.path, "p", "default")
            await until(lambda: pod["metadata"]["uid"] not in scheduler.mirror.pending)
        else:
            server.update(PODS.path, {**stored(scheduler, "p"), "spec": {**pod["spec"], "nodeName": "n2"}})
            await until(lambda: scheduler.is_added(pod, "n2"))
        stall.release()
        await until_counted(scheduler, **{"settled" if path == status_path("p") or not evicted else "failed": 1})
        assert [name for name in "ab" if terminates(scheduler, name) == [True]] == evicted


@scenario()
async def test_what_is_forbidden_is_told_with_the_rules_that_are_needed(
    server: FakeApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with scheduling(server, N1, preempt="evict") as scheduler:
        await running(scheduler, *TWO)
        server.faults.add(FORBIDDEN, None, "patch", times=None)
        await attempt(scheduler, scheduler.create(IMPORTANT), "n1")
        await until_counted(scheduler, failed=1)
    rules = (
        'resources: ["pods"], verbs: ["get", "delete"]; apiGroups: [""], resources: ["pods/status"], verbs: ["patch"]'
    )
    assert f"preemption: default/p: PATCH {status_path('p')}" in caplog.text
    assert rules in caplog.text


@pytest.mark.parametrize(
    ("kind", "path"), [("patch", status_path("a")), ("delete", pod_path("a"))], ids=["mark", "delete"]
)
@pytest.mark.parametrize(
    "action", [lambda: FORBIDDEN, Close, lambda: Stall(before_head=True)], ids=["403", "closed", "silence"]
)
@pytest.mark.usefixtures("impatient")
@scenario()
async def test_where_one_victim_cannot_be_evicted_the_next_ones_are_not(
    server: FakeApiServer, action: Callable[[], Action], kind: Kind, path: str
) -> None:
    async with scheduling(server, N1, preempt="evict") as scheduler:
        await running(scheduler, *TWO)
        fault = server.faults.add(action(), path, kind, times=None)
        await attempt(scheduler, scheduler.create(IMPORTANT), "n1")
        await until_counted(scheduler, failed=1)
        assert terminates(scheduler, "a", "b") == [False, False]
        assert await scheduler.metric("kindred_preemption_victims_total") == 0
        assert stored(scheduler, "p")["status"]["nominatedNodeName"] == "n1"
        server.faults.remove(fault)
        await attempt(scheduler, stored(scheduler, "p"), "n1")
        await until_counted(scheduler, failed=1, preempted=1)
        assert terminates(scheduler, "a", "b") == [True, True]


@scenario()
async def test_a_nomination_of_its_own_is_no_obstacle_to_another_turn(server: FakeApiServer) -> None:
    async with scheduling(server, N1, preempt="evict") as scheduler:
        await running(scheduler, *TWO)
        server.faults.add(FORBIDDEN, status_path("a"), "patch")
        await attempt(scheduler, scheduler.create(IMPORTANT), "n1")
        await until_counted(scheduler, preempted=1)
        assert writes(scheduler) == [
            *(patched("p"), patched("a")),
            *(patched("p"), patched("a"), deleted("a"), patched("b"), deleted("b")),
        ]


@scenario()
async def test_victims_that_were_evicted_before_one_could_not_be_are_waited_for(server: FakeApiServer) -> None:
    async with scheduling(server, N1, N2, preempt="evict") as scheduler:
        await running(scheduler, *TWO, web("c", "n2", 9))
        server.faults.add(FORBIDDEN, status_path("b"), "patch")
        await attempt(scheduler, scheduler.create(IMPORTANT), "n1", "n2")
        await until_counted(scheduler, failed=1)
        assert await scheduler.metric("kindred_preemption_victims_total") == 1
        assert terminates(scheduler, "a", "b", "c") == [True, False, False]
        await attempt(scheduler, stored(scheduler, "p"), "n1", "n2")
        await until_counted(scheduler, failed=1, waits=1)
        release(scheduler, "a")
        await until(lambda: scheduler.mirror.pod_count() == 2)
        await attempt(scheduler, stored(scheduler, "p"), "n1", "n2")
        await until_counted(scheduler, failed=1, waits=1, preempted=1)
        assert terminates(scheduler, "b", "c") == [True, False]


@scenario()
async def test_a_victim_that_is_gone_or_another_pod_by_now_is_no_failure(server: FakeApiServer) -> None:
    async with scheduling(server, N1, preempt="evict") as scheduler:
        await running(scheduler, *TWO, web("c", "n1", 0))
        scheduler.stall_watch()
        release(scheduler, "a", "b")
        scheduler.create(web("b", "n2"))
        await attempt(scheduler, scheduler.create(IMPORTANT), "n1")
        await until_counted(scheduler, preempted=1)
        assert terminates(scheduler, "b", "c") == [False, True]
        assert writes(scheduler) == [patched("p"), patched("a"), patched("b"), patched("c"), deleted("c")]


@scenario()
async def test_a_victim_that_became_another_pod_after_it_was_marked_is_not_deleted(server: FakeApiServer) -> None:
    async with scheduling(server, N1, preempt="evict") as scheduler:
        await running(scheduler, web("a", "n1"))
        scheduler.stall_watch()
        stall = Stall()
        server.faults.add(stall, status_path("a"), "patch")
        await attempt(scheduler, scheduler.create(IMPORTANT), "n1")
        await server.until(lambda: bool(server.requests.of(status_path("a"))))
        release(scheduler, "a")
        scheduler.create(web("a", "n1"))
        stall.release()
        await until_counted(scheduler, preempted=1)
        assert terminates(scheduler, "a") == [False]


@scenario()
async def test_a_pod_that_goes_away_before_it_is_nominated_evicts_nobody(server: FakeApiServer) -> None:
    async with scheduling(server, N1, preempt="evict") as scheduler:
        await running(scheduler, web("a", "n1"))
        stall = Stall()
        server.faults.add(stall, pod_path("p"), "get")
        await attempt(scheduler, scheduler.create(IMPORTANT), "n1")
        await server.until(lambda: bool(server.requests.of(pod_path("p"))))
        release(scheduler, "p")
        stall.release()
        await until_counted(scheduler, settled=1)
        assert terminates(scheduler, "a") == [False]


@pytest.mark.parametrize("action", [lambda: Close(after_head=True), Stall], ids=["closed", "silence"])
@pytest.mark.usefixtures("impatient")
@scenario()
async def test_a_deletion_whose_answer_is_lost_is_a_failure_and_found_to_be_done_later(
    server: FakeApiServer, action: Callable[[], Action]
) -> None:
    async with scheduling(server, N1, preempt="evict") as scheduler:
        await running(scheduler, web("a", "n1"))
        server.faults.add(action(), pod_path("a"), "delete")
        await attempt(scheduler, scheduler.create(IMPORTANT), "n1")
        await until_counted(scheduler, waits=1)
        assert terminates(scheduler, "a") == [True]
        assert len(server.requests.of(pod_path("a"), "delete")) == 1


@scenario()
async def test_a_victim_whose_end_the_watch_never_shows_is_one_again_in_the_end(
    server: FakeApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_going = vars(Preemptions)["_is_going"]
    async with scheduling(server, N1, preempt="evict") as scheduler:
        await running(scheduler, web("a", "n1"))
        scheduler.stall_watch()
        pod = scheduler.create(IMPORTANT)
        await attempt(scheduler, pod, "n1")
        await until_counted(scheduler, preempted=1)
        await attempt(scheduler, stored(scheduler, "p"), "n1")
        await until_counted(scheduler, preempted=1, waits=1)
        with monkeypatch.context() as a_minute_later:
            a_minute_later.setattr(Preemptions, "_is_going", lambda self, each, now: is_going(self, each, now + 60))
            await attempt(scheduler, stored(scheduler, "p"), "n1")
            await until_counted(scheduler, preempted=2, waits=1)


@scenario()
async def test_a_victim_that_terminates_for_long_makes_its_room_all_the_time(
    server: FakeApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.verbs.executor.UNSEEN", 0.0)
    async with scheduling(server, N1, N2, preempt="evict") as scheduler:
        victim, _ = await running(scheduler, web("a", "n1", 1), web("b", "n2", 2))
        await attempt(scheduler, scheduler.create(IMPORTANT), "n1", "n2")
        await until_counted(scheduler, preempted=1)
        await until(lambda: mirrored(scheduler, victim).terminating)
        await attempt(scheduler, scheduler.create(replace(IMPORTANT, name="q")), "n1", "n2")
        await until_counted(scheduler, preempted=1, waits=1)
        assert terminates(scheduler, "a", "b") == [True, False]


@scenario()
async def test_a_fault_of_our_own_is_logged_and_the_next_pod_gets_its_turn(
    server: FakeApiServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    async with scheduling(server, N1, preempt="evict") as scheduler:
        await running(scheduler, web("a", "n1"))
        with monkeypatch.context() as patch:
            patch.setattr(Evaluator, "plan", broken)
            await attempt(scheduler, scheduler.create(replace(IMPORTANT, name="q")), "n1")
            await until_counted(scheduler, failed=1)
        assert "ZeroDivisionError" in caplog.text
        await attempt(scheduler, scheduler.create(IMPORTANT), "n1")
        await until_counted(scheduler, failed=1, preempted=1)


@scenario()
async def test_of_too_many_pods_some_get_no_turn(server: FakeApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.verbs.evictor._MAX_WAITING", 2)
    monkeypatch.setattr("app.verbs.evictor._PAUSE", 1.0)  # all have come before the first turn
    async with scheduling(server, N1, preempt="evict") as scheduler:
        await running(scheduler, web("a", "n1"))
        for name in ("one", "two", "two", "three"):
            simulated = make_pod(name).priority(10).required_anti_affinity(WEB)
            assert await scheduler.filter(simulated.obj(), "n1") == []
        await until_counted(scheduler, settled=2, dropped=1)
