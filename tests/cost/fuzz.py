"""A search for attacks that cost too much: `python -m tests.cost.fuzz --seconds 600`. Exits with 1 after a find.

It starts from the forms. An attack that exceeds its bound is shrunk and kept in tests/cost/found, and the tests replay
it. A fifth of the time is for HTTP framings on a running service, unless `--ways` leaves them out.
"""

import argparse
import random
import sys
import time
from collections.abc import Sequence
from functools import partial
from typing import Final, Protocol, get_args

from tests.bench.live import say
from tests.cost.attack import Attack, Way
from tests.cost.exchange import can_be_sent
from tests.cost.finds import keep
from tests.cost.forms import FORMS
from tests.cost.laboratory import Laboratory
from tests.cost.live import ranged
from tests.cost.report import BODY_BYTES, POD_BYTES, Row, bound_of
from tests.cost.search import Cell, Search, Tried
from tests.cost.shrink import shrunk


class Measure(Protocol):
    """Runs attacks. With `only`, it runs only the part that the step of that name needs."""

    def __call__(self, attack: Attack, only: str | None = None, /) -> Row:
        """Return the cost of the attack."""


_SIZE: Final = POD_BYTES - 2048
_SHARE_OF_WIRE: Final = 0.2
_WIRE_CLUSTER: Final = (500, 5000)
"""Nodes and pods of the service for HTTP framings, whose cost does not depend on the cluster."""
_MAX_MEMORY: Final = 1024**3
_CPU_SLACK: Final = 2  # seconds beyond the bound, in which a child can still report its excess
_SHRINKING: Final = 30.0  # seconds for each find
_SHOWN: Final = 25


def main(arguments: Sequence[str] | None = None) -> int:
    """Search, print and keep finds."""
    parsed = _parsed(arguments)
    ways = parsed.ways.split(",")
    wired = "wire" in ways
    in_process = [way for way in ways if way != "wire"]
    share = _SHARE_OF_WIRE if wired and in_process else float(wired)
    finds = 0
    if in_process:
        laboratory = Laboratory(parsed.nodes, parsed.pods, parsed.profile)
        finds += _search(partial(_measured, laboratory), parsed, in_process, parsed.seconds * (1 - share), POD_BYTES)
    if wired:
        with ranged(*_WIRE_CLUSTER, parsed.profile) as target:

            def measure(attack: Attack, _: str | None = None) -> Row:
                if not can_be_sent(attack.document):
                    return Row("fuzz", "wire", attack.way, 0)
                return Row("fuzz", "wire", attack.way, attack.size, (), target.measure(attack))

            finds += _search(measure, parsed, ["wire"], parsed.seconds * share, BODY_BYTES)
    say(f"{finds} finds" + (", kept in tests/cost/found" if finds and not parsed.dry else ""))
    return 1 if finds else 0


def _measured(laboratory: Laboratory, attack: Attack, only: str | None = None) -> Row:
    seconds = int(bound_of(attack.size).cpu) + _CPU_SLACK
    steps = laboratory.measure(attack, seconds, _MAX_MEMORY, only)
    return Row("fuzz", "", attack.way, attack.size, steps)


def _search(measure: Measure, parsed: argparse.Namespace, ways: Sequence[str], seconds: float, most: int) -> int:
    """Search in some ways for `seconds`. Return the number of finds."""
    source = random.Random(parsed.seed)  # noqa: S311 - to be the same each time
    seeds = _seeds(ways, source)
    search = Search(measure, seeds, source, most)
    until = time.monotonic() + seconds
    for cell, tried in search.run(lambda: time.monotonic() < until):
        say(f"found: {_shown(cell, tried)}")
        if not parsed.dry:
            say(f"  kept as {_kept(cell, tried, measure)}")
    say(f"{search.tried} attacks of the ways {', '.join(ways)}, {len(seeds)} of them seeds; the dearest:")
    for cell, tried in search.best()[:_SHOWN]:
        say(f"  {_shown(cell, tried)}")
    return len(search.finds)


def _seeds(ways: Sequence[str], source: random.Random) -> list[Attack]:
    """Return the forms in random order, so that a short search has some of all."""
    seeds = [form.attack(_SIZE) for form in FORMS.values() if form.way in ways]
    source.shuffle(seeds)
    return seeds


def _kept(cell: Cell, tried: Tried, measure: Measure) -> str:
    """Shrink a find and write it to a file. Return its name. The exceeded bound must stay the same."""
    way = tried.attack.way
    until = time.monotonic() + _SHRINKING

    def still(document: object) -> bool:
        if time.monotonic() > until:
            return False
        try:
            score, step = measure(Attack(way, document), cell.step or None).shares().get(cell.figure, (0.0, ""))
        except (TypeError, KeyError, ValueError, AttributeError):  # cannot be sent in this way
            return False
        return score > 1 and step == cell.step

    small = Attack(way, shrunk(tried.attack.document, still))
    return keep(small, f"{cell.member or way} {cell.step}", tried.row.excesses()).name


def _shown(cell: Cell, tried: Tried) -> str:
    size = tried.row.size
    figures = max(tried.row.steps, key=lambda step: step.cpu, default=None)
    cost = f"{figures.cpu * 1e3:.0f} ms, {max(step.peak for step in tried.row.steps) / 1e6:.0f} MB" if figures else ""
    where = f"{cell.way} {cell.member}, {cell.figure} at {cell.step or 'the end'}"
    return f"{tried.score:6.2f} of the bound: {where}: {size} bytes; {cost} {'; '.join(tried.row.excesses())}"


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    ways = ",".join(get_args(Way))
    parser = argparse.ArgumentParser(prog="python -m tests.cost.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=1, help="of what is tried; what is found follows from times, too")
    parser.add_argument("--ways", default=ways, help=f"with commas, of {ways}")
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=50_000)
    parser.add_argument("--profile", default="full")
    parser.add_argument("--dry", action="store_true", help="keep no files")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
