"""JSON of a pod's spec.nodeSelector and of the nodeAffinity in its spec.affinity to the core's value."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import msgspec

from app.objects.decode import NULL, Int32, Wire, decoding_field, refuse_long_labels, under
from app.objects.decode_node_selector import WireNodeSelector, WireNodeSelectorTerm, node_selector_of, requirements_of
from core.objects.node_affinity import NO_NODE_AFFINITY, NodeAffinity, PreferredTerm, selector_from_set
from core.objects.node_selector import NodeSelector, NodeSelectorTerm, parse_node_selector

_MEMO_ENTRIES: Final = 2048
_MEMO_BYTES: Final = 2 * 1024  # longer ones are parsed each time, so the memo has at most some 32 MiB of values
_PATH: Final = "spec.affinity.nodeAffinity"
_DURING: Final = "DuringSchedulingIgnoredDuringExecution"


class _PreferredTerm(Wire):
    weight: Int32 | None = None
    preference: WireNodeSelectorTerm | None = None


class WireNodeAffinity(Wire):
    """A v1.NodeAffinity."""

    required: WireNodeSelector | None = msgspec.field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: list[_PreferredTerm] | None = msgspec.field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class WireNodeAffinities(Wire):
    """Node affinity, of a v1.Affinity."""

    node_affinity: WireNodeAffinity | None = None


_affinity_decoder: Final[msgspec.json.Decoder[WireNodeAffinities | None]] = msgspec.json.Decoder(
    WireNodeAffinities | None
)
_node_selector_decoder: Final[msgspec.json.Decoder[dict[str, str] | None]] = msgspec.json.Decoder(dict[str, str] | None)


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
    labels = decoding_field(_node_selector_decoder.decode, node_selector, "spec.nodeSelector") or {}
    refuse_long_labels(labels, "spec.nodeSelector")
    wire = (decoding_field(_affinity_decoder.decode, affinity, "spec.affinity") or WireNodeAffinities()).node_affinity
    wire = wire or WireNodeAffinity()
    with under(f"{_PATH}.required{_DURING}"):
        required = None if wire.required is None else _sorted_terms(node_selector_of(wire.required))
    with under(f"{_PATH}.preferred{_DURING}"):
        preferred = _preferred(wire.preferred or ())
    parsed = NodeAffinity(
        selector=selector_from_set(labels),
        required=required,
        preferred=preferred,
        node_names=_node_names((wire.required or WireNodeSelector()).node_selector_terms or ()),
        empty_preferences=bool(wire.preferred) and not preferred,
    )
    return NO_NODE_AFFINITY if parsed == NO_NODE_AFFINITY else parsed


_memoised_node_affinity = lru_cache(maxsize=_MEMO_ENTRIES)(_parse_node_affinity)


def _sorted_terms(selector: NodeSelector) -> NodeSelector:
    return NodeSelector(tuple(sorted(set(selector.terms), key=_members)))


def _members(term: NodeSelectorTerm) -> tuple[object, ...]:
    return term.requirements, term.comparisons, term.fields, term.errors


def _preferred(wires: Sequence[_PreferredTerm]) -> tuple[PreferredTerm, ...]:
    """Parse the terms as in a node selector. Only the paths in errors differ."""
    nothing = WireNodeSelectorTerm()
    kept = [wire.preference or nothing if wire.weight else nothing for wire in wires]
    requirements = [requirements_of(term, f"[{index}].preference") for index, term in enumerate(kept)]
    weights = [wire.weight or 0 for wire, asked in zip(wires, requirements, strict=True) if any(asked)]
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
