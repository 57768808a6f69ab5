"""What outages cost while they last, and that the mirror is said to be stale when nothing is followed."""

import time
from typing import Final

import pytest
from msgspec.structs import replace

from app.watch.freshness import SyncStatus
from core.objects.kinds import Namespace
from core.objects.node import Node
from core.objects.pod import Pod
from tests.app.watch.following import QUICK, READ_TIMEOUT, STALE_AFTER, Counts, Following, scenario
from tests.app.watch.small_cluster import PODS, churn, seed
from tests.fake_apiserver import FakeApiServer
from tests.fake_apiserver.faults import (
    Action,
    Close,
    Cut,
    End,
    Stall,
    overloaded,
    refuse,
    reject_token,
    unready,
)
from tests.fake_apiserver.statuses import internal_error, unavailable

ATTEMPTS_A_SECOND: Final = 10  # one for each `backoff_longest`, without jitter
FIRST_ATTEMPTS: Final = 4  # while the backoff grows: 0.02, 0.04, 0.08 s, and the one at once


@pytest.mark.parametrize(
    ("action", "problem"),
    [
        pytest.param(End(), "the watch ended within 0.25 s, without an event", id="end-at-once"),
        pytest.param(Close(), "Server disconnected", id="close-without-answer"),
        pytest.param(Close(after_head=True), "peer closed connection", id="close-after-head"),
        pytest.param(Stall(before_head=True), f"nothing received for {READ_TIMEOUT:g} s", id="stall-before-head"),
        pytest.param(refuse(unavailable()), "503 ServiceUnavailable", id="503"),
        pytest.param(refuse(internal_error()), "500 InternalError", id="500"),
        pytest.param(reject_token(), "401 Unauthorized", id="401"),
    ],
)
@scenario()
async def test_an_outage_makes_the_mirror_stale_and_asks_at_most_once_for_each_wait(
    server: FakeApiServer, action: Action, problem: str
) -> None:
    seed(server)
    async with Following(server, Node, Pod, Namespace) as following:
        await following.until_equal()
        following.mark()
        began = time.monotonic()
        server.faults.add(action, PODS, times=None)
        server.end_watches(PODS)
        churn(server)
        told = await following.until_stale(Pod)
        lasted = time.monotonic() - began
        assert lasted >= STALE_AFTER - 0.1  # bookmarks are 0.05 s apart
        # One that is refused with 401 is asked twice, with a new login.
        requests = sum(following.counts().requests.values()) / (2 if problem.startswith("401") else 1)
        assert requests <= FIRST_ATTEMPTS + ATTEMPTS_A_SECOND * lasted
        assert told.startswith(f"pods: stale for {STALE_AFTER:.0f} s (")
        assert problem in told
        assert not any(following.states[other].problem for other in (Node, Namespace))
        server.faults.clear()
        await following.until_equal()
        assert following.freshness.problems() == []
        assert following.counts().relists == {}


@scenario()
async def test_a_server_that_restarts_is_resumed_from(server: FakeApiServer) -> None:
    seed(server)
    async with Following(server, Node, Pod, Namespace) as following:
        await following.until_equal()
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
    seed(server)
    slow = Stall(after=2)
    server.faults.add(refuse(unavailable()), PODS, times=3)
    server.faults.add(slow, PODS, "watch-list")
    server.faults.add(Cut(extra=20), PODS, "list")
    async with Following(server, Node, Pod, Namespace) as following:
        await following.until_equal()
        assert SyncStatus.STALE not in following.seen
        assert following.counts().failures == {"503": 3, "ReadTimeout": 1, "ConnectionFailed": 1}


@scenario()
async def test_a_role_that_lacks_a_rule_is_told_which(server: FakeApiServer, caplog: pytest.LogCaptureFixture) -> None:
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
        assert rule in caplog.text
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


@pytest.mark.parametrize(
    "refusal", [pytest.param(overloaded(1), id="plain-text"), pytest.param(unready(1), id="status")]
)
@scenario()
async def test_a_server_that_wants_to_be_left_alone_for_a_second_is(server: FakeApiServer, refusal: Action) -> None:
    seed(server)
    async with Following(server, Pod) as following:
        await following.until_equal()
        following.mark()
        server.faults.add(refusal, PODS, "watch")
        server.end_watches(PODS)
        churn(server)
        await following.until_equal()
        refused, accepted = following.requests()
        assert 1.0 <= accepted.time - refused.time <= 2.0
        assert following.counts().failures == {"429": 1}


@scenario(bookmark_interval=60.0)
async def test_a_watch_without_bookmarks_is_followed_as_long_as_it_can_be_asked_for_again(
    server: FakeApiServer,
) -> None:
    seed(server)
    async with Following(server, Pod) as following:
        await following.until_equal()
        following.mark()
        await following.until(lambda: following.counts().requests.get("watch", 0) >= 4, "asked again")
        assert following.seen == {SyncStatus.FRESH}
        assert following.counts().failures == {}
        first, *_, last = following.requests()
        # One for each read that lasted as long as it may.
        assert last.time - first.time >= 3 * READ_TIMEOUT


@scenario(bookmark_before_deadline=0.1)
async def test_a_watch_ends_by_its_own_timeout_and_is_resumed(server: FakeApiServer) -> None:
    seed(server)
    timing = replace(QUICK, watch_timeout=1)
    async with Following(server, Pod, timing=timing) as following:
        await following.until_equal()
        await following.until_counts(Counts({"watch-list": 1, "watch": 1}))
        churn(server)
        await following.until_equal()
        assert following.seen == {SyncStatus.NOT_SYNCED, SyncStatus.FRESH}
        ended, resumed = following.requests()
        assert 1.0 <= resumed.time - ended.time <= 2.0
