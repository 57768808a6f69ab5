"""The queue of faults: which request gets which."""

import asyncio

import pytest

from tests.fake_apiserver.faults import (
    Close,
    CloseOnAccept,
    Cut,
    End,
    FaultQueue,
    Gzip,
    Replay,
    SendLine,
    Stall,
    StreamAction,
    StreamError,
    overloaded,
    refuse,
)
from tests.fake_apiserver.statuses import too_many_requests, unauthorized, unavailable


def test_the_first_that_matches_applies_as_often_as_it_says() -> None:
    faults = FaultQueue()
    faults.add(Close(), "/a", "watch", times=2)
    faults.add(Gzip(), None, "watch", "list")
    always = faults.add(Cut(), times=None)
    assert [faults.of_request("/b", "page"), faults.of_request("/a", "list")] == [Cut(), Gzip()]
    assert [faults.of_request("/a", "watch") for _ in range(3)] == [Close(), Close(), Cut()]
    assert faults.pending == (always,)
    assert always.applied == 2
    faults.remove(always)
    faults.remove(always)
    assert faults.of_request("/a", "watch") is None


@pytest.mark.parametrize("action", [StreamError(unavailable()), SendLine(b"x"), Replay(1), End()])
def test_what_only_befalls_streams_leaves_lists_alone(action: StreamAction) -> None:
    faults = FaultQueue()
    faults.add(action)
    assert faults.of_request("/a", "list") is faults.of_request("/a", "page") is None
    assert faults.of_request("/a", "watch-list") == action


def test_faults_of_connections_and_of_requests_are_apart() -> None:
    faults = FaultQueue()
    faults.add(CloseOnAccept())
    faults.add(Close())
    assert faults.of_request("/a", "list") == Close()
    assert faults.of_connection() == CloseOnAccept()
    assert faults.of_connection() is None


def test_clearing_releases_stalls_that_are_under_way() -> None:
    faults = FaultQueue()
    stall = Stall()
    faults.add(stall)
    faults.of_request("/a", "list")
    faults.add(Gzip())
    faults.clear()
    assert faults.pending == ()
    asyncio.run(asyncio.wait_for(stall.wait(), 1))


def test_an_answer_carries_the_time_that_its_status_tells() -> None:
    answers = [refuse(too_many_requests(3)), overloaded(4), refuse(unauthorized()), refuse(unavailable(), {"x": "y"})]
    assert [answer.headers.get("Retry-After") for answer in answers] == ["3", "4", None, None]
    assert answers[3].headers["x"] == "y"
