"""What pods that fit nowhere cost while they wait, and how long other pods wait beside them.

    python -m tests.e2e.waiting                                       1,000 waiting pods, in-tree and decide
    python -m tests.e2e.waiting --waiting 1000,5000 --modes decide-any-node --max-backoff 3,30

In each mode, pods that fit on no node are made step by step, as many as `--waiting` says. Each step begins when all
were tried and their backoff is as long as it gets. Then ten new pods a second fit, and every second one waiting pod
begins to fit, because a node gets the label that it selects. All programs share one machine: compare within a run.
"""

import argparse
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Final, NamedTuple

import httpx

from tests.bench import report
from tests.e2e.api import NODES, Api, pods_path
from tests.e2e.binaries import BuildError
from tests.e2e.cluster import NAMESPACE, Cluster, cluster_of
from tests.e2e.load_shapes import NODE, UNFIT
from tests.e2e.pace import Pace, paced, waits
from tests.e2e.programs import ProgramError, wait_until
from tests.e2e.scheduler import Scheduler
from tests.e2e.shapes import node, pod
from tests.e2e.throughput import Running, attempts, bindings
from tests.throughput.modes import MODES, Mode, chosen
from tests.throughput.results import ANY_NODE, IN_TREE
from tests.throughput.waiting import Delays, Step, Waiting, rendered

_RATE: Final = 10.0  # new pods a second
_PATIENCE: Final = 240.0  # seconds, until all pods of a step were tried, or are bound
_LABEL: Final = "wanted"
_PODS: Final = pods_path(NAMESPACE)
_REJECTED: Final = re.compile(rb'"Unable to schedule pod; no fit; waiting" pod="[^/"]+/([^"]+)"')


class Plan(NamedTuple):
    """What is measured."""

    waiting: Sequence[int]
    seconds: int
    settles: float
    """Seconds after the first attempts of all waiting pods, in which their backoff becomes as long as it gets."""
    settings: Mapping[str, str]


def measure_mode(cluster: Cluster, plan: Plan, mode: Mode) -> Iterator[Step]:
    """Yield each step when it is measured, and take all pods away. Raises TimeoutError, ProgramError."""
    try:
        running = Running.start(cluster, mode, plan.settings, waits=True)
        there = 0
        for number, waiting in enumerate(plan.waiting):
            name = "-".join([mode.name, *map(str, mode.fields.values()), str(number)])
            _make_waiting(cluster.api, mode, name, waiting - there, plan.seconds)
            _wait_until_rejected(running.scheduler, waiting - there, name)
            time.sleep(plan.settles)
            yield _measured(cluster, running, mode, name, (waiting, plan.seconds))
            there = waiting - plan.seconds
    finally:
        cluster.stop_all()
        cluster.api.delete_all(_PODS)


def _make_waiting(api: Api, mode: Mode, step: str, number: int, woken: int) -> None:
    """Make pods that fit nowhere. Some select a label of their own that no node has as yet."""
    others = [
        pod(f"woken-{at}-{step}", cpu="20m", nodeSelector={_LABEL: f"{step}-{at}"}, schedulerName=mode.scheduler_name)
        for at in range(woken)
    ]
    shape = replace(UNFIT, name=f"unfit-{step}")
    api.create_all(_PODS, [*others, *shape.measured_pods(number - woken, mode.scheduler_name)])


def _wait_until_rejected(scheduler: Scheduler, number: int, step: str) -> None:
    def are_rejected() -> bool:
        names = set(_REJECTED.findall(scheduler.program.log.read_bytes()))
        return sum(step.encode() in name for name in names) >= number

    wait_until(are_rejected, _PATIENCE, f"{step}: all pods tried", every=0.5)


def _measured(cluster: Cluster, running: Running, mode: Mode, step: str, given: tuple[int, int]) -> Step:
    waiting, seconds = given
    scheduler, bound = running.scheduler, running.scheduler.bound()
    template = pod(f"fits-{step}", cpu="20m", schedulerName=mode.scheduler_name)
    with paced(cluster.plane, Pace(_PODS, [template], _RATE, seconds, patience=_PATIENCE)) as creating:
        wait_until(lambda: scheduler.bound() > bound, _PATIENCE, f"{step}: the first new pod", every=0.01)
        tried, cpu, begin = _tried(scheduler), running.cpu_seconds(), time.monotonic()
        since = _wake(cluster.api, step, seconds)
        took = time.monotonic() - begin
        spent = {name: (after - cpu[name]) / took for name, after in running.cpu_seconds().items()}
        rate = (_tried(scheduler) - tried) / took
        wait_until(lambda: since.keys() <= _bound(scheduler).keys(), _PATIENCE, f"{step}: woken pods", every=0.5)
    found = _bound(scheduler)
    return Step(
        *(mode.name, waiting, dict(mode.fields), took, rate, spent),
        Delays.of(waits(creating.result(), time.time())),
        Delays.of([found[name] - moment for name, moment in since.items()]),
    )


def _wake(api: Api, step: str, seconds: int) -> dict[str, float]:
    """Let one waiting pod fit every second; return pod -> since when."""
    begin, since = time.time(), {}
    for second in range(seconds):
        since[f"woken-{second}-{step}"] = time.time()
        api.patch(f"{NODES}/node-{second:04}", {"metadata": {"labels": {_LABEL: f"{step}-{second}"}}})
        time.sleep(max(0.0, begin + second + 1 - time.time()))
    return since


def _tried(scheduler: Scheduler) -> int:
    return sum(attempts(scheduler).values())


def _bound(scheduler: Scheduler) -> dict[str, float]:
    return bindings(scheduler.program.log.read_bytes(), time.localtime().tm_year)


def read_options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tests.e2e.waiting", description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=2000)
    parser.add_argument(
        *("--waiting",),
        type=lambda text: [int(each) for each in text.split(",")],
        default=[1000],
        metavar="NUMBER,...",
        help="waiting pods of each step, in ascending order; default: 1000",
    )
    parser.add_argument("--seconds", type=int, default=40, help="of each step; default: 40")
    parser.add_argument("--settles", type=float, default=30, help="seconds before each step; default: 30")
    parser.add_argument(
        *("--modes",),
        type=chosen(MODES),
        default=[MODES[IN_TREE], MODES[ANY_NODE]],
        metavar="NAME,...",
        help=f"of {', '.join(MODES)}; default: {IN_TREE},{ANY_NODE}",
    )
    parser.add_argument(
        *("--max-backoff",),
        type=lambda text: [int(each) for each in text.split(",")],
        default=[],
        metavar="SECONDS,...",
        help="podMaxBackoffSeconds, one after the other; default: as in the configuration",
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="a variable of Kindred, in all modes"
    )
    parser.add_argument("--kubernetes", default="", metavar="VERSION", help="another release, v1.N.P; built if missing")
    parser.add_argument("--output", type=Path, metavar="FILE", help="of the JSON; default: none")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """Measure, print a table, and write the JSON after each step; 1 if a mode failed."""
    options = read_options(arguments)
    settings = dict(each.split("=", maxsplit=1) for each in options.set)
    plan = Plan(options.waiting, options.seconds, options.settles, settings)
    backoffs = [{"podMaxBackoffSeconds": seconds} for seconds in options.max_backoff] or [{}]
    failed: list[str] = []
    with cluster_of(options.kubernetes) as cluster:
        cluster.api.create_all(NODES, [node(index, zones=1, allocatable=NODE) for index in range(options.nodes)])
        command = " ".join(["python -m tests.e2e.waiting", *arguments])
        version = cluster.api.get("/version")["gitVersion"]
        run = Waiting(*report.made_now(command), version, options.nodes, [])
        for mode, fields in product(options.modes, backoffs):
            try:
                for step in measure_mode(cluster, plan, replace(mode, fields=fields)):
                    sys.stderr.write(f"{step}\n")
                    run.steps.append(step)
                    if options.output is not None:
                        options.output.write_bytes(report.encode_rounded(run))
            except (TimeoutError, ProgramError, httpx.HTTPError) as error:
                failed.append(f"FAILED {mode.name}: {error}")
    sys.stdout.write("\n".join([rendered(run), *failed, ""]))
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except BuildError as error:
        sys.exit(str(error))
