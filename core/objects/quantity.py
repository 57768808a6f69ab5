"""Resource quantities (`250m`, `1.5Gi`, `1e3`) as exact integers.

Source: k8s.io/apimachinery pkg/api/resource/quantity.go (ParseQuantity, ScaledValue), amount.go (AsScaledInt64) and
suffix.go. Upstream caps only quantities with a binary suffix at int64, and lets others overflow, see `units`.
"""

import re
from functools import lru_cache
from typing import Final

import msgspec

_INT64: Final = 2**63
MAX_INT64: Final = _INT64 - 1
MAX_LENGTH: Final = 1024
"""Maximum length of a quantity, of a message and of a quoted value, in characters. The API server writes quantities of
about twenty. Names have at most 253, label keys 317."""

_NANO: Final = 9  # upstream keeps nine decimal places and rounds smaller fractions up
_NANOS: Final = 10**_NANO
_NANOS_PER_MILLI: Final = 10**6
_LARGEST: Final = MAX_INT64 * _NANOS
_MAX_EXPONENT: Final = 90  # larger ones change no result: the low 64 bits of 10^64 are 0
_FEW_DIGITS: Final = 10**18  # what upstream's fast path (int64Amount) holds
_UNCHECKED: Final = (1, 2, 3)  # factors of 1,000 that positiveScaleInt64 multiplies at once
_MEMO_ENTRIES: Final = 4096
_MANY_DOUBLINGS: Final = 50  # for Pi and Ei

_FORMAT: Final = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"  # as messages quote it; upstream's scanner follows
# Possessive: without this, a text that does not match takes time quadratic in its length.
_scanned: Final = re.compile(r"([+-]?)([0-9]*+)(?:\.([0-9]*+))?+([eEinumkKMGTP]*+[-+]?[0-9]*)")
_exponent: Final = re.compile("[eE]([+-]?[0-9]+)")
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


class QuantityError(ValueError):
    """A text is not a quantity. The message is upstream's."""


def units(amount: int) -> int:
    """Return an amount of `nanos` in whole units, rounded away from zero, as upstream's Value().

    An amount that no int64 holds is mostly 0, such as 50E, because ScaledValue ignores that its fast path failed. With
    more than 18 digits, or one to three factors of 1,000, it is cut to its lowest 64 bits.
    """
    return _scaled_down(amount, _NANOS)


def millis(amount: int) -> int:
    """Return an amount of `nanos` in thousandths, as upstream's MilliValue(). Overflows like `units`."""
    return _scaled_down(amount, _NANOS_PER_MILLI)


def capped(amount: int) -> int:
    """Return an amount of `nanos` in whole units, at most 2^63-1, for sizes that upstream compares as quantities."""
    return units(max(min(amount, _LARGEST), -_LARGEST))


@lru_cache(maxsize=_MEMO_ENTRIES)
def nanos(text: str) -> int:
    """Return a quantity in billionths, upstream's finest unit. Sums and comparisons must use this unit.

    Raises QuantityError.
    """
    if len(text) > MAX_LENGTH:
        raise QuantityError(f"quantities must be no more than {MAX_LENGTH} characters")
    scanned = _scanned.fullmatch(text) if text else None
    if scanned is None:
        raise QuantityError(f"quantities must match the regular expression '{_FORMAT}'")
    sign, whole, fraction, suffix = scanned.groups(default="")
    exponent, doublings = _suffix(suffix)
    if not (whole or fraction) and (doublings >= _MANY_DOUBLINGS or exponent < -_NANO):
        # Upstream reads missing digits as 0, but only outside its fast path.
        raise QuantityError("unable to parse numeric part of quantity")
    # Python ints do not overflow. The length of the text bounds their size.
    mantissa = int(whole + fraction or "0") << doublings
    amount = _shifted(mantissa, min(exponent, _MAX_EXPONENT) - len(fraction) + _NANO)
    if suffix in _BINARY:
        amount = min(amount, _LARGEST)
    return -amount if sign == "-" else amount


def _suffix(suffix: str) -> tuple[int, int]:
    """Return the powers of ten and of two for a suffix."""
    if suffix in _DECIMAL:
        return _DECIMAL[suffix], 0
    if suffix in _BINARY:
        return 0, _BINARY[suffix]
    exponent = _exponent.fullmatch(suffix)
    if exponent is None or abs(power := int(exponent[1])) > MAX_INT64:
        raise QuantityError("unable to parse quantity's suffix")
    return power, 0


def _shifted(mantissa: int, exponent: int) -> int:
    """Return mantissa x 10^exponent, rounded up, without computing a huge power."""
    if mantissa == 0:
        return 0
    if -exponent > 2 * MAX_LENGTH:  # more decimal places than a mantissa can have digits
        return 1
    power: int = 10 ** abs(exponent)
    return mantissa * power if exponent >= 0 else -(-mantissa // power)


def _scaled_down(amount: int, divisor: int) -> int:
    magnitude = -(-abs(amount) // divisor)
    if magnitude > MAX_INT64:
        return _overflown(-magnitude if amount < 0 else magnitude)
    return -magnitude if amount < 0 else magnitude


def wrapped(amount: int) -> int:
    """Return an amount wrapped to an int64, as a sum in Go is."""
    return amount if -_INT64 <= amount < _INT64 else (amount + _INT64) % (2 * _INT64) - _INT64


def _overflown(value: int) -> int:
    digits, thousands = abs(value), 0
    while not digits % 1000:
        digits, thousands = digits // 1000, thousands + 1
    return wrapped(value) if digits >= _FEW_DIGITS or thousands in _UNCHECKED else 0


_NAMED_ESCAPES: Final = {
    "\a": r"\a",
    "\b": r"\b",
    "\f": r"\f",
    "\n": r"\n",
    "\r": r"\r",
    "\t": r"\t",
    "\v": r"\v",
    "\\": r"\\",
    '"': r"\"",
}
_LAST_ASCII: Final = 0x7F
_LAST_BMP: Final = 0xFFFF
# encoding/json escapes characters that HTML and JavaScript would misinterpret.
_JSON_ESCAPES: Final = str.maketrans(
    {char: f"\\u{ord(char):04x}" for char in ("<", ">", "&", "\N{LINE SEPARATOR}", "\N{PARAGRAPH SEPARATOR}")}
)


def quoted(text: str) -> str:
    """Return the text in the notation of fmt's %q. A text longer than any name in Kubernetes is truncated."""
    text = shortened(text)
    return '"' + "".join(_NAMED_ESCAPES.get(char) or _escaped(char) for char in text) + '"'


def json_list(texts: list[str]) -> str:
    """Return the texts in the notation of encoding/json. A long list is truncated."""
    return shortened(msgspec.json.encode(texts[:MAX_LENGTH]).decode().translate(_JSON_ESCAPES))


def shortened(text: str) -> str:
    """Return the text, truncated to MAX_LENGTH, because a message may be repeated for every node of a request."""
    return text if len(text) <= MAX_LENGTH else f"{text[:MAX_LENGTH]}..."


def _escaped(char: str) -> str:
    code = ord(char)
    if char.isprintable():
        return char
    if code <= _LAST_ASCII:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= _LAST_BMP else f"\\U{code:08x}"


_UNITS: Final = {"Ei": 2**60, "Pi": 2**50, "Ti": 2**40, "Gi": 2**30, "Mi": 2**20, "Ki": 2**10}
IN_BYTES: Final = ("memory", "ephemeral-storage", "hugepages-")
"""Resources in bytes, by the beginnings of their names."""
_PER_UNIT: Final = 1000
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
        whole, millis = divmod(amount, _PER_UNIT)
        return f"{amount}m" if millis else f"{whole}"
    return _bytes_text(amount, round_up=round_up) if resource.startswith(IN_BYTES) else f"{amount}"


def _bytes_text(amount: int, *, round_up: bool) -> str:
    for suffix, unit in _UNITS.items():
        if amount >= unit and not amount % unit and amount // unit < _SHORT:
            return f"{amount // unit}{suffix}"
    for suffix, unit in _UNITS.items():
        if amount >= unit:
            hundredths = -(-amount * _PLACES // unit) if round_up else amount * _PLACES // unit
            whole, rest = divmod(hundredths, _PLACES)
            return f"{whole}.{rest:02d}".rstrip("0").rstrip(".") + suffix
    return f"{amount}"
