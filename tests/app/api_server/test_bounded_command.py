"""Commands that print or wait without end, and what they may leave behind."""

import os
import resource
import time
from pathlib import Path

import pytest

from app.api_server.bounded_command import CommandError, Output, run_bounded


def run(script: str, seconds: float = 20.0, most: int = 100_000) -> Output:
    return run_bounded(["/bin/sh", "-c", script], os.environ, seconds, most)


def failure(script: str, seconds: float = 20.0, most: int = 100_000) -> str:
    """Return why a command was killed, which must not take much longer than it may."""
    began = time.monotonic()
    with pytest.raises(CommandError) as caught:
        run(script, seconds, most)
    assert time.monotonic() - began < 15.0
    return str(caught.value)


def test_both_outputs_and_the_end_are_given() -> None:
    assert run("printf out; printf wrong >&2; exit 3") == Output(b"out", b"wrong", 3)
    assert run("kill -9 $$").status == -9


def test_as_many_bytes_as_are_allowed_are_taken() -> None:
    assert len(run("head -c 100000 /dev/zero").printed) == 100_000
    assert failure("head -c 100001 /dev/zero") == "more than 100000 bytes on standard output"


@pytest.mark.parametrize(
    ("script", "stream"), [("yes", "standard output"), ("yes >&2", "standard error"), ("yes & yes >&2", "standard")]
)
def test_one_that_prints_for_ever_is_killed_and_holds_little_memory(script: str, stream: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert failure(script).startswith(f"more than 100000 bytes on {stream}")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 32 * 1024  # KiB


def test_one_that_prints_slowly_for_ever_has_no_more_time_than_a_silent_one() -> None:
    assert failure("while true; do printf .; sleep 0.05; done", seconds=0.5) == "no response within 0.5 s"


def test_one_that_closes_its_outputs_and_goes_on_is_late() -> None:
    assert failure("exec >&- 2>&-; sleep 30", seconds=0.3) == "no response within 0.3 s"


def test_a_child_that_holds_the_pipe_does_not_hold_the_caller(tmp_path: Path) -> None:
    script = f'(sleep 1; touch "{tmp_path}/late") & printf out'
    assert failure(script, seconds=0.3) == "no response within 0.3 s"
    time.sleep(1.3)
    assert not (tmp_path / "late").exists()


def test_a_child_that_left_the_group_and_holds_the_pipe_does_not_hold_the_caller() -> None:
    assert failure("setsid sleep 5 & printf out", seconds=0.3) == "no response within 0.3 s"


def test_no_process_is_left_behind(tmp_path: Path) -> None:
    failure(f'echo $$ > "{tmp_path}/pid"; yes')
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
