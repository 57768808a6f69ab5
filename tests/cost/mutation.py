"""Changes of an attack that may raise its cost: structural changes of its JSON, and of texts.

All changes use one source of randomness, so that a search can be repeated.
"""

import json
import random
import re
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from tests.bench.cluster import HOST, RACK, REGION, ZONE, app_name, node_name
from tests.cost.attack import Attack
from tests.cost.text_mutation import mutated_text

Json: TypeAlias = Any
Path: TypeAlias = tuple[str | int, ...]

_WORDS: Final = (
    *(HOST, ZONE, RACK, REGION, "app", "tier", "version", "team", "pool", "metadata.name", "dedicated", "spot"),
    *("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Equal", "", "0", "-1", "v", "app-0000", "tier-0"),
    *("NoSchedule", "PreferNoSchedule", "NoExecute", "DoNotSchedule", "ScheduleAnyway", "Honor", "Ignore", "Always"),
    *("cpu", "memory", "pods", "ephemeral-storage", "1", "1Gi", "100m", "TCP", "ns-000", "node-00000"),
)
_NUMBERS: Final = (0, 1, -1, 2, 100, 65535, 2**31 - 1, -(2**31), 2**63)
_NUMBERED: Final[tuple[Callable[[int], str], ...]] = (node_name, app_name, "k-{}".format, "ns-{:03d}".format, str)
_DIGITS: Final = re.compile(r"\d+")
_STOP: Final = 0.25
"""Probability that the way down ends at a container."""
_MAX_CHANGES: Final = 4
_BREAKING: Final = 0.1
"""Probability that a required field is removed from an object."""
_MAPS: Final = {
    *("labels", "annotations", "matchLabels", "nodeSelector", "requests", "limits", "overhead", "selector"),
    *("allocatable", "allocatedResources"),
}
"""Members that are maps with any keys. In other objects an unknown key is ignored."""


class Mutator:
    """Makes new attacks from others, up to a size in bytes."""

    def __init__(self, source: random.Random, most: int) -> None:
        self._source = source
        self._most = most
        self._next = 10_000  # for values that must differ from all others
        self._changes: tuple[Callable[[Json, Path, Json], None], ...] = (
            self._grow,
            self._grow,
            self._grow,
            self._everywhere,
            self._everywhere,
            self._cross,
            self._cross,
            self._replace,
            self._remove,
            self._halve,
        )

    def mutated(self, attack: Attack, other: Attack) -> Attack:
        """Return an attack with some changes, such as parts of another one. Both originals stay unchanged."""
        if isinstance(attack.document, str):
            return Attack(attack.way, mutated_text(self._source, attack.document, str(other.document), self._most))
        document = _copy(attack.document)
        for _ in range(self._source.randint(1, _MAX_CHANGES)):
            self._source.choice(self._changes)(document, self._way_down(document), other.document)
        return Attack(attack.way, self._fitted(document))

    def _way_down(self, document: Json) -> Path:
        """Choose a place. Larger members of a map are more probable, elements of a list are equally probable."""
        path: list[str | int] = []
        here: Json = document
        while isinstance(here, dict | list) and here and (not path or self._source.random() > _STOP):
            key: str | int
            if isinstance(here, dict):
                weights = [len(json.dumps(each)) ** 0.5 for each in here.values()]
                (key,) = self._source.choices([*here], weights)
            else:
                key = self._source.randrange(len(here))
            path.append(key)
            here = _inside(here, key)
        return tuple(path)

    def _grow(self, document: Json, path: Path, _: Json) -> None:
        """Multiply the elements of a list or a map on the way, with small differences."""
        grown = [each for end in range(len(path) + 1) if _may_grow(each := _at(document, path[:end]), path[:end])]
        target = self._source.choice(grown) if grown else None
        if not target:
            return
        room = self._most - len(json.dumps(document))
        full = max(0, room) * len(target) // len(json.dumps(target))
        more = min(full, self._source.choice((1, len(target), 3 * len(target), 7 * len(target), full, full)))
        if isinstance(target, list):
            target.extend([self._renumbered(target[index % len(target)]) for index in range(more)])
        else:
            pairs = [*target.items()]
            for index in range(more):
                key, value = pairs[index % len(pairs)]
                target[self._another(key)] = value

    def _everywhere(self, document: Json, path: Path, _: Json) -> None:
        """Change the same member of all elements of a list."""
        lists = [each for end in range(len(path) + 1) if isinstance(each := _at(document, path[:end]), list) and each]
        if not lists:
            return
        target = self._source.choice(lists)
        inner = self._way_down(target[0])
        if not inner:
            return
        write = self._source.choice(_NUMBERED)
        constant = self._source.choice(_WORDS)
        numbered, removed = self._source.random() < 0.5, self._source.random() < 0.1
        for index, element in enumerate(target):
            _put(element, inner, write(index) if numbered else constant, remove=removed)

    def _cross(self, document: Json, _: Path, other: Json) -> None:
        """Copy a part of another attack, at the same place."""
        path = self._way_down(other)
        if path:
            _put(document, path, _copy(_at(other, path)), remove=False)

    def _replace(self, document: Json, path: Path, _: Json) -> None:
        value: Json = self._source.choice(_WORDS)
        match self._source.randrange(5):
            case 0:
                value = self._source.choice(_NUMBERS)
            case 1:
                value = "x" * self._source.choice((63, 253, 317, 5000, 60_000))
            case 2:
                value = self._source.choice((None, [], {}, True, [value], {value: value}))
        if len(path) > 1 or self._source.random() < _BREAKING:
            _put(document, path, value, remove=False)

    def _remove(self, document: Json, path: Path, _: Json) -> None:
        if len(path) > 1 or self._source.random() < _BREAKING:
            _put(document, path, None, remove=True)

    def _halve(self, document: Json, path: Path, _: Json) -> None:
        """Remove half of the elements."""
        for end in range(len(path) + 1):
            here = _at(document, path[:end])
            if isinstance(here, list) and len(here) > 1:
                del here[len(here) // 2 :]
                return

    def _renumbered(self, element: Json) -> Json:
        self._next += 1
        text = json.dumps(element)
        fresh, found = _DIGITS.subn(str(self._next), text) if self._source.random() < 0.9 else (text, 1)
        if not found and isinstance(element, str):
            return f"{element}-{self._next}"
        try:
            return json.loads(fresh)
        except ValueError:  # an escape whose digits were replaced
            return json.loads(text)

    def _another(self, key: str) -> str:
        self._next += 1
        return f"{_DIGITS.sub('', key)}{self._next}"

    def _fitted(self, document: Json) -> Json:
        """Remove elements until the document is small enough."""
        for _ in range(64):
            if len(json.dumps(document)) <= self._most:
                break
            widest = _widest(document)
            if isinstance(widest, list) and len(widest) > 1:
                del widest[len(widest) * 3 // 4 :]
            elif isinstance(widest, dict) and len(widest) > 1:
                for key in [*widest][len(widest) * 3 // 4 :]:
                    del widest[key]
            else:
                break
        return document


def _may_grow(value: Json, path: Path) -> bool:
    return isinstance(value, list) or (isinstance(value, dict) and bool(path) and path[-1] in _MAPS)


def _copy(document: Json) -> Json:
    return json.loads(json.dumps(document))


def _at(document: Json, path: Path) -> Json:
    for key in path:
        document = document[key]
    return document


def _inside(document: Json, key: str | int) -> Json:
    """Return the element at a key. None if there is none."""
    if isinstance(document, dict):
        return document.get(key)
    if isinstance(document, list) and isinstance(key, int) and key < len(document):
        return document[key]
    return None


def _put(document: Json, path: Path, value: Json, *, remove: bool) -> None:
    """Put a value at a place, or remove the present one. No effect if the place does not exist."""
    for key in path[:-1]:
        document = _inside(document, key)
    last = path[-1] if path else None
    if isinstance(document, dict) and isinstance(last, str):
        if remove:
            document.pop(last, None)
        else:
            document[last] = value
    elif isinstance(document, list) and isinstance(last, int):
        if remove:
            del document[last : last + 1]
        else:
            document[last : last + 1] = [value]


def _widest(document: Json) -> Json:
    """Return the container with the most elements."""
    widest, left = document, [document]
    while left:
        here = left.pop()
        if len(here) > len(widest):
            widest = here
        inner = here.values() if isinstance(here, dict) else here
        left.extend(each for each in inner if isinstance(each, dict | list))
    return widest
