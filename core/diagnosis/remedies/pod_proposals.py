"""Proposals about the pod's ports, its nodeName, its spread, and the pods that it must run beside."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from core.diagnosis.amounts.ports import port_holders
from core.diagnosis.amounts.spread import measured_constraints
from core.diagnosis.diagnosis import Diagnosis
from core.diagnosis.remedies.label_values import label_meeting
from core.diagnosis.remedies.obstacles import Obstacles
from core.diagnosis.remedies.proposal import MAX_STEPS, Proposal
from core.diagnosis.remedies.remedy import ChangeHostPort, DropNodeName, Kind, RelaxSpread, RunPod, Step
from core.mirror.topology import ABSENT
from core.objects.affinity import PodMatcher
from core.objects.pod import DO_NOT_SCHEDULE
from core.plugins.interpodaffinity.plugin import InterPodAffinity
from core.plugins.nodename import NodeName
from core.plugins.nodeports import HostPortsInUse, NodePorts
from core.plugins.podtopologyspread.plugin import PodTopologySpread

if TYPE_CHECKING:
    from core.objects.labels import Requirement

_LOOKED_AT: Final = 4
_NEAREST: Final = 8
_NEXT_PORTS: Final = 256
"""How many ports after a used one are checked for one that no pod has."""
_MAX_PORT: Final = 65535
_MAX_NAMESPACES: Final = 64
_MAX_TERMS: Final = 16
_MAX_SELECTED: Final = 256
"""Limit of requirements and values of all terms together. A selector written by hand is smaller."""


def change_ports(obstacles: Obstacles) -> Iterator[Proposal]:
    """Propose host ports that no pod has, for nodes that no other plugin rejects, with the fewest conflicts first."""
    decision = obstacles.decision
    found = []
    for position in obstacles.some_of(obstacles.only({NodePorts.name}), _NEAREST):
        steps = change_host_ports(obstacles, position)
        if steps:
            found.append(Proposal(Kind.CHANGE_HOST_PORTS, decision.batch.names[position], steps))
    yield from sorted(found, key=lambda each: len(each.steps))


def change_host_ports(obstacles: Obstacles, position: int) -> Sequence[Step] | None:
    """Change the host ports that pods of a node hold to the next ones that no pod has. None if there are none."""
    decision = obstacles.decision
    held = {(port.port, port.protocol) for _, ports in port_holders(decision, position) for port in ports}
    own = {(port.port, port.protocol) for port in decision.pod.host_ports}
    in_use = decision.mirror.derived(HostPortsInUse).in_use
    in_the_way = held & own
    if len(in_the_way) > MAX_STEPS:
        return None
    steps: list[Step] = []
    for port, protocol in sorted(in_the_way):
        following = range(port + 1, min(port + _NEXT_PORTS, _MAX_PORT) + 1)
        free = next((to for to in following if (to, protocol) not in in_use and (to, protocol) not in own), None)
        if free is None:
            return None
        own.add((free, protocol))
        steps.append(ChangeHostPort(port, protocol, free))
    return steps or None


def drop_name(obstacles: Obstacles) -> Iterator[Proposal]:
    """Propose that a scheduler chooses the node, if another node than the named one would fit."""
    decision = obstacles.decision
    for position in obstacles.some_of(obstacles.only({NodeName.name}), 1):
        yield Proposal(Kind.DROP_NODE_NAME, decision.batch.names[position], [DropNodeName(decision.pod.node_name)])


def drop_node_name(obstacles: Obstacles, _position: int) -> Sequence[Step] | None:
    """Remove nodeName, so that a scheduler chooses the node."""
    return [DropNodeName(obstacles.decision.pod.node_name)]


def relax(obstacles: Obstacles) -> Iterator[Proposal]:
    """Propose to make the constraints that a node fails preferences, for nodes that no other plugin rejects."""
    decision = obstacles.decision
    for position in obstacles.some_of(obstacles.only({PodTopologySpread.name}), _LOOKED_AT):
        steps = relax_spread(obstacles, position)
        if steps and len(steps) <= MAX_STEPS:
            yield Proposal(Kind.RELAX_SPREAD, decision.batch.names[position], steps)


def relax_spread(obstacles: Obstacles, position: int) -> Sequence[Step] | None:
    """Make the pod's own constraints that a node fails preferences. None if the node fails none of them."""
    decision = obstacles.decision
    places = [place for place, each in enumerate(decision.pod.spread) if each.when_unsatisfiable == DO_NOT_SCHEDULE]
    measured = measured_constraints(decision, decision.batch.part(np.array([position])))
    steps: list[Step] = []
    for place, each in zip(places, measured, strict=False):  # default constraints have no index in the pod
        value_id = ABSENT if each.column is None else int(each.column.topology_ids()[0])
        if value_id == ABSENT or each.skews[value_id] > each.constraint.max_skew:
            steps.append(RelaxSpread(place, each.constraint.topology_key))
    return steps or None


def run_beside(obstacles: Obstacles) -> Iterator[Proposal]:
    """Propose a pod that all required affinity terms select, in domains of nodes that no other plugin rejects."""
    decision = obstacles.decision
    seen: list[Mapping[str, str]] = []
    for position in obstacles.some_of(obstacles.only({InterPodAffinity.name}), _NEAREST):
        for step in run_pod(obstacles, position) or ():
            if isinstance(step, RunPod) and step.domains not in seen:
                seen.append(step.domains)
                yield Proposal(Kind.RUN_POD, decision.batch.names[position], [step])


def run_pod(obstacles: Obstacles, position: int) -> Sequence[Step] | None:
    """Run a pod on a node that all required affinity terms select. None if no such pod is possible."""
    decision = obstacles.decision
    node, terms = decision.node(position), decision.pod.affinity.required_affinity
    if node is None or not 0 < len(terms) <= _MAX_TERMS or any(each.topology_key not in node.labels for each in terms):
        return None
    matchers = [term.matcher for term in terms]
    labels, namespace = _labels(matchers), _namespace(decision, matchers)
    if labels is None or namespace is None:
        return None
    domains = {term.topology_key: node.labels[term.topology_key] for term in terms}
    return [RunPod(namespace, labels, node.name, domains)]


def _labels(matchers: Sequence[PodMatcher]) -> Mapping[str, str] | None:
    """Return labels that all selectors match, or None if there are none, or the selectors are too large."""
    selectors = [each.selector for each in matchers]
    if any(each.nothing for each in selectors) or sum(each.size for each in selectors) > _MAX_SELECTED:
        return None
    asked: dict[str, list[Requirement]] = {}
    for requirement in (each for selector in selectors for each in selector.requirements):
        asked.setdefault(requirement.key, []).append(requirement)
    found: dict[str, str] = {}
    for key, requirements in asked.items():
        label = label_meeting(key, requirements)
        if label is None:
            return None
        found |= label
    return found


def _namespace(decision: Diagnosis, matchers: Sequence[PodMatcher]) -> str | None:
    """Return a namespace that all terms select, preferably the pod's own, or None if none is found."""
    known = decision.mirror.namespaces
    named = {name for matcher in matchers for name in sorted(matcher.namespaces)[:_MAX_NAMESPACES]}
    candidates = dict.fromkeys((decision.pod.namespace, *sorted(named), *sorted(known)))
    for name in [*candidates][:_MAX_NAMESPACES]:
        labels = known.get(name, {})
        if all(name in each.namespaces or each.namespace_selector.matches(labels) for each in matchers):
            return name
    return None
