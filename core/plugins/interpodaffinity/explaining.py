"""What InterPodAffinity adds to explanations: its terms with their counts, and why a term rejects a node."""

from collections.abc import Collection, Iterator
from itertools import chain, islice
from typing import Final

from core.events import Kind
from core.explaining.counted_terms import CountedTerm, Direction, Effect, Rule
from core.explaining.decision import Decision
from core.explaining.explained import DomainRule, Event, Explained, Remedies
from core.explaining.obstacles import Candidates, Gone, Obstacles
from core.mirror.affinity_counts import MatchTerms, Role, owner_terms
from core.mirror.cluster import ClusterMirror
from core.objects.affinity import AffinityTerm
from core.objects.kinds import NAMESPACE_NAME, Namespace
from core.objects.pod import Pod
from core.plugins.interpodaffinity.filtering import PreFilterState
from core.plugins.interpodaffinity.remedies import SEARCHES, run_pod

_MAX_TERMS: Final = 128
"""How many terms are read for rules that exclude each other. Each costs a pass over the nodes."""
_NAMES: Final = {
    (Direction.INCOMING, Rule.REQUIRED_AFFINITY): "its pod affinity",
    (Direction.INCOMING, Rule.REQUIRED_ANTI_AFFINITY): "its pod anti-affinity",
    (Direction.EXISTING, Rule.REQUIRED_ANTI_AFFINITY): "the anti-affinity of other pods",
}


def counted_terms(mirror: ClusterMirror, pod: Pod, hard_weight: int, *, scored: bool) -> list[CountedTerm]:
    """Return the terms that take part in the decision about a pod, in the order of evaluation.

    Stale after the next event. Empty for a pod whose terms cannot be parsed.
    """
    if pod.affinity.errors:
        return []
    with mirror.work.uncharged():  # the decision was already charged for this work
        affinity = pod.affinity
        repelled = [(each, 0) for each in affinity.required_anti_affinity]
        preferred = [(each.term, each.weight) for each in affinity.preferred_affinity]
        avoided = [(each.term, -each.weight) for each in affinity.preferred_anti_affinity]
        return [
            *_required_affinity(mirror, pod),
            *_incoming(mirror, Rule.REQUIRED_ANTI_AFFINITY, repelled),
            *_existing(mirror, pod, hard_weight, scored=scored, required=True),
            *_incoming(mirror, Rule.PREFERRED_AFFINITY, preferred),
            *_incoming(mirror, Rule.PREFERRED_ANTI_AFFINITY, avoided),
            *_existing(mirror, pod, hard_weight, scored=scored, required=False),
        ]


def _required_affinity(mirror: ClusterMirror, pod: Pod) -> Iterator[CountedTerm]:
    terms = pod.affinity.required_affinity
    if not terms:
        return
    matchers = tuple(term.matcher for term in terms)
    state = PreFilterState(mirror, pod)
    for counter in state.affinity:
        yield CountedTerm(
            mirror,
            counter,
            Direction.INCOMING,
            Rule.REQUIRED_AFFINITY,
            matchers,
            first_pod=state.first_of_its_kind,
        )


def _incoming(mirror: ClusterMirror, rule: Rule, terms: list[tuple[AffinityTerm, int]]) -> Iterator[CountedTerm]:
    to_count = [MatchTerms((term.matcher,), term.topology_key) for term, _ in terms]
    counters = mirror.affinity.matches.of(to_count, "spec.affinity")
    for (term, weight), counter in zip(terms, counters, strict=True):
        yield CountedTerm(mirror, counter, Direction.INCOMING, rule, (term.matcher,), weight=weight)


def _existing(
    mirror: ClusterMirror, pod: Pod, hard_weight: int, *, scored: bool, required: bool
) -> Iterator[CountedTerm]:
    for owner in mirror.affinity.owners(pod.namespace, pod.labels):
        role, weight = owner.owner_term.role, owner.owner_term.weight
        if (role is Role.REQUIRED_ANTI_AFFINITY) is not required:
            continue
        if role is Role.REQUIRED_ANTI_AFFINITY:
            rule = Rule.REQUIRED_ANTI_AFFINITY
        elif role is Role.REQUIRED_AFFINITY:
            rule, weight = Rule.REQUIRED_AFFINITY, hard_weight
        else:
            rule = Rule.PREFERRED_AFFINITY if weight > 0 else Rule.PREFERRED_ANTI_AFFINITY
        if not required and not scored:
            weight = 0
        yield CountedTerm(mirror, owner, Direction.EXISTING, rule, (owner.owner_term.term.matcher,), weight=weight)


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


def _reads_namespaces(mirror: ClusterMirror, pod: Pod) -> bool:
    """Return whether a term of the pod, or of another pod against it or for it, reads labels of namespaces.

    A selector by the name of the namespace, which every namespace has as a label, needs no more than the names.
    """
    own = (each.term.matcher for each in owner_terms(pod.affinity))
    others = (each.matcher for each in mirror.affinity.by_namespace(pod.namespace, pod.labels))
    return any(
        requirement.key != NAMESPACE_NAME or not mirror.namespaces
        for matcher in chain(own, others)
        for requirement in matcher.namespace_selector.requirements
    )


def _of_terms(decision: Decision, resource: str, action: str) -> bool:
    """Return what InterPodAffinity's hints say of other pods and of nodes: they read only the pod's own terms.

    A placed pod's anti-affinity counts for the end of that pod, and only since 1.36.
    """
    affinity = decision.pod.affinity
    if affinity.errors:
        return True
    if (resource, action) == ("Pod", "Add"):
        return bool(affinity.required_affinity)
    if (resource, action) == ("Pod", "Delete"):
        repelled = decision.mirror.rules.wakes_by_end_of_repelling_pod and any(
            each.direction is Direction.EXISTING and each.rule is Rule.REQUIRED_ANTI_AFFINITY for each in decision.terms
        )
        return bool(affinity.required_anti_affinity) or repelled
    return bool(affinity.required_affinity or affinity.required_anti_affinity)


def _event(resource: str, *actions: str) -> Event:
    return Event(resource, actions, may_help=lambda decision, action: _of_terms(decision, resource, action))


class ExplainedAffinity(Explained):
    """What the plugin adds to explanations."""

    events = (
        _event("Pod", "Add", "UpdatePodLabel", "Delete"),
        _event("Node", "Add", "UpdateNodeLabel"),
        Event("Pod", ("UpdatePodLabel",), of_pod_itself=True, registered=lambda rules: rules.wakes_by_own_labels),
    )
    remedies = Remedies(searches=SEARCHES, fix=run_pod, removable=_only_blocker, counts_elsewhere=True)

    def rules(self, decision: Decision) -> Iterator[DomainRule]:
        """Yield the required terms."""
        required = (each for each in decision.terms if (each.direction, each.rule) in _NAMES)
        for each in islice(required, _MAX_TERMS):
            blocked = each.blocked(decision.batch)[decision.known]
            yield DomainRule(_NAMES[each.direction, each.rule], each.topology_key, blocked)

    def reads(self, mirror: ClusterMirror, pod: Pod, missing: Collection[Kind]) -> Collection[Kind]:
        """Return all kinds, but for namespaces if no term reads their labels."""
        return missing if _reads_namespaces(mirror, pod) else {*missing} - {Namespace}

    def topology_keys(self, decision: Decision) -> Collection[str]:
        """Return the keys of the terms that repel."""
        return {each.topology_key for each in decision.terms if each.rule is Rule.REQUIRED_ANTI_AFFINITY}
