"""Changes of a YAML text that may raise the cost of reading it."""

import random
from typing import Final

_TOKENS: Final = (
    *(
        "[",
        "]",
        "{",
        "}",
        "- ",
        "? ",
        ": ",
        ", ",
        "\n",
        "  ",
        "&a ",
        "*a",
        "<<: ",
        "'",
        '"',
        "|\n ",
        ">\n ",
        "# ",
        "--- ",
    ),
    *("!!int ", "!!float ", "!!timestamp ", "!!binary ", "!!omap ", "!!set ", "!!pairs ", "!!str ", "%YAML 1.1\n"),
    *("0x", "0b", "1:", ":1", "9", ".", "e9", "_", "~", "=", "2001-01-01", "\\x01", "\\U0001f600", "\t", "\r"),
)
_MAX_CHANGES: Final = 3


def mutated_text(source: random.Random, text: str, other: str, most: int) -> str:
    """Return a text with some changes, of at most `most` characters."""
    for _ in range(source.randint(1, _MAX_CHANGES)):
        begin = source.randrange(len(text) + 1)
        end = min(len(text), begin + source.choice((1, 2, 5, 20, 200)))
        piece = text[begin:end]
        match source.randrange(5):
            case 0:
                text = text[:begin] + text[end:]
            case 1:
                text = text[:begin] + piece * source.choice((2, 10, 1000)) + text[end:]
            case 2:
                token = source.choice(_TOKENS)
                text = text[:begin] + token * source.choice((1, 2, 1000)) + text[begin:]
            case 3:
                start = source.randrange(len(other) + 1)
                text = text[:begin] + other[start : start + source.choice((10, 1000, 50_000))] + text[end:]
            case _:
                text = text * source.choice((2, 4))
        text = text[:most]
    return text or "a"
