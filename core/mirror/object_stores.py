"""Objects of all kinds without a rule of their own, stored unchanged by kind and full name."""

from typing import Any, Final, TypeVar

from core.events import Object
from core.mirror.generation_store import GenerationCounter, GenerationStore
from core.objects.node import NodeMetrics
from core.objects.volumes import CSINode

HeldObject = TypeVar("HeldObject", bound=Object)

OF_A_NODE: Final = (CSINode, NodeMetrics)
"""Kinds whose objects have the name of the node that they describe."""


class ObjectStores:
    """Kind -> (full name -> object), with the generations of their changes."""

    def __init__(self, generations: GenerationCounter) -> None:
        self._generations = generations
        self._stores: dict[type, GenerationStore[Any]] = {}

    def of(self, kind: type[HeldObject]) -> GenerationStore[HeldObject]:
        """Return the store of a kind. It is empty if there was no object of the kind."""
        store = self._stores.get(kind)
        if store is None:
            store = self._stores[kind] = GenerationStore(self._generations)
        return store

    def put(self, thing: HeldObject) -> HeldObject | None:
        """Store an object and return its state before. An unchanged object gets no new generation."""
        store = self.of(type(thing))
        before = store.values.get(thing.full_name)
        if before != thing:
            store.set(thing.full_name, thing)
        return before

    def remove(self, thing: HeldObject) -> HeldObject | None:
        """Remove an object and return its last state, or None if it is unknown."""
        store = self.of(type(thing))
        before = store.values.get(thing.full_name)
        if before is not None:
            store.remove(thing.full_name)
        return before
