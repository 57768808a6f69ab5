"""The release of the API server: found out at the start, and followed through upgrades, in virtual time."""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from itertools import cycle
from typing import Any, Final

import msgspec
import pytest

from app.api_server.client import ApiClient, ApiError, ConnectionFailedError, StatusError
from app.feeds.freshness import Freshness, ResourceState, SyncStatus
from app.feeds.release import ReleaseTracker, ServerRelease
from app.objects.decode_node import decode_node
from app.objects.resources import RESOURCES
from app.settings.settings import Settings
from app.verbs.filter import Extender
from app.verbs.request import Request
from core.equivalence.cache import EquivalenceCache
from core.events import ClusterEvent
from core.mirror.cluster import ClusterMirror
from core.objects.pod import Pod
from core.profile import Profile, full_profile
from core.releases.differences import rules_of
from core.releases.release import nearest
from tests.app.questions import by_name, mirror_of
from tests.builders import NodeBuilder, make_node, make_pod
from tests.virtual_time import run_in_virtual_time

Reported = str | bytes | ApiError
MINUTE: Final = 60.0
_FIRST: Final = 0.5  # seconds: between the first two looks
UNREACHABLE: Final = ConnectionFailedError("GET /version at https://server: Connection refused")
FORBIDDEN: Final = StatusError(403, "Forbidden", "GET /version: 403 Forbidden")


class VersionServer(ApiClient):
    """Answers GET /version as the test says."""

    def __init__(self, tell: Callable[[float], Reported]) -> None:  # no connections: what is inherited is not used
        self.tell = tell
        self.requested: list[float] = []

    async def get(self, path: str, _params: Mapping[str, str], _most: int = 0) -> bytes:
        """Return what is told now."""
        assert path == "/version"
        now = asyncio.get_running_loop().time()
        self.requested.append(now)
        reported = self.tell(now)
        if isinstance(reported, ApiError):
            raise reported
        return reported if isinstance(reported, bytes) else msgspec.json.encode({"major": "1", "gitVersion": reported})


class Asking:
    """A mirror whose rules follow a server's version."""

    def __init__(self, tell: Callable[[float], Reported], settings: Settings | None = None) -> None:
        self.mirror = ClusterMirror()
        self.responded = ReleaseTracker(settings or Settings(), self.mirror)
        self.server = VersionServer(tell)
        self.pods = ResourceState(RESOURCES[Pod])
        clock = asyncio.get_running_loop().time
        self.release = ServerRelease(self.server, self.responded, [self.pods], clock)
        self.freshness = Freshness([self.pods], 1e9, clock, self.release.problem)
        self._running = asyncio.create_task(self.release.run())

    @property
    def responses_as(self) -> str:
        return str(self.mirror.rules.release)

    def sync(self) -> None:
        """Let the mirror have all pods."""
        self.pods.synced = True

    async def end(self) -> None:
        self._running.cancel()
        await asyncio.gather(self._running, return_exceptions=True)


def follows(tell: Callable[[float], Reported], look: Callable[[Asking], Coroutine[Any, Any, None]]) -> Asking:
    """Follow a server while the test looks at it."""

    async def main() -> Asking:
        asking = Asking(tell)
        asking.sync()
        assert asking.freshness.status() is SyncStatus.NOT_SYNCED
        assert asking.freshness.problems() == ["release of Kubernetes: not known yet (no response to GET /version)"]
        await asyncio.sleep(_FIRST)
        try:
            await look(asking)
        finally:
            await asking.end()
        return asking

    return run_in_virtual_time(main())


def in_turns(*versions: str) -> Callable[[float], str]:
    """Tell of several servers behind one address."""
    turns = cycle(versions)
    return lambda _: next(turns)


async def pass_minutes(asking: Asking, minutes: float) -> set[str]:
    """Let time pass; return the releases that were answered for, looked at every second."""
    seen = set()
    for _ in range(round(minutes * MINUTE)):
        seen.add(asking.responses_as)
        await asyncio.sleep(1.0)
    return seen


def test_the_servers_release_is_answered_for_before_the_first_request() -> None:
    async def look(asking: Asking) -> None:
        assert asking.freshness.status() is SyncStatus.FRESH
        assert (asking.responses_as, asking.responded.status.told) == ("1.37", "v1.37.1")

    follows(lambda _: "v1.37.1", look)


def test_an_upgrade_is_taken_over_when_only_the_new_version_was_told_for_two_minutes() -> None:
    async def look(asking: Asking) -> None:
        assert await pass_minutes(asking, 11.5) == {"1.36"}
        assert await pass_minutes(asking, 4) == {"1.36", "1.37"}
        assert await pass_minutes(asking, 10) == {"1.37"}

    follows(lambda now: "v1.37.1" if now >= 10 * MINUTE else "v1.36.3", look)


def test_while_an_old_server_answers_in_turn_the_release_stays() -> None:
    async def look(asking: Asking) -> None:
        assert await pass_minutes(asking, 120) == {"1.36"}
        assert len(asking.server.requested) <= 241  # every 30 s

    follows(in_turns("v1.36.3", "v1.37.1", "v1.37.1"), look)


def test_two_new_versions_in_turn_are_not_taken_for_steady() -> None:
    turns = in_turns("v1.37.0", "v1.35.9")

    async def look(asking: Asking) -> None:
        assert await pass_minutes(asking, 30) == {"1.36"}

    follows(lambda now: turns(now) if now else "v1.36.3", look)


def test_a_restart_of_the_server_is_looked_at_within_seconds() -> None:
    async def look(asking: Asking) -> None:
        await asyncio.sleep(3.0)
        asking.pods.failures["ConnectionFailed"] += 1
        await asyncio.sleep(8.0)
        assert len(asking.server.requested) == 2

    follows(lambda _: "v1.37.1", look)


def test_what_was_known_stays_true_while_the_server_fails(caplog: pytest.LogCaptureFixture) -> None:
    async def look(asking: Asking) -> None:
        assert await pass_minutes(asking, 30) == {"1.37"}
        assert asking.freshness.problems() == []

    follows(lambda now: "v1.37.1" if not now else UNREACHABLE, look)
    assert [each.message for each in caplog.records if each.name == "app.feeds.release"] == [
        "answers as Kubernetes 1.37 (API server: v1.37.1)"
    ]


def test_requests_wait_for_the_release_while_the_server_cannot_be_reached() -> None:
    async def main() -> None:
        asking = Asking(lambda now: UNREACHABLE if now < 10 * MINUTE else "v1.37.1")
        await asyncio.sleep(9 * MINUTE)
        assert asking.freshness.problems()[0] == (
            "release of Kubernetes: not known yet (GET /version at https://server: Connection refused)"
        )
        await asyncio.sleep(2 * MINUTE)
        asking.sync()
        assert (asking.freshness.status(), asking.responses_as) == (SyncStatus.FRESH, "1.37")
        await asking.end()

    run_in_virtual_time(main())


@pytest.mark.parametrize(
    "reported",
    [
        pytest.param(FORBIDDEN, id="forbidden"),
        pytest.param(b"<html>", id="no JSON"),
        pytest.param(b'{"gitVersion": 1.37}', id="a number"),
    ],
)
def test_a_server_that_does_not_say_is_answered_for_by_default_and_that_is_logged_once(
    reported: Reported, caplog: pytest.LogCaptureFixture
) -> None:
    async def look(asking: Asking) -> None:
        assert await pass_minutes(asking, 30) == {"1.34"}
        assert (asking.freshness.status(), asking.responded.status.source) == (SyncStatus.FRESH, "default")
        assert len(asking.server.requested) <= 31

    follows(lambda _: reported, look)
    (line,) = [each.message for each in caplog.records if each.name == "app.feeds.release"]
    assert line.startswith("GET /version: ")
    assert line.endswith("; answers as Kubernetes 1.34, the default: no source reports the release")


def test_a_server_that_only_fails_to_say_its_version_is_not_waited_for_long() -> None:
    async def look(asking: Asking) -> None:
        await asyncio.sleep(3.5)
        assert asking.freshness.status() is SyncStatus.NOT_SYNCED
        await asyncio.sleep(2.0)
        assert asking.freshness.status() is SyncStatus.FRESH

    follows(lambda _: StatusError(500, "InternalError", "GET /version: 500"), look)


def test_a_server_that_says_its_version_later_is_believed_at_once() -> None:
    async def look(asking: Asking) -> None:
        assert await pass_minutes(asking, 4) == {"1.34"}
        assert await pass_minutes(asking, 3) == {"1.34", "1.37"}
        assert await pass_minutes(asking, 1) == {"1.37"}

    follows(lambda now: FORBIDDEN if now < 5 * MINUTE else "v1.37.1", look)


@pytest.mark.parametrize(
    ("reported", "release"),
    [("v1.38.0", "1.37"), ("v2.0.0", "1.37"), ("v1.33.5-eks-3025e55", "1.34"), ("", "1.34")],
)
def test_an_unknown_release_is_answered_for_by_the_nearest_and_logged_once(
    reported: str, release: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def look(asking: Asking) -> None:
        await asyncio.sleep(1.0)
        assert await pass_minutes(asking, 30) == {release}
        assert not asking.responded.status.exact

    follows(lambda _: reported, look)
    (line,) = [each.message for each in caplog.records if each.levelno == logging.WARNING]
    assert line == f"answers as Kubernetes {release}, the nearest known release (API server: {reported or 'unknown'})"


def test_with_a_release_in_the_settings_requests_wait_for_no_server() -> None:
    async def main() -> None:
        responded = ReleaseTracker(Settings(kubernetes="1.35"), ClusterMirror())
        release = ServerRelease(VersionServer(lambda _: UNREACHABLE), responded, [], time.monotonic)
        assert release.problem() == ""

    run_in_virtual_time(main())


def test_every_request_during_an_upgrade_is_answered_by_the_rules_of_one_release() -> None:
    nodes = [
        make_node("n1").taint("team", "a", "NoSchedule").allocatable(cpu="4", memory="8Gi", pods=10),
        make_node("n2").allocatable(cpu="8", memory="4Gi", pods=10),
        make_node("n3").allocatable(cpu="2", memory="32Gi", pods=10),
    ]
    body = by_name(make_pod("p").requests(cpu="1", memory="1Gi"), "n1", "n2", "n3")
    expected = {release: responses(full_profile(), mirror_with(release, *nodes), body) for release in ("1.34", "1.36")}
    assert expected["1.34"][0] != expected["1.36"][0]
    assert expected["1.34"][1] != expected["1.36"][1]

    async def look(asking: Asking) -> None:
        for node in nodes:
            asking.mirror.apply(ClusterEvent("Add", decode_node(node.json())))
        profile = full_profile()
        cache = EquivalenceCache(asking.mirror, profile.plugins)
        seen = []
        for _ in range(150):
            seen.append(asking.responses_as)
            assert responses(profile, asking.mirror, body, cache) == expected[asking.responses_as]
            await asyncio.sleep(4.0)
        assert seen == sorted(seen)
        assert set(seen) == expected.keys()
        assert cache.statistics.hits > cache.statistics.misses.total()

    follows(lambda now: "v1.36.3" if now > 2 * MINUTE else "v1.34.1", look)


def mirror_with(release: str, *nodes: NodeBuilder) -> ClusterMirror:
    mirror = mirror_of(*nodes)
    mirror.change_rules(rules_of(nearest(release).release))
    return mirror


def responses(
    profile: Profile, mirror: ClusterMirror, body: bytes, cache: EquivalenceCache | None = None
) -> tuple[bytes, bytes]:
    """Return the answers of both verbs, whose order of nodes is that of the request."""
    extender = Extender(profile, mirror, cache)
    return extender.filter(Request(body)).body, extender.prioritize(Request(body)).body


@pytest.fixture(autouse=True)
def _warnings(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    with caplog.at_level(logging.INFO, "app.feeds.release"):
        yield
