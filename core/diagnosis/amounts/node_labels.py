"""The values that nodes have of a label, by node and in words."""

from collections.abc import Collection
from typing import Final

import numpy as np

from core.diagnosis.diagnosis import Diagnosis
from core.mirror.node_values import LabelProjections
from core.mirror.topology import Int64Array

_MAX_VALUES: Final = 5


def domains_of(decision: Diagnosis, key: str) -> tuple[list[str], Int64Array]:
    """Return values of a label, some of no node, and for each node the index of its value. `''` is the empty value.

    Index 0 means that the node does not have the label, or is unknown. If strangers share a value that no node of the
    mirror has, each of them is a domain of its own.
    """
    projected, places = decision.mirror.derived(LabelProjections).of((key,)).places(decision.batch)
    found = [each[0] if each else None for each in projected]
    lacking = [place for place, value in enumerate(found) if value is None]
    places[np.isin(places, lacking)] = 0
    return ["" if value is None else value or "''" for value in found], places


def values_text(decision: Diagnosis, keys: Collection[str]) -> str:
    """Return the values of labels that the known nodes have, most first: `disk hdd (2), none (1)`.

    If each node has its own value, as of a hostname, only that no node has a wanted one is of use.
    """
    found = []
    for key in sorted(keys):
        values, places = domains_of(decision, key)
        numbers = np.bincount(places[decision.known], minlength=len(values))
        most = [each for each in np.argsort(-numbers, kind="stable").tolist() if numbers[each]]
        if most == [0] or not most:
            found.append(f"no label {key}")
        elif len(most) <= _MAX_VALUES:
            shown = [f"{values[each] or 'none'} ({numbers[each]:,})" for each in most]
            found.append(f"{key} {', '.join(shown)}")
        else:
            found.append(f"{len(most):,} other values of {key}")
    return ", and ".join(found)
