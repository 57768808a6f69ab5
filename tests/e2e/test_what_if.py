"""A drain and a loss as they are foretold and as they come: the pods that a real kube-scheduler leaves pending.

Random clusters are asked about with `kindred drain` and `kindred loss`. Then nodes are cordoned and their pods evicted,
or nodes are dead and their pods deleted, and the owners' new pods are made. The scheduler has no extender.
"""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

import pytest

from tests.e2e.api import condition_of
from tests.e2e.cluster import Cluster
from tests.e2e.conftest import Note
from tests.e2e.control_plane import ADMIN
from tests.e2e.controllers import Controllers, create_priorities, owner_of
from tests.e2e.kindred import ROOT
from tests.e2e.programs import PATIENCE, wait_until
from tests.e2e.random_clusters import RandomCluster
from tests.e2e.scheduler import IN_TREE, Scheduler, configuration
from tests.e2e.shapes import ZONE

ORDERS: Final = "20"
_QUEUES: Final = "scheduler_pending_pods"
_QUIET: Final = 2
"""How often in a row the scheduler must have nothing to do: a pod that it has bound meanwhile may wake others."""
_FEW: Final = pytest.param(range(4), id="few")
_MORE: Final = pytest.param(range(4, 20), id="more", marks=pytest.mark.long)


class Came(NamedTuple):
    """What was foretold, and what came, of pods by key: of alike replicas, it does not matter which of them waits."""

    never: Counter[str]
    sometimes: Counter[str]
    """Pods that find no place in any order, and those that find none in some."""
    pending: Counter[str]
    left: Counter[str]
    """Pods that are not evicted."""
    blocked: Counter[str]
    """Those that are not evicted in some order."""

    def differences(self) -> list[str]:
        """Return where more or fewer pods wait, or stay, than can be."""
        keys = sorted({*self.never, *self.sometimes, *self.pending, *self.left})
        return [
            f"{key}: {[each[key] for each in self]} of {self._fields}"
            for key in keys
            if not self.never[key] <= self.pending[key] <= self.never[key] + self.sometimes[key]
            or self.left[key] > self.blocked[key]
        ]


Happens: TypeAlias = Callable[[Cluster, Scheduler, Controllers, RandomCluster], Came]


@pytest.fixture(scope="module")
def _priorities(cluster: Cluster) -> None:
    create_priorities(cluster.api)


def ask(cluster: Cluster, *arguments: str) -> dict[str, Any]:
    """Return what a command says of the cluster."""
    kubeconfig = str(cluster.plane.kubeconfig("asker", client=ADMIN))
    command = [sys.executable, "-m", "app.commands.cli", *arguments, "--kubeconfig", kubeconfig, "-o", "json"]
    done = subprocess.run(  # noqa: S603  # our own arguments
        [*command, "--orders", ORDERS], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode in {0, 1}, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def wait_quiet(cluster: Cluster, scheduler: Scheduler, controllers: Controllers) -> None:
    """Wait until the scheduler has placed or rejected each pod, and tries none again."""
    seen = 0

    def quiet() -> bool:
        nonlocal seen
        cluster.wait_until_pods_are_seen(scheduler)
        waiting = pending(controllers)
        queues = {labels: value for (name, labels), value in scheduler.samples().items() if name == _QUEUES}
        has_rest = queues.get('queue="unschedulable"', 0) == len(waiting) == sum(queues.values())
        seen = seen + 1 if has_rest and all(map(condition_of, waiting)) else 0
        return seen >= _QUIET

    wait_until(quiet, PATIENCE, "the scheduler is quiet")


def pending(controllers: Controllers) -> list[dict[str, Any]]:
    """Return the pods without a node."""
    return [each for each in controllers.pods if not each["spec"].get("nodeName")]


def key_of(pod: Mapping[str, Any]) -> str:
    """Return what pods are alike by: their owner, but for the replicas of a StatefulSet, which keep their names."""
    kind, name = owner_of(pod)
    return f"{kind} {pod['metadata']['name'] if kind == 'StatefulSet' else name}"


def came(controllers: Controllers, pods: Iterable[Mapping[str, Any]], left: Iterable[str] = ()) -> Came:
    """Return what was foretold of pods, and which are pending now. `left`: those that were not evicted."""
    found = Came(Counter(), Counter(), Counter(map(key_of, pending(controllers))), Counter(), Counter())
    for each in pods:
        move, key = each["move"], key_of(controllers.running[each["move"]["pod"].partition("/")[2]])
        if each["blocked"]:
            found.blocked[key] += 1
        if move["rejected"] is not None:
            (found.never if move["placed"] == "never" and not each["blocked"] else found.sometimes)[key] += 1
    found.left.update(key_of(controllers.running[each]) for each in left)
    return found


def drain(cluster: Cluster, scheduler: Scheduler, controllers: Controllers, made: RandomCluster) -> Came:
    """Ask what the drain of one or two nodes does, and do it."""
    names = [each["metadata"]["name"] for each in made.random.sample(made.nodes, made.random.choice((1, 2)))]
    pods = ask(cluster, "drain", *names)["pods"]
    controllers.cordon(names)
    cluster.wait_until_nodes_are_seen(scheduler)
    left: list[str] = []
    for name in names:
        waiting = controllers.names_on([name])
        while gone := controllers.evict(waiting):
            waiting = [each for each in waiting if each not in gone]
            controllers.make_again(gone)
            wait_quiet(cluster, scheduler, controllers)
            controllers.start_pods()
            controllers.count_disruptions()
        left += waiting
    return came(controllers, pods, left)


def lose(cluster: Cluster, scheduler: Scheduler, controllers: Controllers, made: RandomCluster) -> Came:
    """Ask what the loss of a zone does, and let it be lost, in the state that is worse."""
    zones = sorted({each["metadata"]["labels"][ZONE] for each in made.nodes})
    (domain,) = ask(cluster, "loss", "--by", ZONE, "--only", made.random.choice(zones))["domains"]
    gone = controllers.names_on(domain["nodes"])
    controllers.lose(domain["nodes"], removed=domain["state"] == "removed")
    cluster.wait_until_nodes_are_seen(scheduler)
    controllers.make_again(gone)
    wait_quiet(cluster, scheduler, controllers)
    return came(controllers, [{"move": each, "blocked": ""} for each in domain["moves"]])


@pytest.mark.parametrize("happens", [drain, lose])
@pytest.mark.parametrize("seeds", [_FEW, _MORE])
@pytest.mark.usefixtures("_priorities")
def test_the_pods_that_wait_afterwards_are_those_that_are_foretold(
    cluster: Cluster, note: Note, happens: Happens, seeds: range
) -> None:
    """Where no pod waits only in some orders, exactly those wait that find no place in any."""
    backoff = {"podInitialBackoffSeconds": 1, "podMaxBackoffSeconds": 1}
    config = {**configuration(IN_TREE, ""), "percentageOfNodesToScore": 100, **backoff}
    scheduler, sure, unsure, differences = cluster.start_scheduler(config, verbosity=3), 0, 0, list[str]()
    for seed in seeds:
        made = RandomCluster(seed)
        controllers = Controllers(cluster.api, made, f"{happens.__name__}-{seed}")
        found = happens(cluster, scheduler, controllers, made)
        controllers.tidy()
        sure += found.never.total()
        unsure += found.sometimes.total()
        differences += [f"seed {seed}, {each}" for each in found.differences()]
    note(f"{sure} pods wait in every order, {unsure} in some")
    assert not differences
    assert sure > len(seeds)
