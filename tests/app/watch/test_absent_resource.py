"""A resource that the server does not have is passed over, and followed when an upgrade brings it."""

import logging
from typing import Final

import pytest

from app.objects.resources import RESOURCES
from app.watch.freshness import SyncStatus
from core.objects.groups import SchedulingGroup
from core.objects.kinds import DeviceClass, Namespace
from core.objects.node import Node
from core.objects.pod import Pod
from tests.app.watch.following import Following, scenario
from tests.app.watch.small_cluster import PODS, seed
from tests.fake_apiserver import FakeApiServer
from tests.fake_apiserver.faults import refuse
from tests.fake_apiserver.statuses import not_found

CLASSES: Final = RESOURCES[DeviceClass].path
GPU: Final = {"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": "example.com/gpu"}}
GROUP: Final = {"metadata": {"name": "train", "namespace": "shop"}, "spec": {"schedulingPolicy": {"basic": {}}}}


@scenario()
async def test_a_resource_that_the_server_does_not_have_is_not_waited_for(
    server: FakeApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.behaviour.absent = {CLASSES}
    seed(server)
    with caplog.at_level(logging.INFO, "app.watch"):
        async with Following(server, Node, Pod, Namespace, DeviceClass) as following:
            await following.until_equal()
            assert following.freshness.problems() == []
            asked = len(server.requests.of(CLASSES))
            await following.until(lambda: len(server.requests.of(CLASSES)) >= asked + 3, "looked for again")
            state = following.states[DeviceClass]
            assert (state.absent, state.problem, state.failures.total()) == (True, "", 0)
            assert following.freshness.age(state) is None
    told = [each.message for each in caplog.records if "deviceclasses" in each.message]
    assert told == ["deviceclasses: the API server does not have resource.k8s.io/v1, skipped"]


@scenario()
async def test_a_resource_that_an_upgrade_brings_is_followed(server: FakeApiServer) -> None:
    server.behaviour.absent = {CLASSES}
    seed(server)
    async with Following(server, Node, Pod, Namespace, DeviceClass) as following:
        await following.until_equal()
        assert following.states[DeviceClass].absent
        server.create(CLASSES, GPU)
        server.behaviour.absent = set()
        await following.until(lambda: not following.states[DeviceClass].absent, "followed")
        await following.until_equal()
        assert list(following.mirror.objects(DeviceClass)) == ["gpu"]


@scenario()
async def test_a_resource_that_the_server_has_no_more_leaves_the_mirror(server: FakeApiServer) -> None:
    seed(server)
    server.create(CLASSES, GPU)
    async with Following(server, Node, Pod, Namespace, DeviceClass) as following:
        await following.until_equal()
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
    seed(server)
    server.create(CLASSES, GPU)
    async with Following(server, Node, Pod, Namespace, DeviceClass) as following:
        await following.until_equal()
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
