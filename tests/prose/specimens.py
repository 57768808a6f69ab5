"""Random specimens of prose before and after a revision: `python -m tests.prose.specimens --before REVISION`."""

import argparse
import difflib
import random
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from tests.bench.live import say
from tests.prose import python_source
from tests.prose.passage import Kind, Passage, word_count

_KINDS: Final = (Kind.DOCSTRING, Kind.COMMENT, Kind.MESSAGE)
_LEAST_WORDS: Final = 5
_ALIKE: Final = 0.25
"""Ratio of difflib under which the nearest passage of the file counts as another one."""


def chosen(passages: Iterable[Passage], count: int, seed: int) -> list[Passage]:
    """Return passages at random, as many of each kind, in the order of their files."""
    random_choice = random.Random(seed)  # noqa: S311 -- reproducible, and no secret
    given = [each for each in passages if word_count(each.text) >= _LEAST_WORDS]
    found: list[Passage] = []
    for kind in _KINDS:
        of_kind = [each for each in given if each.kind is kind]
        found += random_choice.sample(of_kind, min(count // len(_KINDS), len(of_kind)))
    return sorted(found, key=lambda each: (_KINDS.index(each.kind), each.path, each.line))


def counterpart(before: Passage, after: Iterable[Passage]) -> Passage | None:
    """Return the passage of the same kind that is nearest in its words. None if none is alike."""
    words = before.text.split()
    best, best_ratio = None, _ALIKE
    for each in after:
        ratio = difflib.SequenceMatcher(None, words, each.text.split()).ratio() if each.kind is before.kind else 0
        if ratio > best_ratio:
            best, best_ratio = each, ratio
    return best


def specimens(root: Path, revision: str, count: int, seed: int) -> Iterator[str]:
    """Yield Markdown: for each specimen its place, the text before, and the text after."""
    listed = _git(root, "ls-tree", "-r", "--name-only", revision, "app", "core").splitlines()
    old = {path: _git(root, "show", f"{revision}:{path}") for path in listed if path.endswith(".py")}
    passages = [each for path, source in old.items() for each in python_source.passages(path, source)]
    for number, before in enumerate(chosen(passages, count, seed), 1):
        path = root / before.path
        after = python_source.passages(before.path, path.read_text("utf-8")) if path.exists() else ()
        found = counterpart(before, after)
        text, old_text = (" ".join(each.text.split()) if each else "(removed)" for each in (found, before))
        shown = "unchanged" if text == old_text else text
        yield f"{number}. {before.path}:{before.line} ({before.kind})\n   - before: {old_text}\n   - after: {shown}"


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True).stdout  # noqa: S603, S607 -- git on PATH


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the specimens."""
    parser = argparse.ArgumentParser(prog="python -m tests.prose.specimens", description=__doc__)
    parser.add_argument("--before", required=True, metavar="REVISION")
    parser.add_argument("--seed", type=int, default=24)
    parser.add_argument("--count", type=int, default=60)
    parsed = parser.parse_args(arguments)
    say("\n".join(specimens(Path(__file__).parents[2], parsed.before, parsed.count, parsed.seed)))


if __name__ == "__main__":
    main(sys.argv[1:])
