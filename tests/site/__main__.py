"""Write the sources of the site: `python -m tests.site FOLDER`, which is emptied first. `make docs` then builds it."""

import shutil
import sys
from pathlib import Path
from typing import Final

from tests.site.pages import FILES, ROOT_PAGES, page_of_site
from tests.site.reference import PAGES

ROOT: Final = Path(__file__).parents[2]
_PICTURES: Final = ("docs/images", "docs/bench")
_PICTURE_TYPES: Final = (".svg", ".png")


def write(folder: Path) -> None:
    """Write pages, pictures and linked files. Raises BrokenLinkError."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    linked: set[str] = set()
    pages = {f"docs/{path.name}": path.name for path in sorted((ROOT / "docs").glob("*.md"))} | dict(ROOT_PAGES)
    for source, page in pages.items():
        text, files = page_of_site(ROOT, source)
        (folder / page).write_text(text, "utf-8")
        linked |= files
    for page, make in PAGES.items():
        (folder / page).write_text(make(), "utf-8")
    for file in linked:
        _copy(ROOT / file, folder / FILES / file)
    for pictures in _PICTURES:
        for path in sorted((ROOT / pictures).iterdir()):
            if path.suffix in _PICTURE_TYPES:
                _copy(path, folder / path.relative_to(ROOT / "docs"))


def _copy(path: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, to)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
