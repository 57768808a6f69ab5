"""The benchmark: everything as ratios in one run, as text and JSON, with tables (docs/benchmarks.md).

Absolute times mean little on a shared machine. So both sides of a comparison are measured in turns, and their responses
are compared, too.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tests import tables
from tests.bench import command, report, runner
from tests.bench.command import QUICK, Size
from tests.bench.live import say
from tests.bench.report import LATEST
from tests.bench.runner import SECTIONS


def main(arguments: Sequence[str]) -> int:
    """Measure, print and write; 1 if a ratio is out of its bounds."""
    options = _options(arguments)
    size = QUICK if options.quick else command.size(options)
    full = size == Size() and options.sections == list(SECTIONS)
    made = runner.measure(
        options.sections, size, "make bench" if full else _command(options), bounded=not options.quick
    )
    # docs/benchmarks.md shows a full run.
    output = options.output or (LATEST if full else None)
    if output is not None:
        report.write(made, output)
        say(f"\nWritten: {output.name}")
    if output == LATEST:
        tables.main(["--write"])
    for line in made.missed:
        say(f"MISSED {line}")
    return 1 if made.missed else 0


def _command(options: argparse.Namespace) -> str:
    """Return the command line, without paths."""
    size = f"--nodes {options.nodes} --pods {options.pods} --effort {options.effort:g}"
    return f"python -m tests.bench --sections {','.join(options.sections)} {'--quick' if options.quick else size}"


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = command.parser("tests.bench", __doc__)
    parser.add_argument(
        "--sections", type=_names, default=list(SECTIONS), metavar="NAME,NAME", help=", ".join(SECTIONS)
    )
    parser.add_argument("--quick", action="store_true", help="a small cluster and few samples, without bounds")
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="of the report; default: the latest one, if all is full"
    )
    return parser.parse_args(arguments)


def _names(text: str) -> list[str]:
    names = text.split(",")
    unknown = [name for name in names if name not in SECTIONS]
    if unknown:
        raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; there are {', '.join(SECTIONS)}")
    return names


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
