"""The end of a process whose event loop is stuck, and of no other. Each has a process of its own."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest

_PROGRAM: Final = """
import asyncio, logging, re, sys, threading, time
import uvloop
from app.server import loop_watch

loop_watch._LOOK, loop_watch._TOLD, loop_watch._STUCK = 0.1, 3, {stuck}
logging.basicConfig(format="%(message)s")
held = []

def hold_with_a_secret(secret="s3cret"):
    {hold}

async def main():
    watching = asyncio.create_task(loop_watch.LoopWatch(held.append).run())
    await asyncio.sleep(0.3)
    print("begins", flush=True)
    hold_with_a_secret()
    await asyncio.sleep(0.3)
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
    print(f"lives {{max(held):.3f}}", flush=True)

with asyncio.Runner(loop_factory={loop}) as runner:
    runner.run(main())
"""
SPINS: Final = "while True: pass"
SPINS_IN_C: Final = """re.match("(a+)+$", "a" * 60 + "b")"""
WAITS: Final = "threading.Event().wait(60)"
LOOPS: Final = ("asyncio.new_event_loop", "uvloop.new_event_loop")
PATIENCE: Final = 60.0


@contextmanager
def process(hold: str, stuck: int, loop: str = LOOPS[1]) -> Iterator[subprocess.Popen[str]]:
    """Run a process, entered when its loop is about to be held."""
    program = _PROGRAM.format(hold=hold, stuck=stuck, loop=loop)
    with subprocess.Popen(  # noqa: S603  # our own program
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as started:
        try:
            assert started.stdout is not None
            assert started.stdout.readline() == "begins\n"
            yield started
        finally:
            started.kill()


def ended(hold: str, stuck: int, loop: str) -> tuple[int, str]:
    """Return the status and the log of a process that is stuck."""
    with process(hold, stuck, loop) as started:
        _, log = started.communicate(timeout=PATIENCE)
        return started.returncode, log


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("hold", [pytest.param(SPINS, id="in-python"), pytest.param(SPINS_IN_C, id="in-c")])
def test_a_loop_that_takes_too_much_cpu_ends_the_process_and_says_where(hold: str, loop: str) -> None:
    status, log = ended(hold, 1, loop)
    assert status == -signal.SIGPROF
    assert "in hold_with_a_secret" in log
    assert "s3cret" not in log


@pytest.mark.parametrize("loop", LOOPS)
def test_a_loop_that_waits_for_too_long_ends_the_process_and_says_where(loop: str) -> None:
    status, log = ended(WAITS, 8, loop)
    assert status == 1
    first, last = log.splitlines()
    assert first.startswith("the event loop is held for 0.3 s: ")
    assert last.startswith("the event loop is stuck for 0.8 s, the process ends: ")
    assert all(" hold_with_a_secret < " in line and "s3cret" not in line for line in (first, last))


def test_a_loop_that_is_busy_for_a_bounded_time_goes_on_and_is_measured() -> None:
    busy = "until = time.process_time() + 0.5\n    while time.process_time() < until: pass"
    with process(busy, 5) as started:
        said, _ = started.communicate(timeout=PATIENCE)
        lives, held = said.split()
        assert (started.returncode, lives) == (0, "lives")
        assert float(held) > 0.4


def test_a_process_that_was_stopped_lives_on() -> None:
    with process("pass", 8) as started:
        os.kill(started.pid, signal.SIGSTOP)
        time.sleep(2.0)  # more than twice as long as a loop may wait here
        os.kill(started.pid, signal.SIGCONT)
        said, log = started.communicate(timeout=PATIENCE)
        assert (started.returncode, said.startswith("lives"), log) == (0, True, "")


def test_a_process_that_was_stopped_while_its_loop_was_busy_lives_on() -> None:
    busy = "until = time.process_time() + 0.3\n    while time.process_time() < until: pass"
    with process(busy, 8) as started:
        os.kill(started.pid, signal.SIGSTOP)
        time.sleep(2.0)
        os.kill(started.pid, signal.SIGCONT)
        started.communicate(timeout=PATIENCE)
        assert started.returncode == 0


def test_a_process_that_has_little_of_a_cpu_lives_on() -> None:
    busy = "until = time.process_time() + 0.3\n    while time.process_time() < until: pass"
    with process(busy, 8) as started:
        until = time.monotonic() + PATIENCE
        while started.poll() is None and time.monotonic() < until:  # as a cgroup with a tenth of a CPU does
            os.kill(started.pid, signal.SIGSTOP)
            time.sleep(0.09)
            os.kill(started.pid, signal.SIGCONT)
            time.sleep(0.01)
        assert started.returncode == 0
