"""The command: `python -m tests.conformance FILE...` runs golden cases against the engine.

Exit status 0 when all that was run passed, 1 when anything failed, 2 when a file could not be read or understood.
"""

import argparse
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from tests.conformance.golden_files import GoldenFileError, Kind, Line, read
from tests.conformance.kinds import RUN
from tests.conformance.results import Results

PASSED, FAILED, UNREADABLE = range(3)


def main(arguments: Sequence[str]) -> int:
    """Run the cases of the files that are named, write the report to stdout, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description="Run golden cases.")
    parser.add_argument("files", metavar="FILE", nargs="+", type=Path, help="a .jsonl or .jsonl.gz file of cases")
    try:
        by_kind = _read(parser.parse_args(arguments).files)
    except GoldenFileError as error:
        sys.stderr.write(f"{error}\n")
        return UNREADABLE
    results = Results()
    for kind, lines in by_kind.items():
        RUN[kind](lines, results)
    sys.stdout.write(results.text())
    return FAILED if results.failed else PASSED


def _read(files: Sequence[Path]) -> dict[Kind, list[Line]]:
    by_kind: dict[Kind, list[Line]] = defaultdict(list)
    for file in files:
        lines = list(read(file))
        if not lines:
            raise GoldenFileError(f"{file}: holds no cases")
        for line in lines:
            by_kind[line.kind].append(line)
        for kind in dict.fromkeys(line.kind for line in lines):
            count = sum(line.kind is kind for line in lines)
            sys.stdout.write(f"{file}: {count} {kind.value}\n")
    return by_kind


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
