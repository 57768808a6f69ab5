"""The lean HTTP client, over a pair of sockets."""

import socket
from collections.abc import Iterator

import pytest

from tests.bench.wire import Wire, WireError, request

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nContent-Length: 5\r\n\r\nhello"


@pytest.fixture(name="ends")
def both_ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    client, server = socket.socketpair()
    with client, server:
        yield client, server


def test_a_request_is_one_piece_with_its_length() -> None:
    sent = request("POST", "/filter", b"{}", ("Kindred-Cache", "off"))
    assert sent.startswith(b"POST /filter HTTP/1.1\r\n")
    assert sent.endswith(b"Kindred-Cache: off\r\nContent-Length: 2\r\n\r\n{}")


def test_answers_are_read_to_their_length_one_after_the_other(ends: tuple[socket.socket, socket.socket]) -> None:
    wire = Wire(ends[0], 1_000)
    for _ in range(2):
        ends[1].sendall(ANSWER)
        seconds, body = wire.ask(b"question")
        assert bytes(body) == b"hello"
        assert seconds > 0


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(ANSWER.replace(b"200", b"500"), id="an-error"),
        pytest.param(ANSWER.replace(b"Content-Length", b"Other"), id="no-length"),
        pytest.param(ANSWER.replace(b"5\r", b"5000\r"), id="longer-than-expected"),
        pytest.param(ANSWER[:-1], id="closed-before-its-end"),
    ],
)
def test_an_answer_that_cannot_be_read_is_an_error(answer: bytes, ends: tuple[socket.socket, socket.socket]) -> None:
    ends[1].sendall(answer)
    ends[1].shutdown(socket.SHUT_WR)
    with pytest.raises(WireError):
        Wire(ends[0], 1_000).ask(b"question")
