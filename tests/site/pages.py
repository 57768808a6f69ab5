"""The pages of the site, from the pages of the repository.

A link must work in two places: on the repository's host, which has every file, and on the site, which has only pages.
So the pages link by paths in the repository. The site's copy links to the page, or to a copy of the file.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Final

ROOT_PAGES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "README.md": "index.md",
        "CONTRIBUTING.md": "contributing.md",
        "CHANGELOG.md": "changelog.md",
        "SECURITY.md": "report-a-vulnerability.md",
        "manifests/README.md": "manifests.md",
    }
)
"""Page of the repository outside of docs -> page of the site."""
FILES: Final = "source"
"""The folder of the site with the files that pages link to."""
_LINK: Final = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?!https?://|#|mailto:)([^)\s#]+)(#[^)\s]*)?\)")
_FENCE: Final = re.compile(r"(^```.*?^```)", re.MULTILINE | re.DOTALL)


class BrokenLinkError(Exception):
    """A page links to a file that does not exist. The text names both."""


def site_path(path: str) -> str | None:
    """Return where a file of the repository is on the site. None if it is no page or picture there."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return ROOT_PAGES.get(path)


def page_of_site(root: Path, path: str) -> tuple[str, set[str]]:
    """Return the text of a page for the site, and the files that it links to. Raises BrokenLinkError."""
    linked: set[str] = set()

    def rewritten(found: re.Match[str]) -> str:
        picture, text, target, anchor = found.groups(default="")
        there = os.path.normpath(PurePosixPath(path).parent / target)
        if not (root / there).exists():
            raise BrokenLinkError(f"{path}: no file {there}")
        page = site_path(there)
        if page is None and (root / there).is_dir():
            return text
        if page is None:
            linked.add(there)
            page = f"{FILES}/{there}"
        return f"{picture}[{text}]({page}{anchor})"

    parts = _FENCE.split((root / path).read_text("utf-8"))
    text = "".join(part if part.startswith("```") else _LINK.sub(rewritten, part) for part in parts)
    return text, linked
