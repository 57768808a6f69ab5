"""A scheduler that retries, a server that fails at random, a watch that is late: no binding breaks a hard rule."""

import asyncio
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Final

import pytest

from tests.app.feeds.following import scenario
from tests.app.verbs.binding.binding_setting import HOSTNAME, POD_KINDS, Scheduler, scheduling, until
from tests.builders import labelled, make_node, make_pod, term
from tests.core.mirror.audit import audit
from tests.fake_apiserver import FakeApiServer
from tests.fake_apiserver.faults import Action, Close, Stall, overloaded, refuse
from tests.fake_apiserver.resources import PODS
from tests.fake_apiserver.statuses import internal_error, unavailable
from tests.fake_apiserver.store import Object

GROUPS: Final = ("a", "b", "c")
NODES: Final = tuple(f"n{number}" for number in range(10))
PODS_OF_A_GROUP: Final = 9
FAULTS: Final[tuple[Callable[[], Action], ...]] = (
    Close,
    lambda: Close(reset=True),
    lambda: Close(after_head=True),
    lambda: Stall(0.5),
    lambda: Stall(0.5, before_head=True),
    lambda: overloaded(0),
    lambda: refuse(internal_error()),
    lambda: refuse(unavailable()),
)


def create(scheduler: Scheduler, group: str, number: int) -> Object:
    """Create a pod that wants no other of its group on its node."""
    alone = term(HOSTNAME, labelled(group=group))
    return scheduler.create(make_pod(f"{group}-{number}").label("group", group).required_anti_affinity(alone))


def assert_no_rule_is_broken(server: FakeApiServer) -> None:
    there = [(pod["metadata"]["labels"]["group"], pod["spec"].get("nodeName")) for pod in server.objects(PODS.path)]
    assert [place for place, count in Counter(there).items() if place[1] and count > 1] == []


async def schedule(scheduler: Scheduler, pod: Object, random: Random) -> int:
    """Try until the pod is bound, as kube-scheduler does; give the number of attempts that failed."""
    failed = 0
    while True:
        response = (await scheduler.ask("filter", pod, *NODES)).json()
        assert response["Error"].partition(":")[0] in {"", "shed"}, response  # on a busy machine 0.6 s is too soon
        fitting = response["NodeNames"]
        error = await scheduler.bind(pod, random.choice(fitting)) if fitting else "none fits"
        assert_no_rule_is_broken(scheduler.server)
        if not error:
            return failed
        failed += 1
        if scheduler.node_of(pod):  # kube-scheduler's own watch tells it, and it tries no more
            return failed
        await asyncio.sleep(random.uniform(0.0, 0.02))


def add_fault(scheduler: Scheduler, random: Random) -> None:
    """Let a binding or a look go wrong."""
    scheduler.server.faults.add(random.choice(FAULTS)(), None, random.choice(POD_KINDS))


async def fail(scheduler: Scheduler, random: Random) -> None:
    """Let more and more go wrong, and the watch be late, until cancelled."""
    while True:
        scheduler.server.disturb(Stall(random.uniform(0.2, 0.6)), PODS.path)
        await asyncio.sleep(random.uniform(0.0, 0.1))
        for _ in range(4):
            add_fault(scheduler, random)


@pytest.mark.parametrize("seed", range(4))
@scenario()
async def test_pods_that_repel_each_other_are_all_bound_and_never_together(server: FakeApiServer, seed: int) -> None:
    random = Random(seed)  # noqa: S311 - not for secrets
    async with scheduling(
        server, *(make_node(name).label(HOSTNAME, name) for name in NODES), http_timeout=0.6
    ) as scheduler:
        pods = [create(scheduler, group, number) for number in range(PODS_OF_A_GROUP) for group in GROUPS]
        for _ in range(len(pods)):
            add_fault(scheduler, random)
        failing = asyncio.create_task(fail(scheduler, random))
        attempts = asyncio.gather(*(schedule(scheduler, pod, random) for pod in pods))
        await asyncio.wait([attempts], timeout=2.0)
        failing.cancel()
        await asyncio.wait([failing])
        server.faults.clear()
        assert sum(await attempts) >= 5, "too little went wrong to tell anything"
        await until(lambda: all(scheduler.is_added(pod, scheduler.node_of(pod)) for pod in pods))
        assert_no_rule_is_broken(server)
        assert not scheduler.mirror.assumed
        assert audit(scheduler.mirror) == []
