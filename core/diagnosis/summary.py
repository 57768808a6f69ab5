"""The summary of a decision: nodes by reason and by topology domain, the counts of terms, and the scores."""

from collections.abc import Sequence
from itertools import islice
from typing import Final

import msgspec
import numpy as np

from core.diagnosis.amounts import cluster_amounts
from core.diagnosis.diagnosis import Diagnosis
from core.diagnosis.explained_profile import Judge, SchedulerState
from core.diagnosis.not_judged import NotJudged
from core.diagnosis.remedies.find_remedies import find_remedies
from core.diagnosis.wakes import Wake, wakes
from core.explaining.counted_terms import CountedTerm, Direction, Rule
from core.explaining.node_labels import domains_of
from core.explaining.pod_names import name_of, uid_of
from core.explaining.remedy import Remedy
from core.framework.interface import AnyScore, Code
from core.mirror.topology import Int64Array, IntpArray
from core.objects.node import ZONE
from core.objects.pod import NOT_WAITING, Waiting
from core.plugins.amounts import ClusterAmounts

_EXAMPLES: Final = 3
_DEFAULT_SCHEDULER: Final = "default-scheduler"
_MAX_TOPOLOGIES: Final = 20
"""How many topology keys are summarised. Each costs a pass over all nodes, and a pod may name hundreds."""


class ReasonSummary(msgspec.Struct, frozen=True, gc=False):
    """Nodes that fail for one reason, from the first predicate that fails there."""

    reason: str
    plugin: str
    """Empty if the node is unknown, or out of the partition."""
    code: str
    nodes: int
    examples: Sequence[str]
    judged_by: Judge


class DomainSummary(msgspec.Struct, frozen=True, gc=False):
    """The nodes of one topology domain."""

    value: str
    """Empty for the nodes without the label."""
    nodes: int
    fit: int
    best_score: int | None
    """None if no node of the domain fits."""


class TopologySummary(msgspec.Struct, frozen=True, gc=False):
    """The nodes by the domains of one topology key. If some domains are not shown, the shown ones are the largest."""

    topology_key: str
    domains: int
    domains_with_fit: int
    shown: Sequence[DomainSummary]


class TermDomain(msgspec.Struct, frozen=True, gc=False):
    """The count of a term in one domain."""

    value: str
    pods: int


class TermSummary(msgspec.Struct, frozen=True, gc=False):
    """A term with its counts. If some domains are not shown, the shown ones have most pods."""

    direction: Direction
    rule: Rule
    topology_key: str
    selects: str
    weight: int
    """The amount that each pod adds to the raw score of the nodes in its domain. 0 for none."""
    first_pod: bool
    """Whether the term is met without a matching pod, because this pod is the first of its kind."""
    pods: int
    domains: int
    shown: Sequence[TermDomain]


class ScoreSummary(msgspec.Struct, frozen=True, gc=False):
    """The scores of one plugin. Without numbers if the plugin skips this pod."""

    plugin: str
    weight: int
    raw: tuple[int, int] | None
    """The lowest and the highest raw score."""
    normalized: tuple[int, int] | None
    judged_by: Judge


class ScoredNode(msgspec.Struct, frozen=True, gc=False):
    """A node with its score."""

    node: str
    score: int


class RefusedBeside(msgspec.Struct, frozen=True, gc=False):
    """A node that the pod does not fit with the pods that are nominated for it."""

    node: str
    pods: Sequence[str]
    """NAMESPACE/NAME"""


class Summary(msgspec.Struct, frozen=True, gc=False):
    """A decision about all nodes of the request."""

    pod: str
    """NAMESPACE/NAME"""
    uid: str
    generation: int
    """The mirror's generation."""
    nodes: int
    fit: int
    """Nodes that pass all judged rules."""
    answered_fit: int
    """Nodes that `filter` passes by the serving profile, which may judge fewer rules."""
    not_judged: Sequence[NotJudged]
    """Rules that may still reject fitting nodes."""
    never_tried: str
    """Why no scheduler tries the pod, whatever fits. Empty if one does, as far as the pod's object tells.

    A pod that has ended, is being deleted or is on a node has no `helps` and no `wakes`."""
    waiting: Waiting | None
    """The status of a pod without a node. Null for other pods, and if the pod's object has none."""
    message: str
    """The message in the form of kube-scheduler's events."""
    reasons: Sequence[ReasonSummary]
    refused_beside_nominated: int
    """Nodes that fail with the pods that are nominated for them."""
    nominated: Sequence[RefusedBeside]
    """Some of these nodes."""
    topologies: Sequence[TopologySummary]
    """Topologies of zones, and of the keys of the terms: 20 keys at most."""
    terms: Sequence[TermSummary]
    scores: Sequence[ScoreSummary]
    best: Sequence[ScoredNode]
    """The best of the scored nodes, best first."""
    amounts: ClusterAmounts
    """The measurements of the plugins over all nodes."""
    helps: Sequence[Remedy]
    """The smallest changes that let the pod fit, as alternatives. Empty if the pod fits on a node."""
    wakes: Sequence[Wake]
    """Events after which kube-scheduler tries the pod again. Empty if the pod fits on a node."""
    scheduler: SchedulerState | None = None
    """The scheduler profile of this judgement. Null if the scheduler's configuration is unknown."""
    not_scored: Sequence[NotJudged] = ()
    """Scores that are left out, because the mirror lacks what they read."""


def summary(decision: Diagnosis, limit: int, placed_on: str = "") -> Summary:
    """Summarise a decision, with up to `limit` domains, pods and nodes in each list.

    `placed_on` is the node of a pod that is judged as if it were deleted.
    """
    pod = decision.pod
    places = not (pod.terminal or pod.terminating or placed_on)
    reasons = reasons_of(decision)
    keys = list(dict.fromkeys((ZONE, *(term.topology_key for term in decision.terms))))
    return Summary(
        pod=name_of(decision.pod),
        uid=uid_of(decision.pod),
        generation=decision.generation,
        nodes=len(decision.batch),
        fit=len(decision.fitting),
        answered_fit=int(np.count_nonzero(decision.response.codes == 0)),
        not_judged=decision.not_judged,
        never_tried=never_tried(decision, placed_on),
        waiting=decision.pod.waiting if decision.pod.waiting != NOT_WAITING else None,
        message=fit_message(decision, reasons),
        reasons=reasons,
        refused_beside_nominated=len(decision.rejected_with_nominated),
        nominated=[
            RefusedBeside(decision.batch.names[position], [name_of(pod) for pod in rejection.nominated])
            for position, rejection in islice(decision.rejected_with_nominated.items(), limit)
        ],
        topologies=[_topology(decision, key, limit) for key in keys[:_MAX_TOPOLOGIES]],
        terms=[_term(term, limit) for term in decision.terms],
        scores=[_scores(decision, plugin, weight) for plugin, weight in decision.profile.scores],
        best=_best(decision, limit),
        amounts=cluster_amounts(decision, limit),
        helps=find_remedies(decision, max(limit, 1)) if places else (),  # none would mean that none helps
        wakes=wakes(decision) if places else (),
        scheduler=decision.scheduler,
        not_scored=decision.not_scored,
    )


def never_tried(decision: Diagnosis, placed_on: str) -> str:
    """Return why no scheduler tries the pod: it has ended, is being deleted, has a node, or none has answered for it.

    Source: k8s.io/kubernetes pkg/scheduler/schedule_one.go (skipPodSchedule), eventhandlers.go (addPod), and
    scheduler.go (newPodInformer), which lists no pod that has ended.
    """
    pod = decision.pod
    if pod.terminal:
        return "it has ended (phase Succeeded or Failed), so no scheduler places it"
    if pod.terminating:
        return "it is being deleted, so no scheduler places it"
    if placed_on:
        return f"it is on {placed_on} already, and is explained as if it were deleted"
    if pod.node_name:
        return f"spec.nodeName is {pod.node_name}, so no scheduler places it: the kubelet there takes it or rejects it"
    of_another = pod.scheduler_name not in ("", _DEFAULT_SCHEDULER) and pod.uid in decision.mirror.pending
    if of_another and not (pod.waiting.reason or pod.waiting.gates or pod.nominated_node_name):
        return (
            f"no scheduler has answered for it yet: it has no condition PodScheduled, so perhaps none with "
            f"schedulerName {pod.scheduler_name} runs"
        )
    return ""


def reasons_of(decision: Diagnosis) -> list[ReasonSummary]:
    """Return the reasons, ordered by number of nodes, most first. A node with several reasons counts in each."""
    groups, places = decision.groups()
    found: dict[tuple[str, str, str], tuple[int, list[str]]] = {}
    for number, (status, plugin, count) in enumerate(groups):
        if status.code is Code.SUCCESS:
            continue
        positions = np.flatnonzero(places == number)[:_EXAMPLES].tolist()
        for reason in status.reasons or (status.code.label,):
            nodes, examples = found.setdefault((reason, plugin, status.code.label), (0, []))
            examples += [decision.batch.names[position] for position in positions]
            found[reason, plugin, status.code.label] = nodes + count, examples[:_EXAMPLES]
    reasons = [
        ReasonSummary(*key, nodes, examples, decision.judge_of(key[1])) for key, (nodes, examples) in found.items()
    ]
    return sorted(reasons, key=lambda each: (-each.nodes, each.reason))


def fit_message(decision: Diagnosis, reasons: Sequence[ReasonSummary]) -> str:
    """Return kube-scheduler's message (framework types.go, FitError), with reasons sorted by text as there.

    If a PreFilter fails, no node was judged, so its reason has no number.
    """
    fit = len(decision.fitting)
    head = f"{fit}/{len(decision.batch)} nodes are available"
    if decision.verdicts.of_pre_filter:
        return f"{head}: {', '.join(decision.verdicts.statuses[1].reasons)}."
    by_text: dict[str, int] = {}
    for each in reasons:
        by_text[each.reason] = by_text.get(each.reason, 0) + each.nodes
    texts = sorted(f"{nodes} {reason}" for reason, nodes in by_text.items())
    return f"{head}: {', '.join(texts)}." if texts else f"{head}."


def _topology(decision: Diagnosis, key: str, limit: int) -> TopologySummary:
    values, places = domains_of(decision, key)
    fits = decision.verdicts.codes == 0
    nodes, fitting = (np.bincount(each, minlength=len(values)) for each in (places, places[fits]))
    best = np.full(len(values), -1, np.int64)
    np.maximum.at(best, places[decision.scored], np.where(fits[decision.scored], decision.scores, -1))
    largest = np.argsort(-nodes, kind="stable")[:limit].tolist()
    return TopologySummary(
        topology_key=key,
        domains=int(np.count_nonzero(nodes[1:])),
        domains_with_fit=int(np.count_nonzero(fitting[1:])),
        shown=[
            DomainSummary(
                values[each], int(nodes[each]), int(fitting[each]), int(best[each]) if best[each] >= 0 else None
            )
            for each in largest
            if nodes[each]
        ],
    )


def _term(term: CountedTerm, limit: int) -> TermSummary:
    value_ids, counts = term.counts()
    most = _largest(counts, limit)
    largest = zip(value_ids[most].tolist(), counts[most].tolist(), strict=True)
    listed = [TermDomain(term.value(value_id), pods) for value_id, pods in largest]
    return TermSummary(
        direction=term.direction,
        rule=term.rule,
        topology_key=term.topology_key,
        selects=term.selects,
        weight=term.weight,
        first_pod=term.first_pod,
        pods=int(counts.sum()),
        domains=len(counts),
        shown=sorted(listed, key=lambda each: (-each.pods, each.value)),  # whatever the order in which values came
    )


def _largest(numbers: Int64Array, limit: int) -> IntpArray:
    """Return the indices of the largest numbers, largest first. Equal numbers keep their order.

    Partitions first, because a sort of 5,000 numbers takes 0.2 ms, and a pod may have hundreds of terms.
    """
    if not limit:
        return np.empty(0, np.intp)
    if limit < len(numbers):
        least = np.partition(numbers, -limit)[-limit]
        above = np.flatnonzero(numbers > least)
        places = np.sort(np.concatenate((above, np.flatnonzero(numbers == least)[: limit - len(above)])))
    else:
        places = np.arange(len(numbers))
    return places[np.argsort(-numbers[places], kind="stable")]


def _scores(decision: Diagnosis, plugin: AnyScore, weight: int) -> ScoreSummary:
    raw, judge = decision.raw_scores(plugin), decision.explained.judge_of_score(plugin.name)
    if raw is None or not len(raw):
        return ScoreSummary(plugin.name, weight, None, None, judge)
    normalized = decision.normalized[plugin.name]
    of_raw, of_normalized = ((int(numbers.min()), int(numbers.max())) for numbers in (raw, normalized))
    return ScoreSummary(plugin.name, weight, of_raw, of_normalized, judge)


def _best(decision: Diagnosis, limit: int) -> list[ScoredNode]:
    order = np.argsort(-decision.scores, kind="stable")[:limit]
    return [
        ScoredNode(decision.batch.names[position], score)
        for position, score in zip(decision.scored[order].tolist(), decision.scores[order].tolist(), strict=True)
    ]
