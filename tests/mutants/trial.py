"""One fault, or none, in a copy of the tree of its own, and the tests that are run on it."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Final

import msgspec

from tests.mutants.fault import Fault, first_tests, plant, sources

WHOLE_SUITE: Final = "-n auto --dist worksteal"
"""The arguments of pytest in `make test`."""
_OUR_OWN: Final = "--ignore=tests/mutants"
"""Holds that each fault can still be planted, which is not so where one is."""
_PASSED, _FAILED, _INTERRUPTED = 0, 1, 2
"""Exit statuses of pytest that say something of the tree; INTERRUPTED is a module that cannot be imported."""


class TrialError(Exception):
    """The tests could not be run, so nothing is known of the fault."""


class Stage(msgspec.Struct, frozen=True):
    """Tests that are run together: arguments of pytest, and the seconds after which they are stopped."""

    name: str
    arguments: Sequence[str]
    timeout: float


class Result(msgspec.Struct, frozen=True):
    """What became of one fault."""

    id: str
    area: str
    breaks: str
    by: str
    """The first test that failed, `timeout`, or nothing: then no test has found it."""
    stage: str
    """Which tests found it: `first`, or `suite`. Empty if none did."""
    seconds: float
    """Of all that was run for it."""


def judge(root: Path, area: str, fault: Fault, more: Sequence[Stage], timeout: float) -> Result:
    """Run the fault's own tests, then what more there is, until a test fails."""
    began = monotonic()
    for stage in (Stage("first", first_tests(root, sources(root), fault), timeout), *more):
        by = first_failure(root, fault, stage)
        if by and by != "timeout" and stage.name != "first" and _fails_without_fault(root, by, timeout):
            break  # what the rest of the suite would find is not known: somebody has to look
        if by:
            return Result(fault.id, area, fault.breaks, by, stage.name, monotonic() - began)
    return Result(fault.id, area, fault.breaks, "", "", monotonic() - began)


def _fails_without_fault(root: Path, test: str, timeout: float) -> bool:
    """Return whether a test, or module, fails in the copy alone. The control runs first tests, and not the suite."""
    return bool(first_failure(root, None, Stage("control", [test.removesuffix(" (collection)")], timeout)))


def first_failure(root: Path, fault: Fault | None, stage: Stage) -> str:
    """Return the first test that fails, `timeout`, or nothing. Raises TrialError."""
    with copied(root) as tree:
        if fault is not None:
            plant(tree, fault)
        return _first_failure(tree, stage)


@contextmanager
def copied(root: Path) -> Iterator[Path]:
    """Copy the files that git knows, as they are now, into a folder without any bytecode of another fault."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=True)  # noqa: S607  # git
    with TemporaryDirectory(prefix="kindred-mutant-") as folder:
        tree = Path(folder).resolve() / "tree"
        for name in filter(None, listed.stdout.decode().split("\0")):
            if (root / name).is_file():  # one that was deleted, and git has not been told
                (tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, tree / name, follow_symlinks=False)  # a test demands links in the chart
        yield tree


def _first_failure(tree: Path, stage: Stage) -> str:
    reported = tree.parent / "first-failure"
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "tests.mutants.witness"]
    command += [f"--tested-tree={tree}", f"--first-failure={reported}", f"--basetemp={tree.parent / 'temporary'}"]
    with (tree.parent / "output").open("w+b") as output:
        process = subprocess.Popen(  # noqa: S603  # our own arguments
            [*command, _OUR_OWN, *stage.arguments],
            cwd=tree,
            env={**os.environ, "PYTHONPATH": str(tree)},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            status = process.wait(stage.timeout)
        except subprocess.TimeoutExpired:
            return "timeout"
        finally:
            _end(process)
        output.seek(0)
        text = output.read().decode(errors="replace")
    if status == _PASSED:
        return ""
    if status in {_FAILED, _INTERRUPTED} and reported.exists():
        return reported.read_text("utf-8")
    raise TrialError(f"pytest ended with {status}:\n{text[-4000:]}")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the tests and what they have started, which a test that fails may leave behind."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
