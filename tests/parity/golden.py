"""Compares the real plugins with the golden data of their release, before they serve as a reference."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.conformance.golden_files import read
from tests.parity.comparison import sorted_reasons
from tests.parity.intree import InTree
from tests.parity.random_nodes import V1

_DATA: Final = Path(__file__).parents[1] / "conformance" / "data"
_FILES: Final = ("cases", "volumes", "preempt", "nominated")
_FOLDERS: Final = {"1.34": _DATA, "1.37": _DATA / "v1.37"}
"""Release -> the folder of its golden data."""
_FOR_PEOPLE: Final = frozenset({"name", "only_with_nominated", "other_refusal", "skipped"})
"""Members of `expected` that explain the others. The program returns only some of them."""


def newest() -> list[Path]:
    """Return the files of the newest release, one of each kind of cases."""
    return _files(_FOLDERS["1.37"])


def not_returned(release: str, intree: InTree) -> tuple[int, list[str]]:
    """Return the number of a release's golden cases, and the names of cases with another result of its plugins."""
    cases = [*_cases(release)]
    replies = intree.replies(cases)
    return len(cases), [
        case["name"]
        for case, reply in zip(cases, replies, strict=True)
        if reply.expected is None or _essential(case["expected"]) != _essential(reply.expected)
    ]


def _cases(release: str) -> Iterator[V1]:
    for file in _files(_FOLDERS[release]) if release in _FOLDERS else ():
        for line in read(file):
            # In a case with this member, `expected` has the fix of kubernetes#141526, which v1.34 lacks.
            if "expected_1_34" not in line.content:
                yield dict(line.content)


def _files(folder: Path) -> list[Path]:
    return [file for name in _FILES if (file := folder / f"{name}.jsonl.gz").exists()]


def _essential(expected: V1) -> object:
    return sorted_reasons({name: value for name, value in expected.items() if name not in _FOR_PEOPLE})
