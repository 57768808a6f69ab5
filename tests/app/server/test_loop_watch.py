"""The end of a process whose event loop is stuck, and of no other. Each has a process of its own."""

import subprocess
import sys
from typing import Final

import pytest

_PROGRAM: Final = """
import asyncio, re, threading, time
import uvloop
from app.server.process import watch_loop

held = []

def hold_with_a_secret(secret="s3cret"):
    {hold}

async def main():
    watching = asyncio.create_task(watch_loop(held.append, {stuck}))
    await asyncio.sleep(0.3)
    for _ in range({times}):
        hold_with_a_secret()
        await asyncio.sleep(0)
    await asyncio.sleep(1.5)
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
    time.sleep({stuck} + 0.3)  # nobody watches any more
    print(f"lives {{max(held):.3f}}", flush=True)

with asyncio.Runner(loop_factory={loop}) as runner:
    runner.run(main())
"""
HOLDS: Final = {
    "in-python": "while True: pass",
    "in-c": """re.match("(a+)+$", "a" * 60 + "b")""",
    "waits": "threading.Event().wait(60)",
}
LOOPS: Final = ("asyncio.new_event_loop", "uvloop.new_event_loop")
PATIENCE: Final = 60.0


def run(hold: str, stuck: float, loop: str = LOOPS[1], times: int = 1) -> subprocess.CompletedProcess[str]:
    program = _PROGRAM.format(hold=hold, stuck=stuck, loop=loop, times=times)
    return subprocess.run(  # noqa: S603  # our own program
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE, check=False
    )


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("hold", HOLDS.values(), ids=HOLDS)
def test_a_stuck_loop_ends_the_process_and_says_where(hold: str, loop: str) -> None:
    ended = run(hold, 1.2, loop)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "in hold_with_a_secret" in ended.stderr
    assert "s3cret" not in ended.stderr


def test_a_loop_that_is_busy_for_a_bounded_time_goes_on_and_is_measured() -> None:
    ended = run("time.sleep(0.5)", 2.0)
    lives, stored = ended.stdout.split()
    assert (ended.returncode, lives, ended.stderr) == (0, "lives", "")
    assert float(stored) > 0.4


def test_a_loop_that_turns_slowly_for_long_is_not_stuck() -> None:
    ended = run("time.sleep(0.2)", 2.0, times=30)
    assert (ended.returncode, ended.stdout.split()[0], ended.stderr) == (0, "lives", "")
