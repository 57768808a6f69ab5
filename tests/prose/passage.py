"""A passage of prose: a paragraph, a list item, a table cell, a docstring's paragraph, a comment or a message."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

_WORD: Final = re.compile(r"[A-Za-z0-9][\w'/.:-]*")
_END: Final = re.compile(r"(?<=[.!?])[\"')\]*]*\s+(?=[\"'(\[*]*(?:[A-Z0-9`]|kube-|import-linter|client-go|uvicorn))")
_ABBREVIATION: Final = re.compile(r"\b(?:e\.g|i\.e|etc|vs|cf|No|approx)\.[\"')\]*]*\s*$")
_CODE: Final = re.compile(r"``.+?``|`[^`]*`", re.DOTALL)
_LINK: Final = re.compile(r"!?\[((?:[^\[\]]|\[[^\]]*\])*)\]\([^)\s]*\)")
_URL: Final = re.compile(r"https?://\S+")


class Kind(StrEnum):
    """Where a passage comes from. The values are the rows of the measurement."""

    DOCS = "docs"
    DOCSTRING = "docstrings"
    COMMENT = "comments"
    MESSAGE = "help texts and messages"


@dataclass(frozen=True, slots=True)
class Passage:
    """A text with the place where it begins."""

    path: str
    line: int
    kind: Kind
    text: str

    def sentences(self) -> Iterator[str]:
        """Yield the sentences, without markup. Code and addresses count as one word each."""
        text = _URL.sub("URL", _CODE.sub("CODE", _LINK.sub(r"\1", self.text)))
        pending = ""
        for part in _END.split(" ".join(text.split())):
            pending = f"{pending} {part}".strip()
            if not _ABBREVIATION.search(pending):
                yield pending
                pending = ""
        if pending:
            yield pending


def word_count(sentence: str) -> int:
    """Return how many words a sentence has."""
    return len(_WORD.findall(sentence))


def without_code(text: str) -> str:
    """Return a text without its code and its addresses, for rules about words."""
    return _URL.sub("", _CODE.sub("CODE", _LINK.sub(r"\1", text)))
