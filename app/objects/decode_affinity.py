"""JSON of a pod's spec.affinity to inter-pod affinity terms."""

from collections.abc import Callable
from functools import lru_cache
from typing import Final, TypeVar

import msgspec

from app.objects.decode import (
    Int32,
    LabelSelector,
    Wire,
    decoding_field,
    refuse_long_key,
    refuse_longer,
    selector_of,
    under,
)
from app.objects.sizes import MAX_NAMESPACE_BYTES
from core.objects.affinity import (
    NO_AFFINITY,
    AffinityTerm,
    PodAffinity,
    PodMatcher,
    TermError,
    WeightedAffinityTerm,
)
from core.objects.labels import SelectorError

T = TypeVar("T")

_MEMO_ENTRIES: Final = 2048
_MEMO_BYTES: Final = 2 * 1024  # a longer affinity is parsed each time, so the memo has at most some 32 MiB of values


class _Term(Wire):
    label_selector: LabelSelector | None = None
    namespaces: list[str] | None = None
    topology_key: str | None = None
    namespace_selector: LabelSelector | None = None


class _WeightedTerm(Wire):
    weight: Int32 | None = None
    pod_affinity_term: _Term | None = None


class _Terms(Wire):
    required: list[_Term] | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: list[_WeightedTerm] | None = msgspec.field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class WirePodAffinities(Wire):
    """Inter-pod affinity and anti-affinity, of a v1.Affinity."""

    pod_affinity: _Terms | None = None
    pod_anti_affinity: _Terms | None = None


_affinity_decoder: Final = msgspec.json.Decoder(WirePodAffinities)


def affinity_of(namespace: str, raw: bytes) -> PodAffinity:
    """Return the terms of a pod in the namespace; `raw` is its spec.affinity. Raises DecodeError.

    Invalid terms do not raise. They are in `errors`.
    """
    if raw == b"null":
        return NO_AFFINITY
    # The pods of one controller have the same bytes. With the memo they share one parsed value.
    return _memoised_affinity(namespace, raw) if len(raw) <= _MEMO_BYTES else _parse_affinity(namespace, raw)


@lru_cache(maxsize=_MEMO_ENTRIES)
def _memoised_affinity(namespace: str, raw: bytes) -> PodAffinity:
    return _parse_affinity(namespace, raw)


def _parse_affinity(namespace: str, raw: bytes) -> PodAffinity:
    wire = decoding_field(_affinity_decoder.decode, raw, "spec.affinity")
    errors: list[TermError] = []

    def parsed(group: str, path: str, parse: Callable[[], list[T]]) -> tuple[T, ...]:
        try:
            with under(f"spec.affinity.{path}"):
                return tuple(parse())
        except SelectorError as error:
            errors.append(TermError(group, f"{path}{error.field}", str(error)))
            return ()

    attract, repel = wire.pod_affinity or _Terms(), wire.pod_anti_affinity or _Terms()
    required, preferred = (
        "requiredDuringSchedulingIgnoredDuringExecution",
        "preferredDuringSchedulingIgnoredDuringExecution",
    )
    affinity = PodAffinity(
        required_affinity=parsed(
            "requiredAffinityTerms", f"podAffinity.{required}", lambda: _required(namespace, attract)
        ),
        required_anti_affinity=parsed(
            "requiredAntiAffinityTerms", f"podAntiAffinity.{required}", lambda: _required(namespace, repel)
        ),
        preferred_affinity=parsed(
            "preferredAffinityTerms", f"podAffinity.{preferred}", lambda: _preferred(namespace, attract)
        ),
        preferred_anti_affinity=parsed(
            "preferredAntiAffinityTerms", f"podAntiAffinity.{preferred}", lambda: _preferred(namespace, repel)
        ),
    )
    if errors:
        return msgspec.structs.replace(affinity, errors=tuple(errors))
    return NO_AFFINITY if affinity == NO_AFFINITY else affinity


def _required(namespace: str, terms: _Terms) -> list[AffinityTerm]:
    return [_term(namespace, f"[{index}]", term) for index, term in enumerate(terms.required or ())]


def _preferred(namespace: str, terms: _Terms) -> list[WeightedAffinityTerm]:
    return [
        WeightedAffinityTerm(
            _term(namespace, f"[{index}].podAffinityTerm", weighted.pod_affinity_term or _Term()),
            weighted.weight or 0,
        )
        for index, weighted in enumerate(terms.preferred or ())
    ]


def _term(namespace: str, path: str, term: _Term) -> AffinityTerm:
    """Upstream newAffinityTerm: the namespaces of the term, or the pod's namespace if the term names none."""
    refuse_long_key(term.topology_key, f"{path}.topologyKey")
    _refuse_long_keys(term.label_selector, f"{path}.labelSelector")
    _refuse_long_keys(term.namespace_selector, f"{path}.namespaceSelector")
    for index, each in enumerate(term.namespaces or ()):
        if len(each) > MAX_NAMESPACE_BYTES:
            refuse_longer(each, MAX_NAMESPACE_BYTES, f"{path}.namespaces[{index}]")
    selector = selector_of(f"{path}.labelSelector", term.label_selector)
    namespace_selector = selector_of(f"{path}.namespaceSelector", term.namespace_selector)
    namespaces = term.namespaces or []
    if not namespaces and term.namespace_selector is None:
        namespaces = [namespace]
    matcher = PodMatcher(frozenset(namespaces), namespace_selector, selector)
    return AffinityTerm(matcher, term.topology_key or "")


def _refuse_long_keys(selector: LabelSelector | None, path: str) -> None:
    """Reject a key that no label can have. An API server does not limit the sizes of values. Raises DecodeError."""
    if selector is None:
        return
    for key in selector.match_labels or ():
        refuse_long_key(key, f"{path}.matchLabels")
    for index, expression in enumerate(selector.match_expressions or ()):
        refuse_long_key(expression.key, f"{path}.matchExpressions[{index}].key")
