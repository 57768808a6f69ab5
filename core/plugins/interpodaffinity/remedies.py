"""Remedies for the required terms of a pod: another pod beside it, another term, or none."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from core.explaining.counted_terms import CountedPod, CountedTerm, Direction, Effect, Rule
from core.explaining.decision import Decision
from core.explaining.obstacles import (
    MAX_SELECTED,
    MAX_STEPS,
    MAX_TERMS,
    NEAREST,
    TOPOLOGY_KEYS,
    Obstacles,
    Proposal,
    Search,
    Turn,
    other_keys,
)
from core.explaining.owners import ROLLED, SCALED, Owner, owner_of
from core.explaining.pod_names import NamespaceName
from core.explaining.pod_steps import ChangeTopologyKey, CorrectSelector, PreferTerm, RequiredRule, SelectNamespace
from core.explaining.remedy import RemakePod, RunPod, Step
from core.explaining.requirements import label_meeting
from core.explaining.typos import mistaken_value
from core.objects.affinity import AffinityTerm, PodMatcher
from core.objects.labels import EVERYTHING, Operator, Requirement
from core.plugins.interpodaffinity.filtering import NAME

_MAX_NAMESPACES: Final = 64
_NAMESPACES: Final = 2
_REMADE: Final = 2
"""How many pods of the pod's owner are made again at most."""


def run_pod(obstacles: Obstacles, position: int) -> Sequence[Step] | None:
    """Run a pod on a node that all required affinity terms select. None if no such pod is possible."""
    decision = obstacles.decision
    node, terms = decision.node(position), decision.pod.affinity.required_affinity
    if node is None or not 0 < len(terms) <= MAX_TERMS or any(each.topology_key not in node.labels for each in terms):
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
    if any(each.nothing for each in selectors) or sum(each.size for each in selectors) > MAX_SELECTED:
        return None
    required: dict[str, list[Requirement]] = {}
    for requirement in (each for selector in selectors for each in selector.requirements):
        required.setdefault(requirement.key, []).append(requirement)
    found: dict[str, str] = {}
    for key, requirements in required.items():
        label = label_meeting(key, requirements)
        if label is None:
            return None
        found |= label
    return found


def _namespace(decision: Decision, matchers: Sequence[PodMatcher]) -> str | None:
    """Return a namespace that all terms select, preferably the pod's own, or None if none is found."""
    known = decision.mirror.namespaces
    named = {name for matcher in matchers for name in sorted(matcher.namespaces)[:_MAX_NAMESPACES]}
    candidates = dict.fromkeys((decision.pod.namespace, *sorted(named), *sorted(known)))
    for name in [*candidates][:_MAX_NAMESPACES]:
        labels = known.get(name, {})
        if all(name in each.namespaces or each.namespace_selector.matches(labels) for each in matchers):
            return name
    return None


def add_partner(obstacles: Obstacles) -> Iterator[Proposal]:
    """Propose a pod that all required affinity terms select, in domains of nodes that no other plugin rejects."""
    decision = obstacles.decision
    seen: list[Mapping[str, str]] = []
    for position in obstacles.some_of(obstacles.only({NAME}), NEAREST):
        for step in run_pod(obstacles, position) or ():
            if isinstance(step, RunPod) and step.domains not in seen:
                seen.append(step.domains)
                yield Proposal(decision.batch.names[position], [step])


def select_namespace(obstacles: Obstacles) -> Iterator[Proposal]:
    """Propose to select the namespace whose pods a required affinity term would match, those with most pods first."""
    decision = obstacles.decision
    for index, term in enumerate(_affinity(obstacles)):
        anywhere = PodMatcher(frozenset(), EVERYTHING, term.matcher.selector)
        mirror = decision.mirror
        if not decision.search.may_look_at(len(mirror.pods.pods)):
            return
        rows = mirror.affinity.matches.rows_of((anywhere,))
        pods = Counter(mirror.pods.pods[row].namespace for row in rows.tolist())
        for namespace in [*term.matcher.namespaces]:
            del pods[namespace]
        for namespace, number in sorted(pods.items(), key=lambda each: (-each[1], each[0]))[:_NAMESPACES]:
            yield Proposal(None, [SelectNamespace(index, term.topology_key, NamespaceName(namespace), number)])


def correct_selector(obstacles: Obstacles) -> Iterator[Proposal]:
    """Propose to select a label of pods, or of the pod, instead of one that no pod has and that differs by a typo."""
    groups, search = obstacles.decision.mirror.pods.groups, obstacles.decision.search
    for index, term in enumerate(_affinity(obstacles)):
        for each in term.matcher.selector.requirements:
            if each.operator is not Operator.IN or len(each.values) != 1 or not search.may_look_at(groups.extent):
                continue
            own = obstacles.decision.pod.labels.get(each.key, "")
            (value,), there = each.values, {*groups.values_of(each.key), own}
            for to in sorted(there) if value not in there else ():
                if mistaken_value(value, to):
                    yield Proposal(None, [CorrectSelector(index, term.topology_key, each.key, value, to)])


def change_key(obstacles: Obstacles) -> Iterator[Proposal]:
    """Propose other topology keys: for affinity, then for anti-affinity."""
    for index, term in enumerate(_affinity(obstacles)):
        yield from other_keys(obstacles, RequiredRule.AFFINITY, index, term.topology_key)
    terms = obstacles.decision.pod.affinity.required_anti_affinity
    for position, blocking in _repelled(obstacles):
        for key in _narrower(obstacles, [terms[index].topology_key for index in blocking])[:1]:
            steps = [ChangeTopologyKey(RequiredRule.ANTI_AFFINITY, at, terms[at].topology_key, key) for at in blocking]
            yield from _with_siblings(obstacles, position, steps)


def _narrower(obstacles: Obstacles, keys: Sequence[str]) -> Sequence[str]:
    """Return the topology keys of nodes whose domains are smaller than those of all these keys, widest first."""
    least = min(TOPOLOGY_KEYS.index(key) if key in TOPOLOGY_KEYS else len(TOPOLOGY_KEYS) for key in keys)
    return [key for key in TOPOLOGY_KEYS[:least][::-1] if key in obstacles.label_keys]


def prefer(obstacles: Obstacles) -> Iterator[Proposal]:
    """Propose to make required terms preferences: of affinity each, then all, then the anti-affinity of some nodes."""
    terms = _affinity(obstacles)
    every = [PreferTerm(RequiredRule.AFFINITY, at, term.topology_key) for at, term in enumerate(terms)]
    yield from (Proposal(None, [each]) for each in every)
    if len(every) > 1:
        yield Proposal(None, every[::-1])  # from the end, because each step takes a term from the list
    repelling = obstacles.decision.pod.affinity.required_anti_affinity
    for position, blocking in _repelled(obstacles):
        steps = [PreferTerm(RequiredRule.ANTI_AFFINITY, at, repelling[at].topology_key) for at in blocking[::-1]]
        yield from _with_siblings(obstacles, position, steps)


def _affinity(obstacles: Obstacles) -> Sequence[AffinityTerm]:
    """Return the pod's required affinity terms, if InterPodAffinity alone rejects some node, and they are small."""
    terms = obstacles.decision.pod.affinity.required_affinity
    if len(terms) > MAX_STEPS or sum(each.matcher.selector.size for each in terms) > MAX_SELECTED:
        return ()
    return terms if len(obstacles.only({NAME})) else ()


def _repelled(obstacles: Obstacles) -> Iterator[tuple[int, Sequence[int]]]:
    """Yield some nodes that only anti-affinity keeps the pod from, with the places of its own terms that do."""
    decision = obstacles.decision
    own = [each for each in decision.terms if _is_own(each)]
    positions = obstacles.only({NAME}) if 0 < len(own) <= MAX_STEPS else ()
    for position in obstacles.some_of(positions, NEAREST) if len(positions) else ():  # type: ignore[arg-type]
        blocking = [at for at, each in enumerate(own) if _blocks(obstacles, each, position)]
        if blocking:
            yield position, blocking


def _is_own(term: CountedTerm) -> bool:
    return term.direction is Direction.INCOMING and term.rule is Rule.REQUIRED_ANTI_AFFINITY


def _blocks(obstacles: Obstacles, term: CountedTerm, position: int) -> bool:
    value_id = term.value_id(obstacles.decision.batch, position)
    return term.effect(value_id, term.count(value_id)) is Effect.BLOCKS


def _with_siblings(obstacles: Obstacles, position: int, steps: Sequence[Step]) -> Iterator[Proposal]:
    """Propose the steps, with the pods of the same owner that have the terms, too, and are made again without them."""
    decision = obstacles.decision
    again: dict[str, CountedPod] = {}
    for term in decision.terms:
        if term.direction is Direction.EXISTING and _blocks(obstacles, term, position):
            value_id = term.value_id(decision.batch, position)
            named = term.named(value_id, _REMADE + 1, decision.search)
            again.update({each.uid: each for each in named})
    owner = owner_of(decision.pod)
    siblings = [_made_again(obstacles, each, owner) for each in again.values()]
    if len(siblings) <= _REMADE and None not in siblings:
        yield Proposal(decision.batch.names[position], [*steps, *(each for each in siblings if each is not None)])


def _made_again(obstacles: Obstacles, counted: CountedPod, owner: Owner | None) -> Step | None:
    """Return the step that makes a pod of the same owner again, or None if it has another owner."""
    pod = obstacles.decision.mirror.get_pod(counted.uid)
    if pod is None or owner is None or owner_of(pod) != owner:
        return None
    if owner.kind not in SCALED or (pod.controller is not None and pod.controller.kind in ROLLED):
        return None
    most = max(obstacles.leaving.max_unavailable(), 2) if owner.kind in ROLLED else 0
    return RemakePod(counted.pod, counted.uid, counted.node, owner.name, owner.kind, most)


SEARCHES: Final = (
    Search(Turn.CORRECT_SELECTOR, correct_selector, most=1),
    Search(Turn.SELECT_NAMESPACE, select_namespace, most=1),
    Search(Turn.CHANGE_KEY, change_key, most=1),
    Search(Turn.PREFER, prefer, most=1),
    Search(Turn.ADD_PARTNER, add_partner),
)
