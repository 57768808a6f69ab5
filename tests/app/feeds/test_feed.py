"""What the feed tells the mirror, and what it says of it."""

import asyncio
import gc
import logging
from collections.abc import Callable, Sequence
from typing import cast

import pytest
from msgspec.structs import replace

from app.feeds import objects as watched_objects
from app.feeds.objects import MirrorFeed
from core.events import Action, ClusterEvent
from core.mirror.cluster import ClusterMirror
from core.objects.devices import Allocation, ResourceClaim
from core.objects.pod import Waiting
from tests.builders import PodBuilder, make_pod
from tests.core.decoded import pod_of

PATIENCE = 60.0


class Fed:
    """A feed with a clock that the test sets, and the confirmations that it has observed."""

    def __init__(self) -> None:
        self.now = 50.0
        self.confirmed: list[float] = []
        self.mirror = ClusterMirror(assumed_pod_ttl=10.0)
        self.feed = MirrorFeed(self.mirror, lambda: self.now, self.confirmed.append, lambda: 1000 + self.now)

    def tell(self, action: Action, pod: PodBuilder) -> None:
        self.feed.apply(ClusterEvent(action, pod_of(pod)))

    def assume(self, name: str, node: str) -> None:
        self.mirror.assume(pod_of(make_pod(name)), node, self.now)

    def follow_time_until(
        self, ends: Callable[[], bool], is_stale: Callable[[], bool] = lambda: False, version: str = ""
    ) -> None:
        async def follow() -> None:
            async with asyncio.timeout(PATIENCE):
                following = asyncio.create_task(self.feed.follow_time(is_stale, lambda: version))
                while not ends():  # noqa: ASYNC110  # the mirror sets no event
                    await asyncio.sleep(0.001)
                following.cancel()
                await asyncio.gather(following, return_exceptions=True)

        asyncio.run(follow())


def test_the_delay_of_a_confirmation_is_observed_and_nothing_else() -> None:
    fed = Fed()
    fed.assume("assumed", "n1")
    fed.now += 0.25
    fed.tell("Update", make_pod("assumed"))  # of the pod while it is pending
    fed.tell("Add", make_pod("other").on("n1"))
    assert fed.confirmed == []
    fed.tell("Update", make_pod("assumed").on("n1"))
    fed.tell("Update", make_pod("assumed").on("n1").label("seen", "again"))
    assert fed.confirmed == [0.25]


@pytest.mark.parametrize(
    ("steps", "delays", "expected"),
    [
        pytest.param(["assume n1", "Update n1"], [1.0], (), id="confirmed"),
        pytest.param(
            ["assume n1", "Update n2"],
            [1.0],
            (logging.WARNING, "pods: default/p: assumed on n1, but bound to n2"),
            id="mismatch",
        ),
        pytest.param(
            ["Add n1", "Update n2\nforged"],
            [],
            (logging.WARNING, "pods: default/p: moved from n1 to n2\\nforged"),
            id="move",
        ),
        pytest.param(
            ["assume n1", "Delete n1"],
            [],
            (logging.INFO, "pods: default/p: deleted while assumed on n1"),
            id="deleted-while-assumed",
        ),
        pytest.param(
            ["Delete n1"],
            [],
            (logging.DEBUG, "pods: default/p: deleted, but was not in the mirror"),
            id="unknown-delete",
        ),
    ],
)
def test_a_transition_is_logged_as_loudly_as_it_deserves_and_the_delay_of_a_confirmation_observed(
    steps: Sequence[str], delays: Sequence[float], expected: tuple[object, ...], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    fed = Fed()
    for step in steps:
        action, _, node = step.partition(" ")
        if action == "assume":
            fed.assume("p", node)
            fed.now += 1
        else:
            fed.tell(cast("Action", action), make_pod("p").on(node))
    assert [(record.levelno, record.getMessage()) for record in caplog.records] == ([expected] if expected else [])
    assert fed.confirmed == delays


def test_assumed_pods_expire_by_the_clock(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(watched_objects, "_EXPIRY_EVERY", 0.001)
    fed = Fed()
    for name in ("in-time", "late", "unfinished"):
        fed.assume(name, "n1")
    fed.mirror.finish_binding("default/late", fed.now)
    fed.now += 0.5
    fed.mirror.finish_binding("default/in-time", fed.now)
    fed.now += 9.75

    fed.follow_time_until(lambda: not fed.mirror.is_mirrored("default/late"))
    assert caplog.messages == ["pods: default/late: assumed on n1 and never seen there, dropped"]
    assert fed.mirror.assumed.keys() == {"default/in-time", "default/unfinished"}


def test_no_assumed_pod_expires_before_a_watch_that_was_late_can_have_shown_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its event is among those that were missed, and decisions go on once the first of these has come."""
    monkeypatch.setattr(watched_objects, "_EXPIRY_EVERY", 0.0)
    fed = Fed()
    fed.assume("bound", "n1")
    fed.mirror.finish_binding("default/bound", fed.now)
    counted = []

    def is_stale() -> bool:  # from 55 to 100, in steps of a second
        fed.now += 1.0
        if fed.mirror.is_mirrored("default/bound"):
            counted.append(fed.now)
        return 55.0 < fed.now <= 101.0

    fed.follow_time_until(lambda: not fed.mirror.is_mirrored("default/bound"), is_stale)
    assert counted[-1] == 100.0 + 30.0 + 1.0


def test_an_assumed_pod_that_a_later_watch_does_not_have_is_deleted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A GET has shown it, and a list came in the place of its events, or these were faster than the response."""
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(watched_objects, "_EXPIRY_EVERY", 0.0)
    fed = Fed()
    for name, version in (("deleted", "99"), ("now", "100"), ("later", "101"), ("odd", "v1"), ("pending", "9")):
        fed.mirror.assume(replace(pod_of(make_pod(name)), resource_version=version), "n1", fed.now)
    fed.tell("Add", make_pod("pending"))
    fed.follow_time_until(lambda: not fed.mirror.is_mirrored("default/deleted"), version="100")
    assert fed.mirror.assumed.keys() == {f"default/{name}" for name in ("now", "later", "odd", "pending")}
    assert caplog.messages == ["pods: default/deleted: deleted while assumed on n1"]


def test_no_assumed_pod_is_deleted_while_a_list_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched_objects, "_EXPIRY_EVERY", 0.0)
    fed = Fed()
    fed.mirror.assume(replace(pod_of(make_pod("p")), resource_version="99"), "n1", fed.now)
    turns = iter(range(5))
    fed.follow_time_until(lambda: next(turns, None) is None, version="")
    assert fed.mirror.is_assumed("default/p")


def test_no_assumed_pod_is_deleted_by_a_watch_that_does_not_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """An etcd that was restored from a backup has lower versions, and its watch shows nothing up to the earlier one."""
    monkeypatch.setattr(watched_objects, "_EXPIRY_EVERY", 0.0)
    fed = Fed()
    turns = iter(range(9))

    def ends() -> bool:
        turn = next(turns, None)
        if turn == 4:
            fed.mirror.assume(replace(pod_of(make_pod("p")), resource_version="99"), "n1", fed.now)
        return turn is None

    fed.follow_time_until(ends, version="100")
    assert fed.mirror.is_assumed("default/p")


def test_a_claim_whose_devices_are_not_bound_in_time_is_marked_by_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched_objects, "_EXPIRY_EVERY", 0.001)
    fed = Fed()

    def tell(action: Action, name: str, until: float | None) -> None:
        allocation = Allocation(binds_until=until)
        fed.feed.apply(ClusterEvent(action, ResourceClaim(name=name, namespace="default", allocation=allocation)))

    for name in ("early", "late", "bound", "gone"):
        tell("Add", name, 1050.1 if name == "late" else 1049.9)
    tell("Update", "bound", None)
    tell("Delete", "gone", 1049.9)
    claims = fed.mirror.objects(ResourceClaim)

    def marked() -> list[str]:
        return [each.name for each in claims.values() if each.allocation and each.allocation.unbindable]

    fed.follow_time_until(lambda: bool(marked()))
    assert marked() == ["early"]
    generation = fed.mirror.generation
    fed.now += 0.2
    fed.follow_time_until(lambda: len(marked()) > 1)
    assert marked() == ["early", "late"]
    assert fed.mirror.generation == generation + 1, "what is marked already is not told again"


def test_the_condition_of_a_failed_attempt_ends_no_assumption() -> None:
    """kube-scheduler leaves a condition as it is if its text stays, so it may be of any earlier attempt."""
    fed = Fed()
    fed.assume("p", "n1")
    fed.mirror.finish_binding("default/p", fed.now)
    fed.now += 600.0
    fed.feed.apply(ClusterEvent("Update", replace(pod_of(make_pod("p")), waiting=Waiting(reason="SchedulerError"))))
    assert fed.mirror.is_assumed("default/p")


def test_loads_are_surrounded_by_a_pause_of_the_collector() -> None:
    with Fed().feed.loading():
        assert not gc.isenabled()
    assert gc.isenabled()
