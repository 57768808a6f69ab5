"""The full details of one node of a decision."""

from collections.abc import Sequence
from typing import Final

import msgspec

from core.diagnosis.amounts import node_amounts
from core.diagnosis.diagnosis import Diagnosis, ScorePart
from core.diagnosis.explained_profile import Judge
from core.explaining.counted_terms import CountedPod, Direction, Effect, Rule
from core.explaining.pod_names import name_of, uid_of
from core.plugins.amounts import NodeAmounts

_MAX_TERMS: Final = 500
"""A pod of 64 KB has 400 terms of its own. Thousands of terms of other pods may select it."""


class PredicateVerdict(msgspec.Struct, frozen=True, gc=False):
    """The verdict of one predicate on the node."""

    plugin: str
    code: str
    reasons: Sequence[str]
    judged_by: Judge


class NodeTerm(msgspec.Struct, frozen=True, gc=False):
    """The effect of a term on the node."""

    direction: Direction
    rule: Rule
    topology_key: str
    selects: str
    domain: str | None
    """The node's domain. None if it does not have the label."""
    effect: Effect
    pods: int
    """Pods that the term counts in the domain."""
    adds: int
    """The addition to the raw score."""
    named: Sequence[CountedPod]
    """Some of the counted pods. Empty for further terms once the search has taken too long."""


class NominatedPod(msgspec.Struct, frozen=True, gc=False):
    """A pod without a node that is nominated for one."""

    pod: str
    """NAMESPACE/NAME"""
    uid: str
    priority: int


class NodeDetail(msgspec.Struct, frozen=True, gc=False):
    """The decision about one node."""

    node: str
    fits: bool
    plugin: str
    """The first predicate that failed the node. Empty if none did."""
    code: str
    reasons: Sequence[str]
    answered: bool
    """Whether `filter` passes the node by the serving profile."""
    predicates: Sequence[PredicateVerdict]
    """Each predicate's verdict without nominated pods, including those after the first failure."""
    nominated: Sequence[NominatedPod]
    """The other pods nominated for the node that count there, because their priority is the same or greater."""
    refused_beside_nominated: bool
    """Whether the status includes these pods. Otherwise the node is judged without them."""
    terms: Sequence[NodeTerm]
    """At most 500."""
    score: int | None
    """None if the node is not scored."""
    score_parts: Sequence[ScorePart]
    amounts: NodeAmounts
    """The measurements of the predicates on the node."""


def node_detail(decision: Diagnosis, position: int, limit: int) -> NodeDetail:
    """Return the details of one node, with up to `limit` named pods for each term."""
    status = decision.verdicts.status(position)
    scored = decision.score(position)
    return NodeDetail(
        node=decision.batch.names[position],
        fits=not decision.verdicts.codes[position],
        plugin=decision.deciding_plugin(position),
        code=status.code.label,
        reasons=status.reasons,
        answered=not decision.response.codes[position],
        predicates=[
            PredicateVerdict(plugin, each.code.label, each.reasons, decision.judge_of(plugin))
            for plugin, each in decision.predicates(position)
        ],
        nominated=[
            NominatedPod(name_of(each), uid_of(each), each.priority) for each in decision.nominated_on(position)
        ],
        refused_beside_nominated=position in decision.rejected_with_nominated,
        terms=_terms(decision, position, limit),
        score=scored[0] if scored is not None else None,
        score_parts=scored[1] if scored is not None else (),
        amounts=node_amounts(decision, position, limit),
    )


def _terms(decision: Diagnosis, position: int, limit: int) -> list[NodeTerm]:
    """Return the terms in their order. If there are too many, those that affect the node come first."""
    counted = []
    for term in decision.terms:
        value_id = term.value_id(decision.batch, position)
        pods = term.count(value_id)
        counted.append((term, value_id, pods, term.effect(value_id, pods)))
    if len(counted) > _MAX_TERMS:
        counted = sorted(counted, key=lambda each: each[3] is Effect.NONE)[:_MAX_TERMS]
    return [
        NodeTerm(
            direction=term.direction,
            rule=term.rule,
            topology_key=term.topology_key,
            selects=term.selects,
            domain=_label(decision, position, term.topology_key),
            effect=effect,
            pods=pods,
            adds=term.weight * pods,
            named=term.named(value_id, limit, decision.search) if pods else (),
        )
        for term, value_id, pods, effect in counted
    ]


def _label(decision: Diagnosis, position: int, key: str) -> str | None:
    node = decision.node(position)
    return node.labels.get(key) if node is not None else None
