"""Faults of metrics, logs and health: wrong figures, and a replica that is wrongly ready."""

from typing import Final

from tests.mutants.fault import Fault

FAULTS: Final = (
    Fault(
        id="upper-bound-in-the-next-bucket",
        breaks="A duration of exactly a bound is not in the bucket that ends there.",
        old="histogram.counts[bisect_left(_SECONDS, seconds)] += 1",
        new="histogram.counts[bisect_left(_SECONDS, seconds + 1e-12)] += 1",
        tests=("test_verb_collector.py",),
    ),
    Fault(
        id="waits-in-the-sum-of-durations",
        breaks="The sum of the seconds in the queue is that of the durations.",
        old="        histogram.sum += waited\n",
        new="        histogram.sum += seconds\n",
        tests=("test_verb_collector.py",),
    ),
    Fault(
        id="expired-and-forgotten-mixed-up",
        breaks="Pods that expired are told as forgotten.",
        old='("forgotten", counts.forgotten),\n            ("expired", counts.expired),',
        new='("forgotten", counts.expired),\n            ("expired", counts.forgotten),',
        tests=("test_mirror_collector.py",),
    ),
    Fault(
        id="figures-of-gone-nodes-told",
        breaks="The resource figures of a node stay in the metrics after it has gone.",
        old="            self._kept.pop(name, None)\n            return\n",
        new="            return\n",
        tests=("test_figure_lines.py",),
    ),
    Fault(
        id="pods-on-unknown-nodes-are-nodes",
        breaks="The pods on unknown nodes are counted by node.",
        old="unplaced = sum(len(info.rows) for info in",
        new="unplaced = sum(bool(info.rows) for info in",
        tests=("test_mirror_collector.py",),
    ),
    Fault(
        id="ready-though-draining",
        breaks="A replica that is about to end says that it is ready.",
        old='each for each in ("draining" if self.draining else "", problem, obstacle, self.memory.problem()) if each',
        new="each for each in (problem, obstacle, self.memory.problem()) if each",
        tests=("test_health*.py", "test_draining.py"),
    ),
    Fault(
        id="lines-left-out-told-once",
        breaks="Of lines that are left out in a second, one less is told.",
        old="        if window.left_out == 1:\n",
        new="        if window.left_out == 2:\n",
        tests=("test_request_log.py", "test_closed_connections.py"),
    ),
)
