"""What the reflector does on its own account: its errors, its pace, its ends. The faults of others have other files."""

import asyncio
from collections.abc import Callable
from itertools import pairwise
from typing import Final, TypeAlias

import pytest
from msgspec.structs import replace

from app.watch.freshness import SyncStatus
from app.watch.retry import Timing
from core.events import Action, ClusterEvent
from core.objects.kinds import Namespace
from core.objects.node import Node
from core.objects.pod import Pod
from tests.app.watch.following import QUICK, Counts, Following, MirrorOnly, scenario
from tests.app.watch.small_cluster import PODS, churn, create, recreate, seed, update
from tests.builders import make_namespace, make_pod
from tests.fake_apiserver import FakeApiServer
from tests.fake_apiserver.faults import Cut, End, Stall, refuse
from tests.fake_apiserver.listing import WatchListMode
from tests.fake_apiserver.statuses import unavailable

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
        if (event.action, event.object.name) == self._at and self.raised < self._times:
            self.raised += 1
            raise RuntimeError("a fault of ours")
        super().apply(event)


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
    seed(server)
    feed = Faulty()
    async with Following(server, Pod, feed=feed) as following:
        await following.until_equal()
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
    seed(server)
    feed = Faulty()
    feed.raise_at("Add", "db")
    async with Following(server, Pod, feed=feed) as following:
        await following.until_equal()
        assert following.counts().relists == {"internal": 1}
        assert following.counts().requests["list"] == (1 if mode == "on" else 2)


@scenario()
async def test_a_relist_that_could_not_be_taken_over_is_made_again(server: FakeApiServer) -> None:
    seed(server)
    feed = Faulty()
    feed.raise_at("Delete", "db")
    async with Following(server, Pod, feed=feed) as following:
        await following.until_equal()
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
        await following.until(lambda: feed.raised == 10, "raised ten times")
        assert following.seen == {SyncStatus.NOT_SYNCED}
        requests = following.requests()
        assert len(requests) <= 11
        assert requests[-1].time - requests[0].time >= 0.02 + 0.04 + 0.08 + 5 * 0.1


@scenario()
async def test_a_watch_resumes_from_its_last_bookmark(server: FakeApiServer) -> None:
    seed(server)
    async with Following(server, Pod) as following:
        await following.until_equal()
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
    seed(server)
    async with Following(server, Pod) as following:
        await following.until_equal()
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
        asked = server.requests.of(PODS, "list")[0].time
        await asyncio.sleep(0.1)
        slow.release()
        await following.until(lambda: state.synced, "synced")
        assert state.followed_at <= asked
        # The watch that stands then shows that it is followed since.
        await following.until(lambda: state.followed_at > asked, "followed")
        (watch,) = server.requests.of(PODS, "watch")
        assert state.followed_at >= watch.time + QUICK.shortest_watch - 0.01


@scenario()
async def test_waits_are_jittered(server: FakeApiServer) -> None:
    seed(server)
    server.faults.add(refuse(unavailable()), PODS, times=3)
    timing = replace(QUICK, backoff_first=0.2, backoff_longest=0.4, random=lambda: 1.0)
    async with Following(server, Pod, timing=timing) as following:
        await following.until_equal()
        times = [request.time for request in following.requests()]
        for least, (earlier, later) in zip((0.15, 0.3, 0.3), pairwise(times), strict=True):
            assert least <= later - earlier <= least + 0.09


def test_the_default_pace_is_that_of_client_go_but_for_the_longest_wait() -> None:
    timing = Timing()
    assert (timing.backoff_first, timing.backoff_longest, timing.gap) == (0.8, 1.7, 0.1)
    assert (timing.watch_timeout, timing.shortest_watch) == (300, 1.0)
    assert all(0.0 <= timing.random() < 1.0 for _ in range(100))


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
