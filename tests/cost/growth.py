"""Lists and maps that are filled up to a size in bytes of JSON."""

from collections.abc import Callable
from itertools import count
from typing import Any

from tests.cost.attack import Object, compact

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
