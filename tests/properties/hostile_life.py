"""A random life of a hostile cluster: what happens in each step, and what must hold after it and in the end."""

import asyncio
import json
import logging
import math
import random
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from random import Random
from typing import Any, Final, NamedTuple
from unittest.mock import patch

from app.settings.settings import Settings
from core.events import ClusterEvent
from core.mirror.cluster import ClusterMirror
from tests.app.feeds.following import mirror_differences
from tests.fake_apiserver.faults import Kind
from tests.fake_apiserver.resources import NODES, PERSISTENT_VOLUME_CLAIMS, PODS
from tests.properties.hostile_cluster import (
    KINDS,
    NODE_NAMES,
    OTHER,
    SCHEDULERS,
    STALE_AFTER,
    HostileCluster,
    Replica,
    pod_of,
)
from tests.properties.laws import TTL
from tests.properties.simulated_api import Fault
from tests.virtual_time import VirtualTimeLoop

MODES: Final[dict[str, dict[str, object]]] = {
    "decide": {"decide": "any-node", "preempt": "evict"},
    "decide-listed": {"decide": "listed-nodes"},
    "decide-and-bind": {"decide": "any-node", "bind": True, "preempt": "evict"},
    "bind": {"bind": True, "preempt": "verb"},
    "bind-and-evict": {"bind": True, "preempt": "evict"},
}
_SETTINGS: Final = {
    "profile": "full",
    "kubernetes": "1.36",
    "leader_election": "kindred",
    "http_timeout": 1.0,
    "stale_after": STALE_AFTER,
}
_PATHS: Final = (PODS.path, PODS.path, NODES.path, PERSISTENT_VOLUME_CLAIMS.path)
_FAULTS: Final = (*Fault, *2 * (Fault.RESPONSE_LOST, Fault.FAILED_AND_DONE, Fault.LATE))
_FAULTY: Final[tuple[Kind, ...]] = ("get", "patch", "bind", "bind", "delete", "update")
_PAUSES: Final = (0.0, 0.002, 0.01, 0.05, 0.3, 1.2, 1.2)
_STEPS: Final = 120
_CLOCKS: Final = (
    *("time.monotonic", "time.thread_time"),
    *("app.feeds.stream.perf_counter", "app.process.long_work.perf_counter"),
)
"""What would let a life take another course on a slower machine."""


class Step(NamedTuple):
    """Something that happens: its name, what decides how, and the seconds that pass then."""

    name: str
    seed: int
    pause: float


def steps_of(seed: int) -> list[Step]:
    """Return the steps of a life."""
    chance = Random(seed)  # noqa: S311 - to be the same each time
    names = chance.choices([*_EVENTS], [weight for weight, _ in _EVENTS.values()], k=_STEPS)
    return [Step(name, chance.randrange(2**32), chance.choice(_PAUSES)) for name in names]


class _Errors(logging.Handler):
    """Keeps what the log has of errors, which are bugs."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a message, with where it was raised."""
        self.messages.append(logging.Formatter().format(record))


class Life(NamedTuple):
    """What came of a life."""

    problem: str
    """The first law that was broken, in a line or more. Empty if all held."""
    counts: dict[str, int]


def live(mode: str, seed: int, steps: Sequence[Step]) -> Life:
    """Live through these steps, in virtual time."""
    errors = _Errors()
    logging.getLogger().addHandler(errors)
    random.seed(seed)
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner, ExitStack() as stack:
        stack.callback(logging.getLogger().removeHandler, errors)
        for clock in _CLOCKS:
            stack.enter_context(patch(clock, runner.get_loop().time))
        return runner.run(_lived(mode, seed, steps, errors))


async def _lived(mode: str, seed: int, steps: Sequence[Step], errors: _Errors) -> Life:
    settings = Settings.model_validate({**_SETTINGS, **MODES[mode]})
    cluster = HostileCluster(Random(seed), settings)  # noqa: S311
    try:
        problem = await _problem_of(cluster, steps, errors)
    finally:
        await cluster.end_all()
    return Life(problem, cluster.laws.counts)


async def _problem_of(cluster: HostileCluster, steps: Sequence[Step], errors: _Errors) -> str:
    await asyncio.sleep(8.0)
    for step in steps:
        _, event = _EVENTS[step.name]
        chance = Random(step.seed)  # noqa: S311
        await event(cluster, chance) if asyncio.iscoroutinefunction(event) else event(cluster, chance)
        await asyncio.sleep(step.pause)
        if found := [*cluster.problems(), *errors.messages]:
            return f"after {step}: {found[0]}"
    await cluster.come_to_rest()
    return next(filter(None, [*cluster.problems(), *errors.messages, await _problem_at_rest(cluster)]), "")


# Pods, nodes and claims.


def _pods_are_created(cluster: HostileCluster, chance: Random) -> None:
    kind, scheduler = chance.choice(KINDS), chance.choice(SCHEDULERS)
    for _ in range(chance.randint(1, 3)):
        cluster.create_pod(kind, scheduler, chance.choice((0, 0, 10, 20)))


def _pod_is_deleted(cluster: HostileCluster, chance: Random) -> None:
    if pods := cluster.pods():
        cluster.terminate(chance.choice(pods)["metadata"]["uid"])


def _pod_is_deleted_and_created_again(cluster: HostileCluster, chance: Random) -> None:
    if pods := cluster.pods():
        pod = chance.choice(pods)
        cluster.remove(pod)
        name, scheduler = pod["metadata"]["name"], chance.choice(SCHEDULERS)
        cluster.create_pod(chance.choice(KINDS), scheduler, chance.choice((0, 20)), name)


def _kubelets_do_their_work(cluster: HostileCluster, chance: Random) -> None:
    for pod in cluster.pods():
        if "deletionTimestamp" in pod["metadata"]:
            cluster.remove(pod)
        elif pod["spec"].get("nodeName") and chance.random() < 0.2:
            cluster.end(pod)


def _node_is_deleted(cluster: HostileCluster, chance: Random) -> None:
    cluster.delete_node(chance.choice(NODE_NAMES))


def _node_is_created_again(cluster: HostileCluster, chance: Random) -> None:
    name = chance.choice(NODE_NAMES)
    cluster.delete_node(name)
    cluster.create_node(name, chance.randint(1, 4))


def _claim_is_created_again(cluster: HostileCluster, _: Random) -> None:
    cluster.create_claim()


# Schedulers.


async def _scheduler_restarts(cluster: HostileCluster, chance: Random) -> None:
    await chance.choice(cluster.schedulers).restart()


def _scheduler_is_late(cluster: HostileCluster, chance: Random) -> None:
    chance.choice(cluster.schedulers).view.is_late = chance.random() < 0.5


def _another_scheduler_binds(cluster: HostileCluster, chance: Random) -> None:
    pods = [pod for pod in cluster.pods() if not pod["spec"].get("nodeName")]
    if pods:
        cluster.bind(chance.choice(pods), chance.choice(NODE_NAMES))


def _another_scheduler_has_a_pod(cluster: HostileCluster, chance: Random) -> None:
    cluster.bind(cluster.create_pod(chance.choice(KINDS), OTHER, 0), chance.choice(NODE_NAMES))


# The network.


def _requests_of_a_replica_fail(cluster: HostileCluster, chance: Random) -> None:
    client = chance.choice(cluster.replicas).client
    client.faults[chance.choice(_FAULTY)] += [chance.choice(_FAULTS)] * chance.randint(1, 2)


def _binding_of_a_scheduler_fails(cluster: HostileCluster, chance: Random) -> None:
    chance.choice(cluster.schedulers).client.faults["bind"].append(chance.choice(_FAULTS))


def _responses_of_kindred_are_lost(cluster: HostileCluster, chance: Random) -> None:
    cluster.lost_responses += chance.randint(1, 2)


def _all_watches_are_late(cluster: HostileCluster, _: Random) -> None:
    for replica in cluster.replicas:
        replica.client.keep_back(PODS.path)
    for scheduler in cluster.schedulers:
        scheduler.view.is_late = True


def _all_watches_go_on(cluster: HostileCluster, _: Random) -> None:
    for replica in cluster.replicas:
        replica.client.deliver(PODS.path)
    for scheduler in cluster.schedulers:
        scheduler.view.is_late = False


async def _api_server_is_in_trouble(cluster: HostileCluster, chance: Random) -> None:
    """Let bindings end in all ways, while the watches of Kindred and of one scheduler are late; more pods come."""
    for pod in cluster.pods():
        if chance.random() < 0.7:  # else all that comes would wait
            cluster.remove(pod)
    cluster.heal()
    await asyncio.sleep(0.1)
    scheduler, other = chance.sample(cluster.schedulers, 2)
    kind = chance.choice(KINDS)
    for client in (*(each.client for each in cluster.replicas), scheduler.client):
        client.faults["bind"] += [chance.choice(_FAULTS) for _ in range(chance.randint(1, 3))]
        for of in _FAULTY[:2]:
            client.faults[of] += [chance.choice(_FAULTS) for _ in range(chance.randint(0, 1))]
    for _ in range(chance.randint(1, 3)):
        cluster.create_pod(kind, scheduler.name, 0)
    scheduler.view.catch_up()
    scheduler.view.is_late = True
    for replica in cluster.replicas:
        replica.client.keep_back(PODS.path)
    for _ in range(chance.randint(3, 6)):
        await asyncio.sleep(chance.uniform(0.1, 0.9))
        cluster.create_pod(chance.choice((kind, kind, *KINDS)), other.name, chance.choice((0, 0, 20)))
    await asyncio.sleep(chance.uniform(0.0, 1.0))


def _watch_is_late(cluster: HostileCluster, chance: Random) -> None:
    chance.choice(cluster.replicas).client.keep_back(chance.choice(_PATHS))


def _watch_goes_on(cluster: HostileCluster, chance: Random) -> None:
    chance.choice(cluster.replicas).client.deliver(chance.choice(_PATHS), chance.choice((1, 2, 5, math.inf)))


def _watch_breaks(cluster: HostileCluster, chance: Random) -> None:
    chance.choice(cluster.replicas).client.break_watch(chance.choice(_PATHS))


def _watch_lags(cluster: HostileCluster, chance: Random) -> None:
    chance.choice(cluster.replicas).client.lag[chance.choice(_PATHS)] = chance.choice((0.0, 0.05, 0.6))


# Replicas, and time.


async def _replica_is_cut_off(cluster: HostileCluster, chance: Random) -> None:
    client = chance.choice(cluster.replicas).client
    client.cut_off()
    await asyncio.sleep(chance.choice((1.0, 5.0, 8.0)))
    client.heal()


async def _replica_restarts(cluster: HostileCluster, chance: Random) -> None:
    await cluster.replace_replica(chance.randrange(len(cluster.replicas)))


async def _all_goes_well_for_a_while(cluster: HostileCluster, _: Random) -> None:
    cluster.heal()
    await asyncio.sleep(3.0)


async def _time_passes(_: HostileCluster, chance: Random) -> None:
    await asyncio.sleep(chance.choice((0.3, 2.0, 2.0, 10.0, STALE_AFTER + 2)))


def _clocks_jump(_: HostileCluster, chance: Random) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    loop.advance(chance.choice((0.5, 3.0, 7.0, TTL + 2)))


_EVENTS: Final[dict[str, tuple[int, Callable[[HostileCluster, Random], Any]]]] = {
    event.__name__.lstrip("_"): (weight, event)
    for weight, event in (
        (20, _pods_are_created),
        (4, _pod_is_deleted),
        (4, _pod_is_deleted_and_created_again),
        (10, _kubelets_do_their_work),
        (1, _node_is_deleted),
        (3, _node_is_created_again),
        (1, _claim_is_created_again),
        (1, _scheduler_restarts),
        (3, _scheduler_is_late),
        (5, _another_scheduler_binds),
        (3, _another_scheduler_has_a_pod),
        (10, _requests_of_a_replica_fail),
        (10, _binding_of_a_scheduler_fails),
        (3, _responses_of_kindred_are_lost),
        (14, _api_server_is_in_trouble),
        (6, _all_watches_are_late),
        (8, _all_watches_go_on),
        (4, _watch_is_late),
        (4, _watch_goes_on),
        (2, _watch_breaks),
        (3, _watch_lags),
        (1, _replica_is_cut_off),
        (1, _replica_restarts),
        (6, _all_goes_well_for_a_while),
        (3, _time_passes),
        (1, _clocks_jump),
    )
}
"""Name -> weight, and what happens."""


# (c) Nothing is held at rest.


async def _problem_at_rest(cluster: HostileCluster) -> str:
    await asyncio.sleep(10.0)
    for replica in cluster.replicas:
        if left := [uid for uid in replica.mirror.assumed if uid not in replica.mirror.pending]:
            return f"{replica.name}: assumed, and not pending: {left}"
    await asyncio.sleep(STALE_AFTER + TTL)
    for replica in cluster.replicas:
        left = [*replica.mirror.assumed, *mirror_differences(_fresh(cluster, replica), replica.mirror)]
        if not left and replica.leads():
            left = [kind for kind in KINDS if not await _is_cached_as_fresh(cluster, replica, kind)]
        if left:
            return f"{replica.name}: {left}"
    return "" if any(replica.leads() for replica in cluster.replicas) else "nobody leads"


def _fresh(cluster: HostileCluster, replica: Replica) -> ClusterMirror:
    fresh = ClusterMirror(rules=replica.mirror.rules)
    for reflector in replica.reflectors():
        resource = reflector.state.resource
        for each in cluster.store.objects(resource.path):
            fresh.apply(ClusterEvent("Add", resource.decode(json.dumps(each).encode())))
    return fresh


async def _is_cached_as_fresh(cluster: HostileCluster, replica: Replica, kind: str) -> bool:
    pod = pod_of(kind, "probe", SCHEDULERS[0], 10)
    pod["metadata"]["uid"] = "probe"
    body = {"Pod": pod, "Nodes": None, "NodeNames": cluster.node_names()}
    with patch("app.verbs.decide.random.random", lambda: 0.0):  # among equals the first one
        for verb in ("filter", "prioritize"):
            cached = await replica.request(verb, body, 1.0)
            if cached != await replica.request(verb, body, 1.0, headers=((b"kindred-cache", b"off"),)):
                return False
    return True
