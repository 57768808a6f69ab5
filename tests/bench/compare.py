"""Compares a report with a committed one, and shows changes beyond the noise: `python -m tests.bench.compare`.

A ratio has changed if its ranges over the rounds of the two runs do not overlap, and the change is larger than a
minimum. Times are compared only if both runs are from the same machine. They are shown but not judged, because other
processes on the machine affect them.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

from tests.bench import report
from tests.bench.command import Size
from tests.bench.live import say
from tests.bench.report import Report, Row, Section, short
from tests.bench.runner import SECTIONS, measure

Verdict: TypeAlias = Literal["same", "better", "worse"]

SHARE: Final = 0.10
"""Least change of a ratio that is reported."""
SHARE_ONCE: Final = 0.25
"""Least reported change of a value without rounds, whose noise is unknown: a ratio measured once, and times."""


class Comparison(NamedTuple):
    """One number of both reports. Only ratios are judged."""

    name: str
    before: float
    after: float
    verdict: Verdict
    is_ratio: bool

    def __str__(self) -> str:
        unit = "x" if self.is_ratio else " ms"
        change = self.after / self.before - 1 if self.before else 0.0
        numbers = f"{short(self.before)}{unit} -> {short(self.after)}{unit}"
        return f"{self.verdict:6}  {self.name}: {numbers} ({change:+.0%})"


def compare(before: Report, after: Report) -> Iterator[Comparison]:
    """Compare the ratios that both reports have, and times if both are from the same machine."""
    same_machine = before.machine == after.machine
    for section in after.sections:
        earlier = before.section(section.name)
        if earlier is None:
            continue
        rows = {row.name: row for row in earlier.rows}
        speeds = _tells_speeds(section) or _tells_speeds(earlier)
        for row in section.rows:
            if row.name in rows:
                name = f"{section.name}: {row.name}"
                yield from _ratios(name, rows[row.name], row, speeds=speeds)
                yield from _times(name, rows[row.name], row) if same_machine else ()


def gone(before: Report, after: Report) -> list[str]:
    """Return the rows of the first report that the second lacks, in sections that the second has."""
    found = {(section.name, row.name) for section in after.sections for row in section.rows}
    return [
        f"{section.name}: {row.name}"
        for section in before.sections
        if after.section(section.name) is not None
        for row in section.rows
        if (section.name, row.name) not in found
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what has changed; 1 if a ratio is worse."""
    options = _options(arguments)
    before = report.committed(options.baseline)
    after = report.read(options.new) if options.new else measure(list(SECTIONS), Size(), "")
    say(f"before: {_origin(before)}\nafter:  {_origin(after)}")
    if before.machine != after.machine:
        say("The machines differ: only ratios are compared.")
    found = list(compare(before, after))
    rendered = found if options.all else [each for each in found if each.verdict != "same"]
    say("\n".join(map(str, rendered)) or "Nothing has changed beyond the noise.")
    for name in gone(before, after):
        say(f"gone    {name}")
    worse = [each for each in found if each.is_ratio and each.verdict == "worse"]
    say(f"{len(found):,} numbers compared, {len(worse)} ratios worse.")
    return 1 if worse else 0


def _tells_speeds(section: Section) -> bool:
    """Return whether more is better: the ratios of a section are all speeds, some with a lower bound, or all costs."""
    return any(ratio.at_least is not None for row in section.rows for ratio in row.ratios.values())


def _ratios(name: str, before: Row, after: Row, *, speeds: bool) -> Iterator[Comparison]:
    for heading, now in after.ratios.items():
        then = before.ratios.get(heading)
        if then is not None:
            overlap = then.low <= now.high and now.low <= then.high
            once = then.low == then.high or now.low == now.high
            # A value that was measured once has an unknown noise, and its range is a point, which never overlaps.
            changed = not overlap and _changed(then.value, now.value, SHARE_ONCE if once else SHARE)
            verdict = _verdict(changed=changed, gain=(now.value > then.value) == speeds)
            yield Comparison(f"{name}: {heading}", then.value, now.value, verdict, is_ratio=True)


def _times(name: str, before: Row, after: Row) -> Iterator[Comparison]:
    for heading, now in after.times.items():
        then = before.times.get(heading)
        if then is not None:
            for share, was, is_ in (("p50", then.p50, now.p50), ("p99", then.p99, now.p99)):
                verdict = _verdict(changed=_changed(was, is_, SHARE_ONCE), gain=is_ < was)
                yield Comparison(f"{name}: {heading}, {share}", was, is_, verdict, is_ratio=False)


def _changed(before: float, after: float, share: float) -> bool:
    """Return whether the larger one is more than a share above the smaller one."""
    low, high = sorted((before, after))
    return high > low * (1 + share)


def _verdict(*, changed: bool, gain: bool) -> Verdict:
    if not changed:
        return "same"
    return "better" if gain else "worse"


def _origin(given: Report) -> str:
    return f"{given.date}, {given.commit or 'no commit'}, {', '.join(given.machine.values())}"


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.compare", description=__doc__)
    parser.add_argument(
        "--baseline",
        default="HEAD:docs/bench/latest.json",
        metavar="COMMIT:FILE",
        help="the earlier report; default: %(default)s",
    )
    parser.add_argument("--new", type=Path, metavar="FILE", help="the later report; measured now if left out")
    parser.add_argument("--all", action="store_true", help="tell also what has not changed")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
