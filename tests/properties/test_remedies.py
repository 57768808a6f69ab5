"""The law of remedies: when one is done to the objects, and controllers have acted, the pod fits; after less, not."""

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Final

import pytest
from msgspec.structs import replace

from core.diagnosis.remedies.departures import share
from core.diagnosis.remedies.find_remedies import find_remedies
from core.explaining.pod_steps import LowerRequest, RaiseMaxSkew
from core.explaining.remedy import RemakePod, Remedy, RemovePod, Step
from core.objects.affinity import (
    NO_AFFINITY,
    NO_NODE_AFFINITY,
    AffinityTerm,
    PodAffinity,
    PodMatcher,
    selector_from_set,
)
from core.objects.kinds import ControllerRef
from core.objects.labels import NOTHING, parse_selector
from core.objects.node import Node
from core.objects.pod import HostPort, Pod, PodClaim, SpreadConstraint, Taint
from tests.core.decoded import demanding
from tests.depth import tries
from tests.properties import scheduling_pool as pool
from tests.remedies.world import World

ALL: Final = 50
OWNERS: Final = ("", "ReplicaSet", "ReplicaSet", "StatefulSet", "StatefulSet", "DaemonSet", "Job", "Node")
PARTS: Final = 5
CASES: Final = tries(default=200, full=1000)
KINDS_OF_STEPS: Final = min(9, CASES // PARTS // 4)
"""Of the 18 that there are, so many are seen in each part."""
STORED_TO_THE_LEAST: Final = 10
"""Of so many cases one is asked whether less would do."""


def worlds(seed: int) -> World:
    """Return a random small cluster and a pod that probably fits nowhere, for one or more of many reasons."""
    random = Random(seed)  # noqa: S311  # the same cases in every run
    names = [*pool.NODE_NAMES, pool.FOREIGN][: random.randint(1, 5)]
    states = [random.choice([node for node in pool.NODES if node.name == name]) for name in names]
    nodes = [troubled(random, node) if random.random() < 0.4 else node for node in states]
    pods = [
        owned(random, pool.placed(random.choice(pool.PODS), (f"p{at}", f"p{at}"), random.choice(nodes).name), at)
        for at in range(random.randint(0, 10))
    ]
    if pods and random.random() < 0.2:
        pods.append(replace(random.choice(pods), uid="waiting", name="waiting-20", node_name="", terminating=False))
    others = random.sample(list(pool.OTHERS), random.randint(0, 20))
    pod = pool.incoming(random.choice(pool.PODS), "next", random.choice(("", "rs-1")))
    if random.random() < 0.8:
        pod = replace(pod, volumes=())
    if random.random() < 0.5:
        pod = replace(pod, affinity=NO_AFFINITY, node_affinity=NO_NODE_AFFINITY, spread=())
    pod = owned(random, random.choice(DEMANDS)(random, pod), random.randint(0, 12))
    if random.random() < 0.3:  # as pods of one owner mostly are
        pods = [
            replace(each, labels={**each.labels, **pod.labels}, affinity=pod.affinity) if siblings(each, pod) else each
            for each in pods
        ]
    return World(nodes, pods, others, pod)


def crowded(seed: int) -> World:
    """Return a few nodes that are full of pods of few owners, one of which may be that of the pending pod."""
    random = Random(seed)  # noqa: S311  # the same cases in every run
    nodes = [
        Node(f"n{at}", labels={pool.HOST: f"n{at}", pool.ZONE: random.choice("ab")}, allocatable=dict(_ROOM))
        for at in range(random.randint(1, 3))
    ]
    if random.random() < 0.3:
        nodes[0] = troubled(random, nodes[0])
    rule = random.choice((requiring, requiring, with_port_80, keeping_off, keeping_off, level))
    kinds = random.sample(OWNERS, random.randint(1, 3))
    pods = [rule(random, owned(random, fresh(f"p{at}"), at, kinds)) for at in range(random.randint(1, 7))]
    placed = [replace(each, node_name="" if random.random() < 0.1 else random.choice(nodes).name) for each in pods]
    placed = [replace(each, terminating=bool(each.node_name) and random.random() < 0.2) for each in placed]
    pod = rule(random, owned(random, fresh("next"), random.randint(0, 12), kinds))
    return World(nodes, placed, (), replace(pod, priority=random.choice((0, 0, 9))))


_ROOM: Final = {"cpu": 4000, "memory": 2**33, "pods": 5}


def fresh(uid: str) -> Pod:
    """Return a pod that asks for nothing."""
    return Pod(uid, "a", uid, {"app": "x"})


def requiring(random: Random, pod: Pod) -> Pod:
    """Return a pod that requests much."""
    return replace(pod, requests={"cpu": random.choice((500, 1500, 2500, 3500))}, best_effort=False)


def with_port_80(_random: Random, pod: Pod) -> Pod:
    """Return a pod with the host port 80."""
    return demanding(pod, host_ports=frozenset({HostPort(80)}))


def keeping_off(random: Random, pod: Pod) -> Pod:
    """Return a pod that keeps off pods like itself: those of one owner in the same way."""
    matcher = PodMatcher(frozenset({"a"}), NOTHING, selector_from_set({"app": "x"}))
    key = pool.ZONE if pod.controller is not None else random.choice((pool.ZONE, pool.HOST))
    return replace(pod, affinity=PodAffinity(required_anti_affinity=(AffinityTerm(matcher, key),)))


def level(random: Random, pod: Pod) -> Pod:
    """Return a pod that is spread over nodes."""
    selector = selector_from_set({"app": "x"})
    return replace(pod, spread=(SpreadConstraint(1, random.choice((pool.ZONE, pool.HOST)), selector=selector),))


def siblings(one: Pod, other: Pod) -> bool:
    """Return whether two pods have one owner."""
    return one.controller is not None and (one.namespace, one.controller) == (other.namespace, other.controller)


def owned(random: Random, pod: Pod, number: int, kinds: Sequence[str] = OWNERS) -> Pod:
    """Return a pod with an owner, and maybe being deleted."""
    kind = random.choice(kinds)
    labels, name, owner = dict(pod.labels), f"{kind.lower() or 'bare'}-{number}", kind.lower()
    if kind == "ReplicaSet" and random.random() < 0.8:
        labels["pod-template-hash"] = random.choice("12")
        owner = f"web-{labels['pod-template-hash']}"
    if kind == "DaemonSet":
        labels["controller-revision-hash"] = random.choice("12")
    return replace(
        pod,
        name=name,
        labels=labels,
        controller=ControllerRef(kind, owner, owner) if kind else None,
        of_daemon_set=kind == "DaemonSet",
        terminating=bool(pod.node_name) and random.random() < 0.15,
    )


def troubled(random: Random, node: Node) -> Node:
    """Return a node with a taint, or cordoned."""
    if random.random() < 0.6:
        taint = Taint(random.choice(("gpu", "team", "node.kubernetes.io/not-ready")), effect="NoSchedule")
        return replace(node, taints=tuple(dict.fromkeys((*node.taints, taint))))
    cordoned = Taint("node.kubernetes.io/unschedulable", effect="NoSchedule")
    return replace(node, unschedulable=True, taints=(*node.taints, *random.choice(((), (cordoned,)))))


def requesting(random: Random, pod: Pod) -> Pod:
    """Return a pod that requests more."""
    requests = dict(pod.requests)
    for resource, amounts in (("cpu", (500, 1700, 6000)), ("memory", (2**29, 3 * 2**30)), ("example.com/gpu", (2,))):
        if random.random() < 0.4:
            requests[resource] = random.choice(amounts)
    return demanding(replace(pod, requests=requests), resources=None)


def selecting(random: Random, pod: Pod) -> Pod:
    """Return a pod with a nodeSelector."""
    required = random.choice(({"disk": "ssd"}, {"team": "red", "disk": "hdd"}, {pool.ZONE: "c"}, {"cores": "8"}))
    return replace(pod, node_affinity=replace(pod.node_affinity, selector=selector_from_set(required)))


def spreading(random: Random, pod: Pod) -> Pod:
    """Return a pod with topology spread constraints."""
    selector = parse_selector({}, [("app", "Exists", ())])
    keys = random.choice(((pool.ZONE,), (pool.HOST,), (pool.ZONE, pool.HOST), ("disk",), ("rack",)))
    return replace(pod, spread=tuple(SpreadConstraint(1, key, selector=selector) for key in keys))


def claiming(random: Random, pod: Pod) -> Pod:
    """Return a pod with claims, of which some are missing."""
    names = random.choice((("c0",), ("c0",), ("c0",), ("c1",), ("missing",), ("c0", "c1"), ("c0", "missing")))
    return replace(alone(pod), volumes=tuple(PodClaim(name) for name in names))


def naming(random: Random, pod: Pod) -> Pod:
    """Return a pod with spec.nodeName."""
    return replace(alone(pod), node_name=random.choice((*pool.NODE_NAMES, "gone")))


def next_to(random: Random, pod: Pod) -> Pod:
    """Return a pod that has to run beside another one."""
    required = random.choice(({"app": "z"}, {"app": "x", "tier": "9"}))
    matcher = PodMatcher(frozenset({random.choice("ab")}), NOTHING, selector_from_set(required))
    keys = random.choice(((pool.ZONE,), (pool.HOST,), (pool.ZONE, pool.HOST)))
    return replace(
        alone(pod), affinity=PodAffinity(required_affinity=tuple(AffinityTerm(matcher, key) for key in keys))
    )


def with_port(random: Random, pod: Pod) -> Pod:
    """Return a pod with host ports."""
    ports = {HostPort(random.choice((80, 81)), random.choice(("TCP", "UDP"))) for _ in range(random.randint(1, 2))}
    return demanding(alone(pod), host_ports=frozenset(ports))


def alone(pod: Pod) -> Pod:
    """Return a pod that fits on most nodes, so that what is added to it is what keeps it off."""
    free = replace(pod, affinity=NO_AFFINITY, node_affinity=NO_NODE_AFFINITY, spread=(), requests={}, volumes=())
    return demanding(free, resources=None)


def as_it_is(_random: Random, pod: Pod) -> Pod:
    """Return the pod."""
    return pod


def both(random: Random, pod: Pod) -> Pod:
    """Return a pod that asks for more in two ways."""
    return requesting(random, selecting(random, pod))


def misspelling(random: Random, pod: Pod) -> Pod:
    """Return a pod that asks for a label that no node has."""
    required = random.choice(({"disk": "sdd"}, {"Disk": "ssd"}, {"dsik": "hdd", pool.ZONE: "b"}, {pool.ZONE: "A"}))
    return replace(alone(pod), node_affinity=replace(NO_NODE_AFFINITY, selector=selector_from_set(required)))


def spreading_alone(random: Random, pod: Pod) -> Pod:
    """Return a pod with one topology spread constraint, which tainted nodes or old pods may hold."""
    pod = spreading(random, alone(pod))
    return replace(pod, spread=pod.spread[:1])


def repelling(random: Random, pod: Pod) -> Pod:
    """Return a pod that keeps off pods like itself."""
    matcher = PodMatcher(frozenset({pod.namespace}), NOTHING, selector_from_set({"app": pod.labels["app"]}))
    key = random.choice((pool.ZONE, pool.ZONE, pool.HOST))
    return replace(alone(pod), affinity=PodAffinity(required_anti_affinity=(AffinityTerm(matcher, key),)))


def attracted(random: Random, pod: Pod) -> Pod:
    """Return a pod that has to run beside pods that there may be in another namespace, or in another domain."""
    matcher = PodMatcher(frozenset({random.choice("abc")}), NOTHING, selector_from_set({"app": random.choice("xy")}))
    term = AffinityTerm(matcher, random.choice((pool.ZONE, pool.HOST, "rack")))
    return replace(alone(pod), labels={"app": "other"}, affinity=PodAffinity(required_affinity=(term,)))


DEMANDS: Final[Sequence[Callable[[Random, Pod], Pod]]] = (
    as_it_is,
    as_it_is,
    requesting,
    requesting,
    selecting,
    spreading,
    both,
    claiming,
    naming,
    next_to,
    with_port,
    misspelling,
    spreading_alone,
    repelling,
    repelling,
    attracted,
)


def cases(part: int) -> Iterator[tuple[int, World, Sequence[Remedy]]]:
    """Yield a part of the cases in which the pod fits nowhere."""
    for number in range(part, CASES, PARTS):
        make = crowded if number % 2 else worlds
        world = next(each for seed in range(100) if not (each := make(number * 100 + seed)).fitting())
        yield number, world, find_remedies(world.diagnosis(), ALL)


def less(world: World, remedy: Remedy) -> Iterator[tuple[Sequence[Step], bool]]:
    """Yield smaller changes, and whether the pod must not fit anywhere after them, or only not on the node."""
    steps = [*remedy.steps]
    alone = len(steps) == 1
    for at, step in enumerate(steps):
        if not alone and not all(isinstance(each, RemakePod) for each in steps[:at] + steps[at + 1 :]):
            yield steps[:at] + steps[at + 1 :], True
        match step:
            case LowerRequest(resource, by, to):
                yield [*steps[:at], LowerRequest(resource, by - 1, to + 1), *steps[at + 1 :]], alone
            case RaiseMaxSkew(place, key, domain, max_skew, to):
                yield [*steps[:at], RaiseMaxSkew(place, key, domain, max_skew, to - 1), *steps[at + 1 :]], alone
            case RemovePod(_, uid, node) if world.rejected_for_resources_alone(node):
                allocatable = world.nodes[node].allocatable
                largest = share(world.pods[uid], allocatable)
                for pod in world.pods.values():
                    alone_there = pod.node_name == node and pod.controller is None and not pod.terminating
                    if alone_there and share(pod, allocatable) < largest:
                        yield [RemovePod(pod.full_name, pod.uid, node)], False
            case _:
                pass


@pytest.mark.parametrize("part", range(PARTS))
def test_after_every_remedy_the_pod_fits(part: int) -> None:
    seen: set[str] = set()
    for number, world, remedies in cases(part):
        for remedy in remedies:
            assert remedy.node in world.after(remedy.steps).fitting(), (number, remedy)
            seen.update(type(step).__name__ for step in remedy.steps)
    assert len(seen) >= KINDS_OF_STEPS, seen


@pytest.mark.parametrize("part", range(PARTS))
def test_after_less_of_a_remedy_the_pod_fits_nowhere(part: int) -> None:
    with_less = 0
    for number, world, remedies in cases(part):
        smaller = [(remedy, *each) for remedy in remedies for each in less(world, remedy)]
        with_less += bool(smaller)
        if not smaller or with_less % STORED_TO_THE_LEAST != 1:
            continue
        for remedy, steps, anywhere in smaller:
            fitting = world.after(steps).fitting()
            assert not (fitting if anywhere else remedy.node in fitting), (number, remedy, steps)
    assert with_less
