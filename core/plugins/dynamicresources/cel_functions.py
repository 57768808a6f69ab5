"""The functions of Kubernetes' CEL libraries: quantities, versions, addresses, and conversions of texts.

Each takes texts. A value of a type of its own is the text of a `Made`. Source: k8s.io/apiserver pkg/cel/library
(quantity.go, semverlib.go, ip.go, cidr.go), the same in 1.34 to 1.37 but for comments; blang/semver/v4; net/netip.
"""

import ipaddress
import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from core.objects import quantity

MAX_INT64: Final = quantity.MAX_INT64
_MIN_INT64: Final = -MAX_INT64 - 1
_WIDTH: Final = 60
"""Digits of the text by which quantities are ordered. More than quantities of devices have: 2^63 * 10^9 has 28."""
_SHIFT: Final = 10**_WIDTH
_CERTAIN: Final = 10**13
_MAX_UINT64: Final = 2**64 - 1


class FunctionError(Exception):
    """Upstream's function returns an error for these arguments."""


class UnknownResultError(Exception):
    """What upstream's function returns is not known here."""


class EvaluationError(Exception):
    """Evaluating an expression ended with an error."""


class CostError(UnknownResultError):
    """The expression may cost more than the limit."""


class InvalidExpressionError(Exception):
    """Upstream's compiler refuses the expression."""


class Limits(NamedTuple):
    """What the environments of the releases differ in."""

    lists: bool
    """Attributes may be lists, and are of type dyn. Otherwise they are of type any."""
    includes: bool
    """There is the function includes."""


class Made(NamedTuple):
    """A value of a type that only Kubernetes has. Texts are ordered as the values are."""

    type: str
    text: str


Value = bool | int | float | str | Made


def quantity_of(amount: int) -> Made:
    """Return a quantity of `nanos`. Raises UnknownResultError for what is far beyond an int64."""
    if not 0 < amount + _SHIFT < 2 * _SHIFT:
        raise UnknownResultError("a quantity out of range")
    return Made("Quantity", f"{amount + _SHIFT:0{_WIDTH + 1}d}")


def _amount(text: str) -> int:
    return int(text) - _SHIFT


def _quantity(text: str) -> Made:
    try:
        return quantity_of(quantity.nanos(text))
    except quantity.QuantityError as error:
        if len(text) > quantity.MAX_LENGTH:
            raise UnknownResultError("a long quantity") from error
        raise FunctionError(str(error)) from error


def _added(one: str, other: int) -> Made:
    """Return a sum. Raises UnknownResultError for a large quantity: until 1.36, cel-go's sum changes its operand."""
    if abs(_amount(one)) > _CERTAIN * 10**9:
        raise UnknownResultError("a sum of a large quantity")
    return quantity_of(_amount(one) + other)


def _as_integer(text: str) -> int:
    """Return the integer of a capacity. Raises FunctionError and UnknownResultError.

    It is in the canonical form in which the API server writes it. Up to 10^13, AsInt64 then succeeds for an integer.
    """
    whole, rest = divmod(_amount(text), 10**9)
    if abs(whole) > _CERTAIN:
        raise UnknownResultError("whether a large quantity is an integer")
    if rest:
        raise FunctionError("cannot convert value to integer")
    return whole


def _as_float(text: str) -> float:
    try:
        return float(_as_integer(text))
    except FunctionError as error:
        raise UnknownResultError("a quantity that is no integer as a float") from error


def _sign(text: str) -> int:
    amount = _amount(text)
    return (amount > 0) - (amount < 0)


def _ordered(one: str, other: str) -> int:
    return (one > other) - (one < other)


_number: Final = "(?:0|[1-9][0-9]*)"
_version: Final = re.compile(
    rf"({_number})\.({_number})\.({_number})(?:-([0-9A-Za-z.-]*))?(?:\+([0-9A-Za-z.-]*))?", re.ASCII
)
_numeric: Final = re.compile("[0-9]+")


def version_of(text: str) -> Made:
    """Return a semantic version. Raises FunctionError.

    Its text begins with major, minor and patch, in twenty digits each. Then "~" stands for a release. Otherwise the
    identifiers of the pre-release follow: 0 and twenty digits, or 1 and the identifier, each ended by "!". Build
    metadata do not count.
    """
    found = _version.fullmatch(text)
    if found is None:
        raise FunctionError(f"not a semantic version: {quantity.quoted(text)}")
    numbers = [int(each) for each in found.groups()[:3]]
    pre, build = found[4], found[5]
    identifiers = [] if pre is None else pre.split(".")
    if build is not None and not all(build.split(".")):
        raise FunctionError("Build meta data is empty")
    if max(numbers) > _MAX_UINT64:
        raise FunctionError("value out of range")
    if max(numbers) > MAX_INT64:
        raise UnknownResultError("a version out of range")
    ordered = "".join(f"{each:020d}" for each in numbers)
    return Made("Semver", ordered + ("".join(map(_identifier, identifiers)) if identifiers else "~"))


def _identifier(text: str) -> str:
    if not text:
        raise FunctionError("Prerelease is empty")
    if not _numeric.fullmatch(text):
        return f"1{text}!"
    if len(text) > 1 and text[0] == "0":
        raise FunctionError("Numeric PreRelease version must not contain leading zeroes")
    if int(text) > _MAX_UINT64:
        raise FunctionError("value out of range")
    return f"0{int(text):020d}!"


def _tolerant_version(text: str) -> Made:
    """Return what normalizeAndParse of semverlib.go does."""
    parts = text.removeprefix("v").split(".", 2)
    for index, part in enumerate(parts):
        if len(part) > 1:
            trimmed = part.lstrip("0")
            parts[index] = trimmed if trimmed and trimmed[0] in "0123456789" else f"0{trimmed}"
    if len(parts) < 3:  # noqa: PLR2004  # major, minor, patch
        if "+" in parts[-1] or "-" in parts[-1]:
            raise FunctionError("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return version_of(".".join(parts))


def _version_in(text: str, normalize: str) -> Made:
    return _tolerant_version(text) if normalize == "true" else version_of(text)


def _valid(function: Callable[..., Value]) -> Callable[..., bool]:
    def valid(*arguments: str) -> bool:
        try:
            function(*arguments)
        except FunctionError:
            return False
        return True

    return valid


_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_Network = ipaddress.IPv4Interface | ipaddress.IPv6Interface
_prefix: Final = re.compile("0|[1-9][0-9]{0,2}")


def _address(text: str) -> _Address:
    if not text.isascii() or "%" in text:
        raise FunctionError("not an IP address, or one with a zone")
    try:
        address = ipaddress.ip_address(text)
    except ValueError as error:
        raise FunctionError(str(error)) from error
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        raise FunctionError("IPv4-mapped IPv6 address is not allowed")
    return address


def _ip(text: str) -> Made:
    return Made("IP", str(_address(text)))


def _network(text: str) -> _Network:
    address, slash, bits = text.rpartition("/")
    if not slash or not _prefix.fullmatch(bits):
        raise FunctionError("not a CIDR")
    found = _address(address)
    if int(bits) > found.max_prefixlen:
        raise FunctionError("prefix length out of range")
    return ipaddress.ip_interface(f"{found}/{bits}")


def _cidr(text: str) -> Made:
    return Made("CIDR", str(_network(text)))


def _contains_ip(network: str, address: str) -> bool:
    found, within = _address(address), _network(network).network
    return found.version == within.version and found in within


def _contains_cidr(network: str, other: str) -> bool:
    one, two = _network(network).network, _network(other).network
    return one.version == two.version and one.prefixlen <= two.prefixlen and one.overlaps(two)


def _is_global_unicast(text: str) -> bool:
    # netip's: private addresses are global unicast, too.
    found = _address(text)
    broadcast = found.version == 4 and int(found) == 2**32 - 1  # noqa: PLR2004  # IPv4
    return not (found.is_unspecified or found.is_loopback or found.is_multicast or found.is_link_local or broadcast)


def _is_link_local_multicast(text: str) -> bool:
    found = _address(text)
    if isinstance(found, ipaddress.IPv4Address):
        return found in ipaddress.IPv4Network("224.0.0.0/24")
    return found.packed[0] == 0xFF and found.packed[1] & 0x0F == 0x02  # noqa: PLR2004  # ff02::/16 and its flags


_url: Final = re.compile(
    r"(?:([A-Za-z][A-Za-z0-9+.-]*)://(([A-Za-z0-9.-]+)(?::([0-9]+))?))?((?:/(?!/)[A-Za-z0-9._~-]*)*)(?:\?[A-Za-z0-9=&._-]*)?"
)
"""Scheme, host with port, host, port and path of what net/url certainly takes."""
_no_url: Final = re.compile("[A-Za-z0-9 ._-]*")


def _parts(text: str) -> tuple[str, ...]:
    found = _url.fullmatch(text)
    if _no_url.fullmatch(text):
        raise FunctionError("invalid URI for request")
    if found is None or not (found[1] or found[5]):
        raise UnknownResultError(f"the URL {quantity.quoted(text)}")
    return ((found[1] or "").lower(), *(each or "" for each in found.groups()[1:]))


def _as_url(text: str) -> Made:
    _parts(text)
    return Made("URL", text)


_integer: Final = re.compile("[+-]?[0-9]+")
_decimal: Final = re.compile(r"[+-]?[0-9]{1,300}(?:\.[0-9]{0,300})?(?:[eE][+-]?[0-9]{1,2})?")
_other_number: Final = re.compile(
    r"[+-]?(?:inf|infinity|nan|[0-9_]*\.?[0-9_]*(?:e[+-]?[0-9_]+)?|0x[0-9a-f_.p+-]*)", re.IGNORECASE
)
"""How a number begins that Go reads, too: inf, nan, hexadecimal ones, very large ones."""
_BOOLS: Final = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}


def _int(text: str) -> int:
    if not _integer.fullmatch(text) or not _MIN_INT64 <= int(text) <= MAX_INT64:
        raise FunctionError("type conversion error from 'string' to 'int'")
    return int(text)


def _double(text: str) -> float:
    if _decimal.fullmatch(text):
        return float(text)
    if _other_number.fullmatch(text):
        raise UnknownResultError(f"the number {quantity.quoted(text)}")
    raise FunctionError("type conversion error from 'string' to 'double'")


def _bool(text: str) -> bool:
    if text not in _BOOLS:
        raise FunctionError("type conversion error from 'string' to 'bool'")
    return _BOOLS[text]


def _substring(text: str, start: str, end: str) -> str:
    # cel-cpp (cel-expr-python 0.1.3) refuses an end that is the size.
    if not 0 <= int(start) <= int(end) <= len(text):
        raise FunctionError("substring: index out of range")
    return text[int(start) : int(end)]


FUNCTIONS: Final[Mapping[str, Callable[..., Value]]] = {
    "string_to_quantity": _quantity,
    "is_quantity_string": _valid(_quantity),
    "quantity_sign": _sign,
    "quantity_compare_to": _ordered,
    "quantity_get_int": _as_integer,
    "quantity_get_float": _as_float,
    "quantity_is_integer": _valid(_as_integer),
    "quantity_add": lambda one, other: _added(one, _amount(other)),
    "quantity_sub": lambda one, other: _added(one, -_amount(other)),
    "quantity_add_int": lambda one, other: _added(one, int(other) * 10**9),
    "quantity_sub_int": lambda one, other: _added(one, -int(other) * 10**9),
    "string_to_semver": version_of,
    "string_bool_to_semver": _version_in,
    "is_semver_string": _valid(version_of),
    "is_semver_string_bool": _valid(_version_in),
    "semver_compare_to": _ordered,
    "semver_major": lambda text: int(text[:20]),
    "semver_minor": lambda text: int(text[20:40]),
    "semver_patch": lambda text: int(text[40:60]),
    "string_to_ip": _ip,
    "is_ip": _valid(_ip),
    "ip_is_canonical": lambda text: str(_address(text)) == text,
    "ip_family": lambda text: _address(text).version,
    "ip_is_unspecified": lambda text: _address(text).is_unspecified,
    "ip_is_loopback": lambda text: _address(text).is_loopback,
    "ip_is_link_local_unicast": lambda text: _address(text).is_link_local,
    "ip_is_link_local_multicast": _is_link_local_multicast,
    "ip_is_global_unicast": _is_global_unicast,
    "ip_to_string": lambda text: text,
    "string_to_cidr": _cidr,
    "is_cidr": _valid(_cidr),
    "cidr_contains_ip_string": _contains_ip,
    "cidr_contains_ip_ip": _contains_ip,
    "cidr_contains_cidr_string": _contains_cidr,
    "cidr_contains_cidr": _contains_cidr,
    "cidr_ip": lambda text: Made("IP", str(_network(text).ip)),
    "cidr_prefix_length": lambda text: _network(text).network.prefixlen,
    "cidr_masked": lambda text: Made("CIDR", str(_network(text).network)),
    "cidr_to_string": lambda text: text,
    "string_to_url": _as_url,
    "is_url_string": _valid(_as_url),
    "url_get_scheme": lambda text: _parts(text)[0],
    "url_get_host": lambda text: _parts(text)[1],
    "url_get_hostname": lambda text: _parts(text)[2],
    "url_get_port": lambda text: _parts(text)[3],
    "url_get_escaped_path": lambda text: _parts(text)[4],
    "string_to_int64": _int,
    "string_to_double": _double,
    "string_to_bool": _bool,
    "string_substring_int_int": _substring,
}
"""The functions by upstream's names of their overloads. A value of a type of its own is passed as its text."""
