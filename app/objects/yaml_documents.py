"""Converts JSON or YAML to JSON documents, with a limit on the expanded text, too.

A short YAML text can have a very large JSON form. An alias repeats the value of its anchor, and aliases of aliases
multiply. In memory all of them are one object, but JSON repeats it. So the expanded size is counted from the events of
the parser, before any object is made. Nesting and numbers are limited there as well, because their readers recurse or
are quadratic.
"""

import re
from typing import Final

import msgspec
import yaml

from app.process.logs import one_line

MAX_REPEATED_BYTES: Final = 4 * 1024 * 1024
"""Bytes of JSON that aliases may add to the written text. This is the size of the largest accepted object. The anchors
of real files repeat some KB."""
MAX_DOCUMENTS: Final = 1_000_000
"""YAML documents in one text: a third more than the objects of the largest clusters (15,000 nodes, 450,000 pods)."""
_DEEPEST: Final = 200
_PER_ELEMENT: Final = 4
"""Bytes counted for each element besides its text: quotes, a comma and a colon, or brackets."""
_MAX_ESCAPE_LENGTH: Final = 6  # a control character in JSON, \u001f
_BASE_60: Final = "(?!.*:)"

_JSON: Final = re.compile(rb"\s*[{\[]")
_READ_AS_TEXT: Final = {"tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:value"}
_NUMBERS: Final = {"tag:yaml.org,2002:int", "tag:yaml.org,2002:float"}
UNREADABLE: Final = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError)
"""The errors of PyYAML and msgspec for a value that does not fit its tag, such as `!!int ""` or `!!timestamp x`."""


class DocumentsError(ValueError):
    """A text without a JSON form, or with one that is too large. The message is one line of limited length."""


class _TextLoader(yaml.CSafeLoader):
    """YAML with the rules of Kubernetes: a bare timestamp, an equals sign or a base-60 number (1:30) is text."""


def _resolver(tag: str, pattern: re.Pattern[str]) -> tuple[str, re.Pattern[str]]:
    return tag, re.compile(_BASE_60 + pattern.pattern, pattern.flags) if tag in _NUMBERS else pattern


_TextLoader.yaml_implicit_resolvers = {
    first: [_resolver(tag, pattern) for tag, pattern in resolvers if tag not in _READ_AS_TEXT]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def is_json(text: bytes) -> bool:
    """Return whether a text is treated as JSON."""
    return _JSON.match(text) is not None


def documents(text: bytes) -> list[bytes]:
    """Return the JSON documents of a JSON or YAML text. YAML may have several. Raises DocumentsError."""
    if is_json(text):
        return [text]
    try:
        _refuse_traps(text)
        # Each document is encoded before the next is read, because objects take many times the memory of their text.
        return [msgspec.json.encode(each) for each in yaml.load_all(text, _TextLoader) if each is not None]
    except yaml.YAMLError as error:
        raise DocumentsError(f"neither JSON nor YAML: {_told(error)}") from None
    except UNREADABLE as error:
        raise DocumentsError(f"YAML that has no JSON form: {_told(error)}") from None


def _told(error: Exception) -> str:
    # Cleaned and cut, because a message may quote the input.
    return one_line(" ".join(str(error).split())) or type(error).__name__


def _refuse_traps(text: bytes) -> None:
    """Reject YAML that would exhaust memory or the stack. Reads only events. Raises ValueError, YAMLError."""
    sizes = _Sizes()
    found = 0
    for event in yaml.parse(text, _TextLoader):
        sizes.take(event)
        found += isinstance(event, yaml.DocumentStartEvent)
        if sizes.depth > _DEEPEST:
            raise ValueError(f"nested more than {_DEEPEST} levels deep")
        if sizes.repeated > MAX_REPEATED_BYTES:
            raise ValueError(f"more than {MAX_REPEATED_BYTES} bytes by aliases")
        if found > MAX_DOCUMENTS:
            raise ValueError(f"more than {MAX_DOCUMENTS} documents")


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
        """Count an event. Raises ValueError for a number that takes quadratic time to parse."""
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
    if event.tag in _NUMBERS and ":" in value:
        raise ValueError("a base-60 number")
    plain = value.isascii() and value.isprintable()
    return _PER_ELEMENT + (len(value) if plain else _MAX_ESCAPE_LENGTH * len(value))
