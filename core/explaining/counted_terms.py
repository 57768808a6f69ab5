"""The inter-pod affinity terms of a decision, with their counts by domain and the counted pods."""

from collections.abc import Sequence
from enum import Enum
from functools import cached_property
from typing import Final

import msgspec
import numpy as np

from core.explaining.pod_names import name_of, uid_of
from core.mirror.affinity_counts import OwnerCounter
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.topology import ABSENT, BoolArray, DomainCounts, Int64Array, IntpArray
from core.objects.affinity import PodMatcher
from core.objects.labels import Selector, requirement_text

_MAX_TEXT_LENGTH: Final = 500
"""Maximum length of a term's selector for each node. It may name thousands of namespaces and values."""
_MAX_LOOKED_AT: Final = 2_000_000


class Direction(Enum):
    """Whether a term belongs to the incoming pod or to existing pods."""

    INCOMING = "incoming"
    """A term of the incoming pod. It counts the placed pods that it selects."""
    EXISTING = "existing"
    """A term of placed pods that selects the incoming pod. It counts the pods that have the term."""


class Rule(Enum):
    """The kind of the term."""

    REQUIRED_AFFINITY = "requiredAffinity"
    REQUIRED_ANTI_AFFINITY = "requiredAntiAffinity"
    PREFERRED_AFFINITY = "preferredAffinity"
    PREFERRED_ANTI_AFFINITY = "preferredAntiAffinity"


class Effect(Enum):
    """The effect of a term on one node."""

    NONE = "none"
    BLOCKS = "blocks"
    SATISFIED = "satisfied"
    """A required affinity term is met."""
    FIRST_POD = "firstPod"
    """No pod matches a required affinity term, but the incoming pod itself does, as the first of its kind."""
    SCORES = "scores"


class CountedPod(msgspec.Struct, frozen=True, gc=False):
    """A pod that a term counts."""

    pod: str
    """NAMESPACE/NAME"""
    uid: str
    node: str


class PodSearch:
    """How many pods may still be searched to name the counted pods of one decision.

    The search for one term takes up to 30 ns for each pod of the mirror, and a pod may have hundreds of terms.
    """

    def __init__(self) -> None:
        self._left = _MAX_LOOKED_AT

    def may_look_at(self, pods: int) -> bool:
        """Return whether this number of pods may be searched, and count them."""
        self._left -= pods
        return self._left >= 0


class CountedTerm:
    """One term, or all required affinity terms with one topology key, which a single pod must match together."""

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
        """`weight`: what a pod in the domain adds to a raw score. `first_pod`: the exception for first pods applies."""
        self.direction: Final = direction
        self.rule: Final = rule
        self.matchers: Final = matchers
        self.weight: Final = weight
        self.first_pod: Final = first_pod
        self.topology_key: Final = counter.column.key
        self._mirror = mirror
        self._counter = counter
        self._named: dict[tuple[int, int], Sequence[CountedPod]] = {}  # (value id, limit) -> pods
        self._counted: IntpArray | None = None  # rows of the counted pods of all domains, read at first use

    @cached_property
    def selects(self) -> str:
        """The selector as text, truncated if it is long."""
        text = ""
        for matcher in self.matchers:  # a pod may have a thousand matchers, for each of as many topology keys
            text = f"{text} and {_matcher_text(matcher)}" if text else _matcher_text(matcher)
            if len(text) > _MAX_TEXT_LENGTH:
                return f"{text[:_MAX_TEXT_LENGTH]} ..."
        return text

    def count(self, value_id: int) -> int:
        """Return the number of pods in a domain."""
        return self._counter.counts.get(value_id)

    def counts(self) -> tuple[IntpArray, Int64Array]:
        """Return the domains with pods, as value ids of the topology key, and their numbers of pods."""
        return self._counter.counts.arrays()

    def value(self, value_id: int) -> str:
        """Return the domain of a value id."""
        return self._counter.column.values[value_id]

    def value_id(self, batch: NodeBatch, position: int) -> int:
        """Return the value id of a node. Negative if the node is in no domain with pods."""
        column = self._counter.column
        if position not in batch.unmirrored:
            return int(column.of_slot[batch.slots[position]])
        node = batch.unmirrored[position]
        return ABSENT if node is None else column.id_of(node.labels)

    def blocked(self, batch: NodeBatch) -> BoolArray:
        """Return which nodes a required term rejects, as `effect` does for one node."""
        ids = self._counter.column.of_slot[batch.slots]
        for position in batch.unmirrored:
            ids[position] = self.value_id(batch, position)
        value_ids, counts = self.counts()
        with_pods: BoolArray = np.isin(ids, value_ids[counts > 0])
        if self.rule is Rule.REQUIRED_AFFINITY:
            no_domain: BoolArray = ids == ABSENT
            return no_domain if self.first_pod else no_domain | ~with_pods
        return with_pods

    def effect(self, value_id: int, pods: int) -> Effect:
        """Return the effect of the term on a node of a domain with `pods` counted pods."""
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

    def named(self, value_id: int, limit: int, search: PodSearch) -> Sequence[CountedPod]:
        """Return up to `limit` of the counted pods of a domain. Empty once the search has taken too long."""
        found = self._named.get((value_id, limit))
        if found is None:
            pods, nodes = self._mirror.pods, self._mirror.nodes
            found = self._named[value_id, limit] = [
                CountedPod(name_of(pods.pods[row]), uid_of(pods.pods[row]), nodes.name(int(pods.slot_of_row[row])))
                for row in self._rows(value_id, limit, search)
            ]
        return found

    def _rows(self, value_id: int, limit: int, search: PodSearch) -> list[int]:
        if self._counted is None:
            if not search.may_look_at(len(self._mirror.pods.pods)):
                return []
            if isinstance(self._counter, OwnerCounter):
                self._counted = self._mirror.pods.rows_with(self._counter.term_sets)
            else:
                self._counted = self._mirror.affinity.matches.rows_of(self.matchers)
        if not search.may_look_at(len(self._counted)):
            return []
        of_slot = self._counter.column.of_slot
        of_domain = of_slot.take(self._mirror.pods.slot_of_row.take(self._counted)) == value_id
        rows: list[int] = self._counted[of_domain][:limit].tolist()
        return rows


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
    texts = (requirement_text(each.key, each.operator.label, each.values) for each in selector.requirements)
    return ", ".join(texts) or "any labels"
