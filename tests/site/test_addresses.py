"""The site is not published yet, so nothing that a user reads links to it. The `$id` of a schema is only a name."""

from pathlib import Path
from typing import Final

import pytest
import yaml

ROOT: Final = Path(__file__).parents[2]
SITE: Final = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))["site_url"]
READ: Final = [
    ROOT / "README.md",
    ROOT / "pyproject.toml",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted(path for path in (ROOT / "manifests").rglob("*") if path.is_file() and not path.is_symlink()),
]


@pytest.mark.parametrize("path", READ, ids=lambda path: str(path.relative_to(ROOT)))
def test_it_links_to_no_page_that_is_not_there(path: Path) -> None:
    assert SITE == "https://kindred.dev/"
    assert SITE not in path.read_text("utf-8")
