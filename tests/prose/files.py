"""The files whose prose is held to the rules, by area: what the allowance counts together."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from tests.prose import markdown, python_source
from tests.prose.passage import Passage

PAGES: Final = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "manifests/README.md")
PACKAGES: Final = ("app", "core")


def sources(root: Path) -> Iterator[Path]:
    """Yield every page and every module, in order. Without the changelog: it keeps what was said of old versions."""
    yield from (root / page for page in PAGES if (root / page).exists())
    yield from sorted((root / "docs").glob("*.md"))
    for package in PACKAGES:
        yield from sorted((root / package).rglob("*.py"))


def passages(root: Path, paths: Iterable[Path]) -> Iterator[Passage]:
    """Yield the passages of files, with paths relative to the root."""
    for path in paths:
        read = markdown.passages if path.suffix == ".md" else python_source.passages
        yield from read(path.relative_to(root).as_posix(), path.read_text("utf-8"))


def area(path: str) -> str:
    """Return the area of a file: a page by itself, a module by its package of the second level."""
    if path.endswith(".md"):
        return path
    return "/".join(path.split("/")[:2])
