"""JSON of a pod's spec.tolerations to the core's values."""

from functools import lru_cache
from typing import Final

import msgspec

from app.objects.decode import NULL, Wire, decoding_field, refuse_long_key, refuse_longer
from app.objects.sizes import MAX_LABEL_VALUE_BYTES
from core.objects.toleration import NO_TOLERATIONS, Toleration

_MEMO_ENTRIES: Final = 8192
_MEMO_BYTES: Final = 2 * 1024  # longer ones are parsed each time, so the memo has at most 16 MiB of keys


class WireToleration(Wire):
    """A v1.Toleration."""

    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


_decoder: Final[msgspec.json.Decoder[list[WireToleration] | None]] = msgspec.json.Decoder(list[WireToleration] | None)


def tolerations_of(raw: msgspec.Raw) -> frozenset[Toleration]:
    """Return the tolerations. Pods with equal tolerations mostly share the set. Raises DecodeError."""
    if raw is NULL:
        return NO_TOLERATIONS
    text = bytes(raw)
    return _memoised_tolerations(text) if len(text) <= _MEMO_BYTES else _parse_tolerations(text)


def _parse_tolerations(raw: bytes) -> frozenset[Toleration]:
    wires = decoding_field(_decoder.decode, raw, "spec.tolerations") or ()
    for index, each in enumerate(wires):
        refuse_long_key(each.key, f"spec.tolerations[{index}].key")
        refuse_longer(each.value, MAX_LABEL_VALUE_BYTES, f"spec.tolerations[{index}].value")
    tolerations = frozenset(
        Toleration(each.key or "", each.operator or "Equal", each.value or "", each.effect or "") for each in wires
    )
    return tolerations or NO_TOLERATIONS


_memoised_tolerations = lru_cache(maxsize=_MEMO_ENTRIES)(_parse_tolerations)
