"""Values ordered by their last change, so that a reader gets only the changes since its last read."""

from collections import deque
from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, Generic, TypeVar

from core.events import Object
from core.objects.node import NodeMetrics
from core.objects.volumes import CSINode

Value = TypeVar("Value")

JOURNAL_LENGTH: Final = 1024
"""How many removals the journal keeps. A reader that missed more checks all its values: 0.3 ms at 5,000 values."""


class GenerationCounter:
    """The one counter of a mirror. Every change of any of its stores takes the next number."""

    __slots__ = ("last",)

    def __init__(self) -> None:
        self.last = 0

    def advance(self) -> int:
        """Take the next generation."""
        self.last += 1
        return self.last


class GenerationStore(Generic[Value]):
    """Key -> value, each with the generation of its last change (upstream cache.go: the list from `headNode` on)."""

    def __init__(self, counter: GenerationCounter) -> None:
        self._counter = counter
        self._values: dict[str, Value] = {}
        self.values: Mapping[str, Value] = MappingProxyType(self._values)
        """The values by key, as a read-only live view."""
        self._generations: dict[str, int] = {}  # key -> generation of its last change, ascending
        self._journal: deque[tuple[int, str]] = deque()  # (generation, key) of removals, ascending
        self._forgotten = 0  # generation of the last removal that was dropped from the journal

    @property
    def latest(self) -> int:
        """The generation of the last change of any store of the mirror."""
        return self._counter.last

    def set(self, key: str, value: Value) -> int:
        """Store a new or changed value, and return its generation."""
        self._values[key] = value
        return self.touch(key)

    def set_tentatively(self, key: str, value: Value) -> None:
        """Store a new value without a generation, until `withdraw`. No reader of changes may read in between."""
        self._values[key] = value

    def withdraw(self, key: str) -> None:
        """Remove a supposed value."""
        del self._values[key]

    def touch(self, key: str) -> int:
        """Give a key whose value was changed in place a new generation, and return it."""
        counter = self._counter
        counter.last = generation = counter.last + 1
        # Without this line, the key keeps its old place. It takes 0.1 us, against 0.15 us with an OrderedDict.
        self._generations.pop(key, None)
        self._generations[key] = generation
        return generation

    def remove(self, key: str) -> int:
        """Remove a value, and return the generation of the removal."""
        del self._values[key], self._generations[key]
        generation = self._counter.advance()
        self._journal.append((generation, key))
        if len(self._journal) > JOURNAL_LENGTH:
            self._forgotten, _ = self._journal.popleft()
        return generation

    def changed_since(self, generation: int) -> Iterator[Value]:
        """Yield the values that were set or touched after a generation. The cost is proportional to their number."""
        for key, changed in reversed(self._generations.items()):
            if changed <= generation:
                return
            yield self._values[key]

    def deleted_since(self, generation: int, stored: Collection[str]) -> list[str]:
        """List the keys that were removed after a generation and not set again. `stored` are the keys of the reader.

        The result may include keys that the reader never saw, because they were set and removed between two reads.
        """
        if generation < self._forgotten:
            return [key for key in stored if key not in self._values]
        gone = []
        for removed, key in reversed(self._journal):
            if removed <= generation:
                break
            if key not in self._values:
                gone.append(key)
        return gone


StoredObject = TypeVar("StoredObject", bound=Object)

OF_A_NODE: Final = (CSINode, NodeMetrics)
"""Kinds whose objects have the name of the node that they describe."""


class ObjectStores:
    """Kind -> (full name -> object), with the generations of their changes."""

    def __init__(self, generations: GenerationCounter) -> None:
        self._generations = generations
        self._stores: dict[type, GenerationStore[Any]] = {}

    def of(self, kind: type[StoredObject]) -> GenerationStore[StoredObject]:
        """Return the store of a kind. It is empty if there was no object of the kind."""
        store = self._stores.get(kind)
        if store is None:
            store = self._stores[kind] = GenerationStore(self._generations)
        return store

    def put(self, thing: StoredObject) -> StoredObject | None:
        """Store an object and return its state before. An unchanged object gets no new generation."""
        store = self.of(type(thing))
        before = store.values.get(thing.full_name)
        if before != thing:
            store.set(thing.full_name, thing)
        return before

    def remove(self, thing: StoredObject) -> StoredObject | None:
        """Remove an object and return its last state, or None if it is unknown."""
        store = self.of(type(thing))
        before = store.values.get(thing.full_name)
        if before is not None:
            store.remove(thing.full_name)
        return before
