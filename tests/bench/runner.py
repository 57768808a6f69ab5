"""Runs the sections of the benchmark, and prints each as soon as it is measured."""

import multiprocessing
import signal
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Final

from tests.bench import (
    beside,
    busy,
    cache,
    churn,
    decide,
    devices,
    engine,
    events,
    explain,
    failover,
    gangs,
    growth,
    http,
    placing,
    report,
    simulation,
    sync,
)
from tests.bench.command import Size
from tests.bench.live import say
from tests.bench.report import Report, Section, section_text

SECTIONS: Final[Mapping[str, Callable[[Size], Section]]] = MappingProxyType(
    {
        "engine": engine.measure,
        "http": http.measure,
        "decide": decide.measure,
        "gangs": gangs.measure,
        "simulation": simulation.measure,
        "placing": placing.measure,
        "churn": churn.measure,
        "growth": growth.measure,
        "events": events.measure,
        "sync": sync.measure,
        "failover": failover.measure,
        "cache": cache.measure,
        "explain": explain.measure,
        "devices": devices.measure,
        "beside": beside.measure,
        "busy": busy.measure,
    }
)


def measure(names: Iterable[str], size: Size, command: str, *, bounded: bool = True) -> Report:
    """Measure sections. Their bounds apply to the full size. Raises BenchError."""
    _end_in_order()
    say(", ".join(f"{key} {value}" for key, value in report.machine().items()))
    sections = []
    for name in names:
        began = time.perf_counter()
        section = _alone(SECTIONS[name], size)
        sections.append(section if bounded else section.unbounded())
        say(f"\n{section_text(sections[-1])}\n  ({name}: {time.perf_counter() - began:.0f} s)")
    return Report(*report.made_now(command), sections)


def _alone(measure_section: Callable[[Size], Section], size: Size) -> Section:
    """Measure in a separate process, because the heap of one section would slow down the next."""
    with multiprocessing.get_context("spawn").Pool(1, _end_in_order) as pool:
        section = pool.apply(measure_section, (size,))
        pool.close()
        pool.join()  # else leaving the block would kill the process
        return section


def _end_in_order() -> None:
    """Make SIGTERM end the started processes, too, and not only this one."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
