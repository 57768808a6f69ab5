"""Syncs: by WatchList, by pages, such as somebody asks for, or needs not to; their faults, and their requests."""

import asyncio
from typing import Final

import pytest
from msgspec.structs import replace

from app.feeds import reflector
from app.feeds.freshness import SyncStatus
from app.feeds.memory import MemoryLimit
from core.objects.kinds import Namespace
from core.objects.node import Node
from core.objects.pod import Pod
from tests.app.feeds import following as following_of
from tests.app.feeds.following import QUICK, READ_TIMEOUT, Counts, Following, scenario
from tests.app.feeds.small_cluster import PODS, churn, create, followed, recreate, seed
from tests.builders import make_pod
from tests.fake_apiserver import FakeApiServer
from tests.fake_apiserver.faults import (
    Action,
    Cut,
    End,
    Kind,
    Response,
    SendLine,
    Stall,
    StreamError,
    refuse,
)
from tests.fake_apiserver.listing import WatchListMode
from tests.fake_apiserver.statuses import bad_request, expired_continue, internal_error, unavailable

JSON: Final = {"Content-Type": "application/json"}
FALLS_BACK: Final = {"watch-list": 1, "list": 1, "watch": 1}


@pytest.fixture
def _pages_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.feeds.stream.PAGE_SIZE", 2)


# By WatchList.


@scenario()
async def test_one_request_syncs_and_follows(server: FakeApiServer) -> None:
    async with followed(server, Node, Pod, Namespace) as following:
        churn(server)
        await following.until_equal()
        for kind in (Node, Pod, Namespace):
            assert following.counts(kind) == Counts({"watch-list": 1})


@scenario()
async def test_what_comes_in_one_piece_with_the_end_of_the_initial_events_is_applied(server: FakeApiServer) -> None:
    ghost = b'{"metadata":{"name":"ghost","namespace":"default","uid":"u","resourceVersion":"1"}}'
    end = b'{"metadata":{"resourceVersion":"1","annotations":{"k8s.io/initial-events-end":"true"}}}'
    events = ((b"ADDED", ghost), (b"BOOKMARK", end), (b"DELETED", ghost))
    lines = [b'{"type":"%s","object":%s}' % event for event in events]
    server.faults.add(SendLine(b"\n".join(lines)), PODS, "watch-list")
    async with Following(server, Pod) as following:
        await following.until(lambda: following.states[Pod].events["DELETED"] == 1, "deleted")
        await following.until_equal()
        assert following.counts() == Counts({"watch-list": 1})


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        # Not accepted: asked again.
        pytest.param(Stall(before_head=True), Counts({"watch-list": 2}, {"ReadTimeout": 1}), id="stall-before-head"),
        # Refused as such, or not served as WatchList: listed at once.
        pytest.param(refuse(bad_request("what is sendInitialEvents?")), Counts(FALLS_BACK), id="400"),
        pytest.param(StreamError(internal_error(), 2), Counts(FALLS_BACK), id="in-stream-500"),
        pytest.param(SendLine(b"{", 2), Counts(FALLS_BACK), id="garbage"),
        pytest.param(
            SendLine(
                b'{"type":"BOOKMARK","object":{"metadata":{"annotations":{"k8s.io/initial-events-end":"true"}}}}', 2
            ),
            Counts(FALLS_BACK),
            id="end-without-version",
        ),
        pytest.param(
            SendLine(b'{"type":"DELETED","object":{"metadata":{}}}', 2),
            Counts(FALLS_BACK),
            id="deletion-of-who-knows-what",
        ),
        # Broken: listed after a wait.
        pytest.param(StreamError(unavailable(), 2), Counts(FALLS_BACK, {"in-stream 503": 1}), id="in-stream-503"),
        pytest.param(End(2), Counts(FALLS_BACK, {"BrokenWatch": 1}), id="end-before-the-end"),
        pytest.param(Cut(2), Counts(FALLS_BACK, {"ConnectionFailed": 1}), id="cut-in-mid-line"),
        pytest.param(Stall(after=2), Counts(FALLS_BACK, {"ReadTimeout": 1}), id="stall"),
    ],
)
@scenario()
async def test_a_sync_by_watch_list_gets_over_a_fault(server: FakeApiServer, action: Action, expected: Counts) -> None:
    server.faults.add(action, PODS, "watch-list")
    async with followed(server, Node, Pod, Namespace) as following:
        churn(server)
        await following.until_equal()
        await following.until_counts(expected)
        await following.until(lambda: not following.states[Pod].problem, "well")
        await following.stays_quiet()
        assert following.counts() == expected
        assert following.counts(Node) == following.counts(Namespace) == Counts({"watch-list": 1})


async def expire(following: Following) -> None:
    """Let the version that is watched from expire, and wait until all is well again."""
    await following.until_a_line()
    following.mark()
    following.server.end_watches(PODS)
    churn(following.server)
    following.server.compact(PODS)
    await following.until(lambda: following.counts().relists == {"expired": 1}, "expired")
    await following.until_equal()
    await following.until_a_line()
    await following.stays_quiet()


@pytest.mark.parametrize(
    "mode", [pytest.param("off", id="refused-by-422"), pytest.param("ignored", id="ignored-by-a-very-old-server")]
)
@scenario()
async def test_a_server_without_watch_list_is_asked_for_it_once(server: FakeApiServer, mode: WatchListMode) -> None:
    server.behaviour.watch_list = mode
    async with followed(server, Pod) as following:
        assert following.states[Pod].requests == {"watch-list": 1, "list": 1, "watch": 1}
        await expire(following)
        assert following.counts() == Counts({"watch": 2, "list": 1}, {"in-stream 410": 1}, {"expired": 1})


@scenario()
async def test_a_server_that_could_not_serve_watch_list_is_asked_for_it_by_the_next_sync(server: FakeApiServer) -> None:
    server.faults.add(StreamError(internal_error()), PODS, "watch-list")
    async with followed(server, Pod) as following:
        await expire(following)
        assert following.counts() == Counts({"watch": 1, "watch-list": 1}, {"in-stream 410": 1}, {"expired": 1})


@scenario(watch_list="ignored", bookmark_interval=60.0)
async def test_a_very_old_server_with_nothing_to_tell_is_listed(server: FakeApiServer) -> None:
    # Longer than a read may last, as in service: nothing comes behind the objects, not even a bookmark.
    patient = replace(QUICK, initial_events=20 * READ_TIMEOUT)
    async with followed(server, Pod, timing=patient) as following:
        await following.until_counts(Counts(FALLS_BACK, {"ReadTimeout": 1}))


# By pages.


@pytest.mark.parametrize(
    ("kind", "action", "expected"),
    [
        pytest.param("page", refuse(unavailable()), Counts({"list": 2, "page": 3}, {"503": 1}), id="503-of-a-page"),
        pytest.param(
            "page",
            refuse(expired_continue()),
            Counts({"list": 2, "page": 3}, {"410": 1}, {"expired-continue": 1}),
            id="410-of-a-page",
        ),
        pytest.param(
            "page", Cut(extra=20), Counts({"list": 2, "page": 3}, {"ConnectionFailed": 1}), id="cut-in-a-page"
        ),
        pytest.param("page", Stall(), Counts({"list": 2, "page": 3}, {"ReadTimeout": 1}), id="stall-in-a-page"),
        pytest.param(
            "list", Response(200, b'{"items":[', JSON), Counts({"list": 2, "page": 2}, {"Malformed": 1}), id="malformed"
        ),
        pytest.param(
            "page",
            Response(200, b"<html>", {"Content-Type": "text/html"}),
            Counts({"list": 2, "page": 3}, {"ConnectionFailed": 1}),
            id="page-of-a-proxy",
        ),
    ],
)
@pytest.mark.usefixtures("_pages_of_two")
@scenario(watch_list="off")
async def test_a_sync_by_pages_gets_over_a_fault(
    server: FakeApiServer, kind: Kind, action: Action, expected: Counts
) -> None:
    for number in range(5):
        create(server, make_pod(f"p{number}"))
    server.faults.add(action, PODS, kind)
    async with Following(server, Pod) as following:
        await following.until_equal()
        await following.until_a_line()
        assert following.counts() == Counts(
            {"watch-list": 1, **expected.requests, "watch": 1}, expected.failures, expected.relists
        )
        await following.stays_quiet()


@pytest.mark.usefixtures("_pages_of_two")
@scenario(watch_list="off")
async def test_a_list_that_always_expires_between_two_pages_is_asked_for_as_a_whole(server: FakeApiServer) -> None:
    server.faults.add(refuse(expired_continue()), PODS, "page", times=None)
    async with followed(server, Pod) as following:
        lists = server.requests.of(PODS, "list", "page")
        assert [request.kind for request in lists] == ["list", "page", "list", "page", "list"]
        assert [request.query.get("limit") for request in lists] == ["2", "2", "2", "2", None]
        assert following.counts().relists == {"expired-continue": 2}
        # The next sync is by pages again, as the server may remember longer by then.
        server.faults.clear()
        await expire(following)
        assert [request.query["limit"] for request in following.requests() if request.kind == "list"] == ["2"]


@pytest.mark.usefixtures("_pages_of_two")
@scenario(watch_list="off")
async def test_a_whole_list_takes_no_more_than_half_of_the_memory_that_is_left(
    server: FakeApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its bytes exist twice for a moment."""
    monkeypatch.setattr(following_of, "LIMIT", MemoryLimit(100_000, "the test"))  # the mark is at 90,000
    server.faults.add(refuse(expired_continue()), PODS, "page", times=None)
    for name in ("a", "b", "c"):
        create(server, make_pod(name).annotated("long", 10_000 * "x"))
    stored = [40_000]
    async with Following(server, Pod, resident=lambda: stored[0]) as following:
        await following.until(lambda: "ResponseTooLarge" in following.counts().failures, "refused")
        assert server.requests.of(PODS)[-1].query.get("limit") is None
        stored[0] = 10_000
        await following.until_equal()


@pytest.mark.usefixtures("_pages_of_two")
@scenario(watch_list="off")
async def test_every_page_is_of_the_objects_that_are_followed(server: FakeApiServer) -> None:
    async with followed(server, Pod) as following:
        pages = server.requests.of(PODS, "list", "page")
        assert len(pages) > 1
        assert {page.query.get("fieldSelector") for page in pages} == {following.states[Pod].resource.field_selector}


@pytest.mark.usefixtures("_pages_of_two")
@scenario(watch_list="off")
async def test_a_list_that_changes_while_it_is_paged_is_the_state_of_one_moment(
    server: FakeApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.feeds.reflector.ADDED_AT_ONCE", 2)
    seed(server)
    for number in range(5):
        create(server, make_pod(f"p{number}"))
    slow = Stall(before_head=True)
    server.faults.add(slow, PODS, "page")
    async with Following(server, Pod) as following:
        await following.until(lambda: following.counts().requests.get("page") == 1, "at the second page")
        churn(server)
        server.delete(PODS, "p0", "default")
        recreate(server, make_pod("p4").on("n2"))
        assert len(following.reflectors[Pod].known) == 2  # a first list is applied as it comes
        assert following.freshness.status() is SyncStatus.NOT_SYNCED
        slow.release()
        await following.until_equal()
        await following.until_counts(Counts({"watch-list": 1, "list": 1, "page": 3, "watch": 1}))


# What is asked for.


@scenario(watch_list="off")
async def test_requests_say_what_the_api_wants_of_them(server: FakeApiServer) -> None:
    timing = replace(QUICK, random=lambda: 0.5)
    async with followed(server, Pod, timing=timing) as following:
        await following.until_a_line()
        watch_list, listed, watch = (request.query for request in server.requests)
    selected = {"fieldSelector": "status.phase!=Succeeded,status.phase!=Failed"}
    watched = {**selected, "watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": "450"}
    # Neither sync says a resourceVersion: both are of the latest state.
    assert watch_list == {**watched, "sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    assert listed == {**selected, "limit": "500"}
    assert watch == {**watched, "resourceVersion": str(server.store.version)}


# By request: by a mark, without one by a sync.


class Mark:
    """A write to a pod, by which the watch is known to have come so far."""

    def __init__(self, server: FakeApiServer) -> None:
        self._server = server
        self._pod = server.create(PODS, make_pod("own").on("n1").obj())
        self.written = 0

    async def write(self) -> str:
        self.written += 1
        self._pod = self._server.update(PODS, {**self._pod, "status": {"message": str(self.written)}})
        version: str = self._pod["metadata"]["resourceVersion"]
        return version

    async def write_twice(self) -> str:
        version = await self.write()
        await self.write()
        return version

    async def fail(self) -> str:
        self.written += 1
        return ""


@scenario()
async def test_what_came_before_a_mark_is_shown_without_a_sync_and_not_by_an_earlier_event(
    server: FakeApiServer,
) -> None:
    mark, stall, late = Mark(server), Stall(), make_pod("late").on("n1").obj()
    async with followed(server, Pod) as following:
        await server.until_watching(PODS)

        async def late_write() -> str:
            """Show an event at once, hold the watch back, and change more pods."""
            early = server.create(PODS, make_pod("early").on("n1").obj())["metadata"]["uid"]
            await following.until(lambda: following.mirror.get_pod(early) is not None, "an event")
            server.disturb(stall, PODS)
            late["metadata"]["uid"] = server.create(PODS, late)["metadata"]["uid"]
            return await mark.write()

        catching_up = asyncio.create_task(following.watcher.catch_up(Pod, late_write))
        await asyncio.sleep(0.2)  # what must not happen meanwhile is the end
        assert (catching_up.done(), mark.written) == (False, 1)
        stall.release()
        await catching_up
        assert following.mirror.get_pod(late["metadata"]["uid"]) is not None
        assert following.counts().relists == {}


@scenario()
async def test_a_later_change_shows_the_mark_too(server: FakeApiServer) -> None:
    mark = Mark(server)
    async with followed(server, Pod) as following:
        await server.until_watching(PODS)
        await following.watcher.catch_up(Pod, mark.write_twice)
        assert following.counts().relists == {}


@pytest.mark.parametrize("why", ["failed", "unchanged", "not-shown", "went-back"])
@scenario()
async def test_a_mark_that_is_not_shown_is_replaced_by_a_sync(
    server: FakeApiServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, why: str
) -> None:
    monkeypatch.setattr(reflector, "_MARK_LATE", 0.2)
    mark = Mark(server)
    async with followed(server, Pod) as following:
        await server.until_watching(PODS)
        stall = Stall()
        server.disturb(stall, PODS)
        bound = server.create(PODS, make_pod("late").on("n1").obj())

        async def went_back() -> str:
            """Return a version from before the watch: the server was restored from a backup."""
            await mark.write()
            return "1"

        async def unchanged() -> str:
            """Return the version that the watch has shown last, as for a write without an effect."""
            mark.written += 1
            return last

        last = str(server.store.version - 1)
        write = {"failed": mark.fail, "unchanged": unchanged, "not-shown": mark.write, "went-back": went_back}[why]
        await following.watcher.catch_up(Pod, write)
        late = "pods: listed, because the watch did not show a change within 0.2 s"
        assert (mark.written, late in caplog.messages) == (1, why == "not-shown")
        assert following.mirror.get_pod(bound["metadata"]["uid"]) is not None
        assert following.counts().relists == {"asked": 1}


@pytest.mark.parametrize("mode", ["on", "off"])
@scenario()
async def test_it_shows_what_a_watch_that_is_late_has_not_told(server: FakeApiServer, mode: WatchListMode) -> None:
    server.behaviour.watch_list = mode
    async with followed(server, Pod) as following:
        before = following.counts().requests
        await server.until_watching(PODS)
        server.disturb(Stall(), PODS)
        bound = server.create(PODS, make_pod("late").on("n1").obj())
        assert following.mirror.get_pod(bound["metadata"]["uid"]) is None
        await following.watcher.catch_up(Pod, None)
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
        await following.watcher.catch_up(Pod, None)
        assert following.counts().requests == {"watch-list": 2}
        await following.until_equal()


@scenario()
async def test_it_waits_for_a_sync_that_comes_through(server: FakeApiServer) -> None:
    async with followed(server, Pod) as following:
        fault = server.faults.add(refuse(unavailable()), PODS, times=None)
        resyncing = asyncio.create_task(following.watcher.catch_up(Pod, None))
        await following.until(lambda: fault.applied >= 3, "asked again")
        assert not resyncing.done()
        server.faults.clear()
        await resyncing
        await following.until_equal()


@scenario()
async def test_who_waits_no_more_changes_nothing_for_the_next(server: FakeApiServer) -> None:
    async with followed(server, Pod) as following:
        server.faults.add(Stall(before_head=True), PODS, "watch-list", times=1)
        first = asyncio.create_task(following.watcher.catch_up(Pod, None))
        await server.until(lambda: not server.faults.pending)
        first.cancel()
        await following.watcher.catch_up(Pod, None)
        assert first.cancelled()
        assert following.counts() == Counts(following.counts().requests, {}, {"asked": 2})
        await following.until_equal()


@scenario()
async def test_two_that_ask_at_almost_the_same_time_get_a_sync(server: FakeApiServer) -> None:
    async with followed(server, Pod) as following:
        for turns in range(5):  # of the loop: in one of them, the watch that the first has interrupted is ending
            await server.until_watching(PODS)
            first = asyncio.create_task(following.watcher.catch_up(Pod, None))
            for _ in range(turns):
                await asyncio.sleep(0)
            await following.watcher.catch_up(Pod, None)
            await first
        await following.until_equal()


@scenario()
async def test_what_is_not_watched_cannot_be_synced(server: FakeApiServer) -> None:
    seed(server)
    async with Following(server, Pod) as following:
        with pytest.raises(LookupError, match="Nodes are not watched"):
            await following.watcher.catch_up(Node, None)
        await following.until_equal()
