"""An attack as a value: a document, and the way in which it is sent. It can be stored, and sent again."""

import json
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import msgspec

from tests.cost.report import BODY_BYTES

Object: TypeAlias = dict[str, Any]
Way: TypeAlias = Literal["pod", "question", "explain", "objects", "waiting", "manifest", "gangs", "wire"]
"""`pod`: a v1.Pod, as a request of each verb and as a bound pod in the watch. `question`: ExtenderArgs. `explain`: the
body of `POST /explain`. `objects`: v1 objects with `kind`, in the watch. `waiting`: a pod to be explained among v1
objects that were watched before. `manifest`: the text of `POST /explain/manifest`. `gangs`: pods without a node, which
are members of gangs. `wire`: bytes on a connection, as `tests.cost.exchange` sends them."""


class Attack(NamedTuple):
    """An attack. `document` is JSON, or text for a manifest."""

    way: Way
    document: Any

    @property
    def size(self) -> int:
        """The bytes that an attacker must send."""
        if self.way == "wire":
            asks = "path" in self.document
            pieces = [{"text": self.document["path"]}] if asks else self.document["pieces"]
            once = sum(len(piece["text"]) * int(piece.get("times", 1)) for piece in pieces)
            return once * int(self.document["connections"]) * int(self.document.get("times", 1))
        if self.way == "waiting":
            return min(len(self.body()), BODY_BYTES)  # an explanation may not take more, whatever there is
        return len(self.body())

    def body(self) -> bytes:
        """Return the bytes of the document."""
        if isinstance(self.document, str):
            return self.document.encode()
        return compact(self.document)


def compact(document: object) -> bytes:
    """Return JSON in Go's form, without spaces."""
    return json.dumps(document, separators=(",", ":")).encode()


ROOM = 1200
"""Approximate bytes of the rest of an object."""


def grown(size: int, element: Callable[[int], Any]) -> list[Any]:
    """Return elements 0, 1, 2, ... with `size` bytes in total, at least one element."""
    left = size - len(compact(element(0))) - 1
    elements = [element(0)]
    for index in count(1):
        made = element(index)
        left -= len(compact(made)) + 1
        if left < 0:
            return elements
        elements.append(made)
    raise AssertionError


def grown_map(size: int, pair: Callable[[int], tuple[str, Any]]) -> Object:
    """Return a map of the pairs 0, 1, 2, ... with `size` bytes in total. The keys must differ."""
    return dict(grown(size, lambda index: list(pair(index))))


def longest(size: int) -> str:
    """Return a text of `size` characters."""
    return "x" * size


FOLDER: Final = Path(__file__).parent / "found"


class Find(msgspec.Struct, frozen=True):
    """An attack that exceeded its bounds, and the reasons."""

    name: str
    why: list[str]
    way: Way
    document: Any

    @property
    def attack(self) -> Attack:
        """The attack."""
        return Attack(self.way, self.document)


def retained(folder: Path = FOLDER) -> list[Find]:
    """Return all finds by name."""
    decode = msgspec.json.Decoder(Find).decode
    return [decode(file.read_bytes()) for file in sorted(folder.glob("*.json"))]
