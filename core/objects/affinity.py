"""Inter-pod affinity terms as values that can be interned: equal terms of different pods share one counter.

Source: k8s.io/kubernetes pkg/scheduler/framework/types.go (newAffinityTerm, getNamespacesFromPodAffinityTerm).
"""

from typing import Final

import msgspec

from core.objects.labels import Selector, errors_text


class PodMatcher(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """The pods that a term selects: pods with the labels, in one of the namespaces or in a selected namespace.

    If the term names no namespace, `namespaces` has the namespace of the pod with the term.
    """

    namespaces: frozenset[str]
    namespace_selector: Selector
    selector: Selector


class AffinityTerm(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """A PodAffinityTerm: a matcher of pods, and the node label whose values are the topology domains."""

    matcher: PodMatcher
    topology_key: str


class WeightedAffinityTerm(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """A preferred term with its weight, 1..100. The list that contains the term determines its sign."""

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

    A list with an invalid term is empty and named in `errors`. The other lists stay valid. Upstream does the same for
    an existing pod (NodeInfo.AddPod ignores the error), and rejects an incoming pod.
    """

    required_affinity: tuple[AffinityTerm, ...] = ()
    required_anti_affinity: tuple[AffinityTerm, ...] = ()
    preferred_affinity: tuple[WeightedAffinityTerm, ...] = ()
    preferred_anti_affinity: tuple[WeightedAffinityTerm, ...] = ()
    errors: tuple[TermError, ...] = ()

    @property
    def parse_error(self) -> str:
        """The error of upstream's NewPodInfo for these terms. Empty if all could be parsed."""
        if not self.errors:
            return ""
        return errors_text([f"{error.group}: {error.message}" for error in self.errors])


NO_AFFINITY: Final = PodAffinity()
