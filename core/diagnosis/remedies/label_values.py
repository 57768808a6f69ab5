"""Values of labels that meet all requirements on them."""

from collections.abc import Mapping, Sequence
from typing import Final

from core.objects.affinity import Comparison
from core.objects.labels import Operator, Requirement

_ANY_VALUE: Final = "true"


def label_meeting(key: str, asked: Sequence[Requirement | Comparison]) -> Mapping[str, str] | None:
    """Return the label of a key that meets all requirements (empty: the label must be missing), or None if none can."""
    values: list[str | None] = []
    for each in asked:
        if isinstance(each, Comparison):
            values.append(str(each.bound + (1 if each.greater else -1)))
        elif each.operator is Operator.IN:
            values += each.values
    for value in (*values, None, _ANY_VALUE):
        labels = {} if value is None else {key: value}
        if all(each.matches(labels) for each in asked):
            return labels
    return None
