"""Label selectors: parsed once, canonical and hashable.

Source: k8s.io/apimachinery pkg/apis/meta/v1/helpers.go (LabelSelectorAsSelector) and pkg/labels/selector.go.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Final

import msgspec

from core.objects.go_format import json_list, quoted, shortened
from core.objects.label_validation import label_key_errors, label_value_errors


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


_FEW_VALUES: Final = 16
"""Up to this many values, a linear search is faster than a binary search."""
_MAX_ERRORS: Final = 16
"""How many invalid values of a requirement are reported: a message is much longer than a value."""

OPERATORS: Final = {
    "In": Operator.IN,
    "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.DOES_NOT_EXIST,
}


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
        return all(requirement.matches(labels) for requirement in self.requirements)


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
        shown = json_list(list(values))
        return [f"values: Invalid value: {shown}: values set must be empty for exists and does not exist"]
    return []


def errors_text(errors: Sequence[str]) -> str:
    """Join messages like upstream's aggregate error: a single one unchanged, several in brackets."""
    distinct = list(dict.fromkeys(errors))
    return distinct[0] if len(distinct) == 1 else "[" + ", ".join(distinct) + "]"
