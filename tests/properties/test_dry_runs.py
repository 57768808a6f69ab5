"""The law of dry runs: the whole state of the service is the same after them, and so is every later answer."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from importlib import import_module
from typing import Any, Final, NamedTuple

import numpy as np
import pytest
from msgspec import structs

from app.objects.resources import RESOURCES
from app.settings.limits import Limits
from app.verbs.effects import Effects
from app.verbs.filter import Patient
from app.verbs.pods import Found, LookupState
from app.verbs.request import Decision, Request, VerbResponse
from core.framework.interface import SUCCESS, Code, Status, Verdicts
from core.mirror.node_info import NodeBatch
from core.objects.groups import Membership
from core.objects.kinds import Namespace
from core.objects.node import Node
from core.objects.pod import Pod
from tests.app.feeds.following import scenario
from tests.app.verbs.binding.binding_setting import HOSTNAME, Scheduler, loner, scheduling, until
from tests.builders import NodeBuilder, PodBuilder, labelled, make_node, make_pod, term
from tests.depth import tries
from tests.fake_apiserver import FakeApiServer
from tests.fake_apiserver.faults import Kind
from tests.fake_apiserver.resources import PODS
from tests.fake_apiserver.store import Object
from tests.properties.service_state import RETAINED, TIMED, differences, state_of

ZONE: Final = "topology.kubernetes.io/zone"
NAMES: Final = ("n1", "n2", "n3", "n4")
NODES: Final[Sequence[NodeBuilder]] = [
    make_node(name).label(HOSTNAME, name).label(ZONE, zone).allocatable(cpu="4", pods=10)
    for name, zone in zip(NAMES, "aabb", strict=True)
]
SETTINGS: Final[Mapping[str, Mapping[str, Any]]] = {
    "score-offload": {},
    "full-offload": {"preempt": "verb", "percentage_of_nodes_to_score": 50},
    "full-offload-evict": {"preempt": "evict", "profile": "full"},
    "decide": {"decide": "listed-nodes", "profile": "full", "preempt": "evict"},
    "any-node": {"decide": "any-node", "profile": "full", "preempt": "evict"},
    "bypass": {"bypass_namespaces": ["default"], "preempt": "verb"},
}
VERBS: Final = ("filter", "prioritize", "bind", "preempt")
DRY: Final = {"Kindred-Dry-Run": "true"}
EFFECTS: Final[tuple[Kind, ...]] = ("get", "bind", "create", "patch", "delete", "update")
OF_REQUESTS: Final = (
    "kindred_requests_",
    "kindred_request_",
    "kindred_stale_requests",
    "kindred_queue_",
    "kindred_event_loop_",
    "kindred_memory_",
    "kindred_watch_",
    "kindred_gc_",
    "process_",
)
"""Metrics of requests of any kind, and of the process. All others must not follow a dry run."""


PODS_OF_THE_WORLD: Final[Sequence[PodBuilder]] = (
    loner("a"),
    loner("b").priority(10),
    make_pod("c").requests(cpu=3),
    make_pod("d").requests(cpu=9),
    make_pod("e").priority(5).requests(cpu=4),
    make_pod("f").required_affinity(term(ZONE, labelled(app="db"))),
    make_pod("g1").requests(cpu=1).of_group("g", minimum=2),
    make_pod("g2").requests(cpu=1).of_group("g", minimum=2),
)
"""What waits at first: pods that repel each other, one that fits nowhere, an important one, and a gang."""


class World:
    """A service beside an API server, to which the same happens again with the same seed."""

    def __init__(self, scheduler: Scheduler, seed: int) -> None:
        self.scheduler = scheduler
        self.responses: list[bytes] = []
        self._chance = random.Random(seed)  # noqa: S311 - no secret
        self._dry_chance = random.Random(-seed)  # noqa: S311 - no secret
        self._number = 0

    async def start(self) -> None:
        """Create the pods."""
        running = [
            make_pod(f"r{number}").requests(cpu=1).label("app", "db").on(name) for number, name in enumerate(NAMES)
        ]
        created = [self.scheduler.create(pod) for pod in running]
        await until(lambda: all(self.scheduler.mirror.is_mirrored(pod["metadata"]["uid"]) for pod in created))
        for waiting in PODS_OF_THE_WORLD:
            await self.scheduler.pending(waiting)
        for kind in RESOURCES.keys() - {Pod, Node, Namespace}:
            self.scheduler.mirror.objects(kind)  # made at their first use
        for pod in self._waiting():  # the same for states that are derived from the mirror
            for verb in VERBS:
                await self._ask(verb, _body(random.Random(0), verb, pod), DRY)  # noqa: S311 - no secret

    def _waiting(self) -> list[Object]:
        found = [pod for pod in self.scheduler.server.objects(PODS.path) if not pod["spec"].get("nodeName")]
        return sorted(found, key=lambda pod: str(pod["metadata"]["name"]))

    async def step(self) -> None:
        """Let one thing happen: mostly a request, at times a change of the cluster."""
        self._number += 1
        chance, waiting = self._chance, self._waiting()
        match chance.random():
            case share if share < 0.1:
                await self.scheduler.pending(replace(chance.choice(PODS_OF_THE_WORLD), name=f"new-{self._number}"))
            case share if share < 0.2 and len(waiting) > 2:
                gone = chance.choice(waiting)["metadata"]
                self.scheduler.server.delete(PODS.path, gone["name"], gone["namespace"])
                await until(lambda: gone["uid"] not in self.scheduler.mirror.pending)
            case _ if waiting:
                verb, pod = chance.choice(VERBS), chance.choice(waiting)
                self.responses.append(await self._ask(verb, _body(chance, verb, pod)))
                await self._settled()

    async def _settled(self) -> None:
        """Wait until the watch shows what the API server has."""
        mirror, bound = self.scheduler.mirror, self.scheduler.server.objects(PODS.path)
        await until(
            lambda: all(
                mirror.is_mirrored(uid) and not mirror.is_assumed(uid)
                for uid in (pod["metadata"]["uid"] for pod in bound if pod["spec"].get("nodeName"))
            )
        )

    async def dry_runs(self) -> None:
        """Send a dry run of each verb, about a pod that waits, a forged one or an invented one; nothing may follow."""
        chance, sent = self._dry_chance, []
        before = await self.state()
        for verb in VERBS:
            pod = _forged(chance, chance.choice(self._waiting() or [make_pod("invented").obj()]))
            sent.append((verb, _body(chance, verb, pod)))
            await self._ask(*sent[-1], DRY)
        changed = differences(before, await self.state())
        assert not changed, f"{changed} after {sent}"

    async def state(self) -> dict[str, str]:
        """Return the state of the service, its metrics, and how many requests the API server got."""
        for _ in range(5):  # tasks that wait for an event of the last request have their turn
            await asyncio.sleep(0)
        service = self.scheduler.service
        metrics = (await self.scheduler.send("GET", "/metrics")).decode().splitlines()
        requested = len(self.scheduler.server.requests.of(None, *EFFECTS))
        found = state_of((service.app, getattr(service.app, "verbs"), service.background))  # noqa: B009  # ExtenderApp's
        found |= {f"metric {line}": "" for line in metrics if not line.startswith(("#", *OF_REQUESTS))}
        return found | {"requests to the API server": str(requested)}

    async def _ask(self, verb: str, body: object, headers: Mapping[str, str] | None = None) -> bytes:
        random.seed(self._number)  # the choice among equally good nodes, and the first node of a preemption
        return await self.scheduler.send("POST", f"/{verb}", body, headers)


def _body(chance: random.Random, verb: str, pod: Object) -> object:
    if chance.random() < 0.05:
        return {"Pod": 7}
    names = chance.sample(NAMES, chance.randint(1, len(NAMES)))
    if verb == "bind":
        metadata = pod["metadata"]
        return {
            "PodName": metadata["name"],
            "PodNamespace": metadata["namespace"],
            "PodUID": metadata.get("uid", "u"),
            "Node": names[0],
        }
    if verb == "preempt":
        return {"Pod": pod, "NodeNameToMetaVictims": {name: {"Pods": [], "NumPDBViolations": 0} for name in names[:2]}}
    return {"Pod": pod, "NodeNames": names}


def _forged(chance: random.Random, pod: Object) -> Object:
    """Return the pod, or a copy with another spec, name or uid."""
    metadata, spec = dict(pod["metadata"]), dict(pod["spec"])
    match chance.choice(("as-it-is", "spec", "name", "uid", "labels", "nominated")):
        case "spec":
            spec["containers"] = [{"name": "c", "image": "i"}]
            spec["tolerations"] = [{"operator": "Exists"}]
        case "name":
            metadata["name"] = "another"
        case "uid":
            metadata["uid"] = "invented"
        case "labels":
            metadata["labels"] = {"app": "forged"}
        case "nominated":
            return {**pod, "status": {"nominatedNodeName": "n1"}}
    return {**pod, "metadata": metadata, "spec": spec}


@asynccontextmanager
async def world(server: FakeApiServer, settings: Mapping[str, Any], seed: int) -> AsyncIterator[World]:
    """Serve a world."""
    async with scheduling(server, *NODES, limits=Limits(settle=0.0), **settings) as scheduler:
        made = World(scheduler, seed)
        await made.start()
        yield made


@pytest.fixture(autouse=True)
def no_turn_of_the_evictor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave all pods in the queue of the evictor, so that the state follows requests alone."""
    monkeypatch.setattr("app.verbs.evictor._PAUSE", 3600.0)
    monkeypatch.setattr("app.verbs.evictor._LONGER_PAUSE", 3600.0)


def test_everything_that_the_law_leaves_out_is_there() -> None:
    for name in RETAINED:
        module, _, kind = name.rpartition(".")
        assert hasattr(import_module(module), kind), name
    for name in TIMED:  # a module, or a class in one
        module, _, kind = name.rpartition(".")
        assert hasattr(import_module(module), kind) if kind[0].isupper() else import_module(name), name


STEPS: Final = 10
SEEDS: Final = range(tries(default=1, full=8))


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_follows_from_a_dry_run(name: str, seed: int) -> None:
    responses = []
    for with_dry_runs in (False, True):

        @scenario()
        async def run(server: FakeApiServer, *, with_dry_runs: bool = with_dry_runs) -> None:
            async with world(server, SETTINGS[name], seed) as made:
                for _ in range(STEPS):
                    if with_dry_runs:
                        await made.dry_runs()
                    await made.step()
                responses.append(made.responses)

        run()
    assert responses[0] == responses[1]


REJECTED: Final = Verdicts(np.ones(1, np.int64), (SUCCESS, Status(Code.UNSCHEDULABLE, ("no",))))


class Leak(NamedTuple):
    """An effect that the dry runs of `filter` are made to have, and what of the state shows it."""

    of: Callable[[Effects, Pod, NodeBatch], object]
    shows: str


def _rejected_gang(effects: Effects, pod: Pod, _: NodeBatch) -> None:
    assert effects.gangs is not None
    effects.gangs.ask(structs.replace(pod, uid="another", group=Membership("lone", minimum=5)), 0.0)


def _stale_rejection(effects: Effects, pod: Pod, batch: NodeBatch) -> None:
    effects.stale_rejection(structs.replace(pod, nominated_node_name=batch.names[0], priority=100), batch, REJECTED)


LEAKS: Final[Mapping[str, Leak]] = {
    "assumption": Leak(lambda effects, pod, batch: effects.assume(pod, batch.names[0]), "_assumed.by_uid"),
    "end-of-an-assumption": Leak(lambda effects, pod, _: effects.begin_decision(pod), "_assumed.by_uid"),
    "decision": Leak(lambda effects, _, __: effects.decisions.update({Decision.NO_FIT: 1}), "decisions"),
    "recent-pod": Leak(lambda effects, pod, _: effects.recent_pods.add(pod, b"{}"), "recent_pods"),
    "rotation": Leak(lambda effects, _, __: setattr(effects, "rotation", effects.rotation + 1), "rotation"),
    "refused-nodes": Leak(lambda effects, pod, batch: effects.reject(pod, batch, REJECTED), "_rejections"),
    "queue-of-the-evictor": Leak(
        lambda effects, pod, batch: effects.reject(structs.replace(pod, priority=1), batch, REJECTED), "_turns"
    ),
    "doubt": Leak(_stale_rejection, "_stale_rejections"),
    "gang": Leak(_rejected_gang, "gangs._units"),
    "look-up": Leak(
        lambda effects, pod, _: effects.lookup._keep(pod.full_name, "v", Found(LookupState.SETTLED), 30.0),  # noqa: SLF001
        "lookup._lookups",
    ),
}


@pytest.mark.parametrize("name", LEAKS)
def test_the_law_finds_each_kind_of_leak(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    leak, ordinary, armed = LEAKS[name], Patient.__call__, [False]

    @scenario()
    async def run(server: FakeApiServer) -> None:
        async with world(server, SETTINGS["decide"], seed=0) as made:
            mirror = made.scheduler.mirror
            assumed = await made.scheduler.pending(make_pod("z").requests(cpu=1))
            if name == "end-of-an-assumption":
                await made.scheduler.filter(assumed, *NAMES)

            def leaking(patient: Patient, request: Request) -> VerbResponse | Awaitable[VerbResponse]:
                if request.dry_run and armed[0]:
                    pod = mirror.pending.get(assumed["metadata"]["uid"])
                    assert pod is not None
                    leak.of(patient._effects, pod, mirror.batch(["n1"]))  # noqa: SLF001 - a dry run has no way to it
                return ordinary(patient, request)

            monkeypatch.setattr(Patient, "__call__", leaking)
            await made.dry_runs()
            armed[0] = True
            await made.dry_runs()

    with pytest.raises(AssertionError) as found:
        run()
    assert leak.shows in str(found.value)
