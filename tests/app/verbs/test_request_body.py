"""The body of a request: gathered, counted, and held no longer than it may be."""

import asyncio
from collections.abc import Iterable

import pytest
from starlette.requests import ClientDisconnect
from starlette.types import Message

from app.verbs.request_body import RequestBody, read_body


class Budget:
    """A number of bytes."""

    def __init__(self, most: int) -> None:
        self.held = 0
        self._most = most

    def hold(self, size: int) -> bool:
        self.held += size
        return self.held <= self._most

    def release(self, size: int) -> None:
        self.held -= size


def gathered(*pieces: bytes, most: int = 10, budget: Budget | None = None) -> RequestBody:
    body = RequestBody(most, budget or Budget(100))
    for piece in pieces:
        body.add(piece)
    return body


@pytest.mark.parametrize("pieces", [(), (b"",), (b"abc",), (b"", b"abc"), (b"a", b"", b"b", b"cd"), (b"a",) * 10])
def test_the_content_is_all_pieces_in_their_order(pieces: tuple[bytes, ...]) -> None:
    budget = Budget(100)
    body = gathered(*pieces, budget=budget)
    assert body.content == b"".join(pieces)
    assert (body.size, budget.held) == (len(body.content), len(body.content))
    assert not body.is_too_large


def test_a_body_in_one_piece_is_not_copied() -> None:
    piece = b"as it came"
    assert gathered(piece).content is piece


def test_of_a_body_that_is_too_large_nothing_is_held() -> None:
    budget = Budget(100)
    body = gathered(b"0123456789", b"x", budget=budget)
    assert body.is_too_large
    assert (body.content, body.size, budget.held) == (b"", 11, 0)


def test_a_body_is_read_on_up_to_four_times_what_is_allowed() -> None:
    body = gathered()
    assert [body.add(b"0123456789") for _ in range(4)] == [True] * 4
    assert not body.add(b"x")


def test_past_the_budget_of_all_nothing_is_held_nor_taken_again() -> None:
    budget = Budget(5)
    body = gathered(b"abc", b"def", budget=budget)
    assert body.is_over_budget
    body.add(b"g")
    assert (body.content, body.size, budget.held) == (b"", 7, 0)
    assert not body.is_too_large


def test_what_is_around_the_pieces_is_held_until_the_body_is_released() -> None:
    budget = Budget(100)
    body = gathered(b"abc", budget=budget)
    assert body.hold(4)
    assert budget.held == 7
    body.release()
    body.release()
    assert (body.content, budget.held) == (b"", 0)


def read(messages: Iterable[Message], most: int = 10) -> tuple[RequestBody, int]:
    """Read the body that messages of ASGI are; give it, with how many messages were left."""
    waiting = list(messages)
    body = RequestBody(most)

    async def receive() -> Message:
        return waiting.pop(0)

    asyncio.run(read_body(receive, body))
    return body, len(waiting)


def piece(content: bytes, *, more: bool = True) -> Message:
    return {"type": "http.request", "body": content, "more_body": more}


def test_by_asgi_a_body_is_read_to_its_end_and_no_further() -> None:
    body, left = read([piece(b"ab"), piece(b"c", more=False), piece(b"of the next")])
    assert (body.content, left) == (b"abc", 1)


def test_by_asgi_a_body_that_is_too_large_is_read_on_only_so_far() -> None:
    body, left = read([piece(b"0123456789")] * 10)
    assert (body.size, left) == (50, 5)
    body, left = read([piece(b"0123456789"), piece(b"x", more=False), piece(b"of the next")])
    assert (body.is_too_large, left) == (True, 1)


def test_by_asgi_a_client_that_goes_away_ends_the_reading() -> None:
    with pytest.raises(ClientDisconnect):
        read([piece(b"ab"), {"type": "http.disconnect"}])
