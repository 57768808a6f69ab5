"""What the reflector does on its own account: its errors, its pace, its ends, its memory."""

import asyncio
import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final, TypeAlias

import pytest
from msgspec.structs import replace

from app.api_server.client import ApiClient
from app.api_server.credentials import Credentials
from app.api_server.tls import ClusterAccess
from app.feeds.freshness import ResourceState, SyncStatus
from app.feeds.known_objects import Listing
from app.feeds.watcher import Watcher
from app.objects.resources import RESOURCES
from core.events import Action, ClusterEvent, Object
from core.objects.kinds import Namespace
from core.objects.node import Node
from core.objects.pod import Pod
from tests.app.feeds.following import QUICK, Counts, Following, MirrorOnly, scenario
from tests.app.feeds.small_cluster import PODS, churn, create, followed, recreate, seed, update
from tests.builders import make_namespace, make_pod
from tests.fake_apiserver import FakeApiServer
from tests.fake_apiserver.faults import Cut, End, SendLine, Stall, refuse
from tests.fake_apiserver.listing import WatchListMode
from tests.fake_apiserver.statuses import bad_request, unavailable

Change: TypeAlias = Callable[[FakeApiServer], object]
MOVED: Final = make_pod("waits").on("n2")


class Faulty(MirrorOnly):
    """A feed that raises at a change, before it takes it over."""

    def __init__(self) -> None:
        super().__init__()
        self.raised = 0
        self._at: tuple[str, str] | None = None
        self._times = 0

    def raise_at(self, action: Action, name: str, times: int = 1) -> None:
        """Raise so often when this is done to an object of that name."""
        self._at, self._times = (action, name), times

    def apply(self, event: ClusterEvent) -> None:
        """Take over one change, or raise."""
        self._raise_if_due(event.action, event.object.name)
        super().apply(event)

    def add(self, added: Sequence[Object]) -> Sequence[Object]:
        """Take over the new objects of a list, or raise."""
        for each in added:
            self._raise_if_due("Add", each.name)
        return super().add(added)

    def _raise_if_due(self, action: Action, name: str) -> None:
        if (action, name) == self._at and self.raised < self._times:
            self.raised += 1
            raise RuntimeError("a fault of ours")


class Slow(MirrorOnly):
    """A feed of changes that take a millisecond each. It notes the round of the loop in which each was taken over."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.round = 0
        self.rounds: list[int] = []

    async def count(self) -> None:
        """Count the rounds of the loop, until cancelled."""
        while True:
            self.round += 1
            await asyncio.sleep(0)

    def apply(self, event: ClusterEvent) -> None:
        """Take over one change."""
        super().apply(event)
        self.rounds.append(self.round)
        self.now += 0.001


@scenario()
async def test_requests_go_between_two_changes_of_a_watch_that_come_in_one_piece(
    server: FakeApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = Slow()
    monkeypatch.setattr("app.feeds.stream.perf_counter", lambda: feed.now)
    async with followed(server, Pod, feed=feed) as following:
        counting = asyncio.create_task(feed.count())
        feed.rounds.clear()
        feed.now += 1.0  # the turn of the sync is over
        for number in range(10):
            create(server, make_pod(f"new-{number}").on("n1"))
        await following.until_equal()
        counting.cancel()
    assert len(feed.rounds) == len(set(feed.rounds)) == 10


# Errors of our own.


@pytest.mark.parametrize(
    ("action", "name", "change"),
    [
        pytest.param("Add", "new", lambda server: create(server, make_pod("new").on("n1")), id="add"),
        pytest.param("Update", "waits", lambda server: update(server, MOVED), id="update"),
        pytest.param("Delete", "db", lambda server: server.delete(PODS, "db", "default"), id="delete"),
        pytest.param(
            "Delete", "db", lambda server: recreate(server, make_pod("db").on("n1")), id="delete-of-a-predecessor"
        ),
        pytest.param("Add", "db", lambda server: recreate(server, make_pod("db").on("n1")), id="add-of-a-successor"),
    ],
)
@scenario()
async def test_a_change_that_could_not_be_taken_over_is_told_again_by_a_relist(
    server: FakeApiServer, action: Action, name: str, change: Change, caplog: pytest.LogCaptureFixture
) -> None:
    feed = Faulty()
    async with followed(server, Pod, feed=feed) as following:
        feed.raise_at(action, name)
        change(server)
        await following.until(lambda: feed.raised == 1, "raised")
        await following.until_equal()
        assert following.counts() == Counts({"watch-list": 2}, {"Runtime": 1}, {"internal": 1})
        (logged,) = [record for record in caplog.records if record.exc_info]
        assert logged.message == "pods: internal error"
        await following.stays_quiet()


@pytest.mark.parametrize("mode", ["on", "off"])
@scenario()
async def test_a_first_sync_that_could_not_be_taken_over_is_made_again(
    server: FakeApiServer, mode: WatchListMode
) -> None:
    server.behaviour.watch_list = mode
    feed = Faulty()
    feed.raise_at("Add", "db")
    async with followed(server, Pod, feed=feed) as following:
        assert following.counts().relists == {"internal": 1}
        assert following.counts().requests["list"] == (1 if mode == "on" else 2)


@scenario()
async def test_a_relist_that_could_not_be_taken_over_is_made_again(server: FakeApiServer) -> None:
    feed = Faulty()
    feed.raise_at("Delete", "db")
    async with followed(server, Pod, feed=feed) as following:
        server.disturb(End(), PODS)
        server.delete(PODS, "db", "default")
        server.compact(PODS)
        await following.until(lambda: feed.raised == 1, "raised")
        await following.until_equal()
        assert following.counts().relists == {"expired": 1, "internal": 1}


@scenario()
async def test_a_change_that_can_never_be_taken_over_does_not_storm_the_server(server: FakeApiServer) -> None:
    seed(server)
    feed = Faulty()
    feed.raise_at("Add", "db", times=1000)
    async with Following(server, Pod, feed=feed) as following:
        await following.until(lambda: feed.raised == 6, "raised six times")
        assert following.seen == {SyncStatus.NOT_SYNCED}
        requests = following.requests()
        assert len(requests) <= 7
        assert requests[-1].time - requests[0].time >= 0.02 + 0.04 + 0.08 + 0.16


@scenario()
async def test_a_watch_resumes_from_its_last_bookmark(server: FakeApiServer) -> None:
    async with followed(server, Pod) as following:
        create(server, make_namespace("elsewhere"))  # of which a watch of pods tells the version alone
        version = str(server.store.version)
        for _ in range(2):
            await following.until_a_line()
        server.end_watches(PODS)
        await following.until(lambda: len(following.requests()) == 2, "resumed")
        assert following.requests()[-1].query["resourceVersion"] == version


# Its pace.


@scenario(bookmark_interval=0.01)
async def test_a_watch_that_ends_soon_with_events_is_not_resumed_sooner_than_the_shortest_one_lasts(
    server: FakeApiServer,
) -> None:
    async with followed(server, Pod) as following:
        server.faults.add(End(1), PODS, times=3)
        server.end_watches(PODS)
        churn(server)
        await following.until_equal()
        await following.until(lambda: len(following.counts().requests) == 2 and not server.faults.pending, "over")
        await following.until(lambda: following.counts().requests["watch"] == 4, "resumed")
        times = [request.time for request in following.requests() if request.kind == "watch"]
        for earlier, later in pairwise(times):
            assert later - earlier >= QUICK.shortest_watch
        assert following.counts().failures == {}


@scenario(watch_list="off", bookmark_interval=60.0)
async def test_a_list_shows_the_state_of_when_it_began(server: FakeApiServer) -> None:
    seed(server)
    slow = Stall(before_head=True)
    server.faults.add(slow, PODS, "list")
    async with Following(server, Pod) as following:
        state = following.states[Pod]
        await following.until(lambda: len(server.requests.of(PODS, "list")) == 1, "asked")
        requested = server.requests.of(PODS, "list")[0].time
        await asyncio.sleep(0.1)
        slow.release()
        await following.until(lambda: state.synced, "synced")
        assert state.followed_at <= requested
        # The watch that stands then shows that it is followed since.
        await following.until(lambda: state.followed_at > requested, "followed")
        (watch,) = server.requests.of(PODS, "watch")
        assert state.followed_at >= watch.time + QUICK.shortest_watch - 0.01


@scenario()
async def test_the_waits_of_retries_are_waited_for(server: FakeApiServer) -> None:
    server.faults.add(refuse(unavailable()), PODS, times=3)
    timing = replace(QUICK, backoff_first=0.2, backoff_longest=0.4, random=lambda: 1.0)
    async with followed(server, Pod, timing=timing) as following:
        times = [request.time for request in following.requests()]
        for least, (earlier, later) in zip((0.15, 0.3, 0.3), pairwise(times), strict=True):
            assert later - earlier >= least  # how much longer a machine takes is not the reflector's


# Its ends.


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(Stall(before_head=True), id="before-the-answer"),
        pytest.param(Stall(after=2), id="in-the-initial-events"),
        pytest.param(refuse(unavailable()), id="while-it-waits"),
        pytest.param(None, id="while-it-follows"),
    ],
)
@scenario()
async def test_it_ends_at_once_and_leaves_no_connection_open(server: FakeApiServer, fault: Stall | None) -> None:
    seed(server)
    if fault is not None:
        server.faults.add(fault, PODS, times=None)
    timing = replace(QUICK, backoff_first=60.0, backoff_longest=60.0)
    async with Following(server, Node, Pod, Namespace, timing=timing) as following:
        await following.until_a_line(Node)
        await following.until(lambda: bool(following.requests()), "asked")
        async with asyncio.timeout(1.0):
            await following.stop()
        await server.until(lambda: not any(not request.ended for request in server.requests))


@scenario()
async def test_reflectors_do_not_wait_for_each_other(server: FakeApiServer) -> None:
    seed(server)
    server.faults.add(Cut(), PODS, times=None)
    async with Following(server, Node, Pod, Namespace) as following:
        await following.until(lambda: following.states[Node].synced and following.states[Namespace].synced, "synced")
        churn(server)
        nodes = following.reflectors[Node].known
        await following.until(lambda: {each.full_name: each for each in nodes} == following.expected(Node), "followed")
        assert following.freshness.status() is SyncStatus.NOT_SYNCED
        server.faults.clear()
        await following.until_equal()


@scenario()
async def test_the_connections_are_closed_when_it_ends(server: FakeApiServer) -> None:
    seed(server)
    login = Credentials(ClusterAccess(source="test", server=server.url, tls=None), None)
    client = ApiClient(login)
    watcher = Watcher(client, [ResourceState(RESOURCES[Pod])], MirrorOnly(), QUICK)
    running = asyncio.create_task(watcher.run())
    await server.until_watching(RESOURCES[Pod].path)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await server.until(lambda: server.watching() == 0)
    # A connection that was kept open would serve the next request.
    before = server.requests.connections
    await client.get(RESOURCES[Node].path, {})
    assert server.requests.connections == before + 1
    await client.close()


# Its memory.


FREE, SHORT, FULL = 50, 92, 99
"""Bytes of 100, below the watermark, above it, and too near to the limit for what a watch tells."""


class Memory:
    """Memory that a test fills, or that is short from some look on."""

    def __init__(self, stored: int = FREE, enough_for: int = 1_000_000) -> None:
        self.stored = stored
        self.enough_for = enough_for

    def __call__(self) -> int:
        self.enough_for -= 1
        if self.enough_for < 0:
            self.stored = SHORT
        return self.stored


@scenario()
async def test_near_the_limit_nothing_is_asked_for_and_below_it_goes_on(server: FakeApiServer) -> None:
    seed(server)
    memory = Memory(FULL)
    async with Following(server, Node, Pod, resident=memory) as following:
        states = following.states.values()
        await following.until(lambda: all(state.failures["MemoryPressure"] > 2 for state in states), "refused")
        assert not server.requests.of(PODS)
        assert following.freshness.problems()[1].startswith("pods: not synced (memory: 99 B in use, above the ")
        memory.stored = FREE
        await following.until_equal()
        assert following.freshness.problems() == []


@pytest.mark.parametrize("watch_list", [True, False], ids=["watch-list", "pages"])
@scenario()
async def test_a_sync_that_memory_gets_short_for_ends_and_says_how_much_there_was(
    server: FakeApiServer,
    monkeypatch: pytest.MonkeyPatch,
    watch_list: bool,  # noqa: FBT001  # one of two cases
) -> None:
    monkeypatch.setattr("app.feeds.stream.PAGE_SIZE", 3)
    monkeypatch.setattr("app.feeds.stream._LINES_AT_ONCE", 1)
    monkeypatch.setattr("app.feeds.stream.LOADING", -1.0)
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
        assert memory.stored == SHORT
        assert (state.objects, state.read_objects > 20, state.wire_size() > 20 * 50) == (20, True, True)


@scenario()
async def test_what_a_first_sync_has_applied_leaves_the_memory_to_the_next_one(
    server: FakeApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.feeds.reflector.ADDED_AT_ONCE", 1)
    monkeypatch.setattr("app.feeds.stream._LINES_AT_ONCE", 1)
    for number in range(30):
        create(server, make_pod(f"p{number}").on("n1"))
    feed, listings = MirrorOnly(), list[Listing]()

    def made(*, is_applied: bool = False) -> Listing:
        listings.append(Listing(is_applied=is_applied))
        return listings[-1]

    def resident() -> int:
        listed = sum(isinstance(each, Pod) for listing in listings for each in listing.objects)
        return FREE + 2 * (len(feed.mirror.pods) + listed)

    monkeypatch.setattr("app.feeds.reflector.Listing", made)
    async with Following(server, Pod, feed=feed, resident=resident) as following:
        await following.until(lambda: "MemoryPressure" in following.counts().failures, "refused")
        for number in range(30):
            server.delete(PODS, f"p{number}", "default")
        create(server, make_pod("another").on("n1"))
        await following.until(lambda: following.freshness.status() is SyncStatus.FRESH, "synced", 10.0)
        await following.until_equal()


@scenario()
async def test_a_mirror_that_is_complete_is_followed_above_the_watermark(server: FakeApiServer) -> None:
    memory = Memory()
    async with followed(server, Node, Pod, Namespace, resident=memory) as following:
        memory.stored = SHORT
        churn(server)
        await following.until_equal()
        assert following.states[Pod].objects == len(following.reflectors[Pod].known)


@scenario()
async def test_near_the_limit_a_watch_takes_what_goes_and_nothing_that_comes(server: FakeApiServer) -> None:
    memory = Memory()
    async with followed(server, Pod, resident=memory) as following:
        known = following.reflectors[Pod].known
        memory.stored, before = FULL, len(known)
        server.delete(PODS, "web", "shop")
        await following.until(lambda: len(known) == before - 1, "deleted")
        create(server, make_pod("more").on("n1"))
        await following.until(lambda: following.states[Pod].failures["MemoryPressure"] > 2, "refused")
        assert len(known) == before - 1
        memory.stored = FREE
        await following.until_equal()
        assert following.counts(Pod).relists == {}


@scenario()
async def test_pages_that_are_too_large_are_listed_in_smaller_ones(
    server: FakeApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.feeds.stream.MAX_PAGE_BYTES", 2_000)
    server.faults.add(refuse(bad_request("what is sendInitialEvents?")), PODS, "watch-list", times=None)
    for number in range(10):
        create(server, make_pod(f"p{number}").label("app", "x" * 60))
    async with Following(server, Pod) as following:
        await following.until_equal()
        assert following.counts(Pod).failures == {}
        requested = server.requests.of(PODS, "list", "page")
        assert [request.query["limit"] for request in requested] == ["500", "62", "7", "14"]


@scenario(watch_list="off")
async def test_an_object_that_is_too_large_alone_is_told(
    server: FakeApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.feeds.stream.MAX_PAGE_BYTES", 10)
    seed(server)
    async with Following(server, Pod) as following:
        await following.until(lambda: "more than 10 bytes" in following.states[Pod].problem, "told")


@scenario()
async def test_a_line_that_is_too_long_ends_the_watch_and_names_the_resource(
    server: FakeApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with followed(server, Pod) as following:
        following.mark()
        monkeypatch.setattr("app.feeds.stream.MAX_LINE_BYTES", 5_000)
        assert server.disturb(SendLine(b'{"type":"ADDED","object":"' + b"x" * 10_000 + b'"}'), PODS) == 1
        await following.until(lambda: following.states[Pod].failures["GarbledWatch"] == 1, "refused")
        create(server, make_pod("after").on("n1"))
        await following.until_equal()
        assert following.counts(Pod) == Counts({"watch": 1}, {"GarbledWatch": 1})
