"""A pod's requirements on nodes: its nodeSelector and its node affinity.

Source: k8s.io/component-helpers scheduling/corev1/nodeaffinity/nodeaffinity.go (GetRequiredNodeAffinity,
NewPreferredSchedulingTerms), k8s.io/kubernetes pkg/scheduler/framework/plugins/nodeaffinity/node_affinity.go.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from core.objects.labels import EVERYTHING, Operator, Selector, errors_text, requirement
from core.objects.node_selector import NodeSelector, NodeSelectorTerm


class PreferredTerm(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """A PreferredSchedulingTerm: the weight of a node that meets the term."""

    weight: int
    term: NodeSelectorTerm


class NodeAffinity(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """The requirements and preferences of a pod for its node.

    `selector` is the nodeSelector. `required` is None if the pod has no required node affinity. A required node
    affinity without terms matches no node. The terms of `required` are alternatives, so they are sorted.

    `preferred` excludes empty terms and terms of weight 0. It is sorted, unless a term is invalid, because
    `preferred_error` reports the errors in their order. `empty_preferences` means that the pod has preferences, but
    that all are excluded.

    `node_names` are the only nodes that the `metadata.name` fields of the required terms allow. It is None if a term
    has no such field, and empty if every term contradicts itself.
    """

    selector: Selector = EVERYTHING
    required: NodeSelector | None = None
    preferred: tuple[PreferredTerm, ...] = ()
    node_names: frozenset[str] | None = None
    empty_preferences: bool = False

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        """Return whether a node meets the requirements. No node meets an invalid term (RequiredNodeAffinity.Match)."""
        if not self.selector.matches(labels):
            return False
        return self.required is None or self.required.matches(labels, name)

    @property
    def size(self) -> int:
        """Size of the value: the number of terms, requirements, and their values."""
        required = 0 if self.required is None else self.required.size
        return self.selector.size + required + sum([preferred.term.size for preferred in self.preferred])

    @property
    def preferred_error(self) -> str:
        """Upstream's error for invalid preferred terms. Empty if all could be parsed."""
        errors = [error for preferred in self.preferred for error in preferred.term.errors]
        return errors_text(errors) if errors else ""


NO_NODE_AFFINITY: Final = NodeAffinity()


def selector_from_set(labels: Mapping[str, str]) -> Selector:
    """Return the selector of a nodeSelector, which is not validated (labels.SelectorFromSet)."""
    if not labels:
        return EVERYTHING
    return Selector(tuple(requirement(key, Operator.IN, [labels[key]]) for key in sorted(labels)))
