"""Faults of a watch which follows, and outages: what they cost in requests, and when the mirror is stale."""

import asyncio
import time
from collections.abc import Callable
from typing import Final, TypeAlias

import pytest
from msgspec.structs import replace

from app.feeds.freshness import SyncStatus
from core.objects.kinds import Namespace
from core.objects.node import Node
from core.objects.pod import Pod
from tests.app.feeds.following import QUICK, READ_TIMEOUT, STALE_AFTER, Counts, Following, scenario
from tests.app.feeds.small_cluster import PODS, churn, create, followed, seed
from tests.builders import make_pod
from tests.fake_apiserver import FakeApiServer
from tests.fake_apiserver.faults import (
    Action,
    Close,
    CloseOnAccept,
    Cut,
    End,
    Gzip,
    SendLine,
    Stall,
    StreamAction,
    StreamError,
    overloaded,
    refuse,
    reject_token,
)
from tests.fake_apiserver.statuses import (
    bad_request,
    expired_watch,
    failure,
    internal_error,
    too_large_version,
    unavailable,
)

Strike: TypeAlias = Callable[[FakeApiServer], object]
EXPIRED: Final = expired_watch(1, 2)
AHEAD: Final = too_large_version(9, 1, retry_after=0)
AHEAD_BEFORE_1_17: Final = failure(504, "Timeout", "Timeout: Too large resource version: 9, current: 1")
GARBAGE: Final = SendLine(b'{"type":"ADDED"')


def running(action: StreamAction) -> Strike:
    """Let something befall the watch that runs."""

    def strike(server: FakeApiServer) -> None:
        assert server.disturb(action, PODS) == 1

    return strike


def resumed(*actions: Action, after: StreamAction = End()) -> Strike:  # noqa: B008 - a value
    """Let something befall the watches that come next, when the one that runs has ended so."""

    def strike(server: FakeApiServer) -> None:
        for action in actions:
            server.faults.add(action, PODS, "watch")
        running(after)(server)

    return strike


def compacted(server: FakeApiServer) -> None:
    """Let the version that the mirror has expire while the watch is down."""
    running(End())(server)
    create(server, make_pod("passing"))
    server.delete(PODS, "passing", "default")
    server.compact(PODS)


@pytest.mark.parametrize(
    ("strike", "expected"),
    [
        # A normal end, or what is none: resumed at once, without a word.
        pytest.param(running(End()), Counts({"watch": 1}), id="normal-end"),
        pytest.param(running(Stall()), Counts({"list": 1, "watch": 1}), id="stall"),
        pytest.param(resumed(Gzip()), Counts({"watch": 1}), id="gzip"),
        pytest.param(resumed(reject_token()), Counts({"watch": 2}), id="401-once"),
        # Trouble of the moment: resumed from the same version, after a wait.
        pytest.param(
            resumed(refuse(internal_error()), refuse(unavailable())),
            Counts({"watch": 3}, {"500": 1, "503": 1}),
            id="500-then-503",
        ),
        pytest.param(resumed(reject_token(), reject_token()), Counts({"watch": 3}, {"401": 1}), id="401-twice"),
        pytest.param(resumed(Close()), Counts({"watch": 2}, {"ConnectionFailed": 1}), id="close-without-answer"),
        pytest.param(
            resumed(Close(after_head=True), Close(after_head=True)),
            Counts({"watch": 3}, {"ConnectionFailed": 2}),
            id="close-after-head",
        ),
        pytest.param(resumed(End(), End()), Counts({"watch": 3}, {"BrokenWatch": 2}), id="normal-end-at-once"),
        pytest.param(running(Cut()), Counts({"watch": 1}, {"ConnectionFailed": 1}), id="cut-in-mid-line"),
        pytest.param(
            resumed(Stall(before_head=True)), Counts({"watch": 2}, {"ReadTimeout": 1}), id="stall-before-head"
        ),
        pytest.param(
            running(StreamError(internal_error())), Counts({"watch": 1}, {"in-stream 500": 1}), id="in-stream-500"
        ),
        pytest.param(running(GARBAGE), Counts({"watch": 1}, {"GarbledWatch": 1}), id="garbage-once"),
        pytest.param(
            running(SendLine(b'{"type":"DELETED","object":{"metadata":{"name":3}}}')),
            Counts({"watch": 1}, {"GarbledWatch": 1}),
            id="deletion-of-who-knows-what",
        ),
        # What cannot get better by asking again: a sync.
        pytest.param(
            resumed(refuse(EXPIRED)), Counts({"watch": 1, "watch-list": 1}, {"410": 1}, {"expired": 1}), id="410"
        ),
        pytest.param(
            running(StreamError(EXPIRED)),
            Counts({"watch-list": 1}, {"in-stream 410": 1}, {"expired": 1}),
            id="in-stream-410",
        ),
        pytest.param(
            compacted, Counts({"watch": 1, "watch-list": 1}, {"in-stream 410": 1}, {"expired": 1}), id="compacted"
        ),
        pytest.param(
            resumed(refuse(AHEAD)),
            Counts({"watch": 1, "watch-list": 1}, {"504": 1}, {"too-large-version": 1}),
            id="too-large-version",
        ),
        pytest.param(
            resumed(refuse(AHEAD_BEFORE_1_17)),
            Counts({"watch": 1, "watch-list": 1}, {"504": 1}, {"too-large-version": 1}),
            id="too-large-version-of-an-old-server",
        ),
        pytest.param(
            resumed(refuse(bad_request("invalid resource version: x"))),
            Counts({"watch": 1, "watch-list": 1}, {"400": 1}, {"refused": 1}),
            id="400",
        ),
        pytest.param(
            resumed(GARBAGE, after=GARBAGE),
            Counts({"watch": 1, "watch-list": 1}, {"GarbledWatch": 2}, {"broken": 1}),
            id="garbage-always-at-the-same-version",
        ),
        pytest.param(
            resumed(StreamError(internal_error()), after=StreamError(internal_error())),
            Counts({"watch": 1, "watch-list": 1}, {"in-stream 500": 2}, {"broken": 1}),
            id="in-stream-500-always-at-the-same-version",
        ),
    ],
)
@scenario()
async def test_a_watch_gets_over_a_fault_without_asking_more_than_it_must(
    server: FakeApiServer, strike: Strike, expected: Counts
) -> None:
    async with followed(server, Node, Pod, Namespace) as following:
        following.mark()
        strike(server)
        churn(server)
        await following.until_counts(expected)
        await following.until_equal()
        await following.until(lambda: not following.states[Pod].problem, "well")
        await following.stays_quiet()
        assert following.counts() == expected
        assert following.counts(Node) == following.counts(Namespace) == Counts()


@scenario()
async def test_connections_that_are_closed_on_accept_cost_an_attempt_each(server: FakeApiServer) -> None:
    async with followed(server, Pod) as following:
        following.mark()
        for reset in (True, False):
            server.faults.add(CloseOnAccept(reset=reset))
        server.disturb(Cut(), PODS)
        churn(server)
        await following.until(lambda: not server.faults.pending, "over")
        await following.until_equal()
        await following.stays_quiet()
        assert following.counts() == Counts({"watch": 1}, {"ConnectionFailed": 3})


@scenario()
async def test_a_server_whose_versions_went_back_is_synced_from(server: FakeApiServer) -> None:
    seed(server)
    server.store.version += 100
    async with Following(server, Node, Pod, Namespace) as following:
        await following.until_equal()
        following.mark()
        # As where etcd was restored from a backup.
        server.store.version -= 100
        server.end_watches()
        churn(server)
        await following.until_equal()
        for kind in (Node, Pod, Namespace):
            assert following.counts(kind) == Counts({"watch": 1, "list": 1, "watch-list": 1}, {}, {"went-back": 1})


@pytest.mark.parametrize("drops", [False, True], ids=["ended", "cut"])
@scenario()
async def test_versions_that_went_back_show_also_where_a_proxy_ends_quiet_watches_sooner(
    server: FakeApiServer, *, drops: bool
) -> None:
    """As the HAProxy of kubeadm's documentation does after 35 s. Each new watch counts as following by then."""

    async def proxy() -> None:
        while True:
            if drops:
                async with server.refusing_connections(drop=True):
                    pass
            else:
                server.end_watches()
            await asyncio.sleep(READ_TIMEOUT / 2)

    seed(server)
    server.store.version += 100
    async with Following(server, Pod) as following:
        await following.until_equal()
        server.store.version -= 100
        ending = asyncio.create_task(proxy())
        churn(server)
        await following.until(lambda: following.counts().relists == {"went-back": 1}, "synced from", 5.0)
        ending.cancel()
        await following.until_equal()


# Outages.


ATTEMPTS_A_SECOND: Final = 10  # one for each `backoff_longest`, without jitter
FIRST_ATTEMPTS: Final = 4  # while the backoff grows: 0.02, 0.04, 0.08 s, and the one at once


@pytest.mark.parametrize(
    ("action", "problem"),
    [
        pytest.param(End(), "the watch ended within 0.25 s, without an event", id="end-at-once"),
        pytest.param(Stall(before_head=True), f"nothing received for {READ_TIMEOUT:g} s", id="stall-before-head"),
        pytest.param(reject_token(), "401 Unauthorized", id="401"),
    ],
)
@scenario()
async def test_an_outage_makes_the_mirror_stale_and_asks_at_most_once_for_each_wait(
    server: FakeApiServer, action: Action, problem: str
) -> None:
    async with followed(server, Node, Pod, Namespace) as following:
        following.mark()
        began = time.monotonic()
        server.faults.add(action, PODS, times=None)
        server.end_watches(PODS)
        churn(server)
        reported = await following.until_stale(Pod)
        lasted = time.monotonic() - began
        assert lasted >= STALE_AFTER - 0.1  # bookmarks are 0.05 s apart
        # One that is refused with 401 is asked twice, with a new login.
        requests = sum(following.counts().requests.values()) / (2 if problem.startswith("401") else 1)
        assert requests <= FIRST_ATTEMPTS + ATTEMPTS_A_SECOND * lasted
        assert reported.startswith(f"pods: stale for {STALE_AFTER:.0f} s (")
        assert problem in reported
        assert not any(following.states[other].problem for other in (Node, Namespace))
        server.faults.clear()
        await following.until_equal()
        assert following.freshness.problems() == []
        assert following.counts().relists == {}


@scenario()
async def test_a_server_that_restarts_is_resumed_from(server: FakeApiServer) -> None:
    async with followed(server, Node, Pod, Namespace) as following:
        following.mark()
        async with server.refusing_connections(drop=True):
            churn(server)
        await following.until_equal()
        await following.until_a_line()
        for kind in (Node, Pod, Namespace):
            assert following.counts(kind).requests == {"watch": 1}
        assert following.seen == {SyncStatus.FRESH}


@scenario()
async def test_a_mirror_that_was_never_complete_is_not_synced_however_long_it_takes(server: FakeApiServer) -> None:
    slow = Stall(after=2)
    server.faults.add(refuse(unavailable()), PODS, times=3)
    server.faults.add(slow, PODS, "watch-list")
    server.faults.add(Cut(extra=20), PODS, "list")
    async with followed(server, Node, Pod, Namespace) as following:
        assert SyncStatus.STALE not in following.seen
        assert following.counts().failures == {"503": 3, "ReadTimeout": 1, "ConnectionFailed": 1}


@scenario()
async def test_a_role_that_lacks_a_rule_is_told_which(server: FakeApiServer) -> None:
    seed(server)
    server.behaviour.forbidden.add(PODS)
    rule = 'the RBAC rule that is missing: apiGroups: [""], resources: ["pods"], verbs: ["list", "watch"]'
    async with Following(server, Node, Pod, Namespace) as following:
        state = following.states[Pod]
        others = [following.states[Node], following.states[Namespace]]
        await following.until(lambda: state.forbidden and all(other.synced for other in others), "forbidden")
        (problem,) = following.freshness.problems()
        assert problem.startswith("pods: not synced (")
        assert problem.endswith(f"; {rule}")
        server.behaviour.forbidden.clear()
        await following.until_equal()
        assert (state.forbidden, state.problem) == (False, "")
        # Once it is taken away again, the mirror is followed no more, and goes stale.
        server.behaviour.forbidden.add(PODS)
        server.end_watches(PODS)
        problem = await following.until_stale(Pod)
        assert problem.endswith(f"; {rule}")
        assert not any(other.problem for other in others)
        server.behaviour.forbidden.clear()
        await following.until_equal()
        assert following.counts().relists == {}


@scenario()
async def test_a_server_that_wants_to_be_left_alone_for_a_second_is(server: FakeApiServer) -> None:
    async with followed(server, Pod) as following:
        following.mark()
        server.faults.add(overloaded(1), PODS, "watch")
        server.end_watches(PODS)
        churn(server)
        await following.until_equal()
        rejected, accepted = following.requests()
        assert accepted.time - rejected.time >= 1.0
        assert following.counts().failures == {"429": 1}


@scenario(bookmark_interval=60.0)
async def test_a_watch_without_bookmarks_is_followed_as_long_as_it_can_be_asked_for_again(
    server: FakeApiServer,
) -> None:
    async with followed(server, Pod) as following:
        following.mark()
        await following.until(lambda: following.counts().requests.get("watch", 0) >= 2, "asked again")
        assert following.seen == {SyncStatus.FRESH}
        assert following.counts().failures == {}
        first, *_, last = following.requests()
        # One for each read that lasted as long as it may.
        assert last.time - first.time >= READ_TIMEOUT


@scenario(bookmark_before_deadline=0.1)
async def test_a_watch_ends_by_its_own_timeout_and_is_resumed(server: FakeApiServer) -> None:
    timing = replace(QUICK, watch_timeout=1)
    async with followed(server, Pod, timing=timing) as following:
        await following.until_counts(Counts({"watch-list": 1, "watch": 1}))
        churn(server)
        await following.until_equal()
        assert following.seen == {SyncStatus.NOT_SYNCED, SyncStatus.FRESH}
        ended, resumed = following.requests()
        assert resumed.time - ended.time >= 1.0
