"""The inter-pod affinity terms that have a part in a decision, with what each counts, where, and which pods make it."""

from collections.abc import Iterator, Mapping
from enum import Enum
from itertools import islice
from typing import Final

import msgspec

from core.mirror.affinity_counts import DomainCounts, OwnerCounter, Role
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.topology import ABSENT, IntpArray
from core.objects.affinity import AffinityTerm, PodMatcher
from core.objects.labels import Operator, Requirement, Selector
from core.objects.pod import Pod
from core.plugins.interpodaffinity.filtering import PreFilterState
from core.plugins.interpodaffinity.plugin import InterPodAffinity


class Direction(Enum):
    """Whose term it is."""

    INCOMING = "incoming"
    """The incoming pod's: it selects placed pods, which are counted."""
    EXISTING = "existing"
    """Placed pods': it selects the incoming pod, and the pods that carry it are counted."""


class Rule(Enum):
    """What the term asks."""

    REQUIRED_AFFINITY = "requiredAffinity"
    REQUIRED_ANTI_AFFINITY = "requiredAntiAffinity"
    PREFERRED_AFFINITY = "preferredAffinity"
    PREFERRED_ANTI_AFFINITY = "preferredAntiAffinity"


class Effect(Enum):
    """What a term does to one node."""

    NONE = "none"
    BLOCKS = "blocks"
    SATISFIED = "satisfied"
    """A required affinity finds what it wants."""
    FIRST_POD = "firstPod"
    """A required affinity finds nothing anywhere, and the pod would be the first of those that it wants."""
    SCORES = "scores"


class CountedPod(msgspec.Struct, frozen=True, gc=False):
    """A pod that is counted."""

    pod: str
    """NAMESPACE/NAME"""
    uid: str
    node: str


class CountedTerm:
    """One term, or the required affinity terms of one topology key, which one and the same pod has to meet together."""

    def __init__(  # noqa: PLR0913  # what a term is
        self,
        mirror: ClusterMirror,
        counter: DomainCounts,
        direction: Direction,
        rule: Rule,
        matchers: tuple[PodMatcher, ...],
        *,
        weight: int = 0,
        first_pod: bool = False,
    ) -> None:
        """`weight` is what a pod in the domain adds to a node's raw score; `first_pod` whether that exception holds."""
        self.direction: Final = direction
        self.rule: Final = rule
        self.matchers: Final = matchers
        self.weight: Final = weight
        self.first_pod: Final = first_pod
        self.topology_key: Final = counter.column.key
        self._mirror = mirror
        self._counter = counter
        self._counted: IntpArray | None = None  # rows of the pods of all domains, once they are asked for

    @property
    def selects(self) -> str:
        """What it selects, for people."""
        return " and ".join(map(_matcher_text, self.matchers))

    def counts(self) -> Mapping[int, int]:
        """Return value id of the topology key -> pods, for domains that have any."""
        return dict(self._counter.counts.items())

    def value(self, value_id: int) -> str:
        """Return the domain of a value id."""
        return self._counter.column.values[value_id]

    def value_id(self, batch: NodeBatch, position: int) -> int:
        """Return the value id of a node; negative where it is in no domain that has pods."""
        return int(batch.value_ids(self._counter.column)[position])

    def effect(self, value_id: int, pods: int) -> Effect:
        """Tell what it does to a node of a domain with so many pods that it counts."""
        if self.rule is Rule.REQUIRED_AFFINITY and self.direction is Direction.INCOMING:
            if value_id == ABSENT:
                return Effect.BLOCKS
            if self.first_pod:
                return Effect.FIRST_POD
            return Effect.SATISFIED if pods else Effect.BLOCKS
        if not pods:
            return Effect.NONE
        if self.rule is Rule.REQUIRED_ANTI_AFFINITY:
            return Effect.BLOCKS
        return Effect.SCORES if self.weight else Effect.NONE

    def pods(self, value_id: int) -> Iterator[CountedPod]:
        """Yield the pods of a domain that are counted."""
        pods, nodes = self._mirror.pods, self._mirror.nodes
        for row in self._rows(value_id):
            pod = pods.pods[row]
            yield CountedPod(pod.full_name, pod.uid, nodes.name(int(pods.slot_of_row[row])))

    def named(self, value_id: int, limit: int) -> list[CountedPod]:
        """Return up to `limit` of the pods of a domain that are counted."""
        return list(islice(self.pods(value_id), limit))

    def _rows(self, value_id: int) -> list[int]:
        if self._counted is None:
            affinity = self._mirror.affinity
            if isinstance(self._counter, OwnerCounter):
                self._counted = affinity.rows_carrying(self._counter)
            else:
                self._counted = affinity.rows_matched(self.matchers)
        of_slot = self._counter.column.of_slot
        rows: list[int] = self._counted[of_slot[self._mirror.pods.slot_of_row[self._counted]] == value_id].tolist()
        return rows


def counted_terms(mirror: ClusterMirror, pod: Pod, plugin: InterPodAffinity) -> list[CountedTerm]:
    """Return the terms that have a part in the decision about a pod, in the order in which they are judged.

    Stale after the next event. None for a pod whose terms cannot be parsed.
    """
    if pod.affinity.errors:
        return []
    return [
        *_required_affinity(mirror, pod),
        *_incoming(mirror, Rule.REQUIRED_ANTI_AFFINITY, [(each, 0) for each in pod.affinity.required_anti_affinity]),
        *_existing(mirror, pod, plugin, required=True),
        *_incoming(
            mirror, Rule.PREFERRED_AFFINITY, [(each.term, each.weight) for each in pod.affinity.preferred_affinity]
        ),
        *_incoming(
            mirror,
            Rule.PREFERRED_ANTI_AFFINITY,
            [(each.term, -each.weight) for each in pod.affinity.preferred_anti_affinity],
        ),
        *_existing(mirror, pod, plugin, required=False),
    ]


def _required_affinity(mirror: ClusterMirror, pod: Pod) -> Iterator[CountedTerm]:
    terms = pod.affinity.required_affinity
    matchers = tuple(term.matcher for term in terms)
    first_pod = bool(terms) and PreFilterState(mirror, pod).first_of_its_kind
    for key in dict.fromkeys(term.topology_key for term in terms):
        counter = mirror.affinity.matched(matchers, key)
        yield CountedTerm(mirror, counter, Direction.INCOMING, Rule.REQUIRED_AFFINITY, matchers, first_pod=first_pod)


def _incoming(mirror: ClusterMirror, rule: Rule, terms: list[tuple[AffinityTerm, int]]) -> Iterator[CountedTerm]:
    for term, weight in terms:
        counter = mirror.affinity.matched((term.matcher,), term.topology_key)
        yield CountedTerm(mirror, counter, Direction.INCOMING, rule, (term.matcher,), weight=weight)


def _existing(mirror: ClusterMirror, pod: Pod, plugin: InterPodAffinity, *, required: bool) -> Iterator[CountedTerm]:
    for owner in mirror.affinity.owners(pod.namespace, pod.labels):
        role, weight = owner.owner_term.role, owner.owner_term.weight
        if (role is Role.REQUIRED_ANTI_AFFINITY) is not required:
            continue
        if role is Role.REQUIRED_ANTI_AFFINITY:
            rule = Rule.REQUIRED_ANTI_AFFINITY
        elif role is Role.REQUIRED_AFFINITY:
            rule, weight = Rule.REQUIRED_AFFINITY, plugin.hard_pod_affinity_weight
        else:
            rule = Rule.PREFERRED_AFFINITY if weight > 0 else Rule.PREFERRED_ANTI_AFFINITY
        if not required and not plugin.scores_for(pod):
            weight = 0
        yield CountedTerm(mirror, owner, Direction.EXISTING, rule, (owner.owner_term.term.matcher,), weight=weight)


def _matcher_text(matcher: PodMatcher) -> str:
    where = []
    if matcher.namespace_selector.everything:
        where.append("all namespaces")
    elif not matcher.namespace_selector.nothing:
        where.append(f"namespaces with {_selector_text(matcher.namespace_selector)}")
    if matcher.namespaces and not matcher.namespace_selector.everything:
        where.append(", ".join(sorted(matcher.namespaces)))
    return f"pods with {_selector_text(matcher.selector)} in {' or '.join(where) or 'no namespace'}"


def _selector_text(selector: Selector) -> str:
    if selector.nothing:
        return "nothing"
    return ", ".join(map(_requirement_text, selector.requirements)) or "any labels"


def _requirement_text(requirement: Requirement) -> str:
    """Write a requirement as kubectl takes it (-l)."""
    values = ", ".join(requirement.values)
    match requirement.operator:
        case Operator.IN if len(requirement.values) == 1:
            return f"{requirement.key}={values}"
        case Operator.IN:
            return f"{requirement.key} in ({values})"
        case Operator.NOT_IN:
            return f"{requirement.key} notin ({values})"
        case Operator.EXISTS:
            return requirement.key
        case Operator.DOES_NOT_EXIST:
            return f"!{requirement.key}"
