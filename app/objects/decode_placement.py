"""JSON of the members of a pod's spec that say where it may run: selectors, affinities, tolerations and spread."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final, TypeVar

import msgspec

from app.objects.decode import (
    MAX_LABEL_KEY_BYTES,
    MAX_LABEL_VALUE_BYTES,
    MAX_NAMESPACE_BYTES,
    NULL,
    Expression,
    Int32,
    LabelSelector,
    Wire,
    decoding_field,
    memoised,
    nullable,
    refuse_long_labels,
    refuse_longer,
    selector_and_error,
    selector_of,
    text_map_of,
    under,
)
from core.objects.affinity import (
    NO_AFFINITY,
    NO_NODE_AFFINITY,
    AffinityTerm,
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    PodAffinity,
    PodMatcher,
    PreferredTerm,
    TermError,
    WeightedAffinityTerm,
    parse_node_selector,
    selector_from_set,
)
from core.objects.affinity import Expression as Requirement
from core.objects.labels import SelectorError
from core.objects.pod import HONOR, IGNORE, NO_TOLERATIONS, SpreadConstraint, Taint, Toleration

T = TypeVar("T")

_MEMO_ENTRIES: Final = 2048
_MEMO_BYTES: Final = 2 * 1024  # a longer affinity is parsed each time, so a memo has at most some 32 MiB of values
_PATH: Final = "spec.affinity.nodeAffinity"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


class WireNodeSelectorTerm(Wire):
    """A v1.NodeSelectorTerm."""

    match_expressions: list[Expression] | None = None
    match_fields: list[Expression] | None = None


class WireNodeSelector(Wire):
    """A v1.NodeSelector."""

    node_selector_terms: list[WireNodeSelectorTerm] | None = None


def node_selector_of(wire: WireNodeSelector) -> NodeSelector:
    """Return the selector. Invalid terms do not raise. They match no node, and have the error.

    Raises DecodeError for a key that no label can have.
    """
    return parse_node_selector(
        [
            requirements_of(term, f"nodeSelectorTerms[{index}]")
            for index, term in enumerate(wire.node_selector_terms or ())
        ]
    )


def requirements_of(term: WireNodeSelectorTerm, path: str) -> tuple[list[Requirement], list[Requirement]]:
    """Return the expressions and the fields of a term, for `parse_node_selector`. Raises DecodeError."""
    return (
        _requirements(term.match_expressions or (), f"{path}.matchExpressions"),
        _requirements(term.match_fields or (), f"{path}.matchFields"),
    )


def _requirements(expressions: Sequence[Expression], path: str) -> list[Requirement]:
    for index, each in enumerate(expressions):
        refuse_longer(each.key, MAX_LABEL_KEY_BYTES, f"{path}[{index}].key")
    return [(each.key or "", each.operator or "", each.values or ()) for each in expressions]


class _PreferredNodeTerm(Wire):
    weight: Int32 | None = None
    preference: WireNodeSelectorTerm | None = None


class WireNodeAffinity(Wire):
    """A v1.NodeAffinity."""

    required: WireNodeSelector | None = msgspec.field(default=None, name=_REQUIRED)
    preferred: list[_PreferredNodeTerm] | None = msgspec.field(default=None, name=_PREFERRED)


class WireNodeAffinities(Wire):
    """Node affinity, of a v1.Affinity."""

    node_affinity: WireNodeAffinity | None = None


_node_affinity_decoder: Final = nullable(WireNodeAffinities)


def node_affinity_of(affinity: bytes, node_selector: msgspec.Raw) -> NodeAffinity:
    """Return the node affinity of a pod. `affinity` is its spec.affinity. Raises DecodeError.

    Invalid terms do not raise. They have `errors`. Pods with equal node affinity mostly share one value.
    """
    # Most affinities are only to pods, and were parsed already.
    if b'"nodeAffinity"' not in affinity:
        if node_selector is NULL:
            return NO_NODE_AFFINITY
        affinity = b"null"
    selector = bytes(node_selector)
    parse = _memoised_node_affinity if len(affinity) + len(selector) <= _MEMO_BYTES else _parse_node_affinity
    return parse(affinity, selector)


def _parse_node_affinity(affinity: bytes, node_selector: bytes) -> NodeAffinity:
    labels = text_map_of(node_selector, "spec.nodeSelector")
    refuse_long_labels(labels, "spec.nodeSelector")
    affinities = decoding_field(_node_affinity_decoder.decode, affinity, "spec.affinity") or WireNodeAffinities()
    wire = affinities.node_affinity or WireNodeAffinity()
    with under(f"{_PATH}.{_REQUIRED}"):
        terms = None if wire.required is None else node_selector_of(wire.required).terms
    with under(f"{_PATH}.{_PREFERRED}"):
        preferred = _preferred_terms(wire.preferred or ())
    parsed = NodeAffinity(
        selector=selector_from_set(labels),
        required=None if terms is None else NodeSelector(tuple(sorted(set(terms), key=_members))),
        preferred=preferred,
        node_names=_node_names((wire.required or WireNodeSelector()).node_selector_terms or ()),
        empty_preferences=bool(wire.preferred) and not preferred,
    )
    return NO_NODE_AFFINITY if parsed == NO_NODE_AFFINITY else parsed


_memoised_node_affinity = lru_cache(maxsize=_MEMO_ENTRIES)(_parse_node_affinity)


def _members(term: NodeSelectorTerm) -> tuple[object, ...]:
    return term.requirements, term.comparisons, term.fields, term.errors


def _preferred_terms(wires: Sequence[_PreferredNodeTerm]) -> tuple[PreferredTerm, ...]:
    """Parse the terms as in a node selector. Only the paths in errors differ."""
    nothing = WireNodeSelectorTerm()
    selectors = [wire.preference or nothing if wire.weight else nothing for wire in wires]
    requirements = [requirements_of(term, f"[{index}].preference") for index, term in enumerate(selectors)]
    weights = [wire.weight or 0 for wire, parsed in zip(wires, requirements, strict=True) if any(parsed)]
    terms = parse_node_selector(requirements).terms
    if any(term.errors for term in terms):
        return tuple(PreferredTerm(weight, _renamed(term)) for weight, term in zip(weights, terms, strict=True))
    preferred = [PreferredTerm(weight, term) for weight, term in zip(weights, terms, strict=True)]
    return tuple(sorted(preferred, key=lambda each: (each.weight, _members(each.term))))


def _renamed(term: NodeSelectorTerm) -> NodeSelectorTerm:
    errors = tuple(error.removeprefix("nodeSelectorTerms") for error in term.errors)
    return msgspec.structs.replace(term, errors=errors)


def _node_names(terms: Sequence[WireNodeSelectorTerm]) -> frozenset[str] | None:
    """Upstream NodeAffinity.PreFilter. It reads the fields before they are parsed, in invalid terms, too."""
    if not terms:
        return None
    names: set[str] = set()
    for term in terms:
        fields = [
            set(each.values or ())
            for each in term.match_fields or ()
            if each.key == "metadata.name" and each.operator == "In"
        ]
        if not fields:
            return None
        names |= set.intersection(*fields)
    return frozenset(names)


class _Term(Wire):
    label_selector: LabelSelector | None = None
    namespaces: list[str] | None = None
    topology_key: str | None = None
    namespace_selector: LabelSelector | None = None


class _WeightedTerm(Wire):
    weight: Int32 | None = None
    pod_affinity_term: _Term | None = None


class _Terms(Wire):
    required: list[_Term] | None = msgspec.field(default=None, name=_REQUIRED)
    preferred: list[_WeightedTerm] | None = msgspec.field(default=None, name=_PREFERRED)


class WirePodAffinities(Wire):
    """Inter-pod affinity and anti-affinity, of a v1.Affinity."""

    pod_affinity: _Terms | None = None
    pod_anti_affinity: _Terms | None = None


_pod_affinity_decoder: Final = msgspec.json.Decoder(WirePodAffinities)


def affinity_of(namespace: str, raw: bytes) -> PodAffinity:
    """Return the terms of a pod in the namespace; `raw` is its spec.affinity. Raises DecodeError.

    Invalid terms do not raise. They are in `errors`.
    """
    if raw == b"null":
        return NO_AFFINITY
    # The pods of one controller have the same bytes. With the memo they share one parsed value.
    return _memoised_affinity(namespace, raw) if len(raw) <= _MEMO_BYTES else _parse_affinity(namespace, raw)


def _parse_affinity(namespace: str, raw: bytes) -> PodAffinity:
    wire = decoding_field(_pod_affinity_decoder.decode, raw, "spec.affinity")
    errors: list[TermError] = []

    def parsed(group: str, path: str, parse: Callable[[], list[T]]) -> tuple[T, ...]:
        try:
            with under(f"spec.affinity.{path}"):
                return tuple(parse())
        except SelectorError as error:
            errors.append(TermError(group, f"{path}{error.field}", str(error)))
            return ()

    attract, repel = wire.pod_affinity or _Terms(), wire.pod_anti_affinity or _Terms()
    affinity = PodAffinity(
        required_affinity=parsed(
            "requiredAffinityTerms", f"podAffinity.{_REQUIRED}", lambda: _required(namespace, attract)
        ),
        required_anti_affinity=parsed(
            "requiredAntiAffinityTerms", f"podAntiAffinity.{_REQUIRED}", lambda: _required(namespace, repel)
        ),
        preferred_affinity=parsed(
            "preferredAffinityTerms", f"podAffinity.{_PREFERRED}", lambda: _preferred(namespace, attract)
        ),
        preferred_anti_affinity=parsed(
            "preferredAntiAffinityTerms", f"podAntiAffinity.{_PREFERRED}", lambda: _preferred(namespace, repel)
        ),
    )
    if errors:
        return msgspec.structs.replace(affinity, errors=tuple(errors))
    return NO_AFFINITY if affinity == NO_AFFINITY else affinity


_memoised_affinity = lru_cache(maxsize=_MEMO_ENTRIES)(_parse_affinity)


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
    refuse_longer(term.topology_key, MAX_LABEL_KEY_BYTES, f"{path}.topologyKey")
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
        refuse_longer(key, MAX_LABEL_KEY_BYTES, f"{path}.matchLabels")
    for index, expression in enumerate(selector.match_expressions or ()):
        refuse_longer(expression.key, MAX_LABEL_KEY_BYTES, f"{path}.matchExpressions[{index}].key")


class WireTaint(Wire):
    """A v1.Taint, or a v1.DeviceTaint."""

    key: str | None = None
    value: str | None = None
    effect: str | None = None


def taint_of(wire: WireTaint, field: str) -> Taint:
    """Return the taint. Raises DecodeError."""
    refuse_longer(wire.key, MAX_LABEL_KEY_BYTES, f"{field}.key")
    refuse_longer(wire.value, MAX_LABEL_VALUE_BYTES, f"{field}.value")
    return Taint(wire.key or "", wire.value or "", wire.effect or "")


class WireToleration(Wire):
    """A v1.Toleration."""

    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


_tolerations_decoder: Final = nullable(list[WireToleration])


def _parse_tolerations(raw: bytes) -> frozenset[Toleration]:
    wires = decoding_field(_tolerations_decoder.decode, raw, "spec.tolerations") or ()
    for index, each in enumerate(wires):
        refuse_longer(each.key, MAX_LABEL_KEY_BYTES, f"spec.tolerations[{index}].key")
        refuse_longer(each.value, MAX_LABEL_VALUE_BYTES, f"spec.tolerations[{index}].value")
    return frozenset(map(toleration_of, wires)) or NO_TOLERATIONS


def toleration_of(wire: WireToleration) -> Toleration:
    """Return a toleration of taints of a node or of a device."""
    return Toleration(wire.key or "", wire.operator or "Equal", wire.value or "", wire.effect or "")


tolerations_of: Final = memoised(_parse_tolerations)
"""Returns the set of tolerations in `spec.tolerations`. Raises DecodeError."""


class WireSpreadConstraint(Wire):
    """A v1.TopologySpreadConstraint."""

    max_skew: Int32 | None = None
    topology_key: str | None = None
    when_unsatisfiable: str | None = None
    label_selector: LabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: list[str] | None = None


_constraints_decoder: Final = nullable(list[WireSpreadConstraint])


def _constraint(wire: WireSpreadConstraint) -> SpreadConstraint:
    selector, error = selector_and_error(wire.label_selector)
    return SpreadConstraint(
        max_skew=wire.max_skew or 0,
        topology_key=wire.topology_key or "",
        when_unsatisfiable=wire.when_unsatisfiable or "",
        selector=selector,
        selector_error=error,
        min_domains=1 if wire.min_domains is None else wire.min_domains,
        node_affinity_policy=HONOR if wire.node_affinity_policy is None else wire.node_affinity_policy,
        node_taints_policy=IGNORE if wire.node_taints_policy is None else wire.node_taints_policy,
        match_label_keys=tuple(sorted(set(wire.match_label_keys or ()))),
    )


def _parse_constraints(raw: bytes) -> tuple[SpreadConstraint, ...]:
    wires = decoding_field(_constraints_decoder.decode, raw, "spec.topologySpreadConstraints") or ()
    return tuple(map(_constraint, wires))


topology_spread_of: Final = memoised(_parse_constraints, longest=4 * 1024)
"""Returns the constraints in `spec.topologySpreadConstraints`. Raises DecodeError.

An invalid selector does not raise. It is the constraint's `selector_error`.
"""
