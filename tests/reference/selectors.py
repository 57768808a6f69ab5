"""Label selectors of the naive reference: read from v1 JSON and matched with plain loops.

Written apart from the engine's on purpose: a fault in one of them must show as a difference.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

Object: TypeAlias = Mapping[str, Any]
Labels: TypeAlias = Mapping[str, str]


class InvalidSelectorError(ValueError):
    """A selector that cannot be parsed, in the words of upstream for the ways that the tests use."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One requirement on one label."""

    key: str
    operator: str
    values: tuple[str, ...]

    def matches(self, labels: Labels) -> bool:
        """Return whether the labels meet it: NotIn and DoesNotExist also do without the key."""
        if self.operator == "In":
            return self.key in labels and labels[self.key] in self.values
        if self.operator == "NotIn":
            return self.key not in labels or labels[self.key] not in self.values
        if self.operator == "Exists":
            return self.key in labels
        return self.key not in labels


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """Conditions that must all be met; `None` instead of conditions is the null selector, which matches nothing."""

    conditions: tuple[Condition, ...] | None

    @property
    def is_empty(self) -> bool:
        """Whether it is `{}`, which matches everything."""
        return self.conditions == ()

    def matches(self, labels: Labels) -> bool:
        """Return whether all conditions are met."""
        if self.conditions is None:
            return False
        for condition in self.conditions:  # noqa: SIM110 - plain loops throughout, as this is also what is timed
            if not condition.matches(labels):
                return False
        return True


NOTHING = LabelSelector(None)


def parse_selector(selector: Object | None) -> LabelSelector:
    """Read a v1 LabelSelector; raises InvalidSelectorError."""
    if selector is None:
        return NOTHING
    conditions = [Condition(key, "In", (value,)) for key, value in (selector.get("matchLabels") or {}).items()]
    for expression in selector.get("matchExpressions") or ():
        operator, values = expression.get("operator") or "", tuple(expression.get("values") or ())
        _check(operator, values)
        conditions.append(Condition(expression.get("key") or "", operator, values))
    return LabelSelector(tuple(conditions))


def _check(operator: str, values: tuple[str, ...]) -> None:
    if operator in ("In", "NotIn"):
        if not values:
            raise InvalidSelectorError(
                "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty"
            )
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            rendered = json.dumps(values, separators=(",", ":"))
            raise InvalidSelectorError(
                f"values: Invalid value: {rendered}: values set must be empty for exists and does not exist"
            )
    else:
        raise InvalidSelectorError(f'"{operator}" is not a valid label selector operator')
