"""Pods per second of a real kube-scheduler in each mode, with the CPU time that each program takes for a pod.

    python -m tests.e2e.throughput                               500 nodes
    python -m tests.e2e.throughput --nodes 5000 --rounds 1       5,000 nodes with 50,000 pods
    python -m tests.e2e.throughput --nodes 2000 --steady 600     pods that come and go for ten minutes
    python -m tests.e2e.throughput --modes in-tree,ceiling --shapes affinity,plain --pods 100

All in one run, on one control plane, which shares the machine with the scheduler and Kindred: what counts are the
ratios. The pods wait before the scheduler starts; the time is from the first to the last "Successfully bound" in its
log, and CPU time is that of the same time. The order of the modes changes with each round.
"""

import argparse
import datetime as dt
import re
import sys
import threading
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path
from typing import Final

import httpx

from tests.bench.live import Process, busy_seconds
from tests.bench.report import made_now, percentile
from tests.e2e.api import Manifest, pods_path
from tests.e2e.binaries import (
    API_SERVER,
    ETCD,
    MODULE,
    RELEASES,
    SCHEDULER,
    BuildError,
    kubernetes_version,
)
from tests.e2e.cluster import Cluster, cluster_of
from tests.e2e.filled import SIZES, Size, fill
from tests.e2e.kindred import Kindred
from tests.e2e.load_shapes import GANG_SIZE, SHAPES, UNFIT, Shape, gang
from tests.e2e.pace import Made, Pace, paced, waits
from tests.e2e.programs import ProgramError, wait_until
from tests.e2e.scheduler import Scheduler
from tests.throughput.modes import DEFAULT_MODES, MODES, Mode, chosen
from tests.throughput.results import KINDRED, MACHINE, Cell, Throughput, default_path, tables
from tests.throughput.steady import ASSUMED, LAG, MIRRORED, REQUESTS, WAITING, Sample, Steady

_BOUND: Final = re.compile(
    rb'^I(\d\d)(\d\d) (\d\d):(\d\d):(\d\d)\.(\d{6}).*"Successfully bound pod to node"'
    rb'(?: \w+="[^"]*")*? pod="[^/"]+/([^"]+)"',  # a member has the name of its group first
    re.MULTILINE,
)
_EVERY: Final = 0.02  # seconds; the kernel counts in steps of 10 ms

CpuReader = Callable[[], float]


def bindings(log: bytes, year: int) -> dict[str, float]:
    """Return pod -> when it was bound, in seconds since the epoch.

    The log is that of klog: local time without a year.
    """
    found = {}
    for *groups, name in _BOUND.findall(log):
        month, day, hour, minute, second, microsecond = map(int, groups)
        local = dt.datetime(year, month, day, hour, minute, second, microsecond)  # noqa: DTZ001  # local, as klog has it
        found[name.decode()] = local.timestamp()
    return found


def binding_times(log: bytes, year: int, prefix: str = "") -> list[float]:
    """Return when the pods whose names begin with `prefix` were bound."""
    return [at for name, at in bindings(log, year).items() if name.startswith(prefix)]


class CpuSamples:
    """CPU seconds of programs at times since the epoch, which a thread takes while `sampling` lasts."""

    def __init__(self, readers: Mapping[str, CpuReader]) -> None:
        self._readers = dict(readers)
        self._times: list[float] = []
        self._seconds: dict[str, list[float]] = {name: [] for name in readers}

    def take(self, now: float) -> None:
        """Take a sample of each program."""
        self._times.append(now)
        for name, read in self._readers.items():
            self._seconds[name].append(read())

    def spent(self, begin: float, end: float) -> dict[str, float]:
        """Return program -> CPU seconds between two times; between samples, as if spent evenly."""
        return {name: self._at(end, values) - self._at(begin, values) for name, values in self._seconds.items()}

    def _at(self, moment: float, values: Sequence[float]) -> float:
        after = min(max(bisect_left(self._times, moment), 1), len(self._times) - 1)
        before_time, after_time = self._times[after - 1], self._times[after]
        share = (moment - before_time) / (after_time - before_time)
        return values[after - 1] + min(max(share, 0.0), 1.0) * (values[after] - values[after - 1])


@contextmanager
def sampling(readers: Mapping[str, CpuReader]) -> Iterator[CpuSamples]:
    """Take samples until the block ends. A program must not end before."""
    samples = CpuSamples(readers)
    stop = threading.Event()

    def work() -> None:
        while not stop.wait(_EVERY):
            samples.take(time.time())

    samples.take(time.time())
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield samples
    finally:
        stop.set()
        thread.join()
        samples.take(time.time())


_STAY: Final = 5.0  # seconds that a bound pod stays if pods come and go
_SAMPLES: Final = 60  # of a time in which they do
_PENDING: Final = "scheduler_pending_pods"
_LAG: Final = "kindred_mirror_to_watch_delay_seconds"
_OF_KINDRED: Final = {
    ASSUMED: "kindred_mirror_assumed_pods",
    MIRRORED: "kindred_mirror_pods",
    REQUESTS: "kindred_queue_length",
}
_PATIENCE: Final = 900.0  # seconds for the pods of one cell
_ALGORITHM: Final = "scheduler_scheduling_algorithm_duration_seconds"
_ATTEMPTS_METRIC: Final = "scheduler_schedule_attempts_total"
_PROFILED: Final = 5  # seconds of a cell, from when the scheduler is healthy
_RESULT: Final = re.compile(r'result="(\w+)"')


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured."""

    size: Size
    shapes: Sequence[Shape]
    modes: Sequence[Mode]
    rounds: int
    pods: int | None
    settings: Mapping[str, str]
    unfit: int = 0
    """Pods that fit nowhere, between those that are measured."""
    gangs: int = 0
    """Gangs of GANG_SIZE pods, between the pods that are measured."""
    profiles: Path | None = None
    """A folder for the scheduler's CPU profile of each cell."""
    steady: float = 0.0
    """Seconds in which pods come and go, instead of a backlog."""
    rate: float = 0.0
    """Pods a second that are then created, and as many deleted."""

    def pods_of(self, shape: Shape, scheduler_name: str) -> Iterator[Manifest]:
        """Yield the pods that wait for a scheduler profile."""
        measured = shape.measured_pods(self.number(shape), scheduler_name)
        unfit = replace(UNFIT, namespace=shape.namespace).measured_pods(self.unfit, scheduler_name)
        gangs = [[*gang(number, scheduler_name)] for number in range(self.gangs)]
        yield from _spread_evenly([[each] for each in measured], [[each] for each in unfit], gangs)

    def number(self, shape: Shape) -> int:
        """Return how many pods of a shape are measured."""
        return self.pods or self.size.measured or shape.measured


def _spread_evenly(*kinds: Sequence[Sequence[Manifest]]) -> Iterator[Manifest]:
    """Give the pods of all kinds, each kind at the same pace. The pods of one block stay together."""
    placed = [((index + 0.5) / len(blocks), block) for blocks in kinds for index, block in enumerate(blocks)]
    for _, block in sorted(placed, key=itemgetter(0)):
        yield from block


@dataclass(frozen=True, slots=True)
class Running:
    """What schedules: a scheduler, and Kindred if the mode has an extender."""

    scheduler: Scheduler
    kindred: Kindred | None
    processes: Mapping[str, Process]
    """All programs, the API server and etcd, too."""

    @classmethod
    def start(cls, cluster: Cluster, mode: Mode, settings: Mapping[str, str], *, waits: bool) -> "Running":
        """Start it; wait until the scheduler is healthy unless told otherwise. Raises ProgramError."""
        pids = {API_SERVER: cluster.plane.api_server.pid, ETCD: cluster.plane.etcd.pid}
        kindred = cluster.start_kindred({**mode.settings, **settings}) if mode.has_extender else None
        if kindred is not None:
            pids[KINDRED] = kindred.program.pid
        config = mode.config("" if kindred is None else kindred.url)
        scheduler = cluster.start_scheduler(config, waits=waits, flags=mode.flags)
        pids[SCHEDULER] = scheduler.program.pid
        return cls(scheduler, kindred, {name: Process(pid) for name, pid in pids.items()})

    @property
    def cpu_readers(self) -> dict[str, CpuReader]:
        """What reads the CPU seconds so far, by program, and those of the whole machine."""
        return {**{name: process.cpu_seconds for name, process in self.processes.items()}, MACHINE: busy_seconds}

    def cpu_seconds(self) -> dict[str, float]:
        """Return program -> CPU seconds so far."""
        return {name: read() for name, read in self.cpu_readers.items()}


def measure_cell(cluster: Cluster, plan: Plan, shape: Shape, mode: Mode) -> Cell:
    """Schedule pods of a shape in a mode, and take them away again. Raises TimeoutError, ProgramError."""
    path, number = pods_path(shape.namespace), plan.number(shape)
    cluster.api.create_all(path, plan.pods_of(shape, mode.scheduler_name))
    try:
        # Sampled from its start on: it binds a moment before it says that it is ready.
        running = Running.start(cluster, mode, plan.settings, waits=False)
        scheduler = running.scheduler
        with sampling(running.cpu_readers) as samples:
            scheduler.wait_until_healthy()
            if plan.profiles is not None:
                (plan.profiles / f"{shape.name}-{mode.name}.pprof").write_bytes(scheduler.cpu_profile(_PROFILED))
            wait_until(
                lambda: scheduler.bound() >= number + plan.gangs * GANG_SIZE,
                _PATIENCE,
                f"{shape.name}, {mode.name}",
                every=0.25,
            )
        bound = bindings(scheduler.program.log.read_bytes(), time.localtime().tm_year)
        times = [moment for name, moment in bound.items() if name.startswith(f"{shape.name}-")]
        spent = samples.spent(times[0], times[-1])
        return Cell(
            *(shape.name, mode.name, number, (number - 1) / (times[-1] - times[0])),
            {name: 1000 * seconds / (number - 1) for name, seconds in spent.items()},
            *(_algorithm_ms(scheduler), attempts(scheduler)),
        )
    finally:
        cluster.stop_all()
        cluster.api.delete_all(path)


def measure_steady(cluster: Cluster, plan: Plan, shape: Shape, mode: Mode) -> Steady:
    """Create and delete pods of a shape at one pace, and take what is left away. Raises ProgramError and others."""
    path, stock = pods_path(shape.namespace), int(plan.rate * _STAY)
    pace = Pace(path, [*shape.measured_pods(1, mode.scheduler_name)], plan.rate, plan.steady, stock, _STAY)
    try:
        running = Running.start(cluster, mode, plan.settings, waits=True)
        before = running.cpu_seconds()
        with paced(cluster.plane, pace) as creating:
            samples = _sampled(running, creating, plan.steady)
        made, end = creating.result(), time.time()
        counted = made[2 * stock :]
        waited = waits(counted, end)
        return Steady(
            *(shape.name, mode.name, plan.rate, plan.steady, len(counted), sum(each.bound is None for each in counted)),
            p50=1000 * percentile(waited, 0.5),
            p99=1000 * percentile(waited, 0.99),
            longest=1000 * max(waited),
            cpu_ms={name: 1000 * (spent - before[name]) / len(made) for name, spent in running.cpu_seconds().items()},
            samples=[each for each in samples if each.seconds > 2 * _STAY],
        )
    finally:
        cluster.stop_all()
        cluster.api.delete_all(path)


def _sampled(running: Running, creating: Future[list[Made]], seconds: float) -> list[Sample]:
    """Take samples until the time is over."""
    begin, samples = time.time(), list[Sample]()
    lag = (0.0, 0.0)
    while not wait([creating], timeout=seconds / _SAMPLES).done and time.time() - begin < seconds:
        found = running.scheduler.samples()
        figures = {WAITING: sum(value for (name, _), value in found.items() if name == _PENDING)}
        if running.kindred is not None:
            of_kindred = running.kindred.samples()
            figures |= {heading: of_kindred[name] for heading, name in _OF_KINDRED.items()}
            total = (of_kindred[f"{_LAG}_sum"], of_kindred[f"{_LAG}_count"])
            figures[LAG] = 1000 * (total[0] - lag[0]) / max(1.0, total[1] - lag[1])
            lag = total
        rss = {name: process.memory("VmRSS") for name, process in running.processes.items()}
        samples.append(Sample(time.time() - begin, rss, figures))
    return samples


def _algorithm_ms(scheduler: Scheduler) -> float:
    samples = scheduler.samples()
    return 1000 * samples[f"{_ALGORITHM}_sum", ""] / samples[f"{_ALGORITHM}_count", ""]


def attempts(scheduler: Scheduler) -> dict[str, int]:
    """Return its attempts so far, by result: `scheduled`, `unschedulable`, `error`."""
    found: Counter[str] = Counter()
    for (name, labels), value in scheduler.samples().items():
        result = _RESULT.search(labels)
        if name == _ATTEMPTS_METRIC and result is not None:
            found[result[1]] += int(value)
    return dict(found)


def measure(cluster: Cluster, plan: Plan, failed: list[str]) -> Iterator[Cell | Steady]:
    """Yield each cell when it is measured; of one that failed, add a line to `failed`, and go on."""
    for shape in plan.shapes:
        for number in range(plan.rounds):
            turn = number % len(plan.modes)
            for mode in (*plan.modes[turn:], *plan.modes[:turn]):
                try:
                    cell = (measure_steady if plan.steady else measure_cell)(cluster, plan, shape, mode)
                except (TimeoutError, ProgramError, httpx.HTTPError) as error:
                    failed.append(f"{shape.name}, {mode.name}: {error}")
                    _say(f"FAILED {failed[-1]}")
                else:
                    _say(f"{shape.name}, {mode.name}: {cell}")
                    yield cell


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def read_options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tests.e2e.throughput", description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", type=int, choices=SIZES, default=500)
    parser.add_argument("--rounds", type=int, default=3, help="each figure is the median of them; default: 3")
    parser.add_argument("--pods", type=int, help="measured pods of each cell; default: 400 or 1,000, or 300 if large")
    parser.add_argument("--unfit", type=int, default=0, help="pods that fit nowhere, between those that are measured")
    parser.add_argument(
        "--gangs", type=int, default=0, help=f"gangs of {GANG_SIZE} pods, between the pods that are measured"
    )
    parser.add_argument(
        "--shapes", type=chosen({shape.name: shape for shape in SHAPES}), default=SHAPES, metavar="NAME,..."
    )
    parser.add_argument(
        "--modes",
        type=chosen(MODES),
        default=[MODES[name] for name in DEFAULT_MODES],
        metavar="NAME,...",
        help=f"of {', '.join(MODES)}; default: {', '.join(DEFAULT_MODES)}",
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="a variable of Kindred, in all modes"
    )
    parser.add_argument(
        "--profiles",
        type=Path,
        metavar="FOLDER",
        help=f"keep the scheduler's CPU profile of {_PROFILED} s of each cell",
    )
    parser.add_argument(
        "--steady", type=float, default=0.0, metavar="SECONDS", help="create and delete pods so long, without a backlog"
    )
    parser.add_argument("--rate", type=float, default=200.0, help="pods a second with --steady; default: 200")
    parser.add_argument("--kubernetes", default="", metavar="VERSION", help="another release, v1.N.P; built if missing")
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="of the JSON; default: docs/bench/throughput-NODES.json, if all runs",
    )
    options = parser.parse_args(arguments)
    minor = int((RELEASES.get(options.kubernetes) or options.kubernetes or kubernetes_version(MODULE)).split(".")[1])
    for mode in options.modes:
        if mode.since > minor:
            parser.error(f"{mode.name}: Kubernetes 1.{minor} has no {mode.gate}; --kubernetes 1.{mode.since} has it")
    return options


def output_of(options: argparse.Namespace) -> Path | None:
    """Return where a run is kept: one of all shapes and modes in docs/bench, others where the options say."""
    given: Path | None = options.output
    modes = [mode.name for mode in options.modes]
    is_all = (
        [*options.shapes] == [*SHAPES]
        and modes == [*DEFAULT_MODES]
        and not (options.pods or options.set or options.unfit or options.gangs or options.profiles or options.steady)
    )
    return given or (default_path(options.nodes, options.kubernetes) if is_all else None)


def main(arguments: Sequence[str]) -> int:
    """Measure, print tables, and write the JSON after each cell; 1 if a cell failed."""
    options = read_options(arguments)
    size = SIZES[options.nodes]
    settings = dict(each.split("=", maxsplit=1) for each in options.set)
    plan = Plan(
        *(size, options.shapes, options.modes, options.rounds, options.pods, settings),
        *(options.unfit, options.gangs, options.profiles, options.steady, options.rate),
    )
    if plan.profiles is not None:
        plan.profiles.mkdir(parents=True, exist_ok=True)
    output, failed = output_of(options), list[str]()
    with cluster_of(options.kubernetes) as cluster:
        begin = time.monotonic()
        before = fill(cluster, size)
        _say(f"{size.nodes} nodes and {before} pods made in {time.monotonic() - begin:.0f} s")
        command = " ".join(["python -m tests.e2e.throughput", *arguments])
        version = cluster.api.get("/version")["gitVersion"]
        run = Throughput(*made_now(command), version, size.nodes, before, settings, [])
        for cell in measure(cluster, plan, failed):
            run.add(cell)
            if output is not None:
                output.write_bytes(run.encode())
    print(tables(run))
    for line in failed:
        print(f"FAILED {line}")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except BuildError as error:
        sys.exit(str(error))
