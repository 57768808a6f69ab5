"""Single pods beside gangs that cannot be placed, and how soon one of these is placed when it has room at last.

    python -m tests.e2e.waiting_gangs --nodes 5000

A real kube-scheduler is registered with `decide`. The gangs have 500 members of which no two are alike, and no two may
share a node, in a pool with a node too few. Single pods are created at a pace, first alone, then beside the gangs. At
last one gang gets a node of its own.
"""

import argparse
import re
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import httpx
import msgspec

from core.objects.groups import GROUP_LABEL, MINIMUM_ANNOTATION
from tests.bench.live import Process
from tests.bench.report import percentile
from tests.e2e.api import NODES, Manifest
from tests.e2e.binaries import API_SERVER, SCHEDULER, BuildError
from tests.e2e.clocked import MARK, Calls
from tests.e2e.cluster import PODS, Cluster, cluster_of
from tests.e2e.filled import SIZES, fill
from tests.e2e.kindred import Kindred
from tests.e2e.pace import Made, Pace, paced, waits
from tests.e2e.programs import wait_until
from tests.e2e.scheduler import Scheduler
from tests.e2e.shapes import apart, pod, required_node
from tests.throughput.modes import MODES
from tests.throughput.results import ANY_NODE, KINDRED

_POOL: Final = "pool"
_SHARED: Final = "gangs"
_PRIORITY_CLASSES: Final = "/apis/scheduling.k8s.io/v1/priorityclasses"
_CALLS: Final = re.compile(f"^{re.escape(MARK)}(.*)$", re.MULTILINE)
_FAILED: Final = "members fit; the next one"
_LATE: Final = 20.0  # seconds after the last single pod was created
_PATIENCE: Final = 300.0  # seconds
_MODE: Final = MODES[ANY_NODE]


@dataclass(frozen=True, slots=True)
class Setting:
    """What is measured, and with which programs."""

    cluster: Cluster
    kindred: Kindred
    scheduler: Scheduler
    rate: float

    def calls(self) -> Calls:
        """Return the CPU time of Kindred's calls so far."""
        return msgspec.json.decode(_CALLS.findall(self.kindred.program.log.read_text("utf-8"))[-1], type=Calls)

    def units(self) -> dict[str, dict[str, Any]]:
        """Return the state of each gang by name."""
        url = f"http://127.0.0.1:{self.kindred.admin_port}/units"
        found: list[dict[str, Any]] = httpx.get(url, timeout=30.0).raise_for_status().json()["units"]
        return {each["unit"].partition("/")[2]: each for each in found}

    def singles(self, name: str, seconds: float) -> Pace:
        """Return single pods."""
        return Pace(PODS, [pod(name, **_decided())], self.rate, seconds, patience=_LATE)


def gang(name: str, members: int) -> Iterator[Manifest]:
    """Yield the members of a gang, of which one has no node."""
    for number in range(members):
        pool = required_node("matchExpressions", _POOL, _SHARED, name)
        labels = {GROUP_LABEL: name, "job": name, "member": str(number)}
        affinity = {**apart({"job": name}), **pool}
        made = pod(f"{name}-{number}", labels, affinity=affinity, priorityClassName=_SHARED, **_decided())
        made["metadata"]["annotations"] = {MINIMUM_ANNOTATION: str(members)}
        yield made


def _decided() -> dict[str, Any]:
    return {"cpu": "1m", "schedulerName": _MODE.scheduler_name}


def assign(cluster: Cluster, pool: str, numbers: Sequence[int]) -> None:
    """Put nodes into a pool."""
    change = {"metadata": {"labels": {_POOL: pool}}}
    cluster.api.at_once(lambda number: cluster.api.patch(f"{NODES}/node-{number:04}", change), numbers)


def measured(setting: Setting, name: str, seconds: float) -> list[Made]:
    """Create single pods, and say what that was like."""
    programs = {
        KINDRED: Process(setting.kindred.program.pid),
        SCHEDULER: Process(setting.scheduler.program.pid),
        API_SERVER: Process(setting.cluster.plane.api_server.pid),
    }
    before, begin = {each: program.cpu_seconds() for each, program in programs.items()}, setting.calls()
    start = time.time()
    with paced(setting.cluster.plane, setting.singles(name, seconds)) as creating:
        made = creating.result()
    lasted, end = time.time() - start, setting.calls()
    spent = {each: (program.cpu_seconds() - before[each]) / lasted for each, program in programs.items()}
    late, number = waits(made, time.time()), max(end.number - begin.number, 1)
    say(f"{name}: {sum(each.bound is not None for each in made)} of {len(made)} pods bound, {rate(made):.1f} a second")
    say(f"  {percentile(late, 0.5):.3f} s after they were due (p50), {percentile(late, 0.99):.3f} s (p99)")
    each = 1000 * (end.requests - begin.requests) / number
    say(f"  {number / lasted:.0f} requests a second, {each:.2f} ms of CPU each")
    say(f"  CPUs: {', '.join(f'{program} {share:.2f}' for program, share in spent.items())}")
    say(f"  CPU for gangs between requests: {(end.between - begin.between) / lasted:.3f}")
    say(f"  the dearest so far: a request {end.longest_request:.3f} s, between requests {end.longest_between:.3f} s")
    return made


def rate(made: Sequence[Made]) -> float:
    """Return the bound pods a second, from the time when the first one was due until the last one was bound."""
    bound = [each.bound for each in made if each.bound is not None]
    return len(bound) / (max(bound) - made[0].due) if bound else 0.0


def make_room(setting: Setting, name: str, members: int) -> None:
    """Give a gang its last node; say when it has places and when its members are bound."""
    assign(setting.cluster, name, [members - 1])

    def has(*states: str) -> float:
        return wait_until(lambda: setting.units()[name]["status"] in states, _PATIENCE, f"{name} {states}", every=0.1)

    say(f"{name}: places {has('reserved', 'scheduled'):.1f} s after it had room")
    say(f"{name}: all members decided for {has('scheduled'):.1f} s later")


def say(text: str) -> None:
    """Print a line."""
    print(text, flush=True)


def read_options(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the options."""
    parser = argparse.ArgumentParser("python -m tests.e2e.waiting_gangs", description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", type=int, choices=SIZES, default=2000)
    parser.add_argument("--gangs", type=int, default=6)
    parser.add_argument("--members", type=int, default=500)
    parser.add_argument("--rate", type=float, default=200.0, help="single pods a second")
    parser.add_argument("--seconds", type=float, default=30.0, help="of single pods, each time")
    parser.add_argument("--pause", type=float, default=30.0, help="seconds from the last attempt to the measurement")
    parser.add_argument("--max-backoff", type=int, help="podMaxBackoffSeconds of kube-scheduler")
    parser.add_argument("--kubernetes", default="", metavar="VERSION", help="another release, v1.N.P; built if missing")
    parser.add_argument("--priority", type=int, default=0, help="of the members")
    return parser.parse_args(arguments)


def run(setting: Setting, options: argparse.Namespace) -> None:
    """Measure."""
    with paced(setting.cluster.plane, setting.singles("warm", 3.0)) as creating:
        creating.result()
    alone = measured(setting, "alone", options.seconds)
    names, began = [f"gang-{number}" for number in range(options.gangs)], time.time()
    for name in names:
        setting.cluster.create_pods(gang(name, options.members))
    wait_until(
        lambda: all(_FAILED in each["reason"] for each in setting.units().values()), _PATIENCE, "all have failed"
    )
    say(f"all have failed {time.time() - began:.0f} s after the first was created")
    for name, each in setting.units().items():
        say(f"{name}: {each['attempts']} attempts; {each['reason'].partition(';')[0]}")
    time.sleep(options.pause)  # in which kube-scheduler writes the conditions of all members
    with_gangs = measured(setting, "beside", options.seconds)
    say(f"beside the gangs: {rate(with_gangs) / rate(alone):.2f} of the rate")
    with paced(setting.cluster.plane, setting.singles("while", 15.0)) as creating:
        time.sleep(5.0)
        make_room(setting, names[-1], options.members)
        made = creating.result()
    say(f"while it was placed: {rate(made) / rate(alone):.2f} of the rate")
    end = setting.calls()
    say(f"the dearest: a request {end.longest_request:.3f} s, between requests {end.longest_between:.3f} s")


def main(arguments: Sequence[str]) -> int:
    """Measure. Return 0."""
    options = read_options(arguments)
    with cluster_of(options.kubernetes) as cluster:
        before = fill(cluster, SIZES[options.nodes])
        assign(cluster, _SHARED, range(options.members - 1))
        cluster.api.create(_PRIORITY_CLASSES, {"metadata": {"name": _SHARED}, "value": options.priority})
        say(f"{options.nodes} nodes, {before} pods, {cluster.api.get('/version')['gitVersion']}")
        mode = replace(_MODE, fields={"podMaxBackoffSeconds": options.max_backoff} if options.max_backoff else {})
        kindred = cluster.start_kindred(mode.settings, module="tests.e2e.clocked")
        scheduler = cluster.start_scheduler(mode.config(kindred.url))
        run(Setting(cluster, kindred, scheduler, options.rate), options)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except BuildError as error:
        sys.exit(str(error))
