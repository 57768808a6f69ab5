"""A planted fault: a change of a few lines of app/ or core/ that breaks one behaviour."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

PACKAGES: Final = ("app", "core")
_TOOLS: Final = frozenset({"bench", "browser", "cost", "e2e", "fake_apiserver", "load", "mutants"})
"""Folders of tests that test only themselves, or need more than Python."""


class MisplacedFaultError(Exception):
    """A fault, or one of its tests, no longer fits the tree. The message names the fault."""


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """One mistake. The text `old` is its place: files may move, but the text must be unique."""

    id: str
    """In kebab-case, for people and for `--only`."""
    breaks: str
    """The broken behaviour, in one sentence."""
    old: str
    """A text that occurs once in all of app/ and core/."""
    new: str
    tests: Sequence[str] = ()
    """The tests to run first: directories from the root of the tree (`tests/core/mirror`), and test files by the end of
    their path (`test_admission.py`, `interpodaffinity/test_plugin.py`, `test_explain*.py`), because they may move.
    Empty: those of the module that has the text, so for `app/feeds/stream.py` the files `test_stream*.py` beside it."""


def sources(tree: Path) -> dict[Path, str]:
    """Return file -> text for all files in which a fault can be planted."""
    return {file: file.read_text("utf-8") for package in PACKAGES for file in sorted((tree / package).rglob("*.py"))}


def planted(texts: Mapping[Path, str], fault: Fault) -> tuple[Path, str]:
    """Return the file of a fault, and its text with the fault in it. Raises MisplacedFaultError."""
    found = [file for file, text in texts.items() for _ in range(text.count(fault.old))]
    if len(found) != 1:
        where = ", ".join(map(str, found)) or "nowhere"
        raise MisplacedFaultError(f"{fault.id}: its text has to be there once, and is in: {where}")
    return found[0], texts[found[0]].replace(fault.old, fault.new)


def plant(tree: Path, fault: Fault) -> None:
    """Put a fault into a tree. Raises MisplacedFaultError."""
    file, text = planted(sources(tree), fault)
    file.write_text(text, "utf-8")


def first_tests(tree: Path, texts: Mapping[Path, str], fault: Fault) -> list[str]:
    """Return the paths of the fault's tests, from the root of the tree. Raises MisplacedFaultError."""
    tests = fault.tests
    if not tests:
        module = planted(texts, fault)[0].relative_to(tree)
        tests = [f"tests/{module.parent}/test_{module.stem}{more}.py" for more in ("", "_*")]
        tests = [each for each in tests if [*tree.glob(each)]] or tests
    return [path for test in tests for path in _paths_of(tree, fault, test)]


def _paths_of(tree: Path, fault: Fault, test: str) -> list[str]:
    if (tree / test).is_dir():
        return [test]
    paths = [file.relative_to(tree) for file in sorted((tree / "tests").rglob(Path(test).name))]
    found = [str(path) for path in paths if path.match(test) and path.parts[1] not in _TOOLS]
    if not found:
        raise MisplacedFaultError(f"{fault.id}: its test {test} is not there")
    return found
