"""JSON or YAML as JSON documents, with a bound on the expanded text and not only on the written one.

YAML can say much in few bytes. An alias repeats the value of its anchor, and aliases of aliases multiply; all of that
is one object in memory, and is written out as JSON. So the size of each anchor is counted from the events of the
parser, before any object is made. Nesting and numbers are bounded there as well, because their readers recurse or are
quadratic.
"""

import re
from typing import Final

import msgspec
import yaml

from app.logs import one_line

MAX_REPEATED_BYTES: Final = 4 * 1024 * 1024
"""Bytes of JSON that aliases may expand to beside the written text. That is the largest object that is taken, where
anchors that people write repeat some KB."""
MAX_DOCUMENTS: Final = 1_000_000
"""YAML documents in one text, a third more than the objects of the largest clusters: 15,000 nodes, 450,000 pods."""
_DEEPEST: Final = 200
_PER_ELEMENT: Final = 4
"""Bytes counted for each element besides its text: quotes, a comma and a colon, or brackets."""
_MAX_ESCAPE_LENGTH: Final = 6  # a control character in JSON, \u001f
_BASE_60: Final = "(?!.*:)"

_JSON: Final = re.compile(rb"\s*[{\[]")
_READ_AS_TEXT: Final = {"tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:value"}
_NUMBERS: Final = {"tag:yaml.org,2002:int", "tag:yaml.org,2002:float"}
_UNREADABLE: Final = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError)
"""The errors of PyYAML and msgspec for a value that does not fit its tag, such as `!!int ""` or `!!timestamp x`."""


class DocumentsError(ValueError):
    """A text that has no JSON form, or a too large one; the message is one line of bounded length."""


class _TextLoader(yaml.CSafeLoader):
    """YAML as Kubernetes reads it: a bare timestamp, an equals sign or a number to the base 60 (1:30) is text."""


def _resolver(tag: str, pattern: re.Pattern[str]) -> tuple[str, re.Pattern[str]]:
    return tag, re.compile(_BASE_60 + pattern.pattern, pattern.flags) if tag in _NUMBERS else pattern


_TextLoader.yaml_implicit_resolvers = {
    first: [_resolver(tag, pattern) for tag, pattern in resolvers if tag not in _READ_AS_TEXT]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def is_json(text: bytes) -> bool:
    """Return whether a text is taken for JSON."""
    return _JSON.match(text) is not None


def documents(text: bytes) -> list[bytes]:
    """Return the JSON documents of a JSON or YAML text; YAML may hold several. Raises DocumentsError."""
    if is_json(text):
        return [text]
    try:
        _refuse_traps(text)
        # Each is encoded before the next is read: as objects they take many times their text.
        return [msgspec.json.encode(each) for each in yaml.load_all(text, _TextLoader) if each is not None]
    except yaml.YAMLError as error:
        raise DocumentsError(f"neither JSON nor YAML: {_told(error)}") from None
    except _UNREADABLE as error:
        raise DocumentsError(f"YAML that has no JSON form: {_told(error)}") from None


def _told(error: Exception) -> str:
    # A message may quote the input.
    return one_line(" ".join(str(error).split())) or type(error).__name__


def _refuse_traps(text: bytes) -> None:
    """Refuse YAML that would kill the process, from its events, without recursion. Raises ValueError, YAMLError."""
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
    """The bytes of JSON that the events so far stand for, or more, and how many of them are by aliases."""

    def __init__(self) -> None:
        self.repeated = 0
        self._total = 0
        self._anchored: dict[str, int] = {}  # anchor -> bytes under it, aliases included
        self._open: list[tuple[str | None, int]] = []  # of each open collection: its anchor, the bytes before it

    @property
    def depth(self) -> int:
        """How many collections are open."""
        return len(self._open)

    def take(self, event: yaml.Event) -> None:
        """Count an event. Raises ValueError for a number that is quadratic to read."""
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
        raise ValueError("a number to the base 60")
    plain = value.isascii() and value.isprintable()
    return _PER_ELEMENT + (len(value) if plain else _MAX_ESCAPE_LENGTH * len(value))
