"""Upstream's scheduler_perf with the affinity workloads at 5,000 nodes: in-tree, decide-any-node, and the ceiling.

    python -m tests.e2e.scheduler_perf                                          eight workloads, two hours on two cores
    python -m tests.e2e.scheduler_perf --cases 'SchedulingPodAffinity/500Nodes' --modes in-tree,ceiling

The program is tests/e2e/go/cmd/scheduler-perf: API server, scheduler and benchmark in one process, one process for
each workload in each mode. Workloads and templates are copied out of the Go module; nothing is changed in them but that
a threshold, which would fail a slower machine, is dropped, and that they name a scheduler's configuration.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from tests.e2e.binaries import ETCD, MODULE, BuildError, binaries, kubernetes_version, module_of
from tests.e2e.kindred import Kindred
from tests.e2e.programs import Program, ProgramError, free_port, wait_until
from tests.throughput.modes import MODES, Mode, chosen
from tests.throughput.perf_cases import scheduler_config, single, workloads
from tests.throughput.perf_results import PerfCell, PerfError, SchedulerPerf, default_path, throughput
from tests.throughput.results import CEILING, IN_TREE
from tests.throughput.table import ANY_NODE, perf_table

PROGRAM: Final = "scheduler-perf"
_DEPTH: Final = 4  # of k8s.io/kubernetes@VERSION/test/integration/scheduler_perf in the folder of all modules
_TOPIC: Final = "affinity"
_CONFIG: Final = "performance-config.yaml"
_DEFAULT_CASES: Final = ("*Pod*Affinity*/5000Nodes", "*AffinityWithNSSelector/5000Nodes")
_DEFAULT_MODES: Final = [MODES[name] for name in (IN_TREE, ANY_NODE, CEILING)]
_PATIENCE: Final = 45 * 60.0  # seconds for one workload; the benchmark itself gives up after 30 minutes
_START_PATIENCE: Final = 180.0  # seconds until its API server is there


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured."""

    cases: Sequence[str]
    modes: Sequence[Mode]
    rounds: int


def upstream(module: Path) -> Path:
    """Return the folder of scheduler_perf in the release that a Go module requires. Raises BuildError."""
    command = ["go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes"]
    try:
        done = subprocess.run(command, cwd=module, capture_output=True, text=True, check=True)  # noqa: S603  # our own
    except (OSError, subprocess.CalledProcessError) as error:
        raise BuildError(f"{' '.join(command)}: {getattr(error, 'stderr', '') or error}") from error
    return Path(done.stdout.strip()) / "test" / "integration" / "scheduler_perf"


class Benchmark:
    """Runs one workload in one mode after the other, with files in a folder."""

    def __init__(self, programs: Mapping[str, Path], source: Path, folder: Path, settings: Mapping[str, str]) -> None:
        self._programs = programs
        self._folder = folder
        self._settings = settings
        self._modules = source.parents[_DEPTH]
        for name in (_TOPIC, "templates"):
            shutil.copytree(source / name, folder / name)
        self._tests: list[dict[str, Any]] = yaml.safe_load((source / _TOPIC / _CONFIG).read_text("utf-8"))

    def run(self, case: str, mode: Mode) -> PerfCell:
        """Run a workload. Raises ProgramError, TimeoutError, PerfError."""
        begin = time.monotonic()
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        if mode.has_extender:
            program = self._run_beside_kindred(case, mode, folder)
        else:
            with self._start(case, mode, folder, "", {}) as program:
                _wait_for_end(program)
        files = list(folder.glob("results/*.json"))
        try:
            found = throughput(files[0].read_bytes() if files else b"{}")
        except PerfError as error:
            raise PerfError(f"{error}\n{program.last_lines()}") from None
        shutil.rmtree(folder)  # its log has up to 200 MB
        return PerfCell(case, mode.name, found["Average"], found["Perc50"], time.monotonic() - begin)

    def _run_beside_kindred(self, case: str, mode: Mode, folder: Path) -> Program:
        """Start the benchmark, and Kindred when its API server is there. The benchmark waits until Kindred is ready."""
        port, kubeconfig = free_port(), folder / "kubeconfig"
        url = f"http://127.0.0.1:{port}"
        variables = {"SCHEDULER_PERF_KUBECONFIG": str(kubeconfig), "SCHEDULER_PERF_WAIT_FOR": f"{url}/readyz"}
        with self._start(case, mode, folder, url, variables) as program:
            program.wait_until(kubeconfig.exists, _START_PATIENCE)
            kindred = Kindred(folder, kubeconfig, {**mode.settings, **self._settings}, port=port)
            try:
                program.wait_until(lambda: not kubeconfig.exists(), _PATIENCE)
            finally:
                kindred.end()
            _wait_for_end(program)
        return program

    def _start(self, case: str, mode: Mode, folder: Path, url: str, variables: Mapping[str, str]) -> Program:
        scheduler = folder / "scheduler.yaml"
        scheduler.write_text(yaml.safe_dump(scheduler_config(mode, url)), "utf-8")
        tests = folder / _CONFIG
        tests.write_text(yaml.safe_dump(single(self._tests, case, scheduler)), "utf-8")
        command = [
            str(self._programs[PROGRAM]),
            f"-test.bench=^BenchmarkPerfScheduling$/^{case.replace('/', '$/^')}$",
            "-test.benchtime=1x",
            "-perf-scheduling-label-filter=",
            f"-data-items-dir={folder / 'results'}",
        ]
        environment = {
            "PATH": os.pathsep.join((str(self._programs[ETCD].parent), os.environ.get("PATH", ""))),
            # Where the API server's certificates are: built with -trimpath, it does not know the folder of its module.
            "TEST_SRCDIR": str(self._modules),
            "TEST_WORKSPACE": ".",
            "SCHEDULER_PERF_CONFIG": str(tests),
            **variables,
        }
        # Templates are found from the folder of the topic.
        return Program(PROGRAM, command, folder / "output.log", environment, folder=self._folder / _TOPIC)


def _wait_for_end(program: Program) -> None:
    wait_until(lambda: not program.running, _PATIENCE, program.name, every=0.5)


def measure(benchmark: Benchmark, plan: Plan, failed: list[str]) -> Iterator[PerfCell]:
    """Yield each cell when it is measured; of one that failed, add a line to `failed`, and go on."""
    for case in plan.cases:
        for _ in range(plan.rounds):
            for mode in plan.modes:
                try:
                    cell = benchmark.run(case, mode)
                except (TimeoutError, ProgramError, PerfError) as error:
                    failed.append(f"{case}, {mode.name}: {error}")
                    _say(f"FAILED {failed[-1]}")
                else:
                    _say(f"{case}, {mode.name}: {cell.average:.1f}, in {cell.seconds:.0f} s")
                    yield cell


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def read_options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tests.e2e.scheduler_perf", description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--cases",
        type=lambda text: text.split(","),
        default=_DEFAULT_CASES,
        metavar="PATTERN,...",
        help=f"workloads TEST/WORKLOAD of upstream's affinity/{_CONFIG}; default: {','.join(_DEFAULT_CASES)}",
    )
    parser.add_argument(
        "--modes",
        type=chosen(MODES),
        default=_DEFAULT_MODES,
        metavar="NAME,...",
        help=f"of {', '.join(MODES)}; default: {', '.join(mode.name for mode in _DEFAULT_MODES)}",
    )
    parser.add_argument("--rounds", type=int, default=1, help="each figure is the median of them; default: 1")
    parser.add_argument("--list", action="store_true", help="list the workloads, and run none")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="a variable of Kindred, in all modes"
    )
    parser.add_argument("--kubernetes", default="", metavar="VERSION", help="another release, v1.N.P; built if missing")
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="of the JSON; default: docs/bench/scheduler-perf.json, if all runs"
    )
    return parser.parse_args(arguments)


def output_of(options: argparse.Namespace) -> Path | None:
    """Return where a run is kept: one of all cases and modes in docs/bench, others where the options say."""
    given: Path | None = options.output
    is_all = not options.set and options.cases == _DEFAULT_CASES and options.modes == _DEFAULT_MODES
    return given or (default_path(options.kubernetes) if is_all else None)


def main(arguments: Sequence[str]) -> int:
    """Run the workloads, print a table, and write the JSON after each; 1 if one failed, or if there is none."""
    options = read_options(arguments)
    module = module_of(options.kubernetes) if options.kubernetes else MODULE
    source = upstream(module)
    tests: list[dict[str, Any]] = yaml.safe_load((source / _TOPIC / _CONFIG).read_text("utf-8"))
    plan = Plan(workloads(tests, options.cases), options.modes, options.rounds)
    if options.list:
        print("\n".join(plan.cases))
        return 0
    output = output_of(options)
    command = " ".join(["python -m tests.e2e.scheduler_perf", *arguments])
    run, failed = SchedulerPerf.made_now(command, kubernetes_version(module)), list[str]()
    settings = dict(each.split("=", maxsplit=1) for each in options.set)
    with tempfile.TemporaryDirectory() as folder:
        benchmark = Benchmark(binaries([ETCD, PROGRAM], module), source, Path(folder), settings)
        for cell in measure(benchmark, plan, failed):
            run.cells.append(cell)
            if output is not None:
                output.write_bytes(run.encode())
    print(perf_table(run))
    for line in failed:
        print(f"FAILED {line}")
    return 1 if failed or not run.cells else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except BuildError as error:
        sys.exit(str(error))
