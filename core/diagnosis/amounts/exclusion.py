"""Two rules that exclude each other: each leaves some nodes, and no node is left by both."""

from collections.abc import Iterator, Sequence
from itertools import combinations, islice
from typing import Final, NamedTuple

import numpy as np

from core.diagnosis.amounts.node_labels import domains_of
from core.diagnosis.amounts.spread import measured_constraints
from core.diagnosis.counted_terms import CountedTerm, Direction, Rule
from core.diagnosis.diagnosis import Diagnosis
from core.mirror.topology import ABSENT, BoolArray
from core.objects.node import ZONE
from core.plugins.interpodaffinity.plugin import InterPodAffinity
from core.plugins.podtopologyspread.plugin import PodTopologySpread

_MAX_TERMS: Final = 128
"""How many terms are read. Each costs a pass over the nodes, and a pod may have hundreds."""
_MAX_RULES: Final = 32
_SHOWN: Final = 3
_HEAD: Final = "two rules exclude each other"
_SPLIT: Final = (InterPodAffinity.name, PodTopologySpread.name)
_NAMES: Final = {
    "NodeAffinity": "the node affinity or nodeSelector",
    "NodeName": "spec.nodeName",
    "NodePorts": "host ports",
    "NodeResourcesFit": "the resources that are free",
    "NodeUnschedulable": "cordons of nodes",
    "TaintToleration": "taints",
    "VolumeBinding": "a volume",
    "VolumeZone": "the zone of a volume",
    "NodeVolumeLimits": "the limits of volumes",
}
_TERMS: Final = {
    (Direction.INCOMING, Rule.REQUIRED_AFFINITY): "its pod affinity",
    (Direction.INCOMING, Rule.REQUIRED_ANTI_AFFINITY): "its pod anti-affinity",
    (Direction.EXISTING, Rule.REQUIRED_ANTI_AFFINITY): "the anti-affinity of other pods",
}


class _Judge(NamedTuple):
    """A rule, with the known nodes that it leaves. `key` is its topology key, empty for none."""

    name: str
    key: str
    left: BoolArray


def exclusion(decision: Diagnosis) -> str:
    """Return the first two rules that exclude each other, with what each leaves. Empty if one rule leaves no node.

    Rules with a topology key in common come first. Reads only verdicts and counts that the decision has.
    """
    if len(decision.fitting) or not len(decision.known):
        return ""
    rules = [*_rules(decision)]
    if not all(each.left.any() for each in rules):
        return ""
    pairs = sorted(combinations(rules, 2), key=lambda pair: not pair[0].key or pair[0].key != pair[1].key)
    for one, other in pairs:
        if not (one.left & other.left).any():
            return _text(decision, one, other)
    return ""


def _rules(decision: Diagnosis) -> Iterator[_Judge]:
    """Yield the rules that reject some node."""
    for plugin, refused in decision.refusing.items():
        if plugin not in _SPLIT:
            yield _Judge(_NAMES.get(plugin, plugin), "", ~refused[decision.known])
    batch = decision.batch.part(decision.known)
    terms = islice((each for each in decision.terms if (each.direction, each.rule) in _TERMS), _MAX_TERMS)
    rules = [(_TERMS[each.direction, each.rule], each.topology_key, _blocked(decision, each)) for each in terms]
    for each in measured_constraints(decision, batch):
        ids = np.full(len(batch), ABSENT) if each.column is None else each.column.topology_ids()
        uneven = (each.skews > each.constraint.max_skew).take(ids) if each.column is not None else ids == ABSENT
        rules.append(("its topology spread", each.constraint.topology_key, (ids == ABSENT) | uneven))
    for name, key, refused in islice(((*each,) for each in rules if each[2].any()), _MAX_RULES):
        yield _Judge(f"{name} by {key}", key, ~refused)


def _blocked(decision: Diagnosis, term: CountedTerm) -> BoolArray:
    return term.blocked(decision.batch)[decision.known]


def _text(decision: Diagnosis, one: _Judge, other: _Judge) -> str:
    for key in dict.fromkeys(each for each in (one.key, other.key, ZONE) if each):
        values, places = domains_of(decision, key)
        found = [np.unique(places[decision.known][each.left]).tolist() for each in (one, other)]
        if not {*found[0]} & {*found[1]}:
            told = [_only([values[each] or "no such label" for each in left], key) for left in found]
            return f"{_HEAD}: {one.name} (only {told[0]}) and {other.name} (only {told[1]})"
    names = [
        [decision.batch.names[position] for position in decision.known[each.left][: _SHOWN + 1].tolist()]
        for each in (one, other)
    ]
    return f"{_HEAD}: {one.name} (only {_only(names[0], '')}) and {other.name} (only {_only(names[1], '')})"


def _only(names: Sequence[str], key: str) -> str:
    more = " and others" if len(names) > _SHOWN else ""
    return f"{key.rpartition('/')[2]} {', '.join(names[:_SHOWN])}{more}".lstrip()
