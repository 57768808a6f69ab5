"""Plants one fault after the other and runs the tests: `python -m tests.mutants`. Exits with 1 if one is not found."""

import argparse
import shlex
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

import msgspec

from tests.bench.live import say
from tests.mutants.fault import Fault, first_tests, planted, sources
from tests.mutants.faults import FAULTS
from tests.mutants.trial import WHOLE_SUITE, Result, Stage, first_failure, judge

ROOT: Final = Path(__file__).parents[2]

AreaFault = tuple[str, Fault]


def main(arguments: Sequence[str] | None = None) -> int:
    """Try the faults."""
    parsed = _parsed(arguments)
    chosen = _chosen(parsed.only)
    if parsed.list:
        for area, fault in chosen:
            say(f"{area:12} {fault.id:44} {fault.breaks}")
        return 0
    _refuse_misplaced(chosen)
    if parsed.control and (failing := _failing_without_fault(chosen, parsed.timeout)):
        say(f"without any fault, {failing} fails: nothing can be told")
        return 2
    results = []
    for result in _judged(chosen, parsed):
        results.append(result)
        say(_row(result))
    if parsed.json is not None:
        places = {fault.id: place for place, (_, fault) in enumerate(chosen)}
        in_order = sorted(results, key=lambda result: places[result.id])
        parsed.json.write_bytes(msgspec.json.format(msgspec.json.encode(in_order)) + b"\n")
    survivors = [result.id for result in results if not result.by]
    say(f"found {len(results) - len(survivors)} of {len(results)}")
    return 1 if survivors else 0


def _refuse_misplaced(chosen: Sequence[AreaFault]) -> None:
    """Raise MisplacedFaultError at the start, and not after an hour of trials."""
    texts = sources(ROOT)
    for _, fault in chosen:
        planted(texts, fault)
        first_tests(ROOT, texts, fault)


def _failing_without_fault(chosen: Sequence[AreaFault], timeout: float) -> str:
    """Return failures of the first tests in a tree without faults. They would count as finding every fault."""
    texts = sources(ROOT)
    tests = sorted({test for _, fault in chosen for test in first_tests(ROOT, texts, fault)})
    return first_failure(ROOT, None, Stage("control", tests, timeout * len(tests)))


def _judged(chosen: Sequence[AreaFault], parsed: argparse.Namespace) -> Iterator[Result]:
    suite = [Stage("suite", shlex.split(parsed.suite), parsed.suite_timeout)] if parsed.suite else []
    with ThreadPoolExecutor(parsed.jobs) as pool:
        begun = [pool.submit(judge, ROOT, area, fault, suite, parsed.timeout) for area, fault in chosen]
        try:
            for each in as_completed(begun):
                yield each.result()
        finally:  # after an error, do not wait for a day of queued trials
            pool.shutdown(wait=False, cancel_futures=True)


def _row(result: Result) -> str:
    by = f"{result.stage}: {result.by}" if result.by else "SURVIVED"
    return f"{result.id:44} {result.seconds:6.1f} s  {by}"


def _chosen(patterns: str) -> list[AreaFault]:
    found = [
        (area, fault)
        for area, faults in FAULTS.items()
        for fault in faults
        if any(fnmatch(name, pattern) for pattern in patterns.split(",") for name in (fault.id, area))
    ]
    if not found:
        raise SystemExit(f"no fault matches {patterns}; --list shows them")
    return found


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--only", default="*", help="ids or areas, or patterns such as `mirror-*`, with commas")
    parser.add_argument("--list", action="store_true", help="say which faults there are, and try none")
    parser.add_argument("--jobs", type=int, default=1, help="faults that are tried at the same time")
    parser.add_argument(
        "--suite", default=WHOLE_SUITE, help="arguments of pytest for faults that their own tests miss; empty: none"
    )
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds for a fault's own tests")
    parser.add_argument("--suite-timeout", type=float, default=3600.0, help="seconds for the suite")
    parser.add_argument("--json", type=Path, help="where to write the results as JSON")
    parser.add_argument(
        "--control",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="whether all tests that are run first have to pass without a fault before",
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
