"""The naive reference: InterPodAffinity with upstream's plain loops over all pods, independent of the engine.

It imports nothing of app or core and is not clever anywhere: the engine must give the same answers, only sooner.
Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/interpodaffinity (filtering.go, scoring.go).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from tests.reference.answer import NO_NODES, NOT_RUN, Response, Scores, Verdict
from tests.reference.selectors import Labels, Object
from tests.reference.terms import ParsedPod, Term, parse_pod

SUCCESS: Verdict = ("Success", ())
AFFINITY_FAILED: Verdict = ("UnschedulableAndUnresolvable", ("node(s) didn't match pod affinity rules",))
ANTI_AFFINITY_FAILED: Verdict = ("Unschedulable", ("node(s) didn't match pod anti-affinity rules",))
EXISTING_ANTI_AFFINITY_FAILED: Verdict = (
    "Unschedulable",
    ("node(s) didn't satisfy existing pods anti-affinity rules",),
)

Counts = dict[tuple[str, str], int]  # topology pair (key, value) -> number
ScoreMap = dict[str, dict[str, int]]  # topology key -> value -> score


@dataclass(slots=True)
class NodeInfo:
    """A node with the pods on it, and those of them that upstream keeps in lists of their own."""

    name: str
    labels: Labels
    pods: list[ParsedPod] = field(default_factory=list)
    pods_with_affinity: list[ParsedPod] = field(default_factory=list)
    pods_with_required_anti_affinity: list[ParsedPod] = field(default_factory=list)

    def add(self, pod: ParsedPod) -> None:
        """Put a pod on the node."""
        self.pods.append(pod)
        if pod.has_affinity:
            self.pods_with_affinity.append(pod)
        if pod.required_anti_affinity:
            self.pods_with_required_anti_affinity.append(pod)


@dataclass(slots=True)
class FilterState:
    """What PreFilter counts for one incoming pod."""

    pod: ParsedPod
    existing_anti_affinity: Counts = field(default_factory=dict)
    affinity: Counts = field(default_factory=dict)
    anti_affinity: Counts = field(default_factory=dict)


class NaiveCluster:
    """A cluster read from v1 objects, to be asked about any number of incoming pods.

    Terminal pods, pods without a node and pods on a node that is not in `nodes` are left out.
    """

    def __init__(self, namespaces: Iterable[Object], nodes: Iterable[Object], pods: Iterable[Object]) -> None:
        self._namespaces: dict[str, Labels] = {
            namespace["metadata"]["name"]: namespace["metadata"].get("labels") or {} for namespace in namespaces
        }
        self._nodes = {node["metadata"]["name"]: _node_info(node) for node in nodes}
        for pod in pods:
            node = self._nodes.get(pod.get("spec", {}).get("nodeName") or "")
            if node is not None and (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed"):
                node.add(parse_pod(pod))

    def response(
        self,
        pod: Object,
        hard_pod_affinity_weight: int = 1,
        *,
        ignore_preferred_terms_of_existing_pods: bool = False,
        unmirrored: Iterable[Object] = (),
    ) -> Response:
        """Answer as golden `expected` does, for all nodes of the cluster and for those of them that fit.

        `unmirrored` are nodes that the cluster does not have: they are asked about too, with no pods on them.
        """
        incoming = parse_pod(pod)
        every = [*self._nodes.values(), *map(_node_info, unmirrored)]
        if incoming.errors:
            return _rejection(every, f"parsing pod: {incoming.error}")
        incoming = _with_namespaces_named(incoming, self._namespaces)
        state = self._pre_filter(incoming)
        verdicts = _verdicts(state, every)
        scores = self._pre_score(
            incoming, hard_pod_affinity_weight, ignores_existing=ignore_preferred_terms_of_existing_pods
        )
        feasible = [node for node in every if verdicts[node.name] == SUCCESS]
        raw_all, raw_feasible = _raw_scores(scores, every), _raw_scores(scores, feasible)
        prescore = "Success" if scores else "Skip"
        return Response(
            prefilter="Success" if state else "Skip",
            prefilter_reasons=(),
            filter=verdicts,
            prescore_all=prescore,
            raw_scores_all=raw_all,
            normalized_all=_normalized(raw_all),
            prescore_feasible=prescore if feasible else NO_NODES,
            raw_scores_feasible=raw_feasible,
            normalized_feasible=_normalized(raw_feasible),
        )

    def filtered_next_to(self, pod: Object, nominated: Iterable[Object]) -> Mapping[str, Verdict]:
        """Filter every node twice: with the pods that are nominated for it, and without any pod that is nominated.

        A failure with them is the verdict, else the verdict without them. A pod that is less important than the
        incoming one, or that is the incoming one, does not count. After Skip or a failure of PreFilter there is nothing
        to do. Source: pkg/scheduler/framework/runtime/framework.go (RunFilterPluginsWithNominatedPods).
        """
        alone = self.response(pod)
        if alone.prefilter != "Success":
            return alone.filter
        verdicts = dict(alone.filter)
        for name, node in self._nodes.items():
            next_to = [
                parse_pod(each)
                for each in nominated
                if each["status"]["nominatedNodeName"] == name
                and each["spec"].get("priority", 0) >= pod["spec"].get("priority", 0)
                and each["metadata"]["uid"] != pod["metadata"].get("uid")
            ]
            if next_to:
                before = replace(
                    node,
                    pods=[*node.pods],
                    pods_with_affinity=[*node.pods_with_affinity],
                    pods_with_required_anti_affinity=[*node.pods_with_required_anti_affinity],
                )
                for each in next_to:
                    node.add(each)
                with_them = self.response(pod).filter[name]
                self._nodes[name] = before
                if with_them != SUCCESS:
                    verdicts[name] = with_them
        return verdicts

    def decision(self, pod: Object) -> Scores:
        """Return the fitting nodes with their normalised scores, and compute nothing else: the cycle that is timed.

        The arguments are the default ones. A node scores 0 when PreScore skips; no node fits a pod with broken terms.
        """
        incoming = parse_pod(pod)
        if incoming.errors:
            return {}
        incoming = _with_namespaces_named(incoming, self._namespaces)
        verdicts = _verdicts(self._pre_filter(incoming), self._nodes.values())
        feasible = [node for node in self._nodes.values() if verdicts[node.name] == SUCCESS]
        scores = self._pre_score(incoming, 1, ignores_existing=False) if feasible else {}
        return _normalized(_raw_scores(scores, feasible)) or {node.name: 0 for node in feasible}

    def _pre_filter(self, incoming: ParsedPod) -> FilterState | None:
        """Count for the filter; None is upstream's Skip: nothing that could fail on any node."""
        state = FilterState(incoming)
        self._count_existing_anti_affinity(state)
        if incoming.required_affinity or incoming.required_anti_affinity:
            self._count_incoming(state)
        elif not state.existing_anti_affinity:
            return None
        return state

    def _count_existing_anti_affinity(self, state: FilterState) -> None:
        namespace_labels = self._namespaces.get(state.pod.namespace, {})
        for node in self._nodes.values():
            for existing in node.pods_with_required_anti_affinity:
                for term in existing.required_anti_affinity:
                    if term.matches(state.pod.namespace, state.pod.labels, namespace_labels):
                        _count(state.existing_anti_affinity, node, term)

    def _count_incoming(self, state: FilterState) -> None:
        for node in self._nodes.values():
            for existing in node.pods:
                if _matches_all(state.pod.required_affinity, existing):
                    for term in state.pod.required_affinity:
                        _count(state.affinity, node, term)
                for term in state.pod.required_anti_affinity:
                    if term.matches(existing.namespace, existing.labels, {}):
                        _count(state.anti_affinity, node, term)

    def _pre_score(self, incoming: ParsedPod, hard_weight: int, *, ignores_existing: bool) -> ScoreMap:
        """Sum the weights per topology pair; empty is upstream's Skip (a sum of 0 is not empty)."""
        scores: ScoreMap = {}
        if ignores_existing and not incoming.has_preferred_terms:
            return scores
        namespace_labels = self._namespaces.get(incoming.namespace, {})
        for node in self._nodes.values():
            if not node.labels:
                continue
            for existing in node.pods if incoming.has_preferred_terms else node.pods_with_affinity:
                for sign, terms in ((1, incoming.preferred_affinity), (-1, incoming.preferred_anti_affinity)):
                    for term in terms:
                        if term.matches(existing.namespace, existing.labels, {}):
                            _add_score(scores, node, term, sign * term.weight)
                for term, weight in _weighted_terms(existing, hard_weight):
                    if term.matches(incoming.namespace, incoming.labels, namespace_labels):
                        _add_score(scores, node, term, weight)
        return scores


def _node_info(node: Object) -> NodeInfo:
    metadata = node["metadata"]
    return NodeInfo(metadata["name"], metadata.get("labels") or {})


def _rejection(nodes: Iterable[NodeInfo], reason: str) -> Response:
    verdict: Verdict = ("UnschedulableAndUnresolvable", (reason,))
    return Response(
        prefilter=verdict[0],
        prefilter_reasons=verdict[1],
        filter={node.name: verdict for node in nodes},
        prescore_all=NOT_RUN,
        raw_scores_all={},
        normalized_all={},
        prescore_feasible=NO_NODES,
        raw_scores_feasible={},
        normalized_feasible={},
    )


def _with_namespaces_named(pod: ParsedPod, namespaces: Mapping[str, Labels]) -> ParsedPod:
    def named(terms: tuple[Term, ...]) -> tuple[Term, ...]:
        return tuple([term.with_namespaces_named(namespaces) for term in terms])

    return replace(
        pod,
        required_affinity=named(pod.required_affinity),
        required_anti_affinity=named(pod.required_anti_affinity),
        preferred_affinity=named(pod.preferred_affinity),
        preferred_anti_affinity=named(pod.preferred_anti_affinity),
    )


def _weighted_terms(existing: ParsedPod, hard_weight: int) -> Iterable[tuple[Term, int]]:
    """Yield the terms by which an existing pod scores an incoming one, each with its signed weight."""
    if hard_weight > 0:
        for term in existing.required_affinity:
            yield term, hard_weight
    for term in existing.preferred_affinity:
        yield term, term.weight
    for term in existing.preferred_anti_affinity:
        yield term, -term.weight


def _matches_all(terms: tuple[Term, ...], pod: ParsedPod) -> bool:
    """Return whether a pod matches all the terms of an incoming one together; no terms match nothing."""
    if not terms:
        return False
    return all(term.matches(pod.namespace, pod.labels, {}) for term in terms)


def _count(counts: Counts, node: NodeInfo, term: Term) -> None:
    if term.topology_key in node.labels:
        pair = (term.topology_key, node.labels[term.topology_key])
        counts[pair] = counts.get(pair, 0) + 1


def _add_score(scores: ScoreMap, node: NodeInfo, term: Term, weight: int) -> None:
    if term.topology_key in node.labels:
        values = scores.setdefault(term.topology_key, {})
        value = node.labels[term.topology_key]
        values[value] = values.get(value, 0) + weight


def _verdicts(state: FilterState | None, nodes: Iterable[NodeInfo]) -> dict[str, Verdict]:
    return {node.name: _filter(state, node.labels) if state else SUCCESS for node in nodes}


def _filter(state: FilterState, labels: Labels) -> Verdict:
    if not _satisfies_affinity(state, labels):
        return AFFINITY_FAILED
    for term in state.pod.required_anti_affinity:
        if term.topology_key in labels and state.anti_affinity.get((term.topology_key, labels[term.topology_key])):
            return ANTI_AFFINITY_FAILED
    for pair in labels.items():
        if state.existing_anti_affinity.get(pair):
            return EXISTING_ANTI_AFFINITY_FAILED
    return SUCCESS


def _satisfies_affinity(state: FilterState, labels: Labels) -> bool:
    pods_exist = True
    for term in state.pod.required_affinity:
        if term.topology_key not in labels:
            return False
        if not state.affinity.get((term.topology_key, labels[term.topology_key])):
            pods_exist = False
    if pods_exist:
        return True
    # The first pod of a group that wants to be together has nobody to join.
    return not state.affinity and _matches_all(state.pod.required_affinity, state.pod)


def _raw_scores(scores: ScoreMap, nodes: Iterable[NodeInfo]) -> Scores:
    if not scores:
        return {}
    raw: dict[str, int] = {}
    for node in nodes:
        raw[node.name] = 0
        for key, values in scores.items():
            if key in node.labels:
                raw[node.name] += values.get(node.labels[key], 0)
    return raw


def _normalized(raw: Scores) -> Scores:
    if not raw:
        return {}
    lowest, highest = min(raw.values()), max(raw.values())
    if lowest == highest:
        return dict.fromkeys(raw, 0)
    return {node: int(100.0 * ((score - lowest) / (highest - lowest))) for node, score in raw.items()}
