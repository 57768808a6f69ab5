"""The law of remedies: after every one, applied to the objects themselves, the pod fits, and after less it does not."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Final

import pytest
from msgspec.structs import replace

from core.diagnosis.amounts.requirements import AskedOfNode, Source
from core.diagnosis.diagnosis import Diagnosis
from core.diagnosis.remedies.cluster_proposals import share
from core.diagnosis.remedies.remedy import (
    AddNode,
    DropRequirement,
    LowerRequest,
    RaiseMaxSkew,
    RelaxSpread,
    Remedy,
    RemovePod,
    RunPod,
    SetLabel,
    Step,
    TolerateTaint,
    Uncordon,
)
from core.diagnosis.remedies.what_would_help import what_would_help
from core.events import ClusterEvent, Object
from core.framework.evaluation import FreshEvaluation
from core.mirror.cluster import ClusterMirror
from core.objects.affinity import (
    NO_AFFINITY,
    NO_NODE_AFFINITY,
    AffinityTerm,
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    PodAffinity,
    PodMatcher,
    selector_from_set,
)
from core.objects.labels import NOTHING, Selector, parse_selector
from core.objects.node import Node
from core.objects.pod import SCHEDULE_ANYWAY, HostPort, Pod, PodClaim, SpreadConstraint, Taint, Toleration
from core.profile import full_profile
from core.scheduling_cycle import filter_nodes
from tests.depth import tries
from tests.properties import scheduling_pool as pool

FULL: Final = full_profile()
ALL: Final = 50
PARTS: Final = 5
CASES: Final = tries(default=200, full=1000)
KINDS_OF_STEPS: Final = min(8, CASES // PARTS // 4)
"""Of the 10 that there are, so many are seen in each part."""
HELD_TO_THE_LEAST: Final = 10
"""Of so many cases one is asked whether less would do."""


class World:
    """A cluster as a list of objects, and a pod that is asked about."""

    def __init__(self, nodes: Sequence[Node], pods: Sequence[Pod], others: Sequence[Object], pod: Pod) -> None:
        self.nodes = {node.name: node for node in nodes}
        self.pods = {each.uid: each for each in pods}
        self.others = others
        self.pod = pod

    def mirror(self) -> ClusterMirror:
        """Make the cluster."""
        mirror = ClusterMirror()
        for each in (*self.nodes.values(), *self.others, *self.pods.values()):
            mirror.apply(ClusterEvent("Add", each))
        return mirror

    def after(self, steps: Sequence[Step]) -> "World":
        """Return the cluster and the pod after the steps, each done to the object that it is about."""
        then = World([*self.nodes.values()], [*self.pods.values()], self.others, self.mirror().counted(self.pod))
        for step in steps:
            then.take(step)
        return then

    def take(self, step: Step) -> None:
        """Do one step."""
        match step:
            case SetLabel(node, key, value, had):
                labels = {**self.nodes[node].labels, key: value or ""}
                assert self.nodes[node].labels.get(key) == had
                if value is None:
                    del labels[key]
                self.nodes[node] = replace(self.nodes[node], labels=labels)
            case Uncordon(node):
                taints = tuple(taint for taint in self.nodes[node].taints if "unschedulable" not in taint.key)
                self.nodes[node] = replace(self.nodes[node], unschedulable=False, taints=taints)
            case RemovePod(pod, uid, node):
                assert (pod, node) == (self.pods[uid].full_name, self.pods[uid].node_name)
                del self.pods[uid]
            case RunPod(namespace, labels, node, domains):
                assert domains == {key: self.nodes[node].labels[key] for key in domains}
                self.pods["beside"] = Pod("beside", namespace, "beside", labels, node)
            case AddNode(name, like):
                self.nodes[name] = copied(self.nodes[like], name, step.labels)
            case _:
                self.pod = changed(self.pod, step)

    def fitting(self) -> list[str]:
        """Return the nodes that the pod fits on."""
        mirror = self.mirror()
        names = sorted(self.nodes)
        verdicts = filter_nodes(FULL, FreshEvaluation(mirror, self.pod), mirror.batch(names))
        return [name for name, code in zip(names, verdicts.codes.tolist(), strict=True) if not code]

    def refused_for_resources_alone(self, node: str) -> bool:
        """Return whether NodeResourcesFit is the only plugin that refuses a node."""
        mirror = self.mirror()
        decision = Diagnosis(FULL, mirror, self.pod, mirror.batch([node]))
        return [*decision.refusing] == ["NodeResourcesFit"]


def changed(pod: Pod, step: Step) -> Pod:
    """Return a pod after a step that changes it."""
    match step:
        case LowerRequest(resource, _, to):
            return replace(pod, requests={**pod.requests, resource: to}, resources=None)
        case TolerateTaint(key, value, effect):
            return replace(pod, tolerations=pod.tolerations | {Toleration(key, "Equal", value, effect)})
        case DropRequirement():
            return replace(pod, node_affinity=dropped(pod.node_affinity, step.asked))
        case RaiseMaxSkew(place, topology_key, _, max_skew, to):
            assert (topology_key, max_skew) == (pod.spread[place].topology_key, pod.spread[place].max_skew)
            return with_constraint(pod, place, replace(pod.spread[place], max_skew=to))
        case RelaxSpread(place, topology_key):
            assert topology_key == pod.spread[place].topology_key
            return with_constraint(pod, place, replace(pod.spread[place], when_unsatisfiable=SCHEDULE_ANYWAY))
        case _:
            raise AssertionError(step)


def with_constraint(pod: Pod, place: int, constraint: SpreadConstraint) -> Pod:
    """Return a pod with another constraint at a place."""
    return replace(pod, spread=tuple(constraint if at == place else each for at, each in enumerate(pod.spread)))


def dropped(affinity: NodeAffinity, asked: AskedOfNode) -> NodeAffinity:
    """Return what a pod asks of nodes without one requirement."""
    if asked.source is Source.NODE_SELECTOR:
        kept = tuple(each for each in affinity.selector.requirements if each.key != asked.key)
        return replace(affinity, selector=Selector(kept))
    assert affinity.required is not None
    assert asked.term is not None
    terms = [*affinity.required.terms]
    term = terms[asked.term]
    left = NodeSelectorTerm(
        tuple(each for each in term.requirements if (each.key, [*each.values]) != (asked.key, [*asked.values])),
        tuple(each for each in term.comparisons if (each.key, [str(each.bound)]) != (asked.key, [*asked.values])),
        tuple(each for each in term.fields if [each.value] != [*asked.values]),
    )
    assert left != term
    terms[asked.term] = left
    if left == NodeSelectorTerm():
        return replace(affinity, required=None, node_names=None)
    return replace(affinity, required=NodeSelector(tuple(terms)))


def copied(node: Node, name: str, labels: Mapping[str, str]) -> Node:
    """Return a new node of the kind of another one."""
    taints = tuple(taint for taint in node.taints if not taint.key.startswith("node.kubernetes.io/"))
    labels = {**node.labels, pool.HOST: name, **labels}
    return replace(node, name=name, labels=labels, taints=taints, unschedulable=False)


def worlds(seed: int) -> World:
    """Return a random small cluster and a pod that probably fits nowhere, for one or more of many reasons."""
    random = Random(seed)  # noqa: S311  # the same cases in every run
    names = [*pool.NODE_NAMES, pool.STRANGER][: random.randint(1, 5)]
    states = [random.choice([node for node in pool.NODES if node.name == name]) for name in names]
    nodes = [troubled(random, node) if random.random() < 0.4 else node for node in states]
    pods = [
        pool.placed(random.choice(pool.PODS), (f"p{at}", f"p{at}"), random.choice(nodes).name)
        for at in range(random.randint(0, 10))
    ]
    others = random.sample(list(pool.OTHERS), random.randint(0, 20))
    pod = pool.incoming(random.choice(pool.PODS), "next", random.choice(("", "rs-1")))
    if random.random() < 0.8:
        pod = replace(pod, volumes=())
    if random.random() < 0.5:
        pod = replace(pod, affinity=NO_AFFINITY, node_affinity=NO_NODE_AFFINITY, spread=())
    return World(nodes, pods, others, random.choice(DEMANDS)(random, pod))


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
    return replace(pod, requests=requests, resources=None)


def selecting(random: Random, pod: Pod) -> Pod:
    """Return a pod with a nodeSelector."""
    wanted = random.choice(({"disk": "ssd"}, {"team": "red", "disk": "hdd"}, {pool.ZONE: "c"}, {"cores": "8"}))
    return replace(pod, node_affinity=replace(pod.node_affinity, selector=selector_from_set(wanted)))


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


def beside(random: Random, pod: Pod) -> Pod:
    """Return a pod that has to run beside another one."""
    wanted = random.choice(({"app": "z"}, {"app": "x", "tier": "9"}))
    matcher = PodMatcher(frozenset({random.choice("ab")}), NOTHING, selector_from_set(wanted))
    keys = random.choice(((pool.ZONE,), (pool.HOST,), (pool.ZONE, pool.HOST)))
    return replace(
        alone(pod), affinity=PodAffinity(required_affinity=tuple(AffinityTerm(matcher, key) for key in keys))
    )


def with_port(random: Random, pod: Pod) -> Pod:
    """Return a pod with host ports."""
    ports = {HostPort(random.choice((80, 81)), random.choice(("TCP", "UDP"))) for _ in range(random.randint(1, 2))}
    return replace(alone(pod), host_ports=frozenset(ports))


def alone(pod: Pod) -> Pod:
    """Return a pod that fits on most nodes, so that what is added to it is what keeps it off."""
    return replace(
        pod, affinity=NO_AFFINITY, node_affinity=NO_NODE_AFFINITY, spread=(), requests={}, resources=None, volumes=()
    )


def as_it_is(_random: Random, pod: Pod) -> Pod:
    """Return the pod."""
    return pod


def both(random: Random, pod: Pod) -> Pod:
    """Return a pod that asks for more in two ways."""
    return requesting(random, selecting(random, pod))


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
    beside,
    with_port,
)


def cases(part: int) -> Iterator[tuple[int, World, Sequence[Remedy]]]:
    """Yield a part of the cases in which the pod fits nowhere."""
    for number in range(part, CASES, PARTS):
        world = next(each for seed in range(100) if not (each := worlds(number * 100 + seed)).fitting())
        mirror = world.mirror()
        decision = Diagnosis(FULL, mirror, world.pod, mirror.batch(sorted(world.nodes)))
        yield number, world, what_would_help(decision, ALL)


def less(world: World, remedy: Remedy) -> Iterator[tuple[Sequence[Step], bool]]:
    """Yield smaller changes, and whether the pod must not fit anywhere after them, or only not on the node."""
    steps = [*remedy.steps]
    alone = len(steps) == 1
    for at, step in enumerate(steps):
        if not alone:
            yield steps[:at] + steps[at + 1 :], True
        match step:
            case LowerRequest(resource, by, to):
                yield [*steps[:at], LowerRequest(resource, by - 1, to + 1), *steps[at + 1 :]], alone
            case RaiseMaxSkew(place, key, domain, max_skew, to):
                yield [*steps[:at], RaiseMaxSkew(place, key, domain, max_skew, to - 1), *steps[at + 1 :]], alone
            case RemovePod(_, uid, node) if world.refused_for_resources_alone(node):
                allocatable = world.nodes[node].allocatable
                largest = share(world.pods[uid], allocatable)
                for pod in world.pods.values():
                    if pod.node_name == node and share(pod, allocatable) < largest:
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
        if not smaller or with_less % HELD_TO_THE_LEAST != 1:
            continue
        for remedy, steps, anywhere in smaller:
            fitting = world.after(steps).fitting()
            assert not (fitting if anywhere else remedy.node in fitting), (number, remedy, steps)
    assert with_less
