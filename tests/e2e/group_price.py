"""Pods per second of gangs, placed by Kindred's own engine, by kube-scheduler with Kindred's choice, and in-tree.

    KINDRED_E2E_KUBERNETES=1.37 python -m tests.e2e.group_price --nodes 2000

All in one run, on one control plane with the pods of tests.e2e.throughput: what counts are the ratios. The members of a
gang repel each other by host. They wait before the scheduler starts.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from core.objects.pod_group import GROUP_LABEL, MINIMUM_ANNOTATION
from tests.bench.live import Process
from tests.e2e.api import Manifest
from tests.e2e.binaries import SCHEDULER, BuildError, binaries, chosen_module
from tests.e2e.cluster import PODS, Cluster
from tests.e2e.control_plane import control_plane
from tests.e2e.groups import (
    GROUPS,
    create_group,
    delete_groups,
    member,
    scheduler_flags,
    server_flags,
    settings,
)
from tests.e2e.programs import wait_until
from tests.e2e.scheduler import IN_TREE
from tests.e2e.shapes import HOSTNAME, pod, required, term
from tests.e2e.throughput import SIZES, fill
from tests.throughput.modes import MODES
from tests.throughput.results import KINDRED
from tests.throughput.table import ANY_NODE
from tests.throughput.windows import binding_times, sampling

_SIZE: Final = 20
"""Members of a gang, all of which are its minimum."""
_PATIENCE: Final = 900.0  # seconds


class Way(NamedTuple):
    """Who places gangs."""

    name: str
    mode: str
    scheduler_name: str
    own: bool = False
    """Whether Kindred's own engine places them."""


WAYS: Final = (
    Way("kindred.dev/group", ANY_NODE, "kindred", own=True),
    Way(GROUPS, ANY_NODE, GROUPS),
    Way(IN_TREE, IN_TREE, "default-scheduler"),
)


def gang(way: Way, number: int) -> Iterator[Manifest]:
    """Yield the members of a gang."""
    name = f"gang-{number}"
    labels = {"gang": name}
    for index in range(_SIZE):
        shape: dict[str, Any] = {"cpu": "20m", "affinity": required("podAntiAffinity", term(labels, HOSTNAME))}
        if way.own:
            made = pod(f"{name}-{index}", {**labels, GROUP_LABEL: name}, schedulerName=way.scheduler_name, **shape)
            made["metadata"]["annotations"] = {MINIMUM_ANNOTATION: str(_SIZE)}
        else:
            made = member(name, index, labels, **{**shape, "schedulerName": way.scheduler_name})
        yield made


def measure(cluster: Cluster, way: Way, gangs: int) -> str:
    """Place gangs in one way, and return a line about it. Raises TimeoutError, ProgramError."""
    number = gangs * _SIZE
    for each in () if way.own else range(gangs):
        create_group(cluster.api, f"gang-{each}", _SIZE)
    cluster.create_pods(one for each in range(gangs) for one in gang(way, each))
    mode, processes = MODES[way.mode], {}
    try:
        config = mode.config("")
        if mode.has_extender:
            kindred = cluster.start_kindred(settings(mode))
            processes[KINDRED], config = kindred.program.pid, mode.config(kindred.url)
        scheduler = cluster.start_scheduler(config, waits=False, flags=scheduler_flags())
        processes[SCHEDULER] = scheduler.program.pid
        with sampling({name: Process(pid).cpu_seconds for name, pid in processes.items()}) as samples:
            scheduler.wait_until_healthy()
            wait_until(lambda: scheduler.bound() >= number, _PATIENCE, way.name, every=0.25)
        times = binding_times(scheduler.program.log.read_bytes(), time.localtime().tm_year, "gang-")
        spent = samples.spent(times[0], times[-1])
        cpu = ", ".join(f"{name} {1000 * seconds / number:.1f} ms" for name, seconds in spent.items())
        return f"{way.name}: {(number - 1) / (times[-1] - times[0]):.1f} pods/s; CPU a pod: {cpu}"
    finally:
        cluster.stop_all()
        cluster.api.delete_all(PODS)
        delete_groups(cluster.api)


def main(arguments: Sequence[str]) -> None:
    """Measure all ways, and print a line for each."""
    parser = argparse.ArgumentParser("python -m tests.e2e.group_price", description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", type=int, choices=SIZES, default=500)
    parser.add_argument("--gangs", type=int, default=25)
    options = parser.parse_args(arguments)
    programs = binaries(module=chosen_module())
    with (
        tempfile.TemporaryDirectory() as folder,
        control_plane(Path(folder), programs, server_flags()) as plane,
    ):
        cluster = Cluster(plane, programs)
        before = fill(cluster, SIZES[options.nodes])
        print(f"{options.nodes} nodes, {before} pods, {options.gangs} gangs of {_SIZE}", flush=True)
        for way in WAYS:
            print(measure(cluster, way, options.gangs), flush=True)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except BuildError as error:
        sys.exit(str(error))
