"""The body of a request: gathered, counted, and held no longer than it may be."""

import asyncio
from collections.abc import Iterable

import pytest
from starlette.requests import ClientDisconnect
from starlette.types import Message

from app.verbs.admission import Admission
from app.verbs.endpoint import RequestBody


def budget_of(most: int) -> Admission:
    return Admission(deadline=1.0, queue_limit=1, max_bytes=most, clock=lambda: 0.0)


def gathered(*pieces: bytes, most: int = 10, budget: Admission | None = None) -> RequestBody:
    body = RequestBody(most, budget)
    for piece in pieces:
        body.add(piece)
    return body


@pytest.mark.parametrize("pieces", [(), (b"",), (b"abc",), (b"", b"abc"), (b"a", b"", b"b", b"cd"), (b"a",) * 10])
def test_the_content_is_all_pieces_in_their_order(pieces: tuple[bytes, ...]) -> None:
    budget = budget_of(100)
    body = gathered(*pieces, budget=budget)
    assert body.content == b"".join(pieces)
    assert (body.size, budget.bytes_held) == (len(body.content), len(body.content))
    assert not body.is_too_large


def test_a_body_in_one_piece_is_not_copied() -> None:
    piece = b"as it came"
    assert gathered(piece).content is piece


def test_of_a_body_that_is_too_large_nothing_is_held() -> None:
    budget = budget_of(100)
    body = gathered(b"0123456789", b"x", budget=budget)
    assert body.is_too_large
    assert (body.content, body.size, budget.bytes_held) == (b"", 11, 0)


def test_past_the_budget_of_all_nothing_is_held_nor_taken_again() -> None:
    budget = budget_of(5)
    body = gathered(b"abc", b"def", budget=budget)
    assert body.is_over_budget
    body.add(b"g")
    assert (body.content, body.size, budget.bytes_held) == (b"", 7, 0)
    assert not body.is_too_large


def test_what_is_held_is_released_once() -> None:
    budget = budget_of(100)
    body = gathered(b"abc", budget=budget)
    assert budget.bytes_held == 3
    body.release()
    body.release()
    assert (body.content, budget.bytes_held) == (b"", 0)


def read(messages: Iterable[Message], most: int = 10, length: bytes | None = None) -> tuple[RequestBody, int]:
    """Read the body that messages of ASGI are; give it, with how many messages were left."""
    waiting = list(messages)
    body = RequestBody(most)

    async def receive() -> Message:
        return waiting.pop(0)

    asyncio.run(body.read({"headers": [] if length is None else [(b"content-length", length)]}, receive))
    return body, len(waiting)


def piece(content: bytes, *, more: bool = True) -> Message:
    return {"type": "http.request", "body": content, "more_body": more}


def test_a_body_is_read_to_its_end_and_no_further() -> None:
    body, left = read([piece(b"ab"), piece(b"c", more=False), piece(b"of the next")])
    assert (body.content, left) == (b"abc", 1)


def test_nothing_is_read_of_a_body_whose_length_is_too_large() -> None:
    body, left = read([piece(b"0123456789x", more=False)], length=b"11")
    assert (body.is_too_large, body.content, left) == (True, b"", 1)
    body, left = read([piece(b"0123456789", more=False)], length=b"10")
    assert (body.is_too_large, body.content, left) == (False, b"0123456789", 0)


def test_a_body_without_a_length_is_read_up_to_the_limit() -> None:
    body, left = read([piece(b"0123456789")] * 10)
    assert (body.is_too_large, body.content, body.size, left) == (True, b"", 20, 8)


def test_a_client_that_goes_away_ends_the_reading() -> None:
    with pytest.raises(ClientDisconnect):
        read([piece(b"ab"), {"type": "http.disconnect"}])
