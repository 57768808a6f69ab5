"""A request as it is read by ASGI: the options in its headers, and its body, held no longer than it may be."""

import asyncio
from collections.abc import Iterable

import pytest
from starlette.requests import ClientDisconnect
from starlette.types import Message

from app.verbs.admission import Admission
from app.verbs.request import LargeBodyError, Request


def budget_of(most: int) -> Admission:
    return Admission(deadline=1.0, queue_limit=1, max_bytes=most, clock=lambda: 0.0)


class Reading:
    """A request that is read from messages of ASGI."""

    def __init__(self, *pieces: bytes, budget: int | None = None) -> None:
        self.request = Request()
        self.budget = budget_of(budget) if budget is not None else None
        self.messages: list[Message] = [piece(each) for each in pieces or (b"",)]
        self.messages[-1]["more_body"] = False

    def read(self, *headers: tuple[bytes, bytes], most: int = 10) -> bool:
        """Read the request; give whether its body is held."""
        return asyncio.run(self.request.read({"headers": headers}, self._receive, most, self.budget))

    async def _receive(self) -> Message:
        return self.messages.pop(0)


def piece(content: bytes, *, more: bool = True) -> Message:
    return {"type": "http.request", "body": content, "more_body": more}


@pytest.mark.parametrize("pieces", [(), (b"",), (b"abc",), (b"", b"abc"), (b"a", b"", b"b", b"cd"), (b"a",) * 10])
def test_the_body_is_all_pieces_in_their_order(pieces: tuple[bytes, ...]) -> None:
    reading = Reading(*pieces, budget=100)
    assert reading.read()
    body = b"".join(pieces)
    assert reading.budget is not None
    assert (reading.request.body, reading.request.size, reading.budget.buffered_bytes) == (body, len(body), len(body))


def test_a_body_in_one_piece_is_not_copied() -> None:
    came = b"as it came"
    reading = Reading(came)
    reading.read()
    assert reading.request.body is came


def test_past_the_budget_of_all_nothing_is_held_nor_taken_again() -> None:
    reading = Reading(b"abc", b"def", b"g", budget=5)
    assert not reading.read()
    assert reading.budget is not None
    assert (reading.request.body, reading.request.size, reading.budget.buffered_bytes) == (b"", 7, 0)


def test_what_is_held_is_released_once() -> None:
    reading = Reading(b"abc", budget=100)
    reading.read()
    assert reading.budget is not None
    assert reading.budget.buffered_bytes == 3
    for _ in range(2):
        reading.request.release(reading.budget)
    assert (reading.request.body, reading.budget.buffered_bytes) == (b"", 0)


def test_a_body_is_read_to_its_end_and_no_further() -> None:
    reading = Reading(b"ab", b"c")
    reading.messages.append(piece(b"of the next"))
    assert reading.read()
    assert (reading.request.body, len(reading.messages)) == (b"abc", 1)


def test_nothing_is_read_of_a_body_whose_length_is_too_large() -> None:
    reading = Reading(b"0123456789x")
    with pytest.raises(LargeBodyError):
        reading.read((b"content-length", b"11"))
    assert len(reading.messages) == 1
    assert Reading(b"0123456789").read((b"content-length", b"10"))


def test_a_body_without_a_length_is_read_up_to_the_limit() -> None:
    reading = Reading(*[b"0123456789"] * 10)
    with pytest.raises(LargeBodyError):
        reading.read()
    assert (reading.request.size, len(reading.messages)) == (20, 8)


def test_a_client_that_goes_away_ends_the_reading() -> None:
    reading = Reading(b"ab")
    reading.messages = [piece(b"ab"), {"type": "http.disconnect"}]
    with pytest.raises(ClientDisconnect):
        reading.read()


@pytest.mark.parametrize(
    ("headers", "cached", "dry_run"),
    [
        pytest.param([], True, False, id="none"),
        pytest.param([(b"host", b"a"), (b"kindredly", b"off")], True, False, id="others"),
        pytest.param([(b"kindred-cache", b"off")], False, False, id="cache-off"),
        pytest.param([(b"kindred-cache", b"on")], True, False, id="cache-on"),
        pytest.param([(b"kindred-dry-run", b"true")], False, True, id="dry-run"),
        pytest.param([(b"kindred-dry-run", b"")], False, True, id="dry-run-of-no-value"),
        pytest.param([(b"kindred-dry-run", b"\xff")], False, True, id="dry-run-of-any-value"),
        pytest.param([(b"kindred-dry-run", b" False ")], True, False, id="no-dry-run"),
        pytest.param([(b"a", b"b"), (b"kindred-dry-run", b"1"), (b"kindred-cache", b"off")], False, True, id="both"),
    ],
)
def test_the_headers_have_the_options(headers: Iterable[tuple[bytes, bytes]], *, cached: bool, dry_run: bool) -> None:
    reading = Reading()
    reading.read(*headers)
    assert (reading.request.cached, reading.request.dry_run) == (cached, dry_run)
