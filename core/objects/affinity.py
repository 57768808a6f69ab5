"""Inter-pod affinity terms as values that can be interned: equal terms of different pods are one counter.

Source: k8s.io/kubernetes pkg/scheduler/framework/types.go (newAffinityTerm, getNamespacesFromPodAffinityTerm).
"""

from typing import Final

import msgspec

from core.objects.labels import Selector, errors_text


class PodMatcher(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """Which pods a term speaks of: those in the namespaces, or in a namespace that is selected, with the labels.

    `namespaces` already holds the namespace of the pod that carries the term when the term names none.
    """

    namespaces: frozenset[str]
    namespace_selector: Selector
    selector: Selector


class AffinityTerm(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """A PodAffinityTerm: the pods it speaks of, and the node label whose values are the topology domains."""

    matcher: PodMatcher
    topology_key: str


class WeightedAffinityTerm(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """A preferred term with its weight, 1..100; the sign (affinity or anti-affinity) is the list that contains it."""

    term: AffinityTerm
    weight: int


class TermError(msgspec.Struct, frozen=True, gc=False):
    """Why one of the four lists of terms could not be parsed.

    `group` is upstream's name of the list (`requiredAffinityTerms`), `field` the path under `spec.affinity`.
    """

    group: str
    field: str
    message: str


class PodAffinity(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """The four lists of inter-pod affinity terms of one pod.

    A list with a broken term is empty and named in `errors`, the other lists stand: upstream keeps an existing pod
    that way (NodeInfo.AddPod ignores the error), and refuses to schedule an incoming one.
    """

    required_affinity: tuple[AffinityTerm, ...] = ()
    required_anti_affinity: tuple[AffinityTerm, ...] = ()
    preferred_affinity: tuple[WeightedAffinityTerm, ...] = ()
    preferred_anti_affinity: tuple[WeightedAffinityTerm, ...] = ()
    errors: tuple[TermError, ...] = ()

    @property
    def parse_error(self) -> str:
        """The error of upstream's NewPodInfo for these terms; empty when all could be parsed."""
        if not self.errors:
            return ""
        return errors_text([f"{error.group}: {error.message}" for error in self.errors])


NO_AFFINITY: Final = PodAffinity()
