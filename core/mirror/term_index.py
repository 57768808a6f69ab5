"""Finds the terms that may select a pod, without a loop over all terms."""

from collections.abc import Hashable, Iterator, Mapping
from itertools import count
from typing import Final, Generic, TypeAlias, TypeVar

from core.mirror.topology import TopologyColumn, TopologyCounts
from core.objects.affinity import PodMatcher
from core.objects.labels import Operator

Entry = TypeVar("Entry", bound=Hashable)

_Pair: TypeAlias = tuple[str, str]
_Bucket: TypeAlias = tuple[str | None, _Pair | None]

# Not "": a request may contain names that no API server accepts, and an entry must not be found twice.
_ANY_NAMESPACE: Final = None
_NO_PAIR: Final = None

MAX_BUCKETS: Final = 64
"""How many buckets one entry may have. One takes 0.5 KB.

A pod of 30 KB can name 2,000 namespaces and 2,000 values, whose product would take gigabytes. Over the limit, an entry
is indexed under fewer conditions, and is a candidate for more pods.
"""


class TermIndex(Generic[Entry]):
    """(namespace or any, (label key, label value)) -> entries whose selector requires that pair.

    An entry that requires no pair (only negative or Exists requirements) is indexed by namespace alone. An entry with
    too many namespaces or values for MAX_BUCKETS is indexed by its pairs alone, else by its namespaces alone. If both
    are too many, it is a candidate for every pod. A pod gets every entry at most once: a label key has one value, and
    an entry is indexed either by namespaces or by any.
    """

    def __init__(self) -> None:
        self._buckets: dict[_Bucket, dict[Entry, None]] = {}
        self._homes: dict[Entry, list[_Bucket]] = {}

    def add(self, entry: Entry, matcher: PodMatcher) -> None:
        """Add a term under the requirements of its matcher."""
        homes = self._homes[entry] = self._homes_of(matcher)
        for bucket in homes:
            self._buckets.setdefault(bucket, {})[entry] = None

    def remove(self, entry: Entry) -> None:
        """Remove a term."""
        for bucket in self._homes.pop(entry):
            entries = self._buckets[bucket]
            del entries[entry]
            if not entries:
                del self._buckets[bucket]

    def candidates(self, namespace: str, labels: Mapping[str, str]) -> Iterator[Entry]:
        """Yield the entries that may select such a pod. The caller must check the whole matcher."""
        buckets = self._buckets
        for scope in (namespace, _ANY_NAMESPACE):
            if (scope, _NO_PAIR) in buckets:
                yield from buckets[scope, _NO_PAIR]
            for pair in labels.items():
                if (scope, pair) in buckets:
                    yield from buckets[scope, pair]

    def _homes_of(self, matcher: PodMatcher) -> list[_Bucket]:
        if matcher.selector.nothing:
            return []
        scopes: list[str | None] = [_ANY_NAMESPACE]
        if matcher.namespace_selector.nothing:
            scopes = [*matcher.namespaces]
        demanded = [
            [(requirement.key, value) for value in requirement.values]
            for requirement in matcher.selector.requirements
            if requirement.operator is Operator.IN and len(requirement.values) <= MAX_BUCKETS
        ]
        return self._under_pairs(scopes, demanded) or (
            [(scope, _NO_PAIR) for scope in scopes] if len(scopes) <= MAX_BUCKETS else [(_ANY_NAMESPACE, _NO_PAIR)]
        )

    def _under_pairs(self, scopes: list[str | None], demanded: list[list[_Pair]]) -> list[_Bucket]:
        if not demanded:
            return []
        if len(scopes) * min(map(len, demanded)) > MAX_BUCKETS:
            scopes = [_ANY_NAMESPACE]
        fitting = [pairs for pairs in demanded if len(scopes) * len(pairs) <= MAX_BUCKETS]
        # Of several required pairs, the least crowded is the most selective: `app=web` rather than `part-of=shop`.
        pairs = min(fitting, key=lambda pairs: self._crowd(scopes, pairs))
        return [(scope, pair) for scope in scopes for pair in pairs]

    def _crowd(self, scopes: list[str | None], pairs: list[_Pair]) -> int:
        return sum(len(self._buckets.get((scope, pair), ())) for scope in scopes for pair in pairs)


_births = count(step=1 << 32)
"""First versions of counters, so far apart that no two counters ever have the same version."""


class DomainCounts:
    """Numbers of pods per domain of one topology key.

    Every change gives `version` a new value, which no other counter ever has.
    """

    __slots__ = ("column", "counts", "version")

    def __init__(self, column: TopologyColumn, counts: TopologyCounts) -> None:
        self.column = column
        self.counts = counts
        self.version = next(_births)

    def add(self, slot: int, delta: int) -> None:
        """Add `delta` for the node of a slot. A node without the key is in no domain."""
        value_id = int(self.column.of_slot[slot])
        if value_id >= 0:
            self.counts.add(value_id, delta)
            self.version += 1

    def recount(self, counts: TopologyCounts) -> None:
        """Replace all numbers."""
        self.counts = counts
        self.version += 1

    def by_value(self) -> dict[str, int]:
        """Return topology value -> number of pods, for domains with pods."""
        return {self.column.values[value_id]: number for value_id, number in self.counts.items()}
