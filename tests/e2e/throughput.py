"""Pods per second of a real kube-scheduler: in-tree, score offload and full offload, on the shapes of scheduler_perf.

    python -m tests.e2e.throughput              500 nodes
    python -m tests.e2e.throughput --large      5,000 nodes with 50,000 pods

All in one run, on one control plane, which shares the machine with the scheduler and Kindred: what counts are the
ratios. The pods wait before the scheduler starts; the time is from the first to the last "Successfully bound" in its
log. Each cell is the median of the rounds; the order of the modes changes with each.
"""

import argparse
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.e2e.api import NAMESPACES, NODES, pods_path
from tests.e2e.binaries import binaries
from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import control_plane
from tests.e2e.load_shapes import NODE, PLAIN, SHAPES, Shape, namespaces
from tests.e2e.programs import wait_until
from tests.e2e.scheduler import IN_TREE, Scheduler, configuration
from tests.e2e.shapes import node

_ALL_NODES: Final = "in-tree, 100 %"
_SAMPLE: Final = "full-offload, sample"
_BOUND: Final = re.compile(r'^I\d{4} (\d\d):(\d\d):(\d\d\.\d+).*"Successfully bound pod to node"', re.MULTILINE)
_PATIENCE: Final = 900.0  # seconds for the pods of one cell


@dataclass(frozen=True, slots=True)
class Size:
    """A cluster to measure in."""

    nodes: int
    plain: int
    scale: int
    """How many times upstream's number of existing pods for 500 nodes."""
    measured: int | None
    """Pods that are measured; upstream's number when None."""
    modes: tuple[str, ...]


_SMALL: Final = Size(500, 0, 1, None, (IN_TREE, "score-offload", "full-offload", _SAMPLE))
_LARGE: Final = Size(5000, 33_600, 10, 300, (IN_TREE, _ALL_NODES, "score-offload", "full-offload", _SAMPLE))


def fill(cluster: Cluster, size: Size) -> int:
    """Make namespaces, nodes and the pods that are there before, and return how many pods these are."""
    api = cluster.api
    api.create_all(NAMESPACES, namespaces())
    api.create_all(NODES, [node(index, zones=1, allocatable=NODE) for index in range(size.nodes)])
    existing = [
        *(placed for shape in SHAPES for placed in shape.existing_pods(shape.existing * size.scale, size.nodes)),
        *PLAIN.existing_pods(size.plain, size.nodes),
    ]
    api.at_once(lambda placed: api.create(pods_path(placed[0]), placed[1]), existing)
    return len(existing)


def _config(cluster: Cluster, mode: str) -> dict[str, Any]:
    if mode == IN_TREE:
        return configuration(IN_TREE, "")
    if mode == _ALL_NODES:
        return {**configuration(IN_TREE, ""), "percentageOfNodesToScore": 100}
    file = mode.split(",", maxsplit=1)[0]
    settings = {"KINDRED_PERCENTAGE_OF_NODES_TO_SCORE": "0"} if mode == _SAMPLE else {}
    return configuration(file, cluster.start_kindred(settings, binds=file == "full-offload").url)


def _binding_times(scheduler: Scheduler) -> list[float]:
    return [int(h) * 3600 + int(m) * 60 + float(s) for h, m, s in _BOUND.findall(scheduler.log())]


def pods_per_second(cluster: Cluster, shape: Shape, mode: str, number: int) -> float:
    """Schedule pods of a shape in a mode, and take them away again."""
    path = pods_path(shape.namespace)
    cluster.api.create_all(path, shape.measured_pods(number))
    try:
        scheduler = cluster.start_scheduler(_config(cluster, mode))
        wait_until(lambda: len(_binding_times(scheduler)) >= number, _PATIENCE, f"{shape.name} {mode}", every=0.5)
        times = _binding_times(scheduler)
        return (number - 1) / (times[-1] - times[0])
    finally:
        cluster.stop_all()
        cluster.api.delete_all(path)


def measure(cluster: Cluster, size: Size, rounds: int) -> dict[str, dict[str, float]]:
    """Return shape -> mode -> pods per second."""
    found: dict[str, dict[str, float]] = {}
    for shape in SHAPES:
        seen: dict[str, list[float]] = {mode: [] for mode in size.modes}
        for round_number in range(rounds):
            turn = round_number % len(size.modes)
            for mode in (*size.modes[turn:], *size.modes[:turn]):
                rate = pods_per_second(cluster, shape, mode, size.measured or shape.measured)
                seen[mode].append(rate)
                _say(f"{shape.name}, {mode}: {rate:.0f}")
        found[shape.name] = {mode: statistics.median(rates) for mode, rates in seen.items()}
    return found


def table(found: Mapping[str, Mapping[str, float]], modes: Sequence[str]) -> str:
    """Return a table in Markdown; behind each figure how many times it is that of the first mode."""
    lines = [f"| pods per second | {' | '.join(modes)} |", "|---" * (len(modes) + 1) + "|"]
    for shape, rates in found.items():
        base = rates[modes[0]]
        cells = [f"{base:.0f}", *(f"{rates[mode]:.0f} ({rates[mode] / base:.2f})" for mode in modes[1:])]
        lines.append(f"| {shape} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--large", action="store_true", help="5,000 nodes with 50,000 pods instead of 500 nodes")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    size = _LARGE if arguments.large else _SMALL
    with tempfile.TemporaryDirectory() as folder, control_plane(Path(folder), binaries()) as plane:
        cluster = Cluster(plane, binaries())
        begin = time.monotonic()
        existing = fill(cluster, size)
        _say(f"{size.nodes} nodes and {existing} pods made in {time.monotonic() - begin:.0f} s")
        print(f"{size.nodes:,} nodes, {existing:,} pods there before\n")
        print(table(measure(cluster, size, arguments.rounds), size.modes))


if __name__ == "__main__":
    main()
