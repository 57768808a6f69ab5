"""Single pods beside gangs that cannot be placed, and how soon one of these is placed when it has room at last.

    python -m tests.e2e.waiting_gangs --nodes 5000

A real kube-scheduler is registered with `decide`. The gangs have 500 members of which no two are alike, and no two may
share a node, in a pool with a node too few. Single pods are made at a steady rate, first alone, then beside the
gangs. At last one gang gets a node of its own.
"""

import argparse
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx
import msgspec

from core.objects.groups import GROUP_LABEL, MINIMUM_ANNOTATION
from tests.bench.live import Process
from tests.e2e.api import NODES, Manifest
from tests.e2e.binaries import API_SERVER, MODULE, SCHEDULER, BuildError, binaries, module_of
from tests.e2e.clocked import MARK, Calls
from tests.e2e.cluster import PODS, Cluster
from tests.e2e.control_plane import control_plane
from tests.e2e.kindred import Kindred
from tests.e2e.load_shapes import NODE
from tests.e2e.programs import wait_until
from tests.e2e.scheduler import Scheduler
from tests.e2e.shapes import apart, node, pod, required_node
from tests.e2e.throughput import bindings
from tests.throughput.modes import MODES
from tests.throughput.results import ANY_NODE, KINDRED

_POOL: Final = "pool"
_SHARED: Final = "gangs"
_CALLS: Final = re.compile(f"^{re.escape(MARK)}(.*)$", re.MULTILINE)
_FAILED: Final = "members fit; the next one"
_LATE: Final = 30.0  # seconds after the last single pod was made
_PATIENCE: Final = 300.0  # seconds
_MODE: Final = MODES[ANY_NODE]


@dataclass(frozen=True, slots=True)
class Setting:
    """What is measured, and with which programs."""

    cluster: Cluster
    kindred: Kindred
    scheduler: Scheduler
    rate: float
    seconds: float


def nodes(number: int, members: int) -> Iterator[Manifest]:
    """Yield nodes. The pool of all gangs has one less than they have members, and the next node can join it."""
    for index in range(number):
        made = node(index, zones=1, allocatable=NODE)
        made["metadata"]["labels"][_POOL] = _SHARED if index < members - 1 else "none"
        yield made


def gang(name: str, members: int) -> Iterator[Manifest]:
    """Yield the members of a gang, of which one has no node."""
    for number in range(members):
        pool = required_node("matchExpressions", _POOL, _SHARED, name)
        labels = {GROUP_LABEL: name, "job": name, "member": str(number)}
        made = pod(f"{name}-{number}", labels, affinity={**apart({"job": name}), **pool}, **_decided())
        made["metadata"]["annotations"] = {MINIMUM_ANNOTATION: str(members)}
        yield made


def _decided() -> dict[str, Any]:
    return {"cpu": "20m", "schedulerName": _MODE.scheduler_name}


def singles(setting: Setting, prefix: str) -> dict[str, float]:
    """Make single pods at the rate, wait until they are bound or too late; return pod -> when it was made."""
    begin, made = time.time(), dict[str, float]()

    def make(number: int) -> None:
        time.sleep(max(0.0, begin + number / setting.rate - time.time()))
        name = f"{prefix}-{number}"
        setting.cluster.api.create(PODS, pod(name, **_decided()))
        made[name] = time.time()

    setting.cluster.api.at_once(make, range(int(setting.rate * setting.seconds)))
    end = time.time() + _LATE
    while time.time() < end and not made.keys() <= bound(setting).keys():
        time.sleep(0.5)
    return made


def bound(setting: Setting) -> dict[str, float]:
    """Return pod -> when it was bound."""
    return bindings(setting.scheduler.program.log.read_bytes(), time.localtime().tm_year)


def calls(setting: Setting) -> Calls:
    """Return the CPU time of Kindred's calls so far."""
    return msgspec.json.decode(_CALLS.findall(setting.kindred.program.log.read_text("utf-8"))[-1], type=Calls)


def units(kindred: Kindred) -> dict[str, dict[str, Any]]:
    """Return the state of each gang."""
    url = f"http://127.0.0.1:{kindred.admin_port}/units"
    found: list[dict[str, Any]] = httpx.get(url, timeout=30.0).raise_for_status().json()["units"]
    return {each["unit"].partition("/")[2]: each for each in found}


def measured(setting: Setting, prefix: str) -> float:
    """Measure a run of single pods, say what it was like, and return the pods a second."""
    programs = {
        KINDRED: Process(setting.kindred.program.pid),
        SCHEDULER: Process(setting.scheduler.program.pid),
        API_SERVER: Process(setting.cluster.plane.api_server.pid),
    }
    before, begin = {name: program.cpu_seconds() for name, program in programs.items()}, calls(setting)
    start = time.time()
    made = singles(setting, prefix)
    lasted, end = time.time() - start, calls(setting)
    spent = {name: (program.cpu_seconds() - before[name]) / lasted for name, program in programs.items()}
    times = {name: at for name, at in bound(setting).items() if name in made}
    late = sorted(at - made[name] for name, at in times.items())
    rate, number = (len(times) - 1) / (max(times.values()) - min(times.values())), end.number - begin.number
    say(f"{prefix}: {len(times)} of {len(made)} pods bound, {rate:.1f} a second")
    say(f"  after {late[len(late) // 2]:.3f} s (p50), {late[len(late) * 99 // 100]:.3f} s (p99)")
    each = 1000 * (end.requests - begin.requests) / number
    say(f"  {number / lasted:.0f} requests a second, {each:.2f} ms of CPU each")
    say(f"  CPUs: {', '.join(f'{name} {share:.2f}' for name, share in spent.items())}")
    say(f"  CPU for gangs between requests: {(end.between - begin.between) / lasted:.3f}")
    say(f"  the dearest so far: a request {end.longest_request:.3f} s, between requests {end.longest_between:.3f} s")
    return rate


def make_room(setting: Setting, name: str, members: int) -> None:
    """Give a gang its last node, beside single pods; say when it has places and when its members are bound."""
    begin = time.time()
    setting.cluster.api.patch(f"{NODES}/node-{members - 1:04}", {"metadata": {"labels": {_POOL: name}}})
    placed = wait_until(
        lambda: units(setting.kindred)[name]["status"] in {"reserved", "scheduled"}, _PATIENCE, "places", every=0.1
    )
    say(f"{name} has places {placed:.1f} s after it had room")
    prefix = f"{name}-"
    wait_until(
        lambda: sum(each.startswith(prefix) for each in bound(setting)) >= members, _PATIENCE, "members", every=0.25
    )
    times = sorted(at - begin for each, at in bound(setting).items() if each.startswith(prefix))
    say(f"{name}: the first member is bound after {times[0]:.1f} s, all after {times[-1]:.1f} s")


def say(text: str) -> None:
    """Print a line."""
    print(text, flush=True)


def read_options(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the options."""
    parser = argparse.ArgumentParser("python -m tests.e2e.waiting_gangs", description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--gangs", type=int, default=6)
    parser.add_argument("--members", type=int, default=500)
    parser.add_argument("--rate", type=float, default=200.0, help="single pods a second")
    parser.add_argument("--seconds", type=float, default=30.0, help="of single pods, each time")
    parser.add_argument("--pause", type=float, default=20.0, help="seconds from the last attempt until there is room")
    parser.add_argument("--max-backoff", type=int, help="podMaxBackoffSeconds of kube-scheduler")
    parser.add_argument("--kubernetes", default="", metavar="VERSION", help="another release, v1.N.P; built if missing")
    parser.add_argument(
        "--scheduler-flag", action="append", default=[], help="of kube-scheduler, such as --feature-gates"
    )
    return parser.parse_args(arguments)


def config_of(options: argparse.Namespace, url: str) -> Mapping[str, Any]:
    """Return the configuration of kube-scheduler."""
    loaded = _MODE.config(url)
    return {**loaded, "podMaxBackoffSeconds": options.max_backoff} if options.max_backoff else loaded


def main(arguments: Sequence[str]) -> int:
    """Measure. Return 0."""
    options = read_options(arguments)
    programs = binaries(module=module_of(options.kubernetes) if options.kubernetes else MODULE)
    with tempfile.TemporaryDirectory() as folder, control_plane(Path(folder), programs) as plane:
        cluster = Cluster(plane, programs)
        cluster.api.create_all(NODES, nodes(options.nodes, options.members))
        say(f"{options.nodes} nodes, {cluster.api.get('/version')['gitVersion']}")
        try:
            kindred = cluster.start_kindred(_MODE.settings, module="tests.e2e.clocked")
            scheduler = cluster.start_scheduler(config_of(options, kindred.url), flags=options.scheduler_flag)
            setting = Setting(cluster, kindred, scheduler, options.rate, options.seconds)
            singles(Setting(cluster, kindred, scheduler, options.rate, 2.0), "first")
            alone = measured(setting, "alone")
            names = [f"gang-{number}" for number in range(options.gangs)]
            for name in names:
                cluster.create_pods(gang(name, options.members))
            say(f"beside the gangs: {measured(setting, 'beside') / alone:.2f} of the rate")
            say(
                "\n".join(
                    f"{name}: {each['attempts']} attempts, {each['reason']}" for name, each in units(kindred).items()
                )
            )
            with ThreadPoolExecutor(1) as further:
                run = further.submit(measured, setting, "further")
                make_room(setting, names[-1], options.members)
                say(f"while it was placed: {run.result() / alone:.2f} of the rate")
        finally:
            cluster.stop_all()
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except BuildError as error:
        sys.exit(str(error))
