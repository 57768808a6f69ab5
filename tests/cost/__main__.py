"""The cost of hostile input: `python -m tests.cost`. Exits with 1 if a form exceeds its bound."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

import msgspec

from tests.bench.live import say
from tests.cost.forked import MAX_CPU, MAX_MEMORY, Step
from tests.cost.forms import FORMS
from tests.cost.forms.form import Form
from tests.cost.laboratory import Laboratory
from tests.cost.live import ranged
from tests.cost.report import POD_BYTES, Report, Row, lines

_SIZES: Final = (16 * 1024, POD_BYTES, 1024 * 1024)
_QUICK: Final = (500, 5000)
"""Nodes and pods for a run of a minute or two."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the forms."""
    parsed = _parsed(arguments)
    forms = _chosen(parsed.forms, of_issue=parsed.of_issue)
    rows: list[Row] = []
    for line in lines(_retained(rows, _measured(forms, parsed))):
        say(line)
    report = Report(parsed.nodes, parsed.pods, parsed.profile, rows)
    if parsed.json is not None:
        parsed.json.write_bytes(msgspec.json.format(msgspec.json.encode(report)))
    exceeded = sum(1 for row in rows if row.excesses())
    say(f"{len(rows)} attacks, {exceeded} past their bounds")
    return 1 if exceeded else 0


def _measured(forms: Sequence[Form], parsed: argparse.Namespace) -> Iterator[Row]:
    needed = parsed.live != "only" and any(form.way != "wire" for form in forms)
    laboratory = Laboratory(parsed.nodes, parsed.pods, parsed.profile) if needed else None
    with ExitStack() as stack:
        target = None
        if parsed.live != "off":
            target = stack.enter_context(ranged(parsed.nodes, parsed.pods, parsed.profile))
        for form in forms:
            for size in form.sizes or parsed.sizes:
                attack = form.attack(size)
                steps: Sequence[Step] = ()
                if laboratory is not None and form.way != "wire":
                    steps = laboratory.measure(attack, parsed.cpu_limit, parsed.memory_limit)
                reachable = form.way not in ("gangs", "waiting")
                live = target.measure(attack) if target is not None and reachable else None
                if steps or live is not None:
                    yield Row(form.name, form.area, form.way, attack.size, steps, live)


def _retained(into: list[Row], rows: Iterator[Row]) -> Iterator[Row]:
    for row in rows:
        into.append(row)
        yield row


def _chosen(patterns: str, *, of_issue: bool) -> list[Form]:
    found = [
        form
        for form in FORMS.values()
        if any(fnmatch(form.name, pattern) for pattern in patterns.split(",")) and (form.of_issue or not of_issue)
    ]
    if not found:
        raise SystemExit(f"no form matches {patterns}; there are {', '.join(FORMS)}")
    return found


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.cost", description=__doc__)
    parser.add_argument("--forms", default="*", help="names, or patterns such as `anti-*`, with commas")
    parser.add_argument("--of-issue", action="store_true", help="those forms alone that once stopped a service")
    parser.add_argument("--sizes", type=_sizes, default=_SIZES, help="bytes, with commas")
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=50_000)
    parser.add_argument("--quick", action="store_true", help=f"{_QUICK[0]} nodes and {_QUICK[1]} pods")
    parser.add_argument(
        "--live",
        choices=("off", "on", "only"),
        default="off",
        help="whether a running service is attacked, too; forms of HTTP framing are not measured without",
    )
    parser.add_argument("--profile", default="full", help="`full`, `affinity` or a list of plugins")
    parser.add_argument("--cpu-limit", type=int, default=MAX_CPU, help="seconds for each verb")
    parser.add_argument("--memory-limit", type=int, default=MAX_MEMORY, help="bytes for each verb")
    parser.add_argument("--json", type=Path, help="where to write it as JSON")
    parsed = parser.parse_args(arguments)
    if parsed.quick:
        parsed.nodes, parsed.pods = _QUICK
    return parsed


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(int(each) for each in text.split(","))


if __name__ == "__main__":
    sys.exit(main())
