"""Text in Go's notation: upstream's messages quote what they complain of, and ours are compared with them."""

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
_LAST_ASCII: Final = 0x7F
_LAST_BMP: Final = 0xFFFF
# encoding/json escapes what HTML and JavaScript would misread.
_JSON_ESCAPES: Final = str.maketrans(
    {char: f"\\u{ord(char):04x}" for char in ("<", ">", "&", "\N{LINE SEPARATOR}", "\N{PARAGRAPH SEPARATOR}")}
)


def quoted(text: str) -> str:
    """Return the text as fmt's %q writes it."""
    return '"' + "".join(_NAMED_ESCAPES.get(char) or _escaped(char) for char in text) + '"'


def json_list(texts: list[str]) -> str:
    """Return the texts as encoding/json writes a list of them."""
    return msgspec.json.encode(texts).decode().translate(_JSON_ESCAPES)


def _escaped(char: str) -> str:
    code = ord(char)
    if char.isprintable():
        return char
    if code <= _LAST_ASCII:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= _LAST_BMP else f"\\U{code:08x}"
