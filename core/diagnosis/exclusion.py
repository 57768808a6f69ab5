"""Two rules that exclude each other: each leaves some nodes, and no node is left by both."""

from collections.abc import Iterator, Sequence
from itertools import combinations, islice
from typing import Final

import numpy as np

from core.diagnosis.diagnosis import Diagnosis
from core.explaining.explained import DomainRule
from core.explaining.node_labels import domains_of
from core.objects.node import ZONE

_MAX_RULES: Final = 32
_MAX_LISTED: Final = 3
_HEAD: Final = "two rules exclude each other"


def exclusion(decision: Diagnosis) -> str:
    """Return the first two rules that exclude each other, with what each leaves. Empty if one rule leaves no node.

    Rules with a topology key in common come first. Reads only verdicts and counts that the decision has.
    """
    if len(decision.fitting) or not len(decision.known):
        return ""
    rules = [*_rules(decision)]
    if any(each.rejected.all() for each in rules):
        return ""
    for one, other in sorted(combinations(rules, 2), key=_have_no_key_in_common):
        if (one.rejected | other.rejected).all():
            return _text(decision, one, other)
    return ""


def _have_no_key_in_common(pair: tuple[DomainRule, DomainRule]) -> bool:
    return not pair[0].topology_key or pair[0].topology_key != pair[1].topology_key


def _rules(decision: Diagnosis) -> Iterator[DomainRule]:
    """Yield the rules that reject some node: plugins that are one rule, without a key, then those by topology key."""
    by_key, names = {}, {}
    for plugin in decision.profile.explained:
        names[plugin.name] = plugin.keeps_off or plugin.name
        if (rules := plugin.rules(decision)) is not None:
            by_key[plugin.name] = rules
    for plugin_name, rejected in decision.refusing.items():
        if plugin_name not in by_key:
            yield DomainRule(names.get(plugin_name, plugin_name), "", rejected[decision.known])
    found = (each for name in sorted(by_key) for each in by_key[name])  # by name, whatever the order of the profile
    for rule in islice((each for each in found if each.rejected.any()), _MAX_RULES):
        yield rule._replace(name=f"{rule.name} by {rule.topology_key}")


def _text(decision: Diagnosis, one: DomainRule, other: DomainRule) -> str:
    for key in dict.fromkeys(each for each in (one.topology_key, other.topology_key, ZONE) if each):
        values, places = domains_of(decision, key)
        found = [np.unique(places[decision.known][~each.rejected]).tolist() for each in (one, other)]
        if not {*found[0]} & {*found[1]}:
            texts = [_only([values[each] or "no such label" for each in left], key) for left in found]
            return f"{_HEAD}: {one.name} (only {texts[0]}) and {other.name} (only {texts[1]})"
    names = [
        [decision.batch.names[position] for position in decision.known[~each.rejected][: _MAX_LISTED + 1].tolist()]
        for each in (one, other)
    ]
    return f"{_HEAD}: {one.name} (only {_only(names[0], '')}) and {other.name} (only {_only(names[1], '')})"


def _only(names: Sequence[str], key: str) -> str:
    more = " and others" if len(names) > _MAX_LISTED else ""
    return f"{key.rpartition('/')[2]} {', '.join(names[:_MAX_LISTED])}{more}".lstrip()
