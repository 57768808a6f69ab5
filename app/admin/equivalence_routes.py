"""The contents of the equivalence cache: totals, and classes with hit rates."""

from collections.abc import Callable, Iterator
from http import HTTPStatus
from itertools import islice
from typing import Annotated, Literal

import msgspec
from fastapi import APIRouter, HTTPException, Query, Response
from pydantic import Field

from app.admin.responses import JsonResponse, StrictQuery, list_pieces, streamed
from app.process.json_text import encode
from app.process.long_work import LongWork
from core.equivalence.cache import RESULTS, EquivalenceCache
from core.equivalence.classes import ClassEntry
from core.equivalence.rows import Miss, Row
from core.equivalence.shadow_check import CHAIN


class ClassQuery(StrictQuery):
    """The requested part of the cache."""

    equivalence_hash: Annotated[
        list[Annotated[str, Field(pattern="^[0-9a-fA-F]{16}$")]], Field(default=[], alias="class", max_length=1)
    ]
    limit: Annotated[int | None, Field(ge=0)] = None
    """Number of classes, the last requested first. Without it: all."""


class Cells(msgspec.Struct, frozen=True):
    """Cells that requests looked up."""

    hit: int
    miss: dict[str, int]
    """Reason of the miss -> cells."""


class Invalidation(msgspec.Struct, frozen=True):
    """Number of events that invalidated results of a plugin."""

    plugin: str
    kind: str
    operation: str
    count: int


class Totals(msgspec.Struct, frozen=True):
    """Sizes now, and counts since the start."""

    classes: int
    bytes: int
    max_bytes: int
    questions: dict[str, int]
    cells: Cells
    hit_rate: float | None
    evictions: int
    checked: int
    mismatches: int
    invalidations: list[Invalidation]


class RowState(msgspec.Struct, frozen=True):
    """The cells of a class for a plugin, without those that events invalidated since its last request."""

    plugin: str
    """Name of the plugin, or `first failing filter` for all filters together."""
    side: Literal["filter", "score"]
    state: str
    """`cells`, `empty`, or the code of the status that all nodes share."""
    cells: int


class ClassState(msgspec.Struct, frozen=True):
    """One class; hits and misses count cells."""

    hash: str
    first_pod: str
    questions: int
    hits: int
    misses: int
    hit_rate: float | None
    age_seconds: float
    seconds_since_last_question: float
    bytes: int
    rows: list[RowState]


class CacheState(msgspec.Struct, frozen=True):
    """The whole cache, with the last requested class first."""

    totals: Totals
    classes: list[ClassState]


def equivalence_router(cache: EquivalenceCache | None, clock: Callable[[], float], work: LongWork) -> APIRouter:
    """Return the route that shows a cache. The cache is None if it is off. `clock` must be the clock of the cache."""
    router = APIRouter()

    @router.get("/debug/equivalence")
    async def show(query: Annotated[ClassQuery, Query()]) -> Response:
        if cache is None:
            raise HTTPException(HTTPStatus.CONFLICT, "the equivalence cache is off (KINDRED_EQUIVALENCE_CACHE)")
        if not query.equivalence_hash:
            return streamed(_all(cache, clock, query.limit), work)
        entry = cache.find(int(query.equivalence_hash[0], 16))
        if entry is None:
            raise HTTPException(HTTPStatus.NOT_FOUND, f"class {query.equivalence_hash[0]}: not in the cache")
        return JsonResponse(_class(entry, clock()))

    return router


def _all(cache: EquivalenceCache, clock: Callable[[], float], limit: int | None) -> Iterator[bytes]:
    """Yield CacheState as JSON. Classes need no common moment: a request changes one, and none refers to another."""
    yield b'{"totals":%s,"classes":' % encode(_totals(cache))
    latest = islice(reversed(list(cache)), limit)
    yield from list_pieces(_class(entry, clock()) for entry in latest if entry.in_cache)
    yield b"}"


def _totals(cache: EquivalenceCache) -> Totals:
    totals = cache.statistics
    return Totals(
        classes=len(cache),
        bytes=cache.nbytes,
        max_bytes=cache.max_bytes,
        questions={result: totals.questions[result] for result in RESULTS},
        cells=Cells(totals.hits, {miss.label: totals.misses[miss.name] for miss in Miss}),
        hit_rate=_rate(totals.hits, totals.misses.total()),
        evictions=totals.evictions,
        checked=totals.checks,
        mismatches=totals.mismatches,
        invalidations=[
            Invalidation(plugin, kind, operation, count)
            for plugin, validity in cache.validities.of.items()
            for (kind, operation), count in sorted(validity.counts.items())
        ],
    )


def _class(entry: ClassEntry, now: float) -> ClassState:
    return ClassState(
        hash=f"{entry.hash:016x}",
        first_pod=entry.first_pod,
        questions=entry.questions,
        hits=entry.hits,
        misses=entry.misses,
        hit_rate=_rate(entry.hits, entry.misses),
        age_seconds=round(now - entry.made_at, 3),
        seconds_since_last_question=round(now - entry.requested_at, 3),
        bytes=entry.nbytes,
        rows=[
            *(_row(plugin, "filter", row) for plugin, row in sorted(entry.filters.items())),
            *([_row(CHAIN, "filter", entry.chain)] if entry.chain is not None else []),
            *(_row(plugin, "score", row) for plugin, row in sorted(entry.scores.items())),
        ],
    )


def _row(plugin: str, side: Literal["filter", "score"], row: Row) -> RowState:
    if row.outcome is not None:
        return RowState(plugin, side, row.outcome.code.label, 0)
    cached = row.cells.cached if row.cells is not None else 0
    return RowState(plugin, side, "cells" if cached else "empty", cached)


def _rate(hits: int, misses: int) -> float | None:
    return round(hits / (hits + misses), 4) if hits + misses else None
