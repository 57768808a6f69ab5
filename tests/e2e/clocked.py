"""`kindred serve`, which also prints the CPU time of requests, and of work for gangs between requests."""

import sys
import time
from collections.abc import Callable
from typing import Any, Final

import msgspec

from app.commands.cli import main
from app.verbs.filter import Extender
from core.gangs.gangs import Gangs

MARK: Final = "CPU of calls: "
"""The beginning of a line of `Calls`, as JSON."""
_EVERY: Final = 0.5  # seconds


class Calls(msgspec.Struct):
    """Seconds of CPU by calls so far: the longest and all of them, of requests and between requests."""

    longest_request: float = 0.0
    requests: float = 0.0
    number: int = 0
    longest_between: float = 0.0
    between: float = 0.0


def clocked(calls: Calls, function: Callable[..., Any], *, is_request: bool) -> Callable[..., Any]:
    """Return a function whose CPU time counts."""
    printed = 0.0

    def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401  # whatever the function takes and returns
        nonlocal printed
        began = time.thread_time()
        try:
            return function(*args, **kwargs)
        finally:
            spent = time.thread_time() - began
            if is_request:
                calls.longest_request = max(calls.longest_request, spent)
                calls.requests += spent
                calls.number += 1
            else:
                calls.longest_between = max(calls.longest_between, spent)
                calls.between += spent
            if time.monotonic() - printed > _EVERY:
                printed = time.monotonic()
                sys.stdout.write(f"{MARK}{msgspec.json.encode(calls).decode()}\n")
                sys.stdout.flush()

    return call


if __name__ == "__main__":
    calls = Calls()
    Extender.filter = clocked(calls, Extender.filter, is_request=True)  # type: ignore[method-assign]
    Gangs.work = clocked(calls, Gangs.work, is_request=False)  # type: ignore[method-assign]
    main(prog_name="kindred")
