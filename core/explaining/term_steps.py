"""The steps of a remedy that change what the pod requires of other pods, and those that make its siblings again so."""

from collections.abc import Sequence
from enum import Enum
from typing import TypeVar

from msgspec.structs import replace

from core.explaining.owners import ROLLED
from core.explaining.pod_names import PodText
from core.explaining.pod_steps import Changing, Kind
from core.objects.affinity import AffinityTerm, PodAffinity, WeightedAffinityTerm
from core.objects.labels import Operator, Selector, requirement
from core.objects.pod import Pod

T = TypeVar("T")
_WEIGHT = 100


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


class SelectNamespace(Changing, frozen=True, gc=False):
    """Let a required affinity term select the pods of one namespace more."""

    kind = Kind.SELECT_NAMESPACE
    index: int
    """The place among the pod's required affinity terms."""
    topology_key: str
    namespace: str
    pods: int
    """The placed pods of the namespace that the term's labelSelector selects."""

    @property
    def text(self) -> str:
        """Return the step as an instruction."""
        match = "pod matches" if self.pods == 1 else "pods match"
        term = f"the required pod affinity by {self.topology_key}, which does not select it"
        return PodText("add namespace ", self.namespace, f" to {term}: {self.pods:,} {match} there")

    def changed(self, pod: Pod) -> Pod:
        """Return a pod whose term selects the namespace."""
        terms = pod.affinity.required_affinity
        term = terms[self.index]
        matcher = replace(term.matcher, namespaces=term.matcher.namespaces | {self.namespace})
        terms = _with(terms, self.index, replace(term, matcher=matcher))
        return _with_terms(pod, RequiredRule.AFFINITY, terms)


class CorrectSelector(Changing, frozen=True, gc=False):
    """Let a required affinity term select a label that pods have, instead of one that differs from it by a typo."""

    kind = Kind.CORRECT_REQUIREMENTS
    index: int
    """The place among the pod's required affinity terms."""
    topology_key: str
    key: str
    value: str
    to: str

    @property
    def text(self) -> str:
        """Return the step as an instruction."""
        wrong = f"{self.key}={self.value}"
        return f"select {self.key}={self.to} instead of {wrong} in the required pod affinity by {self.topology_key}"

    def changed(self, pod: Pod) -> Pod:
        """Return a pod whose term selects the label."""
        terms = pod.affinity.required_affinity
        term = terms[self.index]
        kept = [
            each for each in term.matcher.selector.requirements if (each.key, each.values) != (self.key, (self.value,))
        ]
        selector = Selector(tuple(sorted((*kept, requirement(self.key, Operator.IN, [self.to])))))
        term = replace(term, matcher=replace(term.matcher, selector=selector))
        return _with_terms(pod, RequiredRule.AFFINITY, _with(terms, self.index, term))


class RemakePod(Changing, frozen=True, gc=False):
    """Let the same owner make a placed pod again from the changed template, maybe on the same node.

    A StatefulSet makes a deleted pod from its present template (k8s.io/kubernetes pkg/controller/statefulset/
    stateful_set_utils.go, newVersionedStatefulSetPod). A Deployment's old pod leaves in the rolling update.
    """

    kind = Kind.REMAKE_POD
    pod: str
    """NAMESPACE/NAME"""
    uid: str
    node: str
    owner: str
    """NAMESPACE/NAME"""
    owner_kind: str
    max_unavailable: int = 0
    """The maxUnavailable with which a rolling update takes the pod away."""

    @property
    def text(self) -> str:
        """Return the step as an instruction."""
        if self.owner_kind in ROLLED:
            owner = PodText(
                f"(maxSurge 0 and maxUnavailable {self.max_unavailable} of {self.owner_kind} ", self.owner, ")"
            )
            return PodText("let its old pod ", self.pod, " go first ", owner)
        return PodText("delete pod ", self.pod, f", which {self.owner_kind} ", self.owner, " makes again like that")


def _terms(affinity: PodAffinity, rule: RequiredRule) -> Sequence[AffinityTerm]:
    return affinity.required_affinity if rule is RequiredRule.AFFINITY else affinity.required_anti_affinity


def _with_terms(pod: Pod, rule: RequiredRule, terms: tuple[AffinityTerm, ...]) -> Pod:
    if rule is RequiredRule.AFFINITY:
        return replace(pod, affinity=replace(pod.affinity, required_affinity=terms))
    return replace(pod, affinity=replace(pod.affinity, required_anti_affinity=terms))


def _with(items: Sequence[T], place: int, item: T) -> tuple[T, ...]:
    return (*items[:place], item, *items[place + 1 :])
