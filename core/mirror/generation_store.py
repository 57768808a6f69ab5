"""Values in the order of their last change, so that a returning reader gets only the changes since."""

from collections import deque
from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Final, Generic, TypeVar

Value = TypeVar("Value")

JOURNAL_LENGTH: Final = 1024
"""Removals remembered. A reader who missed more looks through all that it holds: 0.3 ms at 5,000 values."""


class GenerationCounter:
    """The one counter of a mirror: every change of any of its stores takes the next number."""

    __slots__ = ("last",)

    def __init__(self) -> None:
        self.last = 0

    def advance(self) -> int:
        """Take the next generation."""
        self.last += 1
        return self.last


class GenerationStore(Generic[Value]):
    """Key -> value, each with the generation of its last change (upstream cache.go: the list from `headNode` on).

    Removals take a generation too and are in a bounded journal.
    """

    def __init__(self, counter: GenerationCounter) -> None:
        self._counter = counter
        self._values: dict[str, Value] = {}
        self._generations: dict[str, int] = {}  # key -> generation of its last change, ascending
        self._journal: deque[tuple[int, str]] = deque()  # (generation, key) of removals, ascending
        self._forgotten = 0  # generation of the last removal that the journal has let go

    @property
    def values(self) -> Mapping[str, Value]:
        """The values by key, read-only; a view, which follows every change."""
        return MappingProxyType(self._values)

    @property
    def latest(self) -> int:
        """The generation of the last change of any store of the mirror."""
        return self._counter.last

    def generations(self) -> Iterator[tuple[str, int]]:
        """Yield (key, generation of its last change), the least recently changed first."""
        yield from self._generations.items()

    def set(self, key: str, value: Value) -> int:
        """Put a new or changed value; return its generation."""
        self._values[key] = value
        return self.touch(key)

    def suppose(self, key: str, value: Value | None) -> Value | None:
        """Let a key have another value, or none, without a generation; return the one that it has.

        That has to be brought back in the same way before anything else changes; see Supposition.
        """
        before = self._values.get(key)
        if value is None:
            self._values.pop(key, None)
        else:
            self._values[key] = value
        return before

    def touch(self, key: str) -> int:
        """Give the value of a key, which has changed in itself, a new generation, and return it."""
        counter = self._counter
        counter.last = generation = counter.last + 1
        self._generations.pop(key, None)  # or it would stay where it is; 0.1 us, an OrderedDict takes 0.15
        self._generations[key] = generation
        return generation

    def remove(self, key: str) -> int:
        """Take a value out; return the generation of that."""
        del self._values[key], self._generations[key]
        generation = self._counter.advance()
        self._journal.append((generation, key))
        if len(self._journal) > JOURNAL_LENGTH:
            self._forgotten, _ = self._journal.popleft()
        return generation

    def changed_since(self, generation: int) -> Iterator[Value]:
        """Yield the values set or touched after a generation, at the cost of their number alone."""
        for key, changed in reversed(self._generations.items()):
            if changed <= generation:
                return
            yield self._values[key]

    def deleted_since(self, generation: int, held: Collection[str]) -> list[str]:
        """List the keys removed after a generation and not set again, for a reader who holds the given ones.

        It may name keys that the reader does not hold: set and removed between two looks.
        """
        if generation < self._forgotten:
            return [key for key in held if key not in self._values]
        gone = []
        for removed, key in reversed(self._journal):
            if removed <= generation:
                break
            if key not in self._values:
                gone.append(key)
        return gone
