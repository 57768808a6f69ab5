"""A drain and a loss as they are foretold and as they come: the pods that a real kube-scheduler leaves pending.

Random clusters are asked about with `kindred drain` and `kindred loss`. Then nodes are really cordoned and their pods
evicted, or nodes are dead and their pods deleted, and the owners' new pods are made. The scheduler has no extender.
"""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import pytest

from tests.e2e.api import condition_of
from tests.e2e.cluster import Cluster
from tests.e2e.conftest import Note
from tests.e2e.control_plane import ADMIN
from tests.e2e.controllers import Controllers, create_priorities, owner_of
from tests.e2e.kindred import ROOT
from tests.e2e.programs import wait_until
from tests.e2e.random_clusters import RandomCluster
from tests.e2e.scheduler import IN_TREE, Scheduler, configuration
from tests.e2e.shapes import ZONE

ORDERS: Final = "20"
PATIENCE: Final = 60.0  # seconds
_QUEUES: Final = "scheduler_pending_pods"
_QUIET: Final = 3
"""How often in a row the scheduler must have nothing to do, as its watch comes later than the binding."""
FEW: Final = range(5)
MORE: Final = range(5, 20)


class Foretold(NamedTuple):
    """By key, how many pods find no place: of alike replicas, which of them it is has no meaning."""

    never: Counter[str]
    sometimes: Counter[str]


@pytest.fixture
def scheduler(cluster: Cluster) -> Scheduler:
    """Start kube-scheduler, which scores all nodes and waits no longer than it must before it tries a pod again."""
    backoff = {"podInitialBackoffSeconds": 1, "podMaxBackoffSeconds": 1}
    return cluster.start_scheduler({**configuration(IN_TREE, ""), "percentageOfNodesToScore": 100, **backoff})


@pytest.fixture(scope="module")
def _priorities(cluster: Cluster) -> None:
    create_priorities(cluster.api)


def ask(cluster: Cluster, *arguments: str) -> dict[str, Any]:
    """Return what a command says of the cluster."""
    kubeconfig = str(cluster.plane.kubeconfig("asker", client=ADMIN))
    command = [sys.executable, "-m", "app.commands.cli", *arguments, "--kubeconfig", kubeconfig, "-o", "json"]
    done = subprocess.run([*command, "--orders", ORDERS], capture_output=True, text=True, cwd=ROOT, check=False)  # noqa: S603  # our own arguments
    assert done.returncode in {0, 1}, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def wait_quiet(scheduler: Scheduler, controllers: Controllers) -> None:
    """Wait until the scheduler has placed or rejected each pod, and tries none again."""
    seen = 0

    def quiet() -> bool:
        nonlocal seen
        waiting = pending(controllers)
        queues = {
            labels: number for (name, labels), number in scheduler.samples().items() if name == "scheduler_pending_pods"
        }
        has_rest = queues.get('queue="unschedulable"', 0) == len(waiting) == sum(queues.values())
        seen = seen + 1 if has_rest and all(condition_of(each) for each in waiting) else 0
        return seen >= _QUIET

    wait_until(quiet, PATIENCE, "the scheduler is quiet", every=0.1)


def pending(controllers: Controllers) -> list[dict[str, Any]]:
    """Return the pods without a node."""
    return [each for each in controllers.pods if not each["spec"].get("nodeName")]


def key_of(pod: Mapping[str, Any]) -> str:
    """Return what pods are alike by: their owner, but for the replicas of a StatefulSet, which keep their names."""
    kind, name = owner_of(pod)
    return f"{kind} {pod['metadata']['name'] if kind == 'StatefulSet' else name}"


def foretold(controllers: Controllers, moves: Sequence[Mapping[str, Any]]) -> Foretold:
    """Return how many pods find no place in every order, and in some."""
    found = Foretold(Counter(), Counter())
    for move in moves:
        if move["rejected"] is not None:
            pod = controllers.running[move["pod"].partition("/")[2]]
            (found.never if move["placed"] == "never" else found.sometimes)[key_of(pod)] += 1
    return found


def differences(what: Foretold, seen: Counter[str]) -> list[str]:
    """Return where more or fewer pods wait than can be."""
    return [
        f"{key}: {seen[key]} pending, never {what.never[key]}, sometimes {what.sometimes[key]}"
        for key in sorted({*what.never, *what.sometimes, *seen})
        if not what.never[key] <= seen[key] <= what.never[key] + what.sometimes[key]
    ]


def drain(cluster: Cluster, scheduler: Scheduler, controllers: Controllers, names: Sequence[str]) -> list[str]:
    """Ask what a drain does, and do it."""
    answer = ask(cluster, "drain", *names)
    controllers.cordon(names)
    blocked: Counter[str] = Counter()
    for name in names:
        left = controllers.names_on([name])
        while left:
            gone = [each for each in left if controllers.evict(controllers.running[each])]
            left = [each for each in left if each not in gone]
            if not gone:
                break
            controllers.make_again(gone)
            wait_quiet(scheduler, controllers)
            controllers.start_pods()
            controllers.count_disruptions()
        blocked.update(key_of(controllers.running[each]) for each in left)
    kept = Counter(
        key_of(controllers.running[each["move"]["pod"].partition("/")[2]]) for each in answer["pods"] if each["blocked"]
    )
    what = foretold(controllers, [each["move"] for each in answer["pods"]])
    seen = Counter(map(key_of, pending(controllers)))
    found = differences(what, seen)
    if blocked != kept:
        found.append(f"blocked: {dict(blocked)}, foretold {dict(kept)}")
    return found, what, seen


def lose(cluster: Cluster, scheduler: Scheduler, controllers: Controllers, zone: str) -> list[str]:
    """Ask what the loss of a zone does, and let it be lost."""
    (answer,) = ask(cluster, "loss", "--by", ZONE, "--only", zone)["domains"]
    names = answer["nodes"]
    gone = controllers.names_on(names)
    controllers.lose(names)
    if answer["state"] == "removed":
        controllers.remove(names)
    controllers.make_again(gone)
    wait_quiet(scheduler, controllers)
    what, seen = foretold(controllers, answer["moves"]), Counter(map(key_of, pending(controllers)))
    return differences(what, seen), what, seen


@pytest.mark.parametrize("seeds", [pytest.param(FEW, id="few"), pytest.param(MORE, id="more", marks=pytest.mark.long)])
@pytest.mark.usefixtures("_priorities")
def test_the_pods_that_wait_after_a_drain_are_those_that_are_foretold(
    cluster: Cluster, scheduler: Scheduler, note: Note, seeds: range
) -> None:
    for seed in seeds:
        made = RandomCluster(seed)
        controllers = Controllers(cluster.api, made, f"drain-{seed}")
        names = [each["metadata"]["name"] for each in made.random.sample([*made.nodes], made.random.choice((1, 2)))]
        found, what, seen = drain(cluster, scheduler, controllers, names)
        note(
            f"{seed}: never {sum(what.never.values())} sometimes {sum(what.sometimes.values())} seen {sum(seen.values())} {found}"
        )
        controllers.tidy()


@pytest.mark.parametrize("seeds", [pytest.param(FEW, id="few"), pytest.param(MORE, id="more", marks=pytest.mark.long)])
@pytest.mark.usefixtures("_priorities")
def test_the_pods_that_wait_after_a_loss_are_those_that_are_foretold(
    cluster: Cluster, scheduler: Scheduler, note: Note, seeds: range
) -> None:
    for seed in seeds:
        made = RandomCluster(seed)
        controllers = Controllers(cluster.api, made, f"loss-{seed}")
        found, what, seen = lose(cluster, scheduler, controllers, f"zone-{seed % 3}")
        note(
            f"{seed}: never {sum(what.never.values())} sometimes {sum(what.sometimes.values())} seen {sum(seen.values())} {found}"
        )
        controllers.tidy()
