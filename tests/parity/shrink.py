"""Delta debugging: the smallest part of a document with the same effect as the whole.

Source of the method: Zeller, Hildebrandt, Simplifying and Isolating Failure-Inducing Input, 2002 (ddmin), on the lists,
maps and texts of JSON.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from tests.json_places import replaced

Json: TypeAlias = Any
Still: TypeAlias = Callable[[Json], bool]


def shrunk(document: Json, still: Still, most_tries: int = 300) -> Json:
    """Return a small part of the document for which `still` holds, after at most `most_tries` tries."""
    tries = 0
    smaller = True
    while smaller:
        smaller = False
        for candidate in _smaller(document):
            if tries >= most_tries:
                return document
            tries += 1
            if still(candidate):
                document = candidate
                smaller = True
                break
    return document


def _smaller(document: Json) -> Iterator[Json]:
    """Yield the document without a part, the largest parts first."""
    for path in _by_size(document):
        value = _at(document, path)
        for less in _less(value):
            yield replaced(document, path, less)


def _less(value: Json) -> Iterator[Json]:
    """Yield the value without a half, without a quarter, ..., and at last without one element."""
    if isinstance(value, dict):
        pairs = [*value.items()]
        yield from (dict(retained) for retained in _without_parts(pairs))
    elif isinstance(value, list):
        yield from _without_parts(value)
    elif isinstance(value, str) and len(value) > 1:
        yield value[: len(value) // 2]


def _without_parts(elements: list[Json]) -> Iterator[list[Json]]:
    part = len(elements)
    while part:
        for start in range(0, len(elements), part):
            yield elements[:start] + elements[start + part :]
            if start // part > 3:  # the first parts of a long list are enough, because its elements are alike
                break
        part //= 2


def _by_size(document: Json) -> list[tuple[str | int, ...]]:
    """Return the paths of all containers, the largest first. Of a list, only the first few elements are searched."""
    found: list[tuple[int, tuple[str | int, ...]]] = []
    left: list[tuple[tuple[str | int, ...], Json]] = [((), document)]
    while left:
        path, here = left.pop()
        if not here or not isinstance(here, dict | list | str):
            continue
        found.append((-len(json.dumps(here)), path))
        if isinstance(here, dict):
            left.extend(((*path, key), value) for key, value in here.items())
        elif isinstance(here, list):
            left.extend(((*path, index), here[index]) for index in range(min(3, len(here))))
    return [path for _, path in sorted(found, key=lambda each: each[0])]


def _at(document: Json, path: tuple[str | int, ...]) -> Json:
    for key in path:
        document = document[key]
    return document
