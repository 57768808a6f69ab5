"""What is written in two pieces goes out in one."""

import asyncio
from collections.abc import Callable, Iterable

import pytest

from app.one_write import OneWriteTransport


class Socket(asyncio.Transport):
    """Takes note of what is written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []
        self.closed_after: list[bytes] | None = None

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.writes.append(bytes(data))

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        self.writes.append(b"+".join(map(bytes, list_of_data)))

    def close(self) -> None:
        self.closed_after = list(self.writes)

    def is_closing(self) -> bool:
        return self.closed_after is not None


def written(act: Callable[[OneWriteTransport, Socket], object]) -> list[bytes]:
    """Return what a socket was written, by what was done in one turn of the loop."""

    async def acted() -> list[bytes]:
        socket = Socket()
        act(OneWriteTransport(socket, asyncio.get_running_loop()), socket)
        await asyncio.sleep(0)
        return socket.writes

    return asyncio.run(acted())


def writing(*pieces: bytes) -> Callable[[OneWriteTransport, Socket], None]:
    def write(transport: OneWriteTransport, _: Socket) -> None:
        for piece in pieces:
            transport.write(piece)

    return write


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ((b"head", b"body"), [b"head+body"]),
        ((b"alone",), [b"alone"]),
        ((b"head", b"one", b"two"), [b"head+one", b"two"]),
        ((b"head", b"one", b"two", b"three"), [b"head+one", b"two+three"]),
        ((), []),
    ],
    ids=["an-answer", "a-piece-that-stays-alone", "three", "four", "nothing"],
)
def test_two_pieces_are_one_write(pieces: tuple[bytes, ...], expected: list[bytes]) -> None:
    assert expected == written(writing(*pieces))


def test_the_second_piece_does_not_wait_for_the_loop() -> None:
    def act(transport: OneWriteTransport, socket: Socket) -> None:
        transport.write(b"head")
        assert socket.writes == []
        transport.write(b"body")
        assert socket.writes == [b"head+body"]

    assert written(act) == [b"head+body"]


def test_what_is_held_is_written_before_the_end() -> None:
    def act(transport: OneWriteTransport, socket: Socket) -> None:
        transport.write(b"last")
        transport.close()
        assert socket.closed_after == [b"last"]
        assert transport.is_closing()

    assert written(act) == [b"last"]


def test_what_is_held_is_dropped_where_the_client_is_gone() -> None:
    def act(transport: OneWriteTransport, socket: Socket) -> None:
        transport.write(b"for nobody")
        socket.close()

    assert written(act) == []
