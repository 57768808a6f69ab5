"""How the cases of each kind are run."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from tests.conformance import bench_checks, nominated_cases, plugin_cases, preempt_cases, volume_cases
from tests.conformance.golden_files import Kind, Line
from tests.conformance.results import Results

RUN: Final[Mapping[Kind, Callable[[Iterable[Line], Results], None]]] = {
    Kind.PLUGIN: plugin_cases.run,
    Kind.BENCH: bench_checks.run,
    Kind.VOLUME: volume_cases.run,
    Kind.PREEMPTION: preempt_cases.run,
    Kind.NOMINATED: nominated_cases.run,
}
"""What each kind is run by."""
