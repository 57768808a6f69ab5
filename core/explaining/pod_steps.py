"""The steps of a remedy that change the pod, which means the template of its owner."""

from collections.abc import Sequence
from enum import Enum
from typing import ClassVar, Final, TypeVar

import msgspec
from msgspec.structs import replace

from core.explaining.pod_names import PodText
from core.explaining.requirements import NODE_NAME, AskedOfNode, Source, Sourced, output_form
from core.mirror.cluster import ClusterMirror
from core.mirror.fork import Fork
from core.objects.affinity import (
    AffinityTerm,
    Comparison,
    FieldRequirement,
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    PodAffinity,
    PodMatcher,
    WeightedAffinityTerm,
)
from core.objects.labels import Operator, Requirement, Selector, requirement
from core.objects.pod import HONOR, SCHEDULE_ANYWAY, Pod, SpreadConstraint, Toleration
from core.objects.quantity import quantity_text

TAINTS_POLICY: Final = "nodeTaintsPolicy"
AFFINITY_POLICY: Final = "nodeAffinityPolicy"
_OF_LIMITS: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
"""Resources that may have a limit without a request, which is the limit if it is left out (SetDefaults_Pod)."""
_WEIGHT: Final = 100
"""The greatest weight of a preference."""

T = TypeVar("T")


class Kind(Enum):
    """The kind of change."""

    REPAIR_NODE = "repairNode"
    UNCORDON_NODE = "uncordonNode"
    LOWER_REQUESTS = "lowerRequests"
    CORRECT_REQUIREMENTS = "correctRequirements"
    CHANGE_DEVICE_CLASS = "changeDeviceClass"
    TOLERATE_TAINTS = "tolerateTaints"
    HONOR_POLICY = "honorPolicy"
    MATCH_REVISION = "matchRevision"
    SELECT_NAMESPACE = "selectNamespace"
    CHANGE_TOPOLOGY_KEY = "changeTopologyKey"
    PREFER_TERMS = "preferTerms"
    RAISE_MAX_SKEW = "raiseMaxSkew"
    RELAX_SPREAD = "relaxSpread"
    RUN_POD = "runPod"
    LABEL_NODE = "labelNode"
    DROP_REQUIREMENTS = "dropRequirements"
    REMOVE_POD = "removePod"
    REMAKE_POD = "remakePod"
    """Only beside a change of the pod, whose kind the remedy has."""
    ADD_NODE = "addNode"
    COMBINED = "combined"
    """Steps of several kinds."""


class Changing(msgspec.Struct, frozen=True, gc=False, tag_field="step", tag=lambda name: name[0].lower() + name[1:]):
    """One change, to the pod or to the cluster."""

    kind: ClassVar[Kind]

    def changed(self, pod: Pod) -> Pod:
        """Return a pod after the step. It must have its counted requests (ClusterMirror.counted)."""
        return pod

    def apply(self, mirror: ClusterMirror, fork: Fork) -> None:
        """Suppose the step in the cluster. Raises ForkError for a missing object."""


class LowerRequest(Changing, frozen=True, gc=False):
    """Lower the pod's request of a resource: cpu in millicores, all others in their own unit."""

    kind = Kind.LOWER_REQUESTS
    resource: str
    by: int
    to: int
    """The largest amount that fits. 0 if the pod fits only without this request."""

    @property
    def text(self) -> str:
        """Return the step as an instruction."""
        by = quantity_text(self.resource, self.by, round_up=True)
        if not self.to and self.resource in _OF_LIMITS:
            return f"set the {self.resource} request of {by} to 0"
        if not self.to:
            return f"drop the {self.resource} request of {by}"
        return f"lower the {self.resource} request by {by} to {quantity_text(self.resource, self.to)}"

    def changed(self, pod: Pod) -> Pod:
        """Return a pod with the lower request."""
        demand = replace(pod.demand, resources=None)
        return replace(pod, requests={**pod.requests, self.resource: self.to}, demand=demand)


class TolerateTaint(Changing, frozen=True, gc=False):
    """Give the pod a toleration of exactly this taint (operator Equal)."""

    kind = Kind.TOLERATE_TAINTS
    key: str
    value: str
    effect: str

    @property
    def text(self) -> str:
        """Return the step as an instruction."""
        return f"tolerate the taint {taint_text(self.key, self.value, self.effect)}"

    def changed(self, pod: Pod) -> Pod:
        """Return a pod with the toleration."""
        return replace(pod, tolerations=pod.tolerations | {Toleration(self.key, "Equal", self.value, self.effect)})


class DropRequirement(Changing, frozen=True, gc=False):
    """Remove a requirement from the pod's nodeSelector, or from a term of its required node affinity.

    If the term has no other requirement, the whole required node affinity is removed, because an empty term matches no
    node.
    """

    kind = Kind.DROP_REQUIREMENTS
    asked: AskedOfNode

    @property
    def text(self) -> str:
        """Return the step as an instruction."""
        place = "nodeSelector" if self.asked.source is Source.NODE_SELECTOR else "required node affinity"
        return f"drop {self.asked.text} from the pod's {place}"

    def changed(self, pod: Pod) -> Pod:
        """Return a pod without the requirement."""
        return replace(pod, node_affinity=_without(pod.node_affinity, self.asked))


class CorrectRequirement(Changing, frozen=True, gc=False):
    """Ask for a label that nodes have, instead of one that differs from it by a typo or has been renamed."""

    kind = Kind.CORRECT_REQUIREMENTS
    asked: AskedOfNode
    key: str
    value: str

    @property
    def text(self) -> str:
        """Return the step as an instruction."""
        place = "nodeSelector" if self.asked.source is Source.NODE_SELECTOR else "required node affinity"
        return f"ask for {self.key}={self.value} instead of {self.asked.text} in the pod's {place}"

    def changed(self, pod: Pod) -> Pod:
        """Return a pod that asks for the label of the nodes."""
        corrected = requirement(self.key, Operator.IN, [self.value])
        return replace(pod, node_affinity=_without(pod.node_affinity, self.asked, (corrected,)))


class OfConstraint(Changing, frozen=True, gc=False):
    """A change of one of the pod's topology spread constraints."""

    constraint: int
    """Its index among the pod's constraints."""
    topology_key: str

    def changed(self, pod: Pod) -> Pod:
        """Return a pod with the changed constraint."""
        return replace(pod, spread=_with(pod.spread, self.constraint, self.instead_of(pod.spread[self.constraint])))

    def instead_of(self, constraint: SpreadConstraint) -> SpreadConstraint:
        """Return the constraint after the step."""
        raise NotImplementedError


class HonorPolicy(OfConstraint, frozen=True, gc=False):
    """Leave the nodes out of a topology spread constraint that the pod cannot be on, so that they hold no minimum.

    Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/podtopologyspread/common.go (matchNodeInclusionPolicies).
    """

    kind = Kind.HONOR_POLICY
    policy: str
    """nodeTaintsPolicy or nodeAffinityPolicy"""

    @property
    def text(self) -> str:
        """Return the step as an instruction."""
        return f"set {self.policy} for {self.topology_key} to Honor"

    def instead_of(self, constraint: SpreadConstraint) -> SpreadConstraint:
        """Return the constraint with the policy Honor."""
        if self.policy == TAINTS_POLICY:
            return replace(constraint, node_taints_policy=HONOR)
        return replace(constraint, node_affinity_policy=HONOR)


class MatchRevision(OfConstraint, frozen=True, gc=False):
    """Count only pods of the pod's own revision in a topology spread constraint (matchLabelKeys)."""

    kind = Kind.MATCH_REVISION
    label_key: str

    @property
    def text(self) -> str:
        """Return the step as an instruction."""
        keys = f"add {self.label_key} to matchLabelKeys for {self.topology_key}"
        return f"{keys}, so that pods of other revisions do not count"

    def instead_of(self, constraint: SpreadConstraint) -> SpreadConstraint:
        """Return a constraint that counts only pods of the pod's own revision."""
        return replace(constraint, match_label_keys=tuple(sorted({*constraint.match_label_keys, self.label_key})))


class RaiseMaxSkew(OfConstraint, frozen=True, gc=False):
    """Raise maxSkew of a topology spread constraint of the pod."""

    kind = Kind.RAISE_MAX_SKEW
    domain: str
    """The domain in which the pod then fits."""
    max_skew: int
    to: int

    @property
    def text(self) -> str:
        """Return the step as an instruction."""
        return f"raise maxSkew for {self.topology_key} from {self.max_skew} to {self.to}"

    def instead_of(self, constraint: SpreadConstraint) -> SpreadConstraint:
        """Return the constraint with the greater maxSkew."""
        return replace(constraint, max_skew=self.to)


class RelaxSpread(OfConstraint, frozen=True, gc=False):
    """Set whenUnsatisfiable of a topology spread constraint of the pod to ScheduleAnyway."""

    kind = Kind.RELAX_SPREAD
    drops_min_domains: bool = False
    """Whether its minDomains has to go, which only a constraint with DoNotSchedule may have."""

    @property
    def text(self) -> str:
        """Return the step as an instruction."""
        dropped = ", and drop its minDomains" if self.drops_min_domains else ""
        return f"set whenUnsatisfiable for {self.topology_key} to ScheduleAnyway{dropped}"

    def instead_of(self, constraint: SpreadConstraint) -> SpreadConstraint:
        """Return the constraint as a preference."""
        return replace(constraint, when_unsatisfiable=SCHEDULE_ANYWAY)


# Steps that change what the pod requires of other pods.


class RequiredRule(Enum):
    """The list of required terms that a step changes."""

    AFFINITY = "podAffinity"
    ANTI_AFFINITY = "podAntiAffinity"
    SPREAD = "topologySpreadConstraints"


_TEXTS = {
    RequiredRule.AFFINITY: "pod affinity",
    RequiredRule.ANTI_AFFINITY: "pod anti-affinity",
    RequiredRule.SPREAD: "topology spread constraint",
}


class ChangeTopologyKey(Changing, frozen=True, gc=False):
    """Set the topology key of a required affinity term, or of a spread constraint."""

    kind = Kind.CHANGE_TOPOLOGY_KEY
    rule: RequiredRule
    index: int
    """The place in the pod's list."""
    topology_key: str
    to: str

    @property
    def text(self) -> str:
        """Return the step as an instruction."""
        required = "" if self.rule is RequiredRule.SPREAD else "required "
        return f"set topologyKey of the {required}{_TEXTS[self.rule]} from {self.topology_key} to {self.to}"

    def changed(self, pod: Pod) -> Pod:
        """Return a pod with the other topology key."""
        if self.rule is RequiredRule.SPREAD:
            constraint = replace(pod.spread[self.index], topology_key=self.to)
            return replace(pod, spread=_with(pod.spread, self.index, constraint))
        terms = _terms(pod.affinity, self.rule)
        return _with_terms(pod, self.rule, _with(terms, self.index, replace(terms[self.index], topology_key=self.to)))


class PreferTerm(Changing, frozen=True, gc=False):
    """Make a required term a preferred one, of the greatest weight."""

    kind = Kind.PREFER_TERMS
    rule: RequiredRule
    index: int
    """The place in the pod's list. A remedy has such steps from the end of the list, so that no place shifts."""
    topology_key: str

    @property
    def text(self) -> str:
        """Return the step as an instruction."""
        return f"turn the required {_TEXTS[self.rule]} by {self.topology_key} into a preferred one"

    def changed(self, pod: Pod) -> Pod:
        """Return a pod with the preference."""
        terms = _terms(pod.affinity, self.rule)
        preferred = WeightedAffinityTerm(terms[self.index], _WEIGHT)
        left = (*terms[: self.index], *terms[self.index + 1 :])
        affinity = _with_terms(pod, self.rule, left).affinity
        if self.rule is RequiredRule.AFFINITY:
            affinity = replace(affinity, preferred_affinity=(*affinity.preferred_affinity, preferred))
        else:
            affinity = replace(affinity, preferred_anti_affinity=(*affinity.preferred_anti_affinity, preferred))
        return replace(pod, affinity=affinity)


class OfAffinityTerm(Changing, frozen=True, gc=False):
    """A change of the pods that one of the pod's required affinity terms selects."""

    index: int
    """The place among the pod's required affinity terms."""
    topology_key: str

    def changed(self, pod: Pod) -> Pod:
        """Return a pod whose term selects other pods."""
        terms = pod.affinity.required_affinity
        term = replace(terms[self.index], matcher=self.instead_of(terms[self.index].matcher))
        return _with_terms(pod, RequiredRule.AFFINITY, _with(terms, self.index, term))

    def instead_of(self, matcher: PodMatcher) -> PodMatcher:
        """Return what the term selects after the step."""
        raise NotImplementedError


class SelectNamespace(OfAffinityTerm, frozen=True, gc=False):
    """Let a required affinity term select the pods of one namespace more."""

    kind = Kind.SELECT_NAMESPACE
    namespace: str
    pods: int
    """The placed pods of the namespace that the term's labelSelector selects."""

    @property
    def text(self) -> str:
        """Return the step as an instruction."""
        match = "pod matches" if self.pods == 1 else "pods match"
        term = f"the required pod affinity by {self.topology_key}, which does not select it"
        return PodText("add namespace ", self.namespace, f" to {term}: {self.pods:,} {match} there")

    def instead_of(self, matcher: PodMatcher) -> PodMatcher:
        """Return a matcher that selects the namespace, too."""
        return replace(matcher, namespaces=matcher.namespaces | {self.namespace})


class CorrectSelector(OfAffinityTerm, frozen=True, gc=False):
    """Let a required affinity term select a label that pods have, instead of one that differs from it by a typo."""

    kind = Kind.CORRECT_REQUIREMENTS
    key: str
    value: str
    to: str

    @property
    def text(self) -> str:
        """Return the step as an instruction."""
        wrong = f"{self.key}={self.value}"
        return f"select {self.key}={self.to} instead of {wrong} in the required pod affinity by {self.topology_key}"

    def instead_of(self, matcher: PodMatcher) -> PodMatcher:
        """Return a matcher that selects the label."""
        wrong = self.key, (self.value,)
        remaining = [each for each in matcher.selector.requirements if (each.key, each.values) != wrong]
        selector = Selector(tuple(sorted((*remaining, requirement(self.key, Operator.IN, [self.to])))))
        return replace(matcher, selector=selector)


def taint_text(key: str, value: str, effect: str) -> str:
    """Return a taint in kubectl's notation."""
    return f"{key}={value}:{effect}" if value else f"{key}:{effect}"


def _without(affinity: NodeAffinity, dropped: AskedOfNode, instead: tuple[Requirement, ...] = ()) -> NodeAffinity:
    """Return an affinity without a requirement, and with others in its place."""
    if dropped.term is None or affinity.required is None:
        remaining = (
            each
            for each in affinity.selector.requirements
            if output_form(Sourced(Source.NODE_SELECTOR, None, each)) != dropped
        )
        return replace(affinity, selector=Selector(tuple(sorted((*remaining, *instead)))))

    def stays(each: Requirement | Comparison | FieldRequirement) -> bool:
        return output_form(Sourced(dropped.source, dropped.term, each)) != dropped

    terms = [*affinity.required.terms]
    term = terms[dropped.term]
    terms[dropped.term] = replace(
        term,
        requirements=tuple(sorted((*filter(stays, term.requirements), *instead))),
        comparisons=tuple(filter(stays, term.comparisons)),
        fields=tuple(filter(stays, term.fields)),
    )
    if terms[dropped.term] == NodeSelectorTerm():
        return replace(affinity, required=None, node_names=None)
    names = _node_names(terms) if dropped.key == NODE_NAME else affinity.node_names
    return replace(affinity, required=NodeSelector(tuple(terms)), node_names=names)


def _node_names(terms: Sequence[NodeSelectorTerm]) -> frozenset[str] | None:
    """Return the only nodes that the fields of the terms allow, like NodeAffinity.node_names of the parsed terms."""
    names: set[str] = set()
    for term in terms:
        values = {each.value for each in term.fields if each.key == NODE_NAME and not each.negated}
        if not values:
            return None
        if len(values) == 1:  # several names contradict each other
            names |= values
    return frozenset(names)


def _terms(affinity: PodAffinity, rule: RequiredRule) -> Sequence[AffinityTerm]:
    return affinity.required_affinity if rule is RequiredRule.AFFINITY else affinity.required_anti_affinity


def _with_terms(pod: Pod, rule: RequiredRule, terms: tuple[AffinityTerm, ...]) -> Pod:
    if rule is RequiredRule.AFFINITY:
        return replace(pod, affinity=replace(pod.affinity, required_affinity=terms))
    return replace(pod, affinity=replace(pod.affinity, required_anti_affinity=terms))


def _with(items: Sequence[T], place: int, item: T) -> tuple[T, ...]:
    return (*items[:place], item, *items[place + 1 :])
