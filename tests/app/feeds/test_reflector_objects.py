"""What comes through the wire: objects of every kind of bytes, such as cannot be read, and absent resources."""

import asyncio
import json
import logging
from collections.abc import Callable
from typing import Any, Final

import pytest

from app.feeds import objects
from app.feeds.freshness import SyncStatus
from app.objects.decode_pod import decode_pod
from app.objects.resources import RESOURCES
from core.objects.groups import SchedulingGroup
from core.objects.kinds import DeviceClass, Namespace
from core.objects.node import Node
from core.objects.pod import Pod
from tests.app.feeds.following import Counts, Following, MirrorOnly, scenario
from tests.app.feeds.small_cluster import PODS, create, followed, recreate, seed, update
from tests.builders import make_namespace, make_pod
from tests.fake_apiserver import FakeApiServer
from tests.fake_apiserver.faults import Cut, End, Undecodable, refuse
from tests.fake_apiserver.listing import WatchListMode
from tests.fake_apiserver.statuses import not_found

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


@BOTH_SYNCS
@scenario()
async def test_an_object_of_a_megabyte_comes_through_in_odd_chunks(server: FakeApiServer, mode: WatchListMode) -> None:
    server.behaviour.watch_list = mode
    server.behaviour.chunk_bytes = 10_007
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
    async with followed(server, Pod) as following:
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
        assert following.mirror.get_pod(after.uid) == after


@scenario()
async def test_a_relist_tells_only_what_differs(server: FakeApiServer) -> None:
    async with followed(server, Pod) as following:
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
    server.create(PODS, broken_pod("odd"))
    async with followed(server, Pod) as following:
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
    async with followed(server, Pod) as following:
        before = known(following, "db")
        server.disturb(Undecodable(), PODS)
        update(server, make_pod("db").on("n1"))
        create(server, make_pod("behind"))
        await following.until(lambda: known(following, "behind") is not None, "told what came behind")
        assert known(following, "db") == before is not None
        assert following.states[Pod].decode_errors == 1
        assert "pods: skipped default/db: metadata.labels: " in caplog.text
        update(server, make_pod("db").on("n1"))
        await following.until_equal()
        assert following.counts() == Counts({"watch-list": 1})


@scenario(bookmark_interval=60.0)
async def test_a_watch_resumes_behind_an_unreadable_event(server: FakeApiServer) -> None:
    async with followed(server, Pod) as following:
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
    async with followed(server, Pod) as following:
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
    async with followed(server, Pod) as following:
        await following.until_a_line()
        before = known(following, "db")
        await relist(following, lambda: server.update(PODS, broken_pod("db")))
        assert known(following, "db") == before is not None
        update(server, make_pod("db").on("n1"))
        await following.until_equal()


@BOTH_SYNCS
@scenario()
async def test_what_had_the_name_of_an_unreadable_object_before_is_gone(
    server: FakeApiServer, mode: WatchListMode
) -> None:
    server.behaviour.watch_list = mode
    async with followed(server, Pod) as following:
        await following.until_a_line()

        def make_again() -> None:
            server.delete(PODS, "db", "default")
            server.create(PODS, broken_pod("db"))

        await relist(following, make_again)
        assert known(following, "db") is None
        update(server, make_pod("db").on("n1"))
        await following.until_equal()


# Resources that are not there.


CLASSES: Final = RESOURCES[DeviceClass].path
GPU: Final = {"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": "example.com/gpu"}}
GROUP: Final = {"metadata": {"name": "train", "namespace": "shop"}, "spec": {"schedulingPolicy": {"basic": {}}}}


@scenario()
async def test_a_resource_that_the_server_does_not_have_is_not_waited_for(
    server: FakeApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.behaviour.absent = {CLASSES}
    seed(server)
    with caplog.at_level(logging.INFO, "app.feeds"):
        async with Following(server, Node, Pod, Namespace, DeviceClass) as following:
            await following.until_equal()
            assert following.freshness.problems() == []
            requested = len(server.requests.of(CLASSES))
            await following.until(lambda: len(server.requests.of(CLASSES)) >= requested + 3, "looked for again")
            state = following.states[DeviceClass]
            assert (state.absent, state.problem, state.failures.total()) == (True, "", 0)
            assert following.freshness.age(state) is None
    reported = [each.message for each in caplog.records if "deviceclasses" in each.message]
    assert reported == ["deviceclasses: the API server does not have resource.k8s.io/v1, skipped"]


@scenario()
async def test_a_resource_that_an_upgrade_brings_is_followed(server: FakeApiServer) -> None:
    server.behaviour.absent = {CLASSES}
    async with followed(server, Node, Pod, Namespace, DeviceClass) as following:
        assert following.states[DeviceClass].absent
        server.create(CLASSES, GPU)
        server.behaviour.absent = set()
        await following.until(lambda: not following.states[DeviceClass].absent, "followed")
        await following.until_equal()
        assert list(following.mirror.objects(DeviceClass)) == ["gpu"]


@scenario()
async def test_a_resource_that_the_server_has_no_more_leaves_the_mirror(server: FakeApiServer) -> None:
    server.create(CLASSES, GPU)
    async with followed(server, Node, Pod, Namespace, DeviceClass) as following:
        server.behaviour.absent = {CLASSES}
        server.end_watches(CLASSES)
        await following.until(lambda: following.states[DeviceClass].absent, "absent")
        assert not following.mirror.objects(DeviceClass)
        server.delete(CLASSES, "gpu")
        await following.until_equal()


@scenario()
async def test_a_resource_that_every_server_has_is_waited_for_whatever_it_answers(server: FakeApiServer) -> None:
    seed(server)
    server.faults.add(refuse(not_found()), PODS, times=None)
    async with Following(server, Node, Pod, Namespace, DeviceClass) as following:
        await following.until(lambda: following.states[Pod].failures["404"] >= 3, "refused")
        assert following.freshness.status() is SyncStatus.NOT_SYNCED
        server.faults.clear()
        await following.until_equal()


@scenario()
async def test_a_404_of_a_server_that_has_trouble_says_nothing(server: FakeApiServer) -> None:
    server.create(CLASSES, GPU)
    async with followed(server, Node, Pod, Namespace, DeviceClass) as following:
        for path in (PODS, RESOURCES[Node].path):
            server.faults.add(refuse(not_found()), path, times=None)
            server.end_watches(path)
        await following.until(lambda: len([s for s in following.states.values() if s.problem]) == 2, "unwell")
        server.behaviour.absent = {CLASSES}
        server.end_watches(CLASSES)
        await following.until(lambda: bool(following.states[DeviceClass].problem), "refused")
        assert list(following.mirror.objects(DeviceClass)) == ["gpu"]
        server.behaviour.absent = set()
        server.faults.clear()
        await following.until_equal()
        assert list(following.mirror.objects(DeviceClass)) == ["gpu"]


@scenario()
async def test_the_newest_version_that_the_server_has_is_followed(
    server: FakeApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    newest = RESOURCES[SchedulingGroup]
    older = next(each for each in newest.versions() if each.version == "v1alpha3")
    server.behaviour.absent = {newest.path}
    seed(server)
    server.create(older.path, GROUP)
    async with Following(server, Node, Pod, Namespace, SchedulingGroup) as following:
        state = following.states[SchedulingGroup]
        await following.until(lambda: state.resource == older and state.synced, "followed in the older version")
        assert list(following.mirror.objects(SchedulingGroup)) == ["shop/train"]
        assert (state.absent, state.problem) == (False, "")
        server.behaviour.absent = {older.path}
        server.create(newest.path, GROUP)
        server.end_watches(older.path)
        await following.until(lambda: state.resource == newest and bool(state.objects), "followed in the newest")
        assert list(following.mirror.objects(SchedulingGroup)) == ["shop/train"]
    assert not [each for each in caplog.records if "does not have" in each.message]


@scenario()
async def test_without_any_version_the_server_is_asked_for_each_again(server: FakeApiServer) -> None:
    versions = [each for each in RESOURCES[SchedulingGroup].versions() if each.version in {"v1", "v1alpha3"}]
    server.behaviour.absent = {each.path for each in versions}  # it knows no other version
    seed(server)
    async with Following(server, Node, Pod, Namespace, SchedulingGroup) as following:
        await following.until(lambda: following.states[SchedulingGroup].absent, "absent")
        await following.until(
            lambda: all(len(server.requests.of(each.path)) >= 2 for each in versions), "looked for again"
        )
        assert following.freshness.problems() == []


@BOTH_SYNCS
@scenario()
async def test_a_pod_that_only_a_get_has_shown_counts_no_longer_once_a_list_has_come_without_it(
    server: FakeApiServer, monkeypatch: pytest.MonkeyPatch, mode: WatchListMode
) -> None:
    monkeypatch.setattr(objects, "_EXPIRY_EVERY", 0.01)
    server.behaviour.watch_list = mode
    feed = MirrorOnly()
    async with followed(server, Node, Pod, Namespace, feed=feed) as following, asyncio.TaskGroup() as tasks:
        time = tasks.create_task(feed.follow_time(version=lambda: following.watcher.version(Pod)))

        def come_and_go() -> None:
            found = server.create(PODS, make_pod("brief").obj())
            feed.mirror.assume(decode_pod(json.dumps(found).encode()), "n1", 0.0)
            server.delete(PODS, "brief", "default")

        await relist(following, come_and_go)
        await following.until_equal()
        time.cancel()
