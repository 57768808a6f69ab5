"""The overloads of functions that cel-go has in Kubernetes, and cel-cpp does not declare."""

from typing import Final, NamedTuple


class Declared(NamedTuple):
    """An overload. Types are in the notation of the package, those of Kubernetes without their package."""

    overload: str
    function: str
    member: bool
    parameters: tuple[str, ...]
    result: str


def _declared(line: str) -> Declared:
    overload, function, *types = line.split()
    return Declared(overload, function.lstrip("."), function.startswith("."), tuple(types[:-1]), types[-1])


_LIBRARIES: Final = """
string_to_quantity quantity string Quantity
is_quantity_string isQuantity string bool
quantity_sign sign Quantity int
quantity_is_greater_than .isGreaterThan Quantity Quantity bool
quantity_is_less_than .isLessThan Quantity Quantity bool
quantity_compare_to .compareTo Quantity Quantity int
quantity_get_float .asApproximateFloat Quantity double
quantity_get_int .asInteger Quantity int
quantity_is_integer .isInteger Quantity bool
quantity_add .add Quantity Quantity Quantity
quantity_add_int .add Quantity int Quantity
quantity_sub .sub Quantity Quantity Quantity
quantity_sub_int .sub Quantity int Quantity
string_to_semver semver string Semver
string_bool_to_semver semver string bool Semver
is_semver_string isSemver string bool
is_semver_string_bool isSemver string bool bool
semver_is_greater_than .isGreaterThan Semver Semver bool
semver_is_less_than .isLessThan Semver Semver bool
semver_compare_to .compareTo Semver Semver int
semver_major .major Semver int
semver_minor .minor Semver int
semver_patch .patch Semver int
string_to_ip ip string IP
is_ip isIP string bool
ip_is_canonical ip.isCanonical string bool
ip_family .family IP int
ip_is_unspecified .isUnspecified IP bool
ip_is_loopback .isLoopback IP bool
ip_is_link_local_unicast .isLinkLocalUnicast IP bool
ip_is_link_local_multicast .isLinkLocalMulticast IP bool
ip_is_global_unicast .isGlobalUnicast IP bool
ip_to_string string IP string
string_to_cidr cidr string CIDR
is_cidr isCIDR string bool
cidr_contains_ip_string .containsIP CIDR string bool
cidr_contains_ip_ip .containsIP CIDR IP bool
cidr_contains_cidr_string .containsCIDR CIDR string bool
cidr_contains_cidr .containsCIDR CIDR CIDR bool
cidr_ip .ip CIDR IP
cidr_prefix_length .prefixLength CIDR int
cidr_masked .masked CIDR CIDR
cidr_to_string string CIDR string
string_find_string .find string string string
string_find_all_string .findAll string string list<string>
string_find_all_string_int .findAll string string int list<string>
string_to_url url string URL
is_url_string isURL string bool
url_get_scheme .getScheme URL string
url_get_host .getHost URL string
url_get_hostname .getHostname URL string
url_get_port .getPort URL string
url_get_escaped_path .getEscapedPath URL string
url_get_query .getQuery URL map<string,list<string>>
format-named format.named string optional_type<Format>
format-validate .validate Format string optional_type<list<string>>
list_a_index_of_int .indexOf list<~A> ~A int
list_a_last_index_of_int .lastIndexOf list<~A> ~A int
"""
"""Source: pkg/cel/library of k8s.io/apiserver. Overload, function (a member has a dot), parameters, result."""
_FORMATS: Final = """
dns1123Label dns1123Subdomain dns1035Label qualifiedName dns1123LabelPrefix dns1123SubdomainPrefix dns1035LabelPrefix
labelValue uri uuid byte date datetime
"""
_COMPARABLE: Final = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_SUMMABLE: Final = ("int", "uint", "double", "duration")
_COMPARISONS: Final = {"less": "_<_", "less_equals": "_<=_", "greater": "_>_", "greater_equals": "_>=_"}
_NUMBERS: Final = {"int64": "int", "uint64": "uint", "double": "double"}


def _lines() -> list[str]:
    lines = _LIBRARIES.strip().splitlines()
    lines += [f"format.{each} format.{each} Format" for each in _FORMATS.split()]
    for of in _COMPARABLE:
        lines.append(f"list_{of}_is_sorted_bool .isSorted list<{of}> bool")
        lines += [f"list_{of}_{name}_{of} .{name} list<{of}> {of}" for name in ("max", "min")]
    lines += [f"list_{of}_sum_{of} .sum list<{of}> {of}" for of in _SUMMABLE]
    return lines


INCLUDES: Final = _declared("list_includes_dyn_dyn .includes dyn dyn bool")
ELSEWHERE: Final = {each.overload: each for each in map(_declared, _lines())}
"""Overloads that cel-cpp does not have."""
CROSS_TYPE: Final = [
    _declared(f"{name}_{one}_{other} {function} {_NUMBERS[one]} {_NUMBERS[other]} bool")
    for name, function in _COMPARISONS.items()
    for one in _NUMBERS
    for other in _NUMBERS
    if one != other
]
"""Comparisons that cel-cpp has, but does not declare (CrossTypeNumericComparisons)."""


_OTHERS: Final = {
    **dict.fromkeys(("string_to_int64", "string_to_double", "string_to_bool"), ("string",)),
    "string_substring_int_int": ("string", "int", "int"),
}
"""Parameters of overloads that both have, but that differ."""


def parameters(overload: str) -> tuple[str, ...]:
    """Return the types of the parameters of an overload of `cel_functions.FUNCTIONS`."""
    return ELSEWHERE[overload].parameters if overload in ELSEWHERE else _OTHERS[overload]
