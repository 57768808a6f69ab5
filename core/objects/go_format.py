"""Text in Go's notation: upstream's messages quote the faulty value, and Kindred's are compared with them."""

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
"""Characters of a message, or of its quotation. Names have at most 253, label keys 317."""
_LAST_ASCII: Final = 0x7F
_LAST_BMP: Final = 0xFFFF
# encoding/json escapes characters that HTML and JavaScript would misread.
_JSON_ESCAPES: Final = str.maketrans(
    {char: f"\\u{ord(char):04x}" for char in ("<", ">", "&", "\N{LINE SEPARATOR}", "\N{PARAGRAPH SEPARATOR}")}
)


def quoted(text: str) -> str:
    """Return the text as fmt's %q writes it. A text longer than any name in Kubernetes is cut short."""
    text = shortened(text)
    return '"' + "".join(_NAMED_ESCAPES.get(char) or _escaped(char) for char in text) + '"'


def json_list(texts: list[str]) -> str:
    """Return the texts as encoding/json writes a list of them; a long list is cut short."""
    return shortened(msgspec.json.encode(texts[:MAX_LENGTH]).decode().translate(_JSON_ESCAPES))


def shortened(text: str) -> str:
    """Return the text, cut at MAX_LENGTH: a message may be repeated for every node of a request."""
    return text if len(text) <= MAX_LENGTH else f"{text[:MAX_LENGTH]}..."


def _escaped(char: str) -> str:
    code = ord(char)
    if char.isprintable():
        return char
    if code <= _LAST_ASCII:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= _LAST_BMP else f"\\U{code:08x}"
