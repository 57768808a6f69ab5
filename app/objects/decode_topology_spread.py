"""JSON of a pod's spec.topologySpreadConstraints to the core's values."""

from functools import lru_cache
from typing import Final

import msgspec

from app.objects.decode import NULL, Int32, LabelSelector, Wire, decoding_field, selector_of
from core.objects.labels import NOTHING, Selector, SelectorError
from core.objects.topology_spread import HONOR, IGNORE, SpreadConstraint

_MEMO_ENTRIES: Final = 8192
_MEMO_BYTES: Final = 4 * 1024  # longer ones are parsed each time, so the memo has at most 32 MiB of keys


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


_decoder: Final[msgspec.json.Decoder[list[WireSpreadConstraint] | None]] = msgspec.json.Decoder(
    list[WireSpreadConstraint] | None
)


def topology_spread_of(raw: msgspec.Raw) -> tuple[SpreadConstraint, ...]:
    """Return the constraints. Pods with equal constraints mostly share them. Raises DecodeError.

    An invalid selector does not raise. It is the constraint's `selector_error`.
    """
    if raw is NULL:
        return ()
    text = bytes(raw)
    return _memoised_constraints(text) if len(text) <= _MEMO_BYTES else _parse_constraints(text)


def _parse_constraints(raw: bytes) -> tuple[SpreadConstraint, ...]:
    return tuple(map(_constraint, decoding_field(_decoder.decode, raw, "spec.topologySpreadConstraints") or ()))


_memoised_constraints = lru_cache(maxsize=_MEMO_ENTRIES)(_parse_constraints)


def _constraint(wire: WireSpreadConstraint) -> SpreadConstraint:
    selector, error = _selector(wire.label_selector)
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


def _selector(wire: LabelSelector | None) -> tuple[Selector, str]:
    try:
        return selector_of("labelSelector", wire), ""
    except SelectorError as error:
        return NOTHING, str(error)
