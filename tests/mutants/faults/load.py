"""Faults of the code that uses the measured usage of nodes."""

from typing import Final

from tests.mutants.fault import Fault

FAULTS: Final = (
    Fault(
        id="pods-that-have-not-started-count-as-measured",
        breaks="A burst of pods goes to one node: none of them counts before it has started.",
        old='if until is None or "" < pod.start_time <= until:',
        new="if until is None or pod.start_time <= until:",
        tests=("load/test_load.py",),
    ),
    Fault(
        id="usage-that-is-too-old-counts",
        breaks="Plugins judge nodes by a measurement that is hours old.",
        old="usable = metrics is not None and not metrics.too_old",
        new="usable = metrics is not None",
    ),
    Fault(
        id="packing-by-what-is-allocatable",
        breaks="TargetLoadPacking takes usage as a share of what is allocatable, which is less than the capacity.",
        old="np.where(cpu.capacity > 0, 100 * used / np.maximum(cpu.capacity, 1), 0.0)",
        new="np.where(cpu.capacity > 0, 100 * used / np.maximum(cpu.allocatable, 1), 0.0)",
        tests=("load/test_load.py",),
    ),
    Fault(
        id="negative-usage-is-taken",
        breaks="A node with a negative measurement looks more than idle.",
        old="if not 0 <= amount <= MAX_AMOUNT:  # also rejects NaN",
        new="if amount > MAX_AMOUNT:",
        tests=("app/feeds/test_sources.py",),
    ),
    Fault(
        id="a-failing-usage-source-is-logged-every-time",
        breaks="A metrics API that is not installed fills the log.",
        old="        if text == self._problem:\n            return\n        self._problem = text\n        hint",
        new="        self._problem = text\n        hint",
    ),
)
