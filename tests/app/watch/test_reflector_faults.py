"""Every fault that can befall a watch which follows: alone, and what it costs in requests."""

from collections.abc import Callable
from typing import Final, TypeAlias

import pytest

from core.objects.kinds import Namespace
from core.objects.node import Node
from core.objects.pod import Pod
from tests.app.watch.following import Counts, Following, scenario
from tests.app.watch.small_cluster import PODS, churn, create, seed
from tests.builders import make_pod
from tests.fake_apiserver import FakeApiServer
from tests.fake_apiserver.faults import (
    Action,
    Close,
    CloseOnAccept,
    Cut,
    End,
    Gzip,
    Replay,
    SendLine,
    Stall,
    StreamAction,
    StreamError,
    refuse,
    reject_token,
)
from tests.fake_apiserver.statuses import (
    bad_request,
    expired_watch,
    failure,
    internal_error,
    not_found,
    too_large_version,
    too_many_requests,
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
        pytest.param(running(Replay(3)), Counts(), id="events-replayed"),
        pytest.param(resumed(Gzip()), Counts({"watch": 1}), id="gzip"),
        pytest.param(resumed(reject_token()), Counts({"watch": 2}), id="401-once"),
        # Trouble of the moment: resumed from the same version, after a wait.
        pytest.param(
            resumed(refuse(internal_error()), refuse(unavailable())),
            Counts({"watch": 3}, {"500": 1, "503": 1}),
            id="500-then-503",
        ),
        pytest.param(resumed(refuse(too_many_requests(0))), Counts({"watch": 2}, {"429": 1}), id="429"),
        pytest.param(resumed(refuse(not_found())), Counts({"watch": 2}, {"404": 1}), id="404-of-a-balancer"),
        pytest.param(resumed(reject_token(), reject_token()), Counts({"watch": 3}, {"401": 1}), id="401-twice"),
        pytest.param(resumed(Close()), Counts({"watch": 2}, {"ConnectionFailed": 1}), id="close-without-answer"),
        pytest.param(resumed(Close(reset=True)), Counts({"watch": 2}, {"ConnectionFailed": 1}), id="reset"),
        pytest.param(
            resumed(Close(after_head=True), Close(after_head=True)),
            Counts({"watch": 3}, {"ConnectionFailed": 2}),
            id="close-after-head",
        ),
        pytest.param(resumed(End(), End()), Counts({"watch": 3}, {"BrokenWatch": 2}), id="normal-end-at-once"),
        pytest.param(running(Cut()), Counts({"watch": 1}, {"ConnectionFailed": 1}), id="cut-in-mid-line"),
        pytest.param(
            running(Cut(after=2, reset=True)), Counts({"watch": 1}, {"ConnectionFailed": 1}), id="reset-in-mid-line"
        ),
        pytest.param(
            resumed(Stall(before_head=True)), Counts({"watch": 2}, {"ReadTimeout": 1}), id="stall-before-head"
        ),
        pytest.param(
            running(StreamError(internal_error())), Counts({"watch": 1}, {"in-stream 500": 1}), id="in-stream-500"
        ),
        pytest.param(
            resumed(StreamError(internal_error(), 1), after=StreamError(internal_error(), 1)),
            Counts({"watch": 2}, {"in-stream 500": 2}),
            id="in-stream-500-with-progress",
        ),
        pytest.param(running(GARBAGE), Counts({"watch": 1}, {"GarbledWatch": 1}), id="garbage-once"),
        pytest.param(
            running(SendLine(b'{"type":"MOVED","object":{"metadata":{"name":"web","namespace":"shop"}}}')),
            Counts({"watch": 1}, {"GarbledWatch": 1}),
            id="unknown-type-of-event",
        ),
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
            running(StreamError(AHEAD)),
            Counts({"watch-list": 1}, {"in-stream 504": 1}, {"too-large-version": 1}),
            id="in-stream-too-large-version",
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
    seed(server)
    async with Following(server, Node, Pod, Namespace) as following:
        await following.until_equal()
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
    seed(server)
    async with Following(server, Pod) as following:
        await following.until_equal()
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
