"""A sync that there is no memory for, and what is too large: refused by name, retried, and never the end."""

import re

import pytest

from app.watch.freshness import SyncStatus
from core.objects.kinds import Namespace
from core.objects.node import Node
from core.objects.pod import Pod
from tests.app.watch.following import Counts, Following, scenario
from tests.app.watch.small_cluster import PODS, churn, create, seed
from tests.builders import make_pod
from tests.fake_apiserver import FakeApiServer
from tests.fake_apiserver.faults import SendLine, refuse
from tests.fake_apiserver.statuses import bad_request

FREE, SHORT, FULL = 50, 92, 99
"""Bytes of 100, below the watermark, above it, and too near to the limit for what a watch tells."""


class Memory:
    """Memory that a test fills, or that is short from some look on."""

    def __init__(self, held: int = FREE, enough_for: int = 1_000_000) -> None:
        self.held = held
        self.enough_for = enough_for

    def __call__(self) -> int:
        self.enough_for -= 1
        if self.enough_for < 0:
            self.held = SHORT
        return self.held


@scenario()
async def test_near_the_limit_nothing_is_asked_for_and_below_it_goes_on(server: FakeApiServer) -> None:
    seed(server)
    memory = Memory(FULL)
    async with Following(server, Node, Pod, resident=memory) as following:
        states = following.states.values()
        await following.until(lambda: all(state.failures["MemoryPressure"] > 2 for state in states), "refused")
        assert not server.requests.of(PODS)
        assert following.freshness.problems()[1].startswith("pods: not synced (memory: 99 B in use, above the ")
        memory.held = FREE
        await following.until_equal()
        assert following.freshness.problems() == []


@pytest.mark.parametrize("watch_list", [True, False], ids=["watch-list", "pages"])
@scenario()
async def test_a_sync_that_memory_gets_short_for_ends_and_says_how_much_there_was(
    server: FakeApiServer,
    monkeypatch: pytest.MonkeyPatch,
    watch_list: bool,  # noqa: FBT001  # one of two cases
) -> None:
    monkeypatch.setattr("app.watch.stream.PAGE_SIZE", 3)
    monkeypatch.setattr("app.watch.stream._MAX_LENGTH", -1.0)
    for number in range(20):
        create(server, make_pod(f"p{number}"))
    if not watch_list:
        server.faults.add(refuse(bad_request("what is sendInitialEvents?")), PODS, "watch-list", times=None)
    memory = Memory(enough_for=6)
    async with Following(server, Pod, resident=memory) as following:
        state = following.states[Pod]
        await following.until(lambda: state.failures["MemoryPressure"] > 0, "refused")
        assert following.freshness.status() is SyncStatus.NOT_SYNCED
        assert len(following.mirror.pods) == 0
        assert re.search(r"pods: (\d+) objects, \d+ \w+ on the wire$", state.problem)
        assert 0 < state.listed < 20
        # What that sync held is free within the process, which the system is not told: the next one may use it.
        await following.until_equal()
        assert memory.held == SHORT
        assert (state.objects, state.read_objects > 20, state.wire_size() > 20 * 50) == (20, True, True)


@scenario()
async def test_a_mirror_that_is_complete_is_followed_above_the_watermark(server: FakeApiServer) -> None:
    seed(server)
    memory = Memory()
    async with Following(server, Node, Pod, Namespace, resident=memory) as following:
        await following.until_equal()
        memory.held = SHORT
        churn(server)
        await following.until_equal()
        assert following.states[Pod].objects == len(following.reflectors[Pod].known)


@scenario()
async def test_near_the_limit_a_watch_takes_what_goes_and_nothing_that_comes(server: FakeApiServer) -> None:
    seed(server)
    memory = Memory()
    async with Following(server, Pod, resident=memory) as following:
        await following.until_equal()
        known = following.reflectors[Pod].known
        memory.held, before = FULL, len(known)
        server.delete(PODS, "web", "shop")
        await following.until(lambda: len(known) == before - 1, "deleted")
        create(server, make_pod("more").on("n1"))
        await following.until(lambda: following.states[Pod].failures["MemoryPressure"] > 2, "refused")
        assert len(known) == before - 1
        memory.held = FREE
        await following.until_equal()
        assert following.counts(Pod).relists == {}


@scenario()
async def test_pages_that_are_too_large_are_listed_in_smaller_ones(
    server: FakeApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.watch.stream.MAX_PAGE_BYTES", 2_000)
    server.faults.add(refuse(bad_request("what is sendInitialEvents?")), PODS, "watch-list", times=None)
    for number in range(10):
        create(server, make_pod(f"p{number}").label("app", "x" * 60))
    async with Following(server, Pod) as following:
        await following.until_equal()
        assert following.counts(Pod).failures == {}
        asked = server.requests.of(PODS, "list", "page")
        assert [request.query["limit"] for request in asked] == ["500", "62", "7", "14"]


@scenario()
async def test_a_line_that_is_too_long_ends_the_watch_and_names_the_resource(
    server: FakeApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed(server)
    async with Following(server, Pod) as following:
        await following.until_equal()
        following.mark()
        monkeypatch.setattr("app.watch.stream.MAX_LINE_BYTES", 5_000)
        assert server.disturb(SendLine(b'{"type":"ADDED","object":"' + b"x" * 10_000 + b'"}'), PODS) == 1
        await following.until(lambda: following.states[Pod].failures["GarbledWatch"] == 1, "refused")
        create(server, make_pod("after").on("n1"))
        await following.until_equal()
        assert following.counts(Pod) == Counts({"watch": 1}, {"GarbledWatch": 1})
