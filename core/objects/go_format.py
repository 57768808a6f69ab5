"""Text in Go's notation. Upstream's messages quote the invalid value, and Kindred's messages equal upstream's."""

from typing import Final

import msgspec

_NAMED_ESCAPES: Final = {
    "\a": r"\a",
    "\b": r"\b",
    "\f": r"\f",
    "\n": r"\n",
    "\r": r"\r",
    "\t": r"\t",
    "\v": r"\v",
    "\\": r"\\",
    '"': r"\"",
}
MAX_LENGTH: Final = 1024
"""Maximum length of a message, or of a quoted value, in characters. Names have at most 253, label keys 317."""
_LAST_ASCII: Final = 0x7F
_LAST_BMP: Final = 0xFFFF
# encoding/json escapes characters that HTML and JavaScript would misinterpret.
_JSON_ESCAPES: Final = str.maketrans(
    {char: f"\\u{ord(char):04x}" for char in ("<", ">", "&", "\N{LINE SEPARATOR}", "\N{PARAGRAPH SEPARATOR}")}
)


def quoted(text: str) -> str:
    """Return the text in the notation of fmt's %q. A text longer than any name in Kubernetes is truncated."""
    text = shortened(text)
    return '"' + "".join(_NAMED_ESCAPES.get(char) or _escaped(char) for char in text) + '"'


def json_list(texts: list[str]) -> str:
    """Return the texts in the notation of encoding/json. A long list is truncated."""
    return shortened(msgspec.json.encode(texts[:MAX_LENGTH]).decode().translate(_JSON_ESCAPES))


def shortened(text: str) -> str:
    """Return the text, truncated to MAX_LENGTH, because a message may be repeated for every node of a request."""
    return text if len(text) <= MAX_LENGTH else f"{text[:MAX_LENGTH]}..."


def _escaped(char: str) -> str:
    code = ord(char)
    if char.isprintable():
        return char
    if code <= _LAST_ASCII:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= _LAST_BMP else f"\\U{code:08x}"
