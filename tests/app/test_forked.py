"""A child does its work on a copy, talks to its parent, and never outlives its block."""

import asyncio
import errno
import gc
import logging
import os
import posix
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from app.process.forked import Child, ChildEndedError, Parent, forked

PATIENCE = 20.0


def echo(parent: Parent) -> None:
    while True:
        parent.send(parent.receive()[::-1])


def waits(parent: Parent) -> None:
    parent.send(b"%d" % os.getpid())
    time.sleep(60)


def dies(_parent: Parent) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def fails(_parent: Parent) -> None:
    raise LookupError


def says_nothing(_parent: Parent) -> None:
    pass


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


async def received(child: Child) -> bytes:
    async with asyncio.timeout(PATIENCE):
        return await child.receive()


def first_of(work: Callable[[Parent], None], seconds: float = PATIENCE) -> bytes:
    async def main() -> bytes:
        async with forked(work, seconds) as child:
            return await received(child)

    return asyncio.run(main())


def test_messages_of_any_length_go_both_ways() -> None:
    async def main() -> None:
        async with forked(echo, PATIENCE) as child:
            for message in (b"abc", b"", bytes(range(256)) * 4096):
                await child.send(message)
                assert await received(child) == message[::-1]

    asyncio.run(main())


def test_a_message_may_be_made_piece_by_piece() -> None:
    def work(parent: Parent) -> None:
        parent.send_pieces(9, (b"%d" % number * 3 for number in range(3)))
        parent.send(b"end")

    async def main() -> None:
        async with forked(work, PATIENCE) as child:
            assert [await received(child), await received(child)] == [b"000111222", b"end"]

    asyncio.run(main())


def test_a_change_of_the_child_is_not_seen_here() -> None:
    found = {"a": 1}

    def work(parent: Parent) -> None:
        found["a"] = 2
        parent.send(b"%d" % found["a"])

    assert first_of(work) == b"2"
    assert found == {"a": 1}


@pytest.mark.parametrize("end", ["left", "failed", "cancelled"])
def test_it_is_killed_and_reaped_at_the_end_of_the_block(end: str) -> None:
    async def main() -> int:
        pids: list[int] = []

        async def block() -> None:
            async with forked(waits, PATIENCE) as child:
                pids.append(int(await received(child)))
                if end == "failed":
                    raise LookupError
                if end == "cancelled":
                    await asyncio.sleep(60)

        task = asyncio.create_task(block())
        while not pids:  # noqa: ASYNC110  # the child says it
            await asyncio.sleep(0.01)
        if end == "cancelled":
            task.cancel()
        async with asyncio.timeout(PATIENCE / 4):
            await asyncio.gather(task, return_exceptions=True)
        return pids[0]

    assert is_gone(asyncio.run(main())), "a zombie still has its number"


@pytest.mark.parametrize("work", [says_nothing, fails, dies])
def test_a_child_that_ends_without_a_message_is_an_error(work: Callable[[Parent], None]) -> None:
    with pytest.raises(ChildEndedError):
        first_of(work)


def test_it_ends_within_its_time_without_anybody_who_kills_it() -> None:
    async def main() -> None:
        async with forked(waits, 0.3) as child:
            await received(child)
            await received(child)

    with pytest.raises(ChildEndedError):
        asyncio.run(main())


def test_without_a_process_its_channel_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> int:
        raise BlockingIOError(errno.EAGAIN, "too many")

    monkeypatch.setattr(os, "fork", none)
    with pytest.raises(BlockingIOError):
        first_of(says_nothing)
    gc.collect()  # what is not closed is an error of the test


def test_a_message_that_ends_early_is_an_error() -> None:
    def half(parent: Parent) -> None:
        parent.send(b"x" * 100_000)

    async def main() -> None:
        async with forked(half, PATIENCE) as child:
            async with asyncio.timeout(PATIENCE):
                _ = [piece async for piece in child.pieces(await child.length() + 1)]

    with pytest.raises(ChildEndedError):
        asyncio.run(main())


def test_it_is_less_important_than_its_parent_and_has_none_of_its_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_setscheduler", posix.sched_setscheduler)  # tests/conftest.py has taken it away
    ours, theirs = socket.socketpair()

    def work(parent: Parent) -> None:
        score = Path("/proc/self/oom_score_adj").read_text("ascii").strip()
        try:
            os.fstat(ours.fileno())
        except OSError as error:
            is_idle = os.sched_getscheduler(0) == os.SCHED_IDLE
            parent.send(f"{os.nice(0)} {is_idle} {score} {errno.errorcode[error.errno or 0]}".encode())

    assert first_of(work) == f"{min(os.nice(0) + 10, 19)} True 1000 EBADF".encode()
    with ours, theirs:
        theirs.send(b"x")
        assert ours.recv(1) == b"x", "the parent's is open"


def test_it_writes_no_line_into_the_log_of_its_parent(tmp_path: Path) -> None:
    handler = logging.FileHandler(tmp_path / "log")
    log = logging.getLogger("tests.forked")
    log.addHandler(handler)

    def work(parent: Parent) -> None:
        log.error("twice")
        parent.send(b"")

    try:
        assert first_of(work) == b""
    finally:
        log.removeHandler(handler)
        handler.close()
    assert (tmp_path / "log").read_text("utf-8") == ""


def test_an_event_loop_of_its_own_runs_in_a_child() -> None:
    async def sleeps() -> bytes:
        await asyncio.sleep(0)
        return b"slept"

    assert first_of(lambda parent: parent.send(asyncio.run(sleeps()))) == b"slept"
