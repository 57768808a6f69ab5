"""The command: `python -m tests.parity` compares the engine with the real plugins, release by release, in turns.

Each case is determined by the seed, its kind and its number. A difference is printed as a golden case. The first
differences are shrunk. Exit status: 0 without a difference, 1 with one, 2 if the plugins cannot be built.
"""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import cache
from itertools import count, islice
from pathlib import Path
from random import Random
from typing import Final

import msgspec

from tests.conformance.golden_files import read
from tests.e2e.binaries import RELEASES, BuildError, binaries, module_of
from tests.parity.comparison import DEVICES, Comparison, compared, confirmed, newest, not_returned, smallest
from tests.parity.generator import case_of
from tests.parity.intree import PROGRAM, InTree, Reply
from tests.parity.mutation import Mutator
from tests.parity.random_nodes import V1
from tests.parity.random_selectors import with_other_selectors
from tests.parity.report import TOGETHER, Report, biting

SAME, DIFFERENT, NOT_BUILT = range(3)
MUTATED: Final = "mutated"
_SHARES: Final = {
    "plugins": 6,
    "large": 1,
    "resize": 3,
    "volumes": 4,
    "preemption": 2,
    "nominated": 3,
    "devices": 4,
    "simulation": 2,
    "arguments": 4,
    "gates": 2,
    "odd": 4,
    MUTATED: 2,
}
"""Kind -> its number among the cases of a round."""
_BATCH: Final = 200
"""Cases of a release before the next release has its turn."""
_MOST_SHRUNK: Final = 5
_MOST_RENDERED: Final = 20


class Cases:
    """The cases of a seed, in an endless order of kinds."""

    def __init__(self, seed: int, kinds: Sequence[str]) -> None:
        self._seed = seed
        self._kinds = [kind for kind in kinds for _ in range(_SHARES[kind])]
        self._mutators = [mutator(file) for file in newest()] if {MUTATED, DEVICES} & {*kinds} else []

    def all(self) -> Iterator[tuple[str, V1]]:
        """Yield kinds and cases."""
        for number in count():
            for place, kind in enumerate(self._kinds):
                yield kind, self._case(kind, number * len(self._kinds) + place)

    def _case(self, kind: str, number: int) -> V1:
        golden = kind == DEVICES and number % 2
        if kind != MUTATED and not golden:
            return case_of(self._seed, kind, number)
        name = f"parity/{kind}/{self._seed}/{number}"
        random = Random(name)  # noqa: S311  # no secret; the same in every run
        if golden:
            return {**with_other_selectors(random, self._mutators[-1].case(random)), "name": name}
        return {**random.choice(self._mutators).case(random), "name": name}


class Turns:
    """One release: its plugins, its cases and their results."""

    def __init__(self, release: str, intree: InTree, cases: Iterator[tuple[str, V1]]) -> None:
        self.report = Report(release)
        self._intree = intree
        self._cases = cases
        self._negative_selectors = int(release.split(".")[1]) >= 37

    def turn(self, most: int) -> None:
        """Compare the next cases."""
        # The release in a case also sets the rules of the engine.
        batch = [(kind, {**case, "kubernetes": self.report.release}) for kind, case in islice(self._cases, most)]
        found = []
        for (kind, case), reply in zip(batch, self._intree.replies([case for _, case in batch]), strict=True):
            result = compared(case, reply, negative_selectors=self._negative_selectors)
            if result.failed:
                found.append((kind, case, reply, result))  # the program is busy with the next cases
            else:
                self._count(kind, case, reply, result)
        for kind, case, reply, result in found:
            again = confirmed(case, result, self._intree, negative_selectors=self._negative_selectors)
            self._count(kind, case, reply, again)
            if again.failed:
                self._show(kind, case, again)

    def _count(self, kind: str, case: V1, reply: Reply, result: Comparison) -> None:
        if result.left_out or reply.expected is None:
            self.report.left_out[kind, result.left_out] += 1
            return
        names = set(biting(case, reply.expected))
        self.report.cases[kind] += 1
        self.report.biting[kind] += bool(names)
        self.report.plugins.update(names - {TOGETHER})

    def _show(self, kind: str, case: V1, result: Comparison) -> None:
        """Count a difference, and print it as a golden case. The first ones are shrunk."""
        self.report.differing[kind] += 1
        self.report.plugins_differing.update(result.failed)
        rendered = self.report.differing.total()
        if rendered <= _MOST_SHRUNK:
            case = smallest(case, result, self._intree, negative_selectors=self._negative_selectors)
        elif rendered <= _MOST_RENDERED:
            case = {**case, "expected": self._intree.reply(case).expected}
        if rendered <= _MOST_RENDERED:
            _say(f"Kubernetes {self.report.release}: {case['name']}: {', '.join(sorted(result.failed))}")
            _say(result.text.rstrip())
            _say(msgspec.json.encode(case).decode())


@cache
def mutator(file: Path) -> Mutator:
    """Return the mutator of a file's cases."""
    return Mutator([dict(line.content) for line in read(file)])


def main(arguments: Sequence[str]) -> int:
    """Compare, print the report, and return the exit status."""
    options = _parser().parse_args(arguments)
    _say(f"seed {options.seed}")
    with ExitStack() as stack:
        try:
            turns = [_begin(release, options, stack) for release in options.kubernetes or RELEASES]
        except (BuildError, GoldenError) as error:
            _say(str(error))
            return NOT_BUILT
        with suppress(KeyboardInterrupt):  # the report has the cases so far
            _take_turns(turns, options)
    for each in turns:
        _say(each.report.text())
    return DIFFERENT if any(each.report.differing for each in turns) else SAME


def _take_turns(turns: Sequence[Turns], options: argparse.Namespace) -> None:
    """Compare one batch of each release, then the next of each, so that a time limit affects all releases equally."""
    end = time.monotonic() + options.minutes * 60 if options.minutes else float("inf")
    for done in range(0, options.cases, _BATCH):
        for each in turns:
            if time.monotonic() < end:
                each.turn(min(_BATCH, options.cases - done))


class GoldenError(Exception):
    """The plugins do not return the golden data of their release, so they cannot serve as a reference."""


def _begin(release: str, options: argparse.Namespace, stack: ExitStack) -> Turns:
    program = binaries([PROGRAM], module_of(RELEASES[release]))[PROGRAM]
    intree = stack.enter_context(InTree([str(program)]))
    count, wrong = not_returned(release, intree)
    if wrong:
        raise GoldenError(f"Kubernetes {release}: {len(wrong)} of {count} golden cases are not returned: {wrong[:5]}")
    _say(f"Kubernetes {release}: all of {count} golden cases are returned")
    return Turns(release, intree, Cases(options.seed, options.kinds).all())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.parity", description=__doc__)
    parser.add_argument(
        "--kubernetes", action="append", choices=RELEASES, help="a release; may be repeated; default: all, in turns"
    )
    parser.add_argument("--cases", type=int, default=20_000, help="most cases of each release (default: 20000)")
    parser.add_argument("--minutes", type=float, help="time limit for all releases together, builds apart")
    parser.add_argument("--seed", type=int, default=int(time.time() // 86_400), help="default: the number of the day")
    parser.add_argument("--kinds", nargs="+", choices=_SHARES, default=[*_SHARES], help="default: all")
    return parser


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201  # a program whose output is its purpose


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
