"""A sync that somebody asks for: it shows at least what the server had when it was asked for."""

import asyncio

import pytest

from core.objects.node import Node
from core.objects.pod import Pod
from tests.app.watch.following import Counts, Following, scenario
from tests.app.watch.small_cluster import PODS, seed
from tests.builders import make_pod
from tests.fake_apiserver import FakeApiServer, Stall, refuse
from tests.fake_apiserver.listing import WatchListMode
from tests.fake_apiserver.statuses import unavailable


@pytest.mark.parametrize("mode", ["on", "off"])
@scenario()
async def test_it_shows_what_a_watch_that_is_late_has_not_told(server: FakeApiServer, mode: WatchListMode) -> None:
    server.behaviour.watch_list = mode
    seed(server)
    async with Following(server, Pod) as following:
        await following.until_equal()
        before = following.counts().requests
        await server.until_watching(PODS)
        server.disturb(Stall(), PODS)
        bound = server.create(PODS, make_pod("late").on("n1").obj())
        assert following.mirror.get_pod(bound["metadata"]["uid"]) is None
        await following.watcher.resync(Pod)
        assert following.mirror.get_pod(bound["metadata"]["uid"]) is not None
        assert following.counts().relists == {"asked": 1}
        assert following.counts().failures == {}
        one_more = "watch-list" if mode == "on" else "list"
        assert following.counts().requests[one_more] == before[one_more] + 1
        await following.until_equal()


@scenario()
async def test_a_sync_under_way_is_not_enough(server: FakeApiServer) -> None:
    seed(server)
    stall = Stall(before_head=True)
    server.faults.add(stall, PODS, "watch-list")
    async with Following(server, Pod) as following:
        await server.until(lambda: len(server.requests.of(PODS)) == 1)
        await following.watcher.resync(Pod)
        assert following.counts().requests == {"watch-list": 2}
        await following.until_equal()


@scenario()
async def test_it_waits_for_a_sync_that_comes_through(server: FakeApiServer) -> None:
    seed(server)
    async with Following(server, Pod) as following:
        await following.until_equal()
        fault = server.faults.add(refuse(unavailable()), PODS, times=None)
        resyncing = asyncio.create_task(following.watcher.resync(Pod))
        await following.until(lambda: fault.applied >= 3, "asked again")
        assert not resyncing.done()
        server.faults.clear()
        await resyncing
        await following.until_equal()


@scenario()
async def test_who_waits_no_more_changes_nothing_for_the_next(server: FakeApiServer) -> None:
    seed(server)
    async with Following(server, Pod) as following:
        await following.until_equal()
        server.faults.add(Stall(before_head=True), PODS, "watch-list", times=1)
        first = asyncio.create_task(following.watcher.resync(Pod))
        await server.until(lambda: not server.faults.pending)
        first.cancel()
        await following.watcher.resync(Pod)
        assert first.cancelled()
        assert following.counts() == Counts(following.counts().requests, {}, {"asked": 2})
        await following.until_equal()


@scenario()
async def test_what_is_not_watched_cannot_be_synced(server: FakeApiServer) -> None:
    seed(server)
    async with Following(server, Pod) as following:
        with pytest.raises(LookupError, match="Nodes are not watched"):
            await following.watcher.resync(Node)
        await following.until_equal()
