"""Finds the terms, or other selectors of pods, that select a pod, without a look at all of them."""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Final, Generic, TypeAlias, TypeVar

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
MAX_STORED: Final = 256
"""For how many pods that differ in namespace or labels an index keeps which entries select them."""
FEW: Final = 64
"""Results of up to this many entries are kept, for up to this many labels: a pod may have thousands of both."""


class TermIndex(Generic[Entry]):
    """(namespace or any, (label key, label value)) -> entries whose selector requires that pair.

    An entry that requires no pair (only negative or Exists requirements) is indexed by namespace alone. An entry with
    too many namespaces or values for MAX_BUCKETS is indexed by its pairs alone, else by its namespaces alone. If both
    are too many, it is a candidate for every pod. A pod gets every entry at most once: a label key has one value, and
    an entry is indexed either by namespaces or by any.
    """

    def __init__(self) -> None:
        self._buckets: dict[str | None, dict[_Pair | None, dict[Entry, None]]] = {}  # without empty ones
        self._homes: dict[Entry, list[_Bucket]] = {}
        self._stored: dict[tuple[str, int], tuple[Mapping[str, str], Sequence[Entry]]] = {}
        """Namespace and id of labels -> these labels, and the result of `selected`."""

    def add(self, entry: Entry, matcher: PodMatcher) -> None:
        """Add a term under the requirements of its matcher."""
        self._stored.clear()
        homes = self._homes[entry] = self._homes_of(matcher)
        for scope, pair in homes:
            self._buckets.setdefault(scope, {}).setdefault(pair, {})[entry] = None

    def remove(self, entry: Entry) -> None:
        """Remove a term."""
        self._stored.clear()
        for scope, pair in self._homes.pop(entry):
            of_scope = self._buckets[scope]
            del of_scope[pair][entry]
            if not of_scope[pair]:
                del of_scope[pair]
            if not of_scope:
                del self._buckets[scope]

    def forget(self) -> None:
        """Select anew, because something else than entries and pods has changed, such as the labels of a namespace."""
        self._stored.clear()

    def selected(self, namespace: str, labels: Mapping[str, str], selects: Callable[[Entry], bool]) -> Sequence[Entry]:
        """Return the entries that select such a pod, as `selects` says of a candidate. The caller must not change them.

        Pods of a controller mostly have the same labels, as one object. They are not compared again with the entries
        until one comes or goes, or until `forget`: that takes 1 us for each.
        """
        stored = self._stored.get((namespace, id(labels)))
        if stored is not None:
            return stored[1]
        found = [entry for entry in self.candidates(namespace, labels) if selects(entry)]
        if len(found) <= FEW and len(labels) <= FEW:
            if len(self._stored) == MAX_STORED:
                self._stored.clear()
            self._stored[namespace, id(labels)] = labels, found
        return found

    def candidates(self, namespace: str, labels: Mapping[str, str]) -> Sequence[Entry]:
        """Return the entries that may select such a pod. The caller must check the whole matcher."""
        found: list[Entry] = []
        for scope in (namespace, _ANY_NAMESPACE):
            of_scope = self._buckets.get(scope)
            if of_scope is not None:
                found += of_scope.get(_NO_PAIR, ())
                for pair in labels.items():
                    if pair in of_scope:
                        found += of_scope[pair]
        return found

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
        under: Iterator[list[_Bucket]] = ([(scope, pair) for scope in scopes for pair in pairs] for pairs in fitting)
        return min(under, key=lambda homes: sum([self._crowd(*home) for home in homes]))

    def _crowd(self, scope: str | None, pair: _Pair | None) -> int:
        return len(self._buckets.get(scope, {}).get(pair, ()))
