"""Text of others as logs and terminals show it: without characters that act on a terminal or have no glyph.

Names in any language stay readable. These characters become escapes: control characters, the ends of lines and
paragraphs, marks that change the direction of text, and characters without width, such as the joiner in some emoji.
"""

import re
from collections.abc import Callable
from typing import Final

_UNSEEN: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Characters that Python calls printable, although they have no glyph (Default_Ignorable_Code_Point of Unicode)."""


def shown(text: str, kept: str = "") -> str:
    r"""Return a text with escapes, such as \x1b and \u202e. `kept` are characters that stay in any case."""
    return _with_escapes(text, kept, _escape)


def shown_json(text: str) -> str:
    """Return JSON with escapes. Its value stays the same, and so do the newlines between its parts."""
    return _with_escapes(text, "\n", _json_escape)


def _with_escapes(text: str, kept: str, escape: Callable[[str], str]) -> str:
    if text.isprintable() and (text.isascii() or not _UNSEEN.search(text)):
        return text
    return "".join(each if each in kept or _is_seen(each) else escape(each) for each in text)


def _is_seen(character: str) -> bool:
    return character.isprintable() and not _UNSEEN.match(character)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()


def _json_escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
