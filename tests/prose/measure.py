"""How readable the prose is, in figures: `python -m tests.prose.measure [ROOT]`.

ROOT is another checkout of Kindred, or with `--docs` a folder of any project's Markdown pages.
"""

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from tests.bench.live import say
from tests.prose import files
from tests.prose.passage import Kind, Passage, word_count
from tests.prose.passive import is_passive
from tests.prose.word_list import avoided_words

LONG: Final = 25
"""Words. A sentence should have no more."""
TOO_LONG: Final = 35
"""Words. A sentence with more fails the check."""
_FRAGMENT: Final = 3
"""Words. Anything shorter is a name or a cell of a table, and no sentence."""


@dataclass(frozen=True, slots=True)
class Readability:
    """Figures of some passages. Shares are of the sentences, from 0 to 1; `listed` is per 1,000 words."""

    sentences: int
    words: int
    median_words: float
    over_25: float
    over_35: float
    passive: float
    listed: float


def readability(passages: Iterable[Passage]) -> Readability | None:
    """Measure passages. Returns None where they have no sentence."""
    given = list(passages)
    sentences = [sentence for each in given for sentence in each.sentences() if word_count(sentence) >= _FRAGMENT]
    if not sentences:
        return None
    counts = [word_count(sentence) for sentence in sentences]
    words = sum(counts)
    return Readability(
        sentences=len(sentences),
        words=words,
        median_words=median(counts),
        over_25=sum(count > LONG for count in counts) / len(counts),
        over_35=sum(count > TOO_LONG for count in counts) / len(counts),
        passive=sum(map(is_passive, sentences)) / len(sentences),
        listed=1000 * sum(1 for each in given for _ in avoided_words(each.text)) / words,
    )


def table(passages: Iterable[Passage]) -> str:
    """Return a Markdown table with a row for each kind of passage."""
    given = list(passages)
    lines = [
        "| | sentences | median words | over 25 words | over 35 words | passive | on the list, per 1,000 words |",
        "|---|---|---|---|---|---|---|",
    ]
    for kind in Kind:
        found = readability(each for each in given if each.kind is kind)
        if found is not None:
            shares = " | ".join(f"{100 * share:.1f} %" for share in (found.over_25, found.over_35, found.passive))
            lines.append(f"| {kind} | {found.sentences:,} | {found.median_words:g} | {shares} | {found.listed:.1f} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.prose.measure", description=__doc__)
    parser.add_argument("root", nargs="?", type=Path, default=Path())
    parser.add_argument("--docs", action="store_true", help="ROOT is a folder of pages, such as another project's")
    parsed = parser.parse_args(arguments)
    paths = sorted(parsed.root.rglob("*.md")) if parsed.docs else files.sources(parsed.root)
    say(table(files.passages(parsed.root, paths)))


if __name__ == "__main__":
    main(sys.argv[1:])
