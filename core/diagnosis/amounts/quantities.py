"""Amounts of resources as text: exact if that is short, else rounded to the safe side."""

from typing import Final

_BINARY: Final = {"Ei": 2**60, "Pi": 2**50, "Ti": 2**40, "Gi": 2**30, "Mi": 2**20, "Ki": 2**10}
_IN_BYTES: Final = ("memory", "ephemeral-storage", "hugepages-")
_MILLIS: Final = 1000
_SHORT: Final = 10_000
"""Numbers below this value are written in full."""
_PLACES: Final = 100


def quantity_text(resource: str, amount: int, *, round_up: bool = False) -> str:
    """Return an amount (cpu in millicores, all others in their own unit) in the notation of Kubernetes.

    Bytes have at most two decimals. They are rounded down, or up with `round_up`.
    """
    if amount < 0:
        return f"-{quantity_text(resource, -amount, round_up=not round_up)}"
    if resource == "cpu":
        whole, millis = divmod(amount, _MILLIS)
        return f"{amount}m" if millis else f"{whole}"
    return _bytes_text(amount, round_up=round_up) if resource.startswith(_IN_BYTES) else f"{amount}"


def _bytes_text(amount: int, *, round_up: bool) -> str:
    for suffix, unit in _BINARY.items():
        if amount >= unit and not amount % unit and amount // unit < _SHORT:
            return f"{amount // unit}{suffix}"
    for suffix, unit in _BINARY.items():
        if amount >= unit:
            hundredths = -(-amount * _PLACES // unit) if round_up else amount * _PLACES // unit
            whole, rest = divmod(hundredths, _PLACES)
            return f"{whole}.{rest:02d}".rstrip("0").rstrip(".") + suffix
    return f"{amount}"
