"""What comes through the wire: objects of every kind of bytes, and such as cannot be read."""

from collections.abc import Callable
from typing import Any, Final

import pytest

from core.objects.kinds import Namespace
from core.objects.pod import Pod
from tests.app.watch.following import Counts, Following, scenario
from tests.app.watch.small_cluster import PODS, create, recreate, seed, update
from tests.builders import make_namespace, make_pod
from tests.fake_apiserver import FakeApiServer
from tests.fake_apiserver.faults import Cut, End, Undecodable
from tests.fake_apiserver.listing import WatchListMode

BROKEN: Final[dict[str, Any]] = {"labels": ["not", "a", "map"]}
BOTH_SYNCS: Final = pytest.mark.parametrize(
    "mode", [pytest.param("on", id="by-watch-list"), pytest.param("off", id="by-pages")]
)


def broken_pod(name: str, uid: str = "") -> dict[str, Any]:
    """Return a pod that cannot be decoded, but for its identity."""
    return {"metadata": {"name": name, "namespace": "default", **({"uid": uid} if uid else {}), **BROKEN}}


async def relist(following: Following, change: Callable[[], object]) -> None:
    """Change something while the watch is down, and let its version expire."""
    following.mark()
    following.server.end_watches(PODS)
    change()
    following.server.compact(PODS)
    state = following.states[Pod]
    await following.until(lambda: following.counts().relists == {"expired": 1} and not state.problem, "listed again")


def known(following: Following, name: str) -> Pod | None:
    """Return what is known of a pod."""
    found = {each.full_name: each for each in following.reflectors[Pod].known}.get(f"default/{name}")
    assert isinstance(found, Pod | None)
    return found


# Every kind of bytes.


@BOTH_SYNCS
@scenario()
async def test_what_text_readers_take_for_line_ends_stays_inside_of_values(
    server: FakeApiServer, mode: WatchListMode
) -> None:
    server.behaviour.watch_list = mode
    odd = "a\u0085b\u2028c\u2029d\x0be\x0cf\x1cg\rh\ni"
    create(server, make_pod("before").on("n1").label("note", odd))
    async with Following(server, Pod) as following:
        await following.until_equal()
        await following.until_a_line()
        create(server, make_pod("after").on("n1").label("note", odd))
        await following.until_equal()
        for name in ("before", "after"):
            pod = known(following, name)
            assert pod is not None
            assert pod.labels["note"] == odd
        assert following.counts().failures == {}


@pytest.mark.parametrize("chunk_bytes", [1009, 65_537])
@BOTH_SYNCS
@scenario()
async def test_an_object_of_a_megabyte_comes_through_in_odd_chunks(
    server: FakeApiServer, mode: WatchListMode, chunk_bytes: int
) -> None:
    server.behaviour.watch_list = mode
    server.behaviour.chunk_bytes = chunk_bytes
    big = make_namespace("big").label("annotation", "x" * 1_000_000)
    create(server, big)
    async with Following(server, Namespace) as following:
        await following.until_equal()
        await following.until_a_line(Namespace)
        update(server, big.label("annotation", "y" * 1_000_000))
        create(server, make_namespace("small"))
        await following.until_equal()
        assert following.counts(Namespace).failures == {}


# What was missed.


@scenario()
async def test_a_pod_made_again_while_the_watch_was_down_is_another_one(server: FakeApiServer) -> None:
    seed(server)
    async with Following(server, Pod) as following:
        await following.until_equal()
        before = known(following, "db")
        server.disturb(End(), PODS)
        recreate(server, make_pod("db").on("n2"))
        server.compact(PODS)
        await following.until_equal()
        after = known(following, "db")
        assert following.counts().relists == {"expired": 1}
        assert before is not None
        assert after is not None
        assert following.mirror.get_pod(before.uid) is None
        assert following.mirror.get_pod(after.uid) is after


@scenario()
async def test_a_relist_tells_only_what_differs(server: FakeApiServer) -> None:
    seed(server)
    async with Following(server, Pod) as following:
        await following.until_equal()
        generation = following.mirror.generation

        def pass_by() -> None:
            create(server, make_pod("passing"))
            server.delete(PODS, "passing", "default")

        await relist(following, pass_by)
        assert following.mirror.generation == generation
        await relist(following, lambda: update(server, make_pod("db").on("n1")))
        assert following.mirror.generation == generation + 2  # one for each node
        await following.until_equal()


# What cannot be read.


@BOTH_SYNCS
@scenario()
async def test_an_unreadable_object_is_left_out_of_a_sync_and_named(
    server: FakeApiServer, mode: WatchListMode, caplog: pytest.LogCaptureFixture
) -> None:
    server.behaviour.watch_list = mode
    seed(server)
    server.create(PODS, broken_pod("odd"))
    async with Following(server, Pod) as following:
        await following.until_equal()
        assert {each.full_name for each in following.reflectors[Pod].known} == {
            "shop/web",
            "default/db",
            "default/waits",
        }
        assert following.states[Pod].decode_errors == 1
        assert "pods: skipped default/odd: metadata.labels: " in caplog.text
        # Once it can be read, it is taken.
        update(server, make_pod("odd").on("n2"))
        await following.until_equal()
        assert following.counts().failures == {}


@scenario()
async def test_an_unreadable_event_leaves_what_was_known_until_a_readable_one(
    server: FakeApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    seed(server)
    async with Following(server, Pod) as following:
        await following.until_equal()
        before = known(following, "db")
        server.disturb(Undecodable(), PODS)
        update(server, make_pod("db").on("n1"))
        create(server, make_pod("behind"))
        await following.until(lambda: known(following, "behind") is not None, "told what came behind")
        assert known(following, "db") is before is not None
        assert following.states[Pod].decode_errors == 1
        assert "pods: skipped default/db: metadata.labels: " in caplog.text
        update(server, make_pod("db").on("n1"))
        await following.until_equal()
        assert following.counts() == Counts({"watch-list": 1})


@scenario(bookmark_interval=60.0)
async def test_a_watch_resumes_behind_an_unreadable_event(server: FakeApiServer) -> None:
    seed(server)
    async with Following(server, Pod) as following:
        await following.until_equal()
        server.disturb(Undecodable(), PODS)
        update(server, make_pod("db").on("n1"))
        version = str(server.store.version)
        await following.until(lambda: following.states[Pod].decode_errors == 1, "passed over")
        server.disturb(Cut(), PODS)
        create(server, make_pod("behind"))
        await following.until(lambda: known(following, "behind") is not None, "told what came behind")
        assert following.requests()[-1].query["resourceVersion"] == version
        assert following.states[Pod].decode_errors == 1


@scenario()
async def test_the_deletion_of_an_object_is_taken_though_its_last_state_is_unreadable(server: FakeApiServer) -> None:
    seed(server)
    async with Following(server, Pod) as following:
        await following.until_equal()
        server.disturb(Undecodable(), PODS)
        server.delete(PODS, "db", "default")
        await following.until_equal()
        assert following.states[Pod].decode_errors == 1
        assert following.counts() == Counts({"watch-list": 1})


@BOTH_SYNCS
@scenario()
async def test_an_unreadable_object_is_kept_by_a_relist_as_it_was_known(
    server: FakeApiServer, mode: WatchListMode
) -> None:
    server.behaviour.watch_list = mode
    seed(server)
    async with Following(server, Pod) as following:
        await following.until_equal()
        await following.until_a_line()
        before = known(following, "db")
        await relist(following, lambda: server.update(PODS, broken_pod("db")))
        assert known(following, "db") is before is not None
        update(server, make_pod("db").on("n1"))
        await following.until_equal()


@BOTH_SYNCS
@scenario()
async def test_what_had_the_name_of_an_unreadable_object_before_is_gone(
    server: FakeApiServer, mode: WatchListMode
) -> None:
    server.behaviour.watch_list = mode
    seed(server)
    async with Following(server, Pod) as following:
        await following.until_equal()
        await following.until_a_line()

        def make_again() -> None:
            server.delete(PODS, "db", "default")
            server.create(PODS, broken_pod("db"))

        await relist(following, make_again)
        assert known(following, "db") is None
        update(server, make_pod("db").on("n1"))
        await following.until_equal()
