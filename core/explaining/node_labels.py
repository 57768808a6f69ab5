"""Labels of nodes in words: the values that nodes have, and what selectors ask for."""

from collections.abc import Collection
from typing import Final

import numpy as np

from core.explaining.decision import Decision
from core.framework.node_matcher import NodeMatcher, keys_of_terms
from core.mirror.node_values import LabelProjections
from core.mirror.topology import BoolArray, Int64Array
from core.objects.affinity import Comparison, NodeSelector
from core.objects.labels import Requirement, requirement_text

_MAX_VALUES: Final = 5
_MAX_LISTED: Final = 3
_EXAMPLES: Final = 3


def domains_of(decision: Decision, key: str) -> tuple[list[str], Int64Array]:
    """Return values of a label, some of no node, and for each node the index of its value. `''` is the empty value.

    Index 0 means that the node does not have the label, or is unknown. If strangers share a value that no node of the
    mirror has, each of them is a domain of its own.
    """
    projected, places = decision.mirror.derived(LabelProjections).of((key,)).places(decision.batch)
    found = [each[0] if each else None for each in projected]
    lacking = [place for place, value in enumerate(found) if value is None]
    places[np.isin(places, lacking)] = 0
    return ["" if value is None else value or "''" for value in found], places


def values_text(decision: Decision, keys: Collection[str]) -> str:
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
            rendered = [f"{values[each] or 'none'} ({numbers[each]:,})" for each in most]
            found.append(f"{key} {', '.join(rendered)}")
        else:
            found.append(f"{len(most):,} other values of {key}")
    return ", and ".join(found)


def selector_text(selector: NodeSelector) -> str:
    """Return a node selector in kubectl's notation (-l), cut where it is long."""
    terms = []
    for term in selector.terms[:_MAX_LISTED]:
        texts = [*map(text_of_requirement, term.requirements), *map(text_of_requirement, term.comparisons)]
        terms.append(", ".join(texts) or "nothing")
    return " or ".join(terms) + (" or more" if len(selector.terms) > _MAX_LISTED else "")


def text_of_requirement(requirement: Requirement | Comparison) -> str:
    """Return a requirement in kubectl's notation (-l), cut where it is long."""
    if isinstance(requirement, Comparison):
        return requirement_text(requirement.key, "Gt" if requirement.greater else "Lt", (str(requirement.bound),))
    return requirement_text(requirement.key, requirement.operator.label, requirement.values[:_MAX_VALUES])


def nodes_text(decision: Decision, selector: NodeSelector | None) -> str:
    """Return how many known nodes a selector (None: all) selects, and what they have where it selects none."""
    if selector is None:
        return "every node"
    keys = keys_of_terms(selector.terms)
    matcher = NodeMatcher(decision.mirror, decision.batch, keys)
    number = int(np.count_nonzero(matcher.any_of(selector.terms)[decision.known]))
    if number:
        return f"{number:,} node{'s' if number > 1 else ''}"
    return f"no node; the nodes have {values_text(decision, sorted(keys)[:_MAX_LISTED])}" if keys else "no node"


def examples(decision: Decision, which: BoolArray) -> list[str]:
    """Return the names of up to three of these nodes."""
    return [decision.batch.names[position] for position in np.flatnonzero(which)[:_EXAMPLES].tolist()]
