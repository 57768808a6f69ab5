"""Proposals that change one rule of the pod: labels that it misspells, its spread constraints, its affinity terms."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from core.diagnosis.amounts.requirements import best_unmet, choices_of, requirements_in_cluster, told_of
from core.diagnosis.counted_terms import CountedPod, CountedTerm, Direction, Effect, Rule
from core.diagnosis.pod_names import NamespaceName
from core.diagnosis.remedies.fixes import MAX_SELECTED, MAX_TERMS, Obstacles
from core.diagnosis.remedies.owners import ROLLED, SCALED, Owner, owner_of
from core.diagnosis.remedies.pod_steps import (
    AFFINITY_POLICY,
    TAINTS_POLICY,
    CorrectRequirement,
    HonorPolicy,
    MatchRevision,
)
from core.diagnosis.remedies.proposals import MAX_STEPS, NEAREST, Proposal
from core.diagnosis.remedies.remedy import Step
from core.diagnosis.remedies.term_steps import (
    ChangeTopologyKey,
    CorrectSelector,
    PreferTerm,
    RemakePod,
    RequiredRule,
    SelectNamespace,
)
from core.diagnosis.remedies.typos import mistaken, mistaken_key, mistaken_value
from core.objects.affinity import AffinityTerm, PodMatcher
from core.objects.labels import EVERYTHING, Operator
from core.objects.node import HOSTNAME, REGION, ZONE, Node
from core.objects.pod import DO_NOT_SCHEDULE, HONOR, SpreadConstraint
from core.plugins.interpodaffinity.plugin import InterPodAffinity
from core.plugins.nodeaffinity import NodeAffinity
from core.plugins.podtopologyspread.plugin import PodTopologySpread

_LOOKED_AT: Final = 256
"""How many nodes are checked for labels that the pod misspells."""
_REVISIONS: Final = ("pod-template-hash", "rollouts-pod-template-hash", "controller-revision-hash")
_KEYS: Final = (HOSTNAME, ZONE, REGION)
"""Topology keys, narrowest first."""
_NAMESPACES: Final = 2
_REMADE: Final = 2
"""How many pods of the pod's owner are made again at most."""


def correct(obstacles: Obstacles) -> Iterator[Proposal]:
    """Propose to ask for a label of a node instead of one that no node has and that differs by a typo."""
    decision = obstacles.decision
    every, choices = len(decision.known), choices_of(decision)
    nowhere = {
        (each.asked.source, each.asked.term, each.asked.key, each.asked.operator, tuple(each.asked.values))
        for each in requirements_in_cluster(decision, MAX_TERMS)
        if each.nodes == every and each.asked.operator in ("In", "Exists")
    }
    seen: list[Sequence[Step]] = []
    for position in obstacles.some_of(obstacles.only({NodeAffinity.name}), _LOOKED_AT) if nowhere else ():
        node = decision.node(position)
        unmet = [] if node is None else [told_of(each) for each in best_unmet(choices, node)]
        steps: list[Step] = []
        for asked in unmet:
            known = (asked.source, asked.term, asked.key, asked.operator, tuple(asked.values)) in nowhere
            label = _meant(asked.key, asked.values, node) if known and node is not None else None
            if label is not None:
                steps.append(CorrectRequirement(asked, *label))
        if steps and len(steps) == len(unmet) <= MAX_STEPS and steps not in seen:
            seen.append(steps)
            yield Proposal(decision.batch.names[position], steps)


def _meant(key: str, values: Sequence[str], node: Node) -> tuple[str, str] | None:
    """Return the label of the node that was probably meant, or None."""
    has = node.labels.get(key)
    if has is not None:
        return (key, has) if any(mistaken_value(each, has) for each in values) else None
    for other, value in sorted(node.labels.items()):
        if mistaken_key(key, other) and any(
            value == each or mistaken_value(each, value) for each in values or (value,)
        ):
            return other, value
    return None


def _constraints(obstacles: Obstacles) -> Sequence[tuple[int, SpreadConstraint]]:
    """Return the pod's own hard constraints with their places, if PodTopologySpread alone rejects some node."""
    if not len(obstacles.only({PodTopologySpread.name})):
        return ()
    spread = enumerate(obstacles.decision.pod.spread)
    return [(place, each) for place, each in spread if each.when_unsatisfiable == DO_NOT_SCHEDULE][:MAX_STEPS]


def honor(obstacles: Obstacles) -> Iterator[Proposal]:
    """Propose to leave tainted nodes, or those that the pod does not select, out of the constraints."""
    constraints = _constraints(obstacles)
    for policy in (TAINTS_POLICY, AFFINITY_POLICY):
        steps = [
            HonorPolicy(place, each.topology_key, policy)
            for place, each in constraints
            if (each.node_taints_policy if policy == TAINTS_POLICY else each.node_affinity_policy) != HONOR
        ]
        yield from _each_then_all(steps)


def match_revision(obstacles: Obstacles) -> Iterator[Proposal]:
    """Propose to count only pods of the same revision."""
    labels = obstacles.decision.pod.labels
    key = next((each for each in _REVISIONS if each in labels), None)
    if key is not None:
        yield from _each_then_all(
            [
                MatchRevision(place, each.topology_key, key)
                for place, each in _constraints(obstacles)
                if key not in each.match_label_keys
            ]
        )


def _each_then_all(steps: Sequence[Step]) -> Iterator[Proposal]:
    yield from (Proposal(None, [each]) for each in steps)
    if len(steps) > 1:
        yield Proposal(None, steps)


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
    """Propose to select a label of pods instead of one that no pod has and that differs by a typo."""
    groups, search = obstacles.decision.mirror.pods.groups, obstacles.decision.search
    for index, term in enumerate(_affinity(obstacles)):
        for each in term.matcher.selector.requirements:
            if each.operator is not Operator.IN or len(each.values) != 1 or not search.may_look_at(groups.extent):
                continue
            (value,), there = each.values, groups.values_of(each.key)
            for to in sorted(there) if value not in there else ():
                if mistaken_value(value, to):
                    yield Proposal(None, [CorrectSelector(index, term.topology_key, each.key, value, to)])


def change_key(obstacles: Obstacles) -> Iterator[Proposal]:
    """Propose other topology keys: for spread over a label that no node has, for affinity, then for anti-affinity."""
    constraints = _constraints(obstacles)
    taken = {each.topology_key for _, each in constraints}  # the API server accepts each key only once
    for place, each in constraints:
        if each.topology_key not in obstacles.label_keys:
            yield from _keys(obstacles, RequiredRule.SPREAD, place, each.topology_key, taken)
    for index, term in enumerate(_affinity(obstacles)):
        yield from _keys(obstacles, RequiredRule.AFFINITY, index, term.topology_key)
    terms = obstacles.decision.pod.affinity.required_anti_affinity
    for position, blocking in _repelled(obstacles):
        for key in _narrower(obstacles, [terms[index].topology_key for index in blocking])[:1]:
            steps = [ChangeTopologyKey(RequiredRule.ANTI_AFFINITY, at, terms[at].topology_key, key) for at in blocking]
            yield from _with_siblings(obstacles, position, steps)


def _narrower(obstacles: Obstacles, keys: Sequence[str]) -> Sequence[str]:
    """Return the topology keys of nodes whose domains are smaller than those of all these keys, widest first."""
    least = min(_KEYS.index(key) if key in _KEYS else len(_KEYS) for key in keys)
    return [key for key in _KEYS[:least][::-1] if key in obstacles.label_keys]


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


def _keys(
    obstacles: Obstacles, rule: RequiredRule, index: int, present: str, taken: Collection[str] = ()
) -> Iterator[Proposal]:
    """Propose the keys that nodes have and that are not taken, those that are probably meant first."""
    keys = [key for key in _KEYS if key != present and key not in taken and key in obstacles.label_keys]
    for key in sorted(keys, key=lambda each: not _meant_key(present, each)):
        yield Proposal(None, [ChangeTopologyKey(rule, index, present, key)])


def _meant_key(present: str, key: str) -> bool:
    """Return whether a key is probably meant, maybe without its prefix, or with another one."""
    name, other = (each.rpartition("/")[2] for each in (present, key))
    return mistaken_key(present, key) or name == other or mistaken(name, other)


def _affinity(obstacles: Obstacles) -> Sequence[AffinityTerm]:
    """Return the pod's required affinity terms, if InterPodAffinity alone rejects some node, and they are small."""
    terms = obstacles.decision.pod.affinity.required_affinity
    if len(terms) > MAX_STEPS or sum(each.matcher.selector.size for each in terms) > MAX_SELECTED:
        return ()
    return terms if len(obstacles.only({InterPodAffinity.name})) else ()


def _repelled(obstacles: Obstacles) -> Iterator[tuple[int, Sequence[int]]]:
    """Yield some nodes that only anti-affinity keeps the pod from, with the places of its own terms that do."""
    decision = obstacles.decision
    own = [each for each in decision.terms if _is_own(each)]
    positions = obstacles.only({InterPodAffinity.name}) if 0 < len(own) <= MAX_STEPS else ()
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
    if owner.kind not in SCALED:
        return None
    most = obstacles.leaving.max_unavailable() or 2 if owner.kind in ROLLED else 0
    return RemakePod(counted.pod, counted.uid, counted.node, owner.name, owner.kind, most)
