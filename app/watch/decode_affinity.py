"""JSON of a pod's spec.affinity to inter-pod affinity terms."""

from collections.abc import Callable
from functools import lru_cache
from typing import Final, TypeVar

import msgspec

from app.watch.decode import Int32, LabelSelector, Wire, decoding_field, selector_of
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

_MEMO_ENTRIES: Final = 8192
_MEMO_BYTES: Final = 16 * 1024  # a longer affinity is parsed each time, so that the memo is bounded (128 MiB)


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


class _Affinity(Wire):
    pod_affinity: _Terms | None = None
    pod_anti_affinity: _Terms | None = None


_affinity_decoder: Final = msgspec.json.Decoder(_Affinity)


def affinity_of(namespace: str, raw: bytes) -> PodAffinity:
    """Return the terms of a pod in the namespace; `raw` is its spec.affinity. Raises DecodeError.

    Broken terms do not raise: they are in `errors`.
    """
    if raw == b"null":
        return NO_AFFINITY
    # The pods of one controller carry the same bytes: parsing once also makes them share one value.
    return _memoised_affinity(namespace, raw) if len(raw) <= _MEMO_BYTES else _parse_affinity(namespace, raw)


@lru_cache(maxsize=_MEMO_ENTRIES)
def _memoised_affinity(namespace: str, raw: bytes) -> PodAffinity:
    return _parse_affinity(namespace, raw)


def _parse_affinity(namespace: str, raw: bytes) -> PodAffinity:
    wire = decoding_field(_affinity_decoder.decode, raw, "spec.affinity")
    errors: list[TermError] = []

    def parsed(group: str, path: str, parse: Callable[[], list[T]]) -> tuple[T, ...]:
        try:
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
    """Upstream newAffinityTerm: the term's own namespaces, or the pod's when it names none at all."""
    selector = selector_of(f"{path}.labelSelector", term.label_selector)
    namespace_selector = selector_of(f"{path}.namespaceSelector", term.namespace_selector)
    namespaces = term.namespaces or []
    if not namespaces and term.namespace_selector is None:
        namespaces = [namespace]
    matcher = PodMatcher(frozenset(namespaces), namespace_selector, selector)
    return AffinityTerm(matcher, term.topology_key or "")
