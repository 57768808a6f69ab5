"""Decodes quantities, and lists of them such as a node's allocatable resources."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Final, TypeAlias

import msgspec

from app.objects.decode import DecodeError, Unread, decoding_field
from core.objects.pod_requests import Amounts, rounded
from core.objects.quantity import QuantityError, nanos

_MEMO_ENTRIES: Final = 8192
_MEASURED: Final = ("cpu", "memory")
"""Resources whose usage is measured, as a share of the capacity."""
_MEMO_BYTES: Final = 4 * 1024  # longer ones are parsed each time, so a memo has at most 32 MiB of keys


Quantity: TypeAlias = (
    Annotated[str, msgspec.Meta(pattern=r"^[0-9]{1,9}(\.[0-9]{1,3})?(m|k|M|G|Ki|Mi|Gi)?$")]
    | Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
)
"""A quantity as written in a manifest. JSON Schema cannot express every form that `nanos` reads."""
WireAmounts: TypeAlias = Annotated[msgspec.Raw, Unread(dict[str, Quantity])]
"""A v1.ResourceList."""

_amounts_decoder: Final[msgspec.json.Decoder[dict[str, msgspec.Raw] | None]] = msgspec.json.Decoder(
    dict[str, msgspec.Raw] | None
)
_text_decoder: Final = msgspec.json.Decoder(str)


def allocatable_of(raw: msgspec.Raw) -> Mapping[str, int]:
    """Return a node's status.allocatable. Nodes with equal values share it. Raises DecodeError."""
    text = bytes(raw)
    return _memoised_allocatable(text) if len(text) <= _MEMO_BYTES else _parse_allocatable(text)


def capacity_of(raw: msgspec.Raw) -> Mapping[str, int]:
    """Return the cpu and the memory of a node's status.capacity. Nodes with equal values share the mapping.

    Raises DecodeError.
    """
    text = bytes(raw)
    return _memoised_capacity(text) if len(text) <= _MEMO_BYTES else _parse_capacity(text)


def quantity_of(raw: msgspec.Raw, field: str) -> int:
    """Return the exact quantity, as `nanos` does. As in Go, null is 0. Raises DecodeError."""
    text = bytes(raw)
    if text == b"null":
        return 0
    try:
        # A number is read from its text, because a float would lose digits.
        return nanos(decoding_field(_text_decoder.decode, raw, field).strip() if text[:1] == b'"' else text.decode())
    except QuantityError as error:
        raise DecodeError(field, str(error)) from None


def amounts_of(raw: msgspec.Raw | bytes, field: str) -> Amounts:
    """Return the exact amounts of a v1.ResourceList. Raises DecodeError."""
    quantities = decoding_field(_amounts_decoder.decode, raw, field) or {}
    return {name: quantity_of(quantity, f"{field}.{name}") for name, quantity in quantities.items()}


def _parse_allocatable(raw: bytes) -> Mapping[str, int]:
    return rounded(amounts_of(raw, "status.allocatable"))


def _parse_capacity(raw: bytes) -> Mapping[str, int]:
    quantities = decoding_field(_amounts_decoder.decode, raw, "status.capacity") or {}
    return rounded(
        {name: quantity_of(quantities[name], f"status.capacity.{name}") for name in _MEASURED if name in quantities}
    )


_memoised_capacity = lru_cache(maxsize=_MEMO_ENTRIES)(_parse_capacity)
_memoised_allocatable = lru_cache(maxsize=_MEMO_ENTRIES)(_parse_allocatable)
