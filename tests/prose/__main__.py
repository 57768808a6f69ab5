"""The prose linter: `python -m tests.prose [PATH...]`. It ends with 1 where an area has more findings than it may.

A finding is a sentence over 35 words, or a word on the list. `--write` lowers the allowance to the present findings. It
never raises it. With paths, the linter prints every finding in them and compares nothing.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.bench.live import say
from tests.prose import allowance, files
from tests.prose.findings import findings

ROOT = Path(__file__).parents[2]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the linter. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.prose", description=__doc__)
    parser.add_argument("paths", nargs="*", type=Path, help="only these files or folders, with every finding")
    parser.add_argument("--write", action="store_true", help="lower the allowance to the findings there are")
    parsed = parser.parse_args(arguments)
    paths = list(files.sources(ROOT))
    if parsed.paths:
        wanted = [path.resolve() for path in parsed.paths]
        paths = [path for path in paths if any(path.is_relative_to(each) for each in wanted)]
    found = list(findings(files.passages(ROOT, paths)))
    if parsed.paths:
        say("\n".join(map(str, found)))
        return 0
    allowed = allowance.read()
    if parsed.write:
        allowance.write(allowance.lowered(allowed, found))
        return 0
    broken = allowance.exceeded(allowed, found)
    for area, rule in broken:
        say("\n".join(str(each) for each in found if (each.area, each.rule) == (area, rule)))
        count = sum((each.area, each.rule) == (area, rule) for each in found)
        say(f"{area}: {count} findings of the rule {rule}, where {allowed.get(area, {}).get(rule, 0)} are allowed")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
