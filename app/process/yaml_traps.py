"""Refuses YAML that would exhaust memory, time or the stack, before any object is made of it.

A short text can stand for a very large one. An alias repeats the value of its anchor, and aliases of aliases multiply.
In memory all of them are one object, but JSON, a message and a check of values repeat it. So the expanded size is
counted from the events of the parser. Nesting and numbers are limited there as well, because their readers recurse or
are quadratic.
"""

import re
from typing import Final

import yaml

MAX_REPEATED_BYTES: Final = 4 * 1024 * 1024
"""Bytes of JSON that aliases may add to the written text. This is the size of the largest accepted object. The anchors
of real files repeat some KB."""
MAX_DOCUMENTS: Final = 1_000_000
"""YAML documents in one text: a third more than the objects of the largest clusters (15,000 nodes, 450,000 pods)."""
_DEEPEST: Final = 200
_PER_ELEMENT: Final = 4
"""Bytes counted for each element besides its text: quotes, a comma and a colon, or brackets."""
_MAX_ESCAPE_LENGTH: Final = 6  # a control character in JSON, \u001f
NUMBERS: Final = {"tag:yaml.org,2002:int", "tag:yaml.org,2002:float"}
_LONGEST_BASE_60: Final = 100
_BASE_60: Final = re.compile(r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?")


class YamlTrapError(ValueError):
    """A text that would cost too much. The message is one short line, and quotes nothing of it."""


def refuse_traps(text: bytes | str, loader: type[yaml.CSafeLoader] | type[yaml.SafeLoader] = yaml.CSafeLoader) -> None:
    """Reject YAML that would exhaust memory or the stack. Reads only events. Raises YamlTrapError, YAMLError.

    `loader` is the one that reads the text afterwards, if its words for malformed YAML are wanted.
    """
    sizes = _Sizes()
    found = 0
    for event in yaml.parse(text, loader):
        sizes.take(event)
        found += isinstance(event, yaml.DocumentStartEvent)
        if sizes.depth > _DEEPEST:
            raise YamlTrapError(f"nested more than {_DEEPEST} levels deep")
        if sizes.repeated > MAX_REPEATED_BYTES:
            raise YamlTrapError(f"more than {MAX_REPEATED_BYTES} bytes by aliases")
        if found > MAX_DOCUMENTS:
            raise YamlTrapError(f"more than {MAX_DOCUMENTS} documents")


class _Sizes:
    """Upper limits of the bytes of JSON for the events so far, and of the bytes that aliases add."""

    def __init__(self) -> None:
        self.repeated = 0
        self._total = 0
        self._anchored: dict[str, int] = {}  # anchor -> bytes of its value, with aliases
        self._open: list[tuple[str | None, int]] = []  # for each open collection: its anchor, the bytes before it

    @property
    def depth(self) -> int:
        """Number of open collections."""
        return len(self._open)

    def take(self, event: yaml.Event) -> None:
        """Count an event. Raises YamlTrapError for a number that takes quadratic time to parse."""
        match event:
            case yaml.ScalarEvent():
                self._add(event.anchor, _bytes_of(event))
            case yaml.CollectionStartEvent():
                self._open.append((event.anchor, self._total))
                self._add(None, _PER_ELEMENT)
            case yaml.CollectionEndEvent():
                anchor, before = self._open.pop()
                if anchor is not None:
                    self._anchored[anchor] = self._total - before
            case yaml.AliasEvent():
                size = self._anchored.get(event.anchor or "", 0) + _PER_ELEMENT
                self._add(None, size)
                self.repeated += size

    def _add(self, anchor: str | None, size: int) -> None:
        self._total += size
        if anchor is not None:
            self._anchored[anchor] = size


def _bytes_of(event: yaml.ScalarEvent) -> int:
    value = event.value
    is_long_and_plain = len(value) > _LONGEST_BASE_60 and event.implicit[0]
    if (event.tag in NUMBERS and ":" in value) or (is_long_and_plain and _BASE_60.fullmatch(value)):
        raise YamlTrapError("a base-60 number")
    plain = value.isascii() and value.isprintable()
    return _PER_ELEMENT + (len(value) if plain else _MAX_ESCAPE_LENGTH * len(value))
