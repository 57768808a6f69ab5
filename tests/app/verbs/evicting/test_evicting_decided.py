"""Preemption where Kindred decides: the room of the victims is the preemptor's, with a fake API server."""

from typing import Any

import pytest

from tests.app.feeds.following import scenario
from tests.app.verbs.binding.binding_setting import HOSTNAME, Scheduler, scheduling, until
from tests.app.verbs.evicting.evicting_setting import (
    deleted,
    give_up,
    patched,
    release,
    running,
    stored,
    terminates,
    until_counted,
    writes,
)
from tests.builders import NodeBuilder, PodBuilder, make_node, make_pod
from tests.fake_apiserver import FakeApiServer
from tests.fake_apiserver.store import Object

SETTINGS: dict[str, Any] = {"preempt": "evict", "profile": "full"}
SCOPES = pytest.mark.parametrize("scope", ["listed-nodes", "any-node"])


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.verbs.evictor._PAUSE", 0.05)
    monkeypatch.setattr("app.verbs.evictor._LONGER_PAUSE", 0.1)
    monkeypatch.setattr("app.verbs.filter._RETRY_DELAYS", (0.001, 0.001, 0.001))


def node(name: str) -> NodeBuilder:
    return make_node(name).label(HOSTNAME, name).allocatable(cpu="4", memory="8Gi", pods=10)


def large(name: str, priority: int) -> PodBuilder:
    """Make a pod that takes most of a node."""
    return make_pod(name).priority(priority).requests(cpu="3")


async def pending(scheduler: Scheduler, pod: PodBuilder) -> Object:
    """Create a pod, and wait until the watch has shown it."""
    created = scheduler.create(pod)
    await until(lambda: created["metadata"]["uid"] in scheduler.mirror.pending)
    return created


async def response(scheduler: Scheduler, pod: Object, *nodes: str) -> Any:  # noqa: ANN401 - JSON
    """Ask about a pod as the server has it."""
    return (await scheduler.ask("filter", stored(scheduler, pod["metadata"]["name"]), *nodes)).json()


async def node_for(scheduler: Scheduler, pod: Object, *nodes: str) -> str:
    """Return the node that is decided for. Empty if there is none."""
    found = await response(scheduler, pod, *nodes)
    assert found["Error"] == ""
    names = found["NodeNames"]
    if names is None:
        names = [each["metadata"]["name"] for each in found["Nodes"]["items"]]
    return names[0] if names else ""


@SCOPES
@scenario()
async def test_a_nominated_pod_is_refused_without_an_error_until_its_victim_is_gone(
    server: FakeApiServer, scope: str
) -> None:
    async with scheduling(server, node("n1"), node("n2"), **SETTINGS, decide=scope) as scheduler:
        await running(scheduler, large("low", 0).on("n1"), large("lower", 10).on("n2"))
        pod = await pending(scheduler, large("p", 10))
        assert await node_for(scheduler, pod, "n1", "n2") == ""
        give_up(scheduler, pod)
        await until_counted(scheduler, preempted=1)
        assert writes(scheduler) == [patched("p"), patched("low"), deleted("low")]
        for nodes in (("n1",), ("n1", "n2")):
            reported = await response(scheduler, pod, *nodes)
            assert (reported["Error"], reported["NodeNames"]) == ("", [])
            assert "Insufficient cpu" in reported["FailedNodes"]["n1"]
        await until(lambda: bool(scheduler.mirror.pending.nominated_for("n1")))
        release(scheduler, "low")
        await until(lambda: scheduler.mirror.pod_count() == 1)
        assert await node_for(scheduler, pod, "n1") == "n1"
        assert terminates(scheduler, "lower") == [False]


@SCOPES
@scenario()
async def test_a_less_important_pod_does_not_get_the_room_of_the_victims(server: FakeApiServer, scope: str) -> None:
    async with scheduling(server, node("n1"), **SETTINGS, decide=scope) as scheduler:
        await running(scheduler, large("low", 0).on("n1"))
        pod = await pending(scheduler, large("p", 10))
        assert await node_for(scheduler, pod, "n1") == ""
        give_up(scheduler, pod)
        await until_counted(scheduler, preempted=1)
        await until(lambda: bool(scheduler.mirror.pending.nominated_for("n1")))
        release(scheduler, "low")
        await until(lambda: scheduler.mirror.pod_count() == 0)
        for priority in (9, 10):
            other = await pending(scheduler, large(f"other-{priority}", priority))
            assert await node_for(scheduler, other, "n1") == ""
        small = await pending(scheduler, make_pod("small").requests(cpu="1"))
        assert await node_for(scheduler, small, "n1") == "n1"
        assert await node_for(scheduler, pod, "n1") == "n1"


@SCOPES
@scenario()
async def test_a_reserved_place_is_taken_without_a_deletion_of_its_pod(server: FakeApiServer, scope: str) -> None:
    async with scheduling(server, node("n1"), node("n2"), **SETTINGS, decide=scope) as scheduler:
        pair = [large(name, 0).of_group("g", 2) for name in "ab"]
        first, _ = [await pending(scheduler, each) for each in pair]
        decided = await node_for(scheduler, first, "n1", "n2")
        reserved = "n2" if decided == "n1" else "n1"
        await running(scheduler, large("bound", 20).on(decided))
        pod = await pending(scheduler, large("p", 10))
        assert await node_for(scheduler, pod, "n1", "n2") == ""
        give_up(scheduler, pod)
        await until_counted(scheduler, preempted=1)
        assert stored(scheduler, "p")["status"]["nominatedNodeName"] == reserved
        assert writes(scheduler) == [patched("p")]
        assert await node_for(scheduler, pod, reserved) == reserved


@SCOPES
@scenario()
async def test_after_a_restart_the_nomination_and_its_victims_are_known_by_what_the_watch_shows(
    server: FakeApiServer, scope: str
) -> None:
    async with scheduling(server, node("n1"), node("n2"), **SETTINGS, decide=scope) as scheduler:
        await running(scheduler, large("low", 0).on("n1").preempted(), large("other", 1).on("n2"))
        pod = await pending(scheduler, large("p", 10).nominated("n1"))
        assert await node_for(scheduler, pod, "n1", "n2") == ""
        give_up(scheduler, pod)
        await until_counted(scheduler, waits=1)
        assert writes(scheduler) == []
        release(scheduler, "low")
        await until(lambda: scheduler.mirror.pod_count() == 1)
        assert await node_for(scheduler, pod, "n1") == "n1"
