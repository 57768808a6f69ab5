"""The whole state of a service, read from its objects: so a kind of state that is new is compared, too.

An empty collection is no state, because many are made at their first use. The order of a dict is none, either.
"""

import asyncio
import functools
import re
from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping
from enum import Enum
from types import CellType, FunctionType, MethodType
from typing import Any, Final

import msgspec
import numpy as np

from core.mirror.affinity_counts import AffinityCounts
from core.mirror.topology import DomainCounts

_OURS: Final = ("app.", "core.", "tests.")
_WITHOUT_STATE: Final = (str, bytes, int, float, bool, type(None), Enum, re.Pattern, type)
RETAINED: Final[Mapping[str, str]] = {
    "core.mirror.affinity_counts.MatchCounters": "counts of the mirror, made at their first use; audited",
    "core.plugins.podtopologyspread.pod_counts.PodCounts": "the same for spread constraints",
    "core.mirror.term_index.TermIndex": "terms, and which of them select a pod; tested against a look at all",
    "core.mirror.topology.TopologyColumns": "domains of the nodes, made at their first use",
    "core.mirror.label_columns.LabelColumns": "labels of the nodes, made at their first use",
    "core.mirror.node_values.LabelProjections": "the same by several keys",
    "core.mirror.node_values.NodeValues": "the same for other values",
    "core.mirror.work.Work": "the work of the last evaluation",
    "core.framework.node_matcher.NodeMatcher": "selectors of the nodes, made at their first use",
}
"""Classes with results that depend on the mirror alone. To make them earlier or later changes no answer."""
ADVANCING: Final = ((DomainCounts, "version"), (DomainCounts, "presence"), (AffinityCounts, "_changes"))
"""The attributes that a supposition advances. They number kept results, which are then computed again (what_if.py)."""
TIMED: Final[Mapping[str, str]] = {
    "app.telemetry": "requests are counted and timed, dry or not; `test_dry_runs` compares the metrics",
    "app.feeds": "times of watch events, which follow the API server, and of readings",
    "app.server": "connections",
    "app.admin": "the admin port",
    "app.api_server": "connections",
    "app.verbs.admission.Admission": "times in the queue",
    "app.verbs.endpoint": "holds the queue and the observers, and counts requests to a stale mirror",
    "app.process.long_work": "turns of the admin port",
}
"""Modules and classes whose state follows the time, or the number of requests of any kind."""


def state_of(root: object) -> dict[str, str]:
    """Return path -> value of everything that can be reached from an object, for a comparison."""
    found: dict[str, str] = {}
    _Walk(found).visit(root, "")
    return found


def differences(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Return the paths whose values differ, with both values."""
    return [
        f"{path}: {before.get(path, 'nothing')} -> {after.get(path, 'nothing')}"
        for path in sorted(before.keys() | after.keys())
        if before.get(path) != after.get(path)
    ]


class _Walk:
    def __init__(self, found: dict[str, str]) -> None:
        self._found = found
        self._seen: dict[int, tuple[str, object]] = {}  # id -> path, and the object itself so that the id stays its own

    def visit(self, value: object, path: str) -> None:
        if isinstance(value, _WITHOUT_STATE):
            self._found[path] = repr(value)
            return
        if isinstance(value, np.ndarray):
            self._found[path] = f"{value.dtype}{value.shape} {hash(value.tobytes())}"
            return
        if isinstance(value, asyncio.Event):
            self._found[path] = f"event set: {value.is_set()}"
            return
        if id(value) in self._seen:
            return
        self._seen[id(value)] = path, value
        for name, part in _parts(value):
            self.visit(part, f"{path}{name}")
        if isinstance(value, (list, tuple, deque)) and value:
            self._found[path] = f"{type(value).__name__} of {len(value)}"


def _parts(value: Any) -> Iterator[tuple[str, object]]:  # noqa: ANN401, C901, PLR0911  # whatever a service is made of
    match value:
        case Mapping():
            if isinstance(value, OrderedDict) and value:
                yield ".order", repr([_key(key) for key in value])
            for key, part in value.items():
                yield f"[{_key(key)}]", part
            return
        case list() | tuple() | deque():
            for index, part in enumerate(value):
                yield f"[{index}]", part
            return
        case set() | frozenset():
            if value:
                yield ".members", repr(sorted(map(repr, value)))
            return
        case MethodType():
            yield f".{value.__func__.__name__}", value.__self__
            return
        case FunctionType():
            yield from _of_function(value)
            return
        case functools.partial():
            yield ".func", value.func
            yield ".args", (*value.args, *value.keywords.values())
            return
        case CellType():
            yield "", value.cell_contents
            return
    yield from _of_object(value)


def _of_function(function: FunctionType) -> Iterator[tuple[str, object]]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        yield f"({name})", cell


def _of_object(value: object) -> Iterator[tuple[str, object]]:
    kind = type(value)
    name = f"{kind.__module__}.{kind.__qualname__}"
    if not kind.__module__.startswith(_OURS) or name in RETAINED or name.startswith(tuple(TIMED)):
        return
    if isinstance(value, msgspec.Struct):
        for field in value.__struct_fields__:
            yield f".{field}", getattr(value, field)
        return
    for base in kind.__mro__:
        for slot in getattr(base, "__slots__", ()):
            if (base, slot) not in ADVANCING and hasattr(value, slot):
                yield f".{slot}", getattr(value, slot)
    for attribute, part in getattr(value, "__dict__", {}).items():
        if (kind, attribute) not in ADVANCING:
            yield f".{attribute}", part


def _key(key: object) -> str:
    return repr(key) if isinstance(key, (*_WITHOUT_STATE, tuple)) else type(key).__name__
