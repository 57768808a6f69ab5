"""Label selectors: parsed once, canonical and hashable.

Source: k8s.io/apimachinery pkg/apis/meta/v1/helpers.go (LabelSelectorAsSelector) and pkg/labels/selector.go.
"""

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Final

import msgspec

from core.objects.quantity import json_list, quoted, shortened

# The syntax of label keys and values. A selector with an invalid key or value fails the whole affinity term, and
# kube-scheduler prints the message. So the messages here equal upstream's. Source: k8s.io/apimachinery
# pkg/util/validation/validation.go until v1.34; since v1.35 pkg/api/validate/content, see `in_bytes`.

_QUALIFIED_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_QUALIFIED_NAME_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)
_LABEL_VALUE = f"({_QUALIFIED_NAME})?"
_LABEL_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character"
)
_DNS_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = f"{_DNS_LABEL}(\\.{_DNS_LABEL})*"
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character"
)
_MAX_NAME = 63
_MAX_SUBDOMAIN = 253

# re.ASCII is implied by the explicit classes; fullmatch because Python's "$" also matches before a newline.
_qualified_name = re.compile(_QUALIFIED_NAME)
_label_value = re.compile(_LABEL_VALUE)
_subdomain = re.compile(_SUBDOMAIN)
_too_long_text = re.compile(f"must be no more than ({_MAX_NAME}|{_MAX_SUBDOMAIN}) characters")


def label_key_errors(key: str) -> list[str]:
    """Return the errors of a label key (upstream IsQualifiedName). Empty if the key is valid."""
    prefix, slash, name = key.partition("/")
    errors: list[str] = []
    if not slash:
        name = key
    elif "/" in name:
        hint = " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return ["a qualified name " + _broken_name() + hint]
    elif not prefix:
        errors.append("prefix part must be non-empty")
    else:
        errors += ["prefix part " + error for error in _subdomain_errors(prefix)]
    if not name:
        errors.append("name part must be non-empty")
    elif _length(name) > _MAX_NAME:
        errors.append("name part " + _too_long(_MAX_NAME))
    if not _qualified_name.fullmatch(name):
        errors.append("name part " + _broken_name())
    return errors


def label_value_errors(value: str) -> list[str]:
    """Return the errors of a label value (upstream IsValidLabelValue). Empty if the value is valid."""
    if len(value) <= _MAX_NAME and _label_value.fullmatch(value):  # a match means that the value is ASCII
        return []
    errors = [_too_long(_MAX_NAME)] if _length(value) > _MAX_NAME else []
    if not _label_value.fullmatch(value):
        errors.append(_mismatch(_LABEL_VALUE_RULE, _LABEL_VALUE, "MyValue", "my_value", "12345"))
    return errors


def in_bytes(message: str) -> str:
    """Return a message in the wording since v1.35, which says "label key", and gives lengths in bytes."""
    message = message.replace("a qualified name " + _QUALIFIED_NAME_RULE, "a valid label key " + _QUALIFIED_NAME_RULE)
    return _too_long_text.sub(r"must be no more than \1 bytes", message)


def _subdomain_errors(value: str) -> list[str]:
    errors = [_too_long(_MAX_SUBDOMAIN)] if _length(value) > _MAX_SUBDOMAIN else []
    if not _subdomain.fullmatch(value):
        errors.append(_mismatch(_SUBDOMAIN_RULE, _SUBDOMAIN, "example.com"))
    return errors


def _broken_name() -> str:
    return _mismatch(_QUALIFIED_NAME_RULE, _QUALIFIED_NAME, "MyName", "my.name", "123-abc")


def _mismatch(rule: str, pattern: str, *examples: str) -> str:
    # The stray comma before "regex" is upstream's (validation.RegexError).
    listed = " or ".join(f"'{example}', " for example in examples)
    return f"{rule} (e.g. {listed}regex used for validation is '{pattern}')"


def _too_long(limit: int) -> str:
    return f"must be no more than {limit} characters"


def _length(value: str) -> int:
    # Go's len counts bytes.
    return len(value.encode())


class SelectorError(ValueError):
    """A label selector is invalid by the API conventions.

    `field` is the path inside the selector (`matchExpressions[0].operator`). The message is upstream's.
    """

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class Operator(IntEnum):
    """The operator of a requirement. `matchLabels` are `IN` with one value."""

    IN = 0
    NOT_IN = 1
    EXISTS = 2
    DOES_NOT_EXIST = 3

    @property
    def label(self) -> str:
        """The operator in the spelling of the API, such as `NotIn`."""
        return self.name.title().replace("_", "")


_FEW_VALUES: Final = 16
"""Up to this many values, a linear search is faster than a binary search."""
_MAX_ERRORS: Final = 16
"""How many invalid values of a requirement are reported: a message is much longer than a value."""

OPERATORS: Final = {each.label: each for each in Operator}


class Requirement(msgspec.Struct, frozen=True, order=True, cache_hash=True, gc=False):
    """One condition on one label key. `values` is sorted, without duplicates, and empty for EXISTS and its opposite."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether the labels meet the condition. A missing key meets the negative operators."""
        value = labels.get(self.key)
        if self.operator is Operator.IN:
            return self._lists(value)
        if self.operator is Operator.NOT_IN:
            return not self._lists(value)
        return (value is not None) is (self.operator is Operator.EXISTS)

    def _lists(self, value: str | None) -> bool:
        if value is None or len(self.values) <= _FEW_VALUES:
            return value is not None and value in self.values
        place = bisect_left(self.values, value)
        return place < len(self.values) and self.values[place] == value


class Selector(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """A conjunction of requirements. They are sorted, so that equal selectors are equal values.

    `nothing` marks the selector of a missing (null) LabelSelector, which matches no labels. A selector without
    requirements (`{}`) matches all labels.
    """

    requirements: tuple[Requirement, ...] = ()
    nothing: bool = False

    @property
    def everything(self) -> bool:
        """Whether this is the empty selector, which also matches objects without labels (upstream `Empty()`)."""
        return not self.requirements and not self.nothing

    @property
    def size(self) -> int:
        """Size of the value: the number of requirements and of their values."""
        return sum([1 + len(requirement.values) for requirement in self.requirements])

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether the labels meet every requirement."""
        if self.nothing:
            return False
        for requirement in self.requirements:  # noqa: SIM110  # a generator would take longer than most selectors
            if not requirement.matches(labels):
                return False
        return True


NOTHING: Final = Selector(nothing=True)
EVERYTHING: Final = Selector()


def parse_selector(
    match_labels: Mapping[str, str],
    match_expressions: Sequence[tuple[str, str, Sequence[str]]],
) -> Selector:
    """Return the selector for the two members of a v1 LabelSelector. Expressions are (key, operator, values).

    Raises SelectorError for the first invalid requirement, labels before expressions, as upstream.
    """
    requirements: set[Requirement] = set()
    for key in sorted(match_labels):
        field = f"matchLabels[{key}]"
        requirements.add(_requirement(field, key, Operator.IN, [match_labels[key]]))
    for index, (key, operator, values) in enumerate(match_expressions):
        field = f"matchExpressions[{index}]"
        if operator not in OPERATORS:
            message = f"{quoted(operator)} is not a valid label selector operator"
            raise SelectorError(f"{field}.operator", message)
        requirements.add(_requirement(field, key, OPERATORS[operator], values))
    return Selector(tuple(sorted(requirements)))


def _requirement(field: str, key: str, operator: Operator, values: Sequence[str]) -> Requirement:
    errors = requirement_errors(key, values, set_errors(operator, values))
    if errors:
        raise SelectorError(field, errors_text(errors))
    return requirement(key, operator, values)


def requirement(key: str, operator: Operator, values: Sequence[str]) -> Requirement:
    """Return a requirement of valid parts, with sorted values and without duplicates."""
    return Requirement(key, operator, tuple(sorted(set(values))))


def requirement_text(key: str, operator: str, values: Sequence[str]) -> str:
    """Return a requirement in kubectl's notation of selectors (-l), with `>` for Gt and `<` for Lt."""
    listed = ", ".join(values)
    match operator:
        case "In" if len(values) == 1:
            return f"{key}={listed}"
        case "In" | "NotIn":
            return f"{key} {operator.lower()} ({listed})"
        case "Exists":
            return key
        case "DoesNotExist":
            return f"!{key}"
    return f"{key} {'>' if operator == 'Gt' else '<'} {listed}"


def requirement_errors(key: str, values: Sequence[str], operator_errors: Sequence[str], path: str = "") -> list[str]:
    """Return the errors of a requirement, in the order and words of upstream's labels.NewRequirement.

    `operator_errors` are the operator's errors in the values, see `set_errors`. `path` begins each message.
    """
    dot = f"{path}." if path else ""
    errors: list[str] = []
    if key_errors := label_key_errors(key):
        errors.append(f"{dot}key: Invalid value: {quoted(key)}: {'; '.join(key_errors)}")
    errors += [f"{dot}{error}" for error in operator_errors]
    for index, value in enumerate(values):
        if value_errors := label_value_errors(value):
            if len(errors) >= _MAX_ERRORS:
                errors.append(f"{dot}values[{index}]: Too many errors: the other values are not looked at")
                break
            errors.append(
                f"{dot}values[{index}][{shortened(key)}]: Invalid value: {quoted(value)}: {'; '.join(value_errors)}"
            )
    return errors


def set_errors(operator: Operator, values: Sequence[str]) -> list[str]:
    """Return an error if the operator takes no values and has some, or needs values and has none."""
    if operator in (Operator.IN, Operator.NOT_IN):
        if not values:
            return ["values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty"]
    elif values:
        rendered = json_list(list(values))
        return [f"values: Invalid value: {rendered}: values set must be empty for exists and does not exist"]
    return []


def errors_text(errors: Sequence[str]) -> str:
    """Join messages like upstream's aggregate error: a single one unchanged, several in brackets."""
    distinct = list(dict.fromkeys(errors))
    return distinct[0] if len(distinct) == 1 else "[" + ", ".join(distinct) + "]"
