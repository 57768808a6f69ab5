"""Affinity terms of the naive reference, read from v1 pods once, as upstream's NodeInfo holds them parsed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from tests.reference.selectors import (
    NOTHING,
    InvalidSelectorError,
    Labels,
    LabelSelector,
    Object,
    parse_selector,
)

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True, slots=True)
class Term:
    """One affinity term; `weight` is that of a preferred term and 0 in a required one."""

    namespaces: frozenset[str]
    namespace_selector: LabelSelector
    selector: LabelSelector
    topology_key: str
    weight: int

    def matches(self, namespace: str, labels: Labels, namespace_labels: Labels) -> bool:
        """Return whether a pod matches, given the labels of the pod's namespace."""
        if namespace in self.namespaces or self.namespace_selector.matches(namespace_labels):
            return self.selector.matches(labels)
        return False

    def with_namespaces_named(self, namespaces: Mapping[str, Labels]) -> "Term":
        """Turn the namespaceSelector into the names of the listed namespaces that it selects.

        Upstream does that for the terms of an incoming pod, so a namespace that is not listed is never selected, except
        by the selector of everything, which is left as it is.
        """
        if self.namespace_selector.is_empty:
            return self
        selected = {name for name, labels in namespaces.items() if self.namespace_selector.matches(labels)}
        return replace(self, namespaces=self.namespaces | selected, namespace_selector=NOTHING)


@dataclass(frozen=True, slots=True)
class ParsedPod:
    """A pod with its four lists of terms; a list with a broken term is empty and its error kept."""

    namespace: str
    labels: Labels
    required_affinity: tuple[Term, ...]
    required_anti_affinity: tuple[Term, ...]
    preferred_affinity: tuple[Term, ...]
    preferred_anti_affinity: tuple[Term, ...]
    has_affinity: bool
    has_preferred_terms: bool
    errors: tuple[str, ...]

    @property
    def error(self) -> str:
        """All errors in upstream's one text."""
        distinct = list(dict.fromkeys(self.errors))
        return distinct[0] if len(distinct) == 1 else "[" + ", ".join(distinct) + "]"


def parse_pod(pod: Object) -> ParsedPod:
    """Read a v1.Pod; broken terms do not raise, they are in `errors`."""
    metadata, affinity = pod["metadata"], pod.get("spec", {}).get("affinity") or {}
    namespace = metadata.get("namespace") or "default"
    attract, repel = affinity.get("podAffinity") or {}, affinity.get("podAntiAffinity") or {}
    errors: list[str] = []

    def parsed(
        name: str, read: Callable[[str, Sequence[Object]], list[Term]], v1: Sequence[Object]
    ) -> tuple[Term, ...]:
        try:
            return tuple(read(namespace, v1))
        except InvalidSelectorError as error:
            errors.append(f"{name}: {error}")
            return ()

    return ParsedPod(
        namespace=namespace,
        labels=metadata.get("labels") or {},
        required_affinity=parsed("requiredAffinityTerms", _required_terms, attract.get(REQUIRED) or ()),
        required_anti_affinity=parsed("requiredAntiAffinityTerms", _required_terms, repel.get(REQUIRED) or ()),
        preferred_affinity=parsed("preferredAffinityTerms", _preferred_terms, attract.get(PREFERRED) or ()),
        preferred_anti_affinity=parsed("preferredAntiAffinityTerms", _preferred_terms, repel.get(PREFERRED) or ()),
        has_affinity=bool(attract or repel),
        has_preferred_terms=bool(attract.get(PREFERRED) or repel.get(PREFERRED)),
        errors=tuple(errors),
    )


def _required_terms(namespace: str, terms: Sequence[Object]) -> list[Term]:
    return [_term(namespace, term, 0) for term in terms]


def _preferred_terms(namespace: str, terms: Sequence[Object]) -> list[Term]:
    return [_term(namespace, weighted.get("podAffinityTerm") or {}, weighted.get("weight") or 0) for weighted in terms]


def _term(namespace: str, term: Object, weight: int) -> "Term":
    """Read one term; it speaks of the namespace of its own pod when it says nothing of namespaces at all."""
    selector = parse_selector(term.get("labelSelector"))
    namespace_selector = parse_selector(term.get("namespaceSelector"))
    namespaces = frozenset(term.get("namespaces") or ())
    if not namespaces and term.get("namespaceSelector") is None:
        namespaces = frozenset((namespace,))
    return Term(namespaces, namespace_selector, selector, term.get("topologyKey") or "", weight)
