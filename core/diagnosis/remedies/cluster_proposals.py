"""Pods whose deletion would let the pod fit, found by the counts of each plugin.

The counts only exclude candidates. The plugins decide whether the pod fits without a candidate.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import chain, islice
from typing import Final, TypeAlias

import msgspec
import numpy as np
from msgspec.structs import replace

from core.diagnosis.amounts.resources import port_holders
from core.diagnosis.amounts.spread import measured_constraints
from core.diagnosis.counted_terms import Direction, Effect, Rule
from core.diagnosis.diagnosis import Diagnosis
from core.diagnosis.pod_names import BudgetName, name_of, uid_of
from core.diagnosis.remedies.fixes import Obstacles
from core.diagnosis.remedies.owners import Way, owner_of
from core.diagnosis.remedies.proposals import MAX_STEPS, Proposal, missing_shares
from core.diagnosis.remedies.remedy import NO_LABELS, AddNode, RemovePod, copy_of, is_leaving, is_trouble
from core.framework.claims import find_claim, named_claims
from core.objects.kinds import PodDisruptionBudget
from core.objects.labels import Operator
from core.objects.node import HOSTNAME, ZONE, Node
from core.objects.pod import Pod
from core.objects.volumes import PersistentVolume
from core.plugins.interpodaffinity.plugin import InterPodAffinity
from core.plugins.nodeports import NodePorts
from core.plugins.noderesources.columns import PODS
from core.plugins.noderesources.fit import NodeResourcesFit
from core.plugins.nodevolumelimits.plugin import NodeVolumeLimits
from core.plugins.podtopologyspread.plugin import PodTopologySpread
from core.plugins.podtopologyspread.pod_counts import PodCounts
from core.plugins.volumerestrictions import Restrictions, VolumeRestrictions
from core.plugins.volumezone import TOPOLOGY_LABELS, volume_topologies

MAX_NODES: Final = 6
"""How many nodes are searched for pods."""
MAX_ON_NODE: Final = 4
"""How many pods are proposed for one node, smallest first."""


class Gone(msgspec.Struct, frozen=True, gc=False):
    """A pod that may be removed, and its node."""

    pod: Pod
    node: str


Candidates: TypeAlias = Mapping[str, Gone]
"""UID -> the pod."""


def pods_gone(obstacles: Obstacles) -> Iterator[Sequence[Proposal]]:
    """Yield for some nodes the pods without which the pod may fit there, smallest first.

    Nodes that the fewest plugins reject come first, then nodes with the smallest shortage. The size of a pod is its
    largest share of the node. Pods that would come back, or that terminate, are left out.
    """
    for position in _nearest(obstacles):
        found = [_CANDIDATES[plugin](obstacles, position) for plugin in obstacles.of(position)]
        in_all = reduce(lambda some, others: {uid: some[uid] for uid in some if uid in others}, found)
        leaving = [(each, obstacles.leaving.way(each.pod)) for each in in_all.values()]
        may_go = [(each, way) for each, way in leaving if way is not None and way is not Way.TERMINATES]
        node = obstacles.decision.batch.names[position]
        smallest = sorted(may_go, key=lambda each: _size(obstacles, each[0]))[:MAX_ON_NODE]
        yield [Proposal(node, (_removed(obstacles, *each),)) for each in smallest]


def pods_ending(obstacles: Obstacles) -> Iterator[Proposal]:
    """Propose to wait for the pods of a node that terminate, then for those of all nodes if they are few.

    A pod whose node is in trouble, or is about to be removed, does not end by itself.
    """
    batch, positions = obstacles.decision.batch, obstacles.only(_CANDIDATES)
    of_node: dict[str, list[Gone]] = {}
    for each in _ending(obstacles) if len(positions) else ():
        of_node.setdefault(each.node, []).append(each)
    if not of_node:
        return
    slots = [obstacles.decision.mirror.nodes.slots[name] for name in of_node]
    near = [batch.names[at] for at in positions[np.isin(batch.slots[positions], slots)][:MAX_NODES].tolist()]
    everywhere = [each for pods in of_node.values() for each in pods]
    for node, pods in [*((node, of_node[node]) for node in near), *((name, everywhere) for name in _some(obstacles))]:
        if 0 < len(pods) <= MAX_STEPS:
            yield Proposal(node, [_removed(obstacles, each, Way.TERMINATES) for each in pods])


def _ending(obstacles: Obstacles) -> Iterator[Gone]:
    """Yield the pods that end soon. None without PodTopologySpread, whose state alone knows which pods terminate."""
    decision, mirror = obstacles.decision, obstacles.decision.mirror
    if all(plugin.name != PodTopologySpread.name for plugin in decision.profile.filters):
        return
    for uid in mirror.derived(PodCounts).terminating():
        pod = mirror.get_pod(uid)
        info = None if pod is None or uid == decision.pod.uid else mirror.nodes.infos.get(pod.node_name)
        if pod is None or info is None or info.node is None or obstacles.leaving.way(pod) is not Way.TERMINATES:
            continue
        if not any(is_trouble(each) or is_leaving(each) for each in info.node.taints):
            yield Gone(pod, pod.node_name)


def _some(obstacles: Obstacles) -> Sequence[str]:
    """Return some of the nodes that only pods elsewhere may keep the pod from."""
    positions = obstacles.some_of(obstacles.only(_ELSEWHERE), MAX_ON_NODE) if len(obstacles.decision.known) else ()
    return [obstacles.decision.batch.names[position] for position in positions]


def _removed(obstacles: Obstacles, gone: Gone, way: Way) -> RemovePod:
    owner, budgets = owner_of(gone.pod), _forbidding(obstacles, gone.pod) if way is Way.DELETED else ()
    name, kind = ("", "") if owner is None else (owner.name, owner.kind)
    leaving, rolled = obstacles.leaving, way is Way.ROLLED_OVER and not gone.pod.of_daemon_set
    others = max(leaving.siblings(gone.pod).number - 1, 0) if rolled or way is Way.SCALED_DOWN else 0
    most = leaving.max_unavailable() if rolled else 0
    return RemovePod(name_of(gone.pod), uid_of(gone.pod), gone.node, budgets, way, name, kind, others, most)


def _forbidding(obstacles: Obstacles, pod: Pod) -> tuple[str, ...]:
    """Return the budgets that forbid a pod's eviction: one that allows no disruption, or several at once.

    Source: k8s.io/kubernetes pkg/registry/core/pod/storage/eviction.go (Create, checkAndDecrement). Its rules for pods
    that are not ready are ignored.
    """
    budgets = obstacles.decision.mirror.objects(PodDisruptionBudget).values()
    covering = [each for each in budgets if each.namespace == pod.namespace and each.covers(pod.labels)]
    forbidding = [
        each
        for each in covering
        if len(covering) > 1
        or (each.disruptions_allowed <= 0 and pod.name not in each.disrupted_pods)  # else already being evicted
    ]
    return tuple(sorted(BudgetName(each.full_name) for each in forbidding))


def _nearest(obstacles: Obstacles) -> Sequence[int]:
    """Return up to MAX_NODES nodes. Among many equally near nodes, some at equal distances, which differ more."""
    positions = obstacles.only(_CANDIDATES)
    if not len(positions):
        return ()
    number = obstacles.number[positions]
    missing = np.zeros(len(positions), np.int64)
    if NodeResourcesFit.name in obstacles.refused:
        missing = missing_shares(obstacles.rooms(positions))
    order = np.lexsort((missing, number))
    alike = int(np.count_nonzero((number == number[order[0]]) & (missing == missing[order[0]])))
    places = np.linspace(0, alike - 1, MAX_NODES).astype(np.intp) if alike > MAX_NODES else np.arange(MAX_NODES)
    nearest: list[int] = positions[order[places[places < len(order)]]].tolist()
    return nearest


def _on_node(obstacles: Obstacles, position: int) -> Candidates:
    decision, name = obstacles.decision, obstacles.decision.batch.names[position]
    return {pod.uid: Gone(pod, name) for pod in decision.mirror.pods_on(name) if pod.uid != decision.pod.uid}


def _with_enough(obstacles: Obstacles, position: int) -> Candidates:
    """Return the pods of a node that request at least the missing amount."""
    missing = {
        each.resource: each.asked - int(each.free[0]) for each in obstacles.rooms(np.array([position])) if each.short[0]
    }
    return {
        uid: each
        for uid, each in _on_node(obstacles, position).items()
        if all({**each.pod.requests, PODS: 1}.get(resource, 0) >= amount for resource, amount in missing.items())
    }


def _only_holder(obstacles: Obstacles, position: int) -> Candidates:
    """Return the pod that holds all conflicting ports, or none if several pods do."""
    name = obstacles.decision.batch.names[position]
    holders = [pod for pod, _ in port_holders(obstacles.decision, position)]
    return {pod.uid: Gone(pod, name) for pod in holders} if len(holders) == 1 else {}


def _only_blocker(obstacles: Obstacles, position: int) -> Candidates:
    """Return the only pod, on any node, that makes each inter-pod affinity term reject the node."""
    decision = obstacles.decision
    found: dict[str, Gone] = {}
    for term in decision.terms:
        value_id = term.value_id(decision.batch, position)
        pods = term.count(value_id)
        if term.effect(value_id, pods) is not Effect.BLOCKS:
            continue
        wants = term.rule is Rule.REQUIRED_AFFINITY and term.direction is Direction.INCOMING
        named = () if wants or pods != 1 else term.named(value_id, 1, decision.search)
        if not named or (found and named[0].uid not in found):
            return {}
        pod = decision.mirror.get_pod(named[0].uid)
        if pod is not None:
            found = {pod.uid: Gone(pod, named[0].node)}
    return found


def _spread(obstacles: Obstacles, position: int) -> Candidates:
    """Return the pods of a node that are counted by any constraint that the node fails."""
    decision, candidates = obstacles.decision, _on_node(obstacles, position)
    selectors = [
        each.constraint.selector
        for each in measured_constraints(decision, decision.batch.part(np.array([position])))
        if each.column is not None and each.skews[int(each.column.topology_ids()[0])] > each.constraint.max_skew
    ]
    return {
        uid: each
        for uid, each in candidates.items()
        if each.pod.namespace == decision.pod.namespace
        and any(selector.matches(each.pod.labels) for selector in selectors)
    }


def _volume_users(obstacles: Obstacles, position: int) -> Candidates:
    """Return the pod that uses a ReadWriteOncePod claim of the pod, or the pods of the node with volumes."""
    decision = obstacles.decision
    state = decision.state_of(VolumeRestrictions.name)
    if isinstance(state, Restrictions) and state.exclusive_claim_in_use:
        users = {pod.uid: pod for pods in obstacles.claim_users.values() for pod in pods}
        return {uid: Gone(pod, pod.node_name) for uid, pod in users.items()} if len(users) == 1 else {}
    return _with_volumes(obstacles, position)


def _with_volumes(obstacles: Obstacles, position: int) -> Candidates:
    return {uid: each for uid, each in _on_node(obstacles, position).items() if each.pod.volumes}


_CANDIDATES: Final[Mapping[str, Callable[[Obstacles, int], Candidates]]] = {
    NodeResourcesFit.name: _with_enough,
    NodePorts.name: _only_holder,
    InterPodAffinity.name: _only_blocker,
    PodTopologySpread.name: _spread,
    VolumeRestrictions.name: _volume_users,
    NodeVolumeLimits.name: _with_volumes,
}
"""Plugin -> candidates: the deletion of one may let the plugin pass a node."""


_ELSEWHERE: Final = frozenset({InterPodAffinity.name, PodTopologySpread.name, VolumeRestrictions.name})
"""Plugins that also count pods of other nodes."""


def _size(obstacles: Obstacles, gone: Gone) -> tuple[float, int, str]:
    """Return the largest share of its node that a pod requests, its priority and its name."""
    info = obstacles.decision.mirror.nodes.infos.get(gone.node)
    offered = {} if info is None or info.node is None else info.node.allocatable
    return share(gone.pod, offered), gone.pod.priority, gone.pod.full_name


def share(pod: Pod, allocatable: Mapping[str, int]) -> float:
    """Return the largest share of a node's allocatable resources that a pod requests, 1 if a resource is missing."""
    return max(
        (
            amount / allocatable[name] if allocatable.get(name) else 1.0
            for name, amount in pod.requests.items()
            if amount
        ),
        default=0.0,
    )


MAX_LOOKED_AT: Final = 128
"""How many nodes are checked for their kind, at equal distances in the order of the decision."""
MAX_KINDS: Final = 4
MAX_ZONES: Final = 3
_MAX_CLAIMS: Final = 9
"""How many claims of the pod are read."""
_MAX_NAME: Final = 253
"""Maximum length of the name of a node."""


def more_nodes(decision: Diagnosis) -> Iterator[Sequence[AddNode]]:
    """Yield for each kind of node the copies to try, one for each zone of the kind, then copies in new domains.

    Nodes are of one kind if their copies differ only in name and zone. Kinds that offer all resources of the pod come
    first, then by cpu and memory, smallest first. If the pod's volumes, the zone that it asks for or its nodeName
    require certain labels or a name, each kind has one copy with them. None for local volumes.
    """
    if decision.pod.of_daemon_set:
        return  # its controller makes another pod for a new node
    wanted = {**_labels_asked(decision), **_labels_of_volumes(decision)}
    if HOSTNAME in wanted:
        return  # another node of that name would not have the data of the local volume
    name = _name_in(decision)
    kinds: dict[object, dict[str, Node]] = {}  # kind -> zone -> the first node
    places = np.linspace(0, len(decision.known) - 1, min(len(decision.known), MAX_LOOKED_AT)).astype(np.intp)
    for position in decision.known[places].tolist():
        node = decision.node(position)
        if node is not None:
            kinds.setdefault(_kind(node), {}).setdefault(node.labels.get(ZONE, ""), node)
    requests = decision.mirror.counted(decision.pod).requests
    smallest = sorted(kinds.values(), key=lambda each: _size_of_node(next(iter(each.values())), requests))[:MAX_KINDS]
    for zones in smallest:
        if wanted or name:
            like = zones.get(wanted.get(ZONE, ""), zones[min(zones)])
            yield [_copy(decision, like, wanted, name)]
        else:
            yield [_copy(decision, zones[zone]) for zone in sorted(zones)[:MAX_ZONES]]
    domains = () if wanted or name else _full_domains(decision)
    for like in (zones[min(zones)] for zones in smallest if domains):
        if all(key in like.labels for key in domains):  # else the pod asks for a key that is misspelt
            yield [replace(_copy(decision, like), zone="", new_domains=domains)]


def _full_domains(decision: Diagnosis) -> tuple[str, ...]:
    """Return the topology keys, except for the hostname, of rules that may keep the pod off all their domains."""
    repelling = {each.topology_key for each in decision.terms if each.rule is Rule.REQUIRED_ANTI_AFFINITY}
    spread = {each.constraint.topology_key for each in measured_constraints(decision, decision.batch)}
    return tuple(sorted((repelling | spread) - {HOSTNAME}))[:MAX_ZONES]


def _labels_asked(decision: Diagnosis) -> Mapping[str, str]:
    """Return the zone and the region that the pod asks for, if it names one, because no copy of another has them."""
    affinity = decision.pod.node_affinity
    terms = () if affinity.required is None or len(affinity.required.terms) > 1 else affinity.required.terms
    asked = chain(affinity.selector.requirements, *(each.requirements for each in terms))
    named = [each for each in asked if each.operator is Operator.IN and len(each.values) == 1]
    return {each.key: each.values[0] for each in named if each.key in TOPOLOGY_LABELS}


def _labels_of_volumes(decision: Diagnosis) -> Mapping[str, str]:
    """Return the labels that a node needs to reach the volumes of the pod's bound claims, if they name values.

    For a volume with several terms, these are the labels of the first term.
    """
    found: dict[str, str] = {}
    volumes = decision.mirror.objects(PersistentVolume)
    for named in islice(named_claims(decision.pod), _MAX_CLAIMS):
        claim = find_claim(decision.mirror, decision.pod, named)
        volume = None if claim is None else volumes.get(claim.volume)
        if volume is None:
            continue
        terms = () if volume.node_affinity is None else volume.node_affinity.terms[:1]
        for asked in (each for term in terms for each in term.requirements):
            if asked.operator is Operator.IN and asked.values:
                found.setdefault(asked.key, asked.values[0])
        for key, values in volume_topologies(volume):
            found.setdefault(key, min(values))
    return found


def _name_in(decision: Diagnosis) -> str:
    """Return the name that the pod requires of a new node, or the empty text for any name."""
    names = decision.pod.node_affinity.node_names
    name = decision.pod.node_name or (min(names) if names else "")
    return name if len(name) <= _MAX_NAME else ""


def _copy(decision: Diagnosis, like: Node, wanted: Mapping[str, str] = NO_LABELS, named: str = "") -> AddNode:
    taken, name, number = decision.mirror.nodes.infos, named or f"{like.name}-copy", 1
    while name in taken:
        number += 1
        name = f"{like.name}-copy-{number}"
    other = {key: value for key, value in wanted.items() if like.labels.get(key) != value}
    zone = {**like.labels, **other}.get(ZONE, "")
    return AddNode(name, like.name, zone, labels=other)


def _kind(node: Node) -> object:
    copy = copy_of(node, "")
    labels = frozenset((key, value) for key, value in copy.labels.items() if key not in (HOSTNAME, ZONE))
    return labels, frozenset(copy.allocatable.items()), copy.taints, copy.declared_features


def _size_of_node(node: Node, requests: Mapping[str, int]) -> tuple[int, int, int, str]:
    offered = node.allocatable
    lacking = sum(amount > offered.get(resource, 0) for resource, amount in requests.items())
    return lacking, offered.get("cpu", 0), offered.get("memory", 0), node.name
