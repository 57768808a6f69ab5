"""Which nodes a pod asks for: its nodeSelector and its affinity to nodes.

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

    `selector` is its nodeSelector. `required` is None when the pod has no required node affinity, whereas one without
    terms matches nothing; its terms are sorted, as they are alternatives. `preferred` leaves out terms of weight 0 and
    empty ones; it is sorted, unless a term is broken, as `preferred_error` tells the errors in their order.
    `empty_preferences` means that the pod has preferences, and that all of them are left out.

    `node_names` are the only nodes that the `metadata.name` fields of the required terms allow: None when a term has no
    such field, empty when every term contradicts itself.
    """

    selector: Selector = EVERYTHING
    required: NodeSelector | None = None
    preferred: tuple[PreferredTerm, ...] = ()
    node_names: frozenset[str] | None = None
    empty_preferences: bool = False

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        """Return whether a node meets the requirements; a broken term is met by none (RequiredNodeAffinity.Match)."""
        if not self.selector.matches(labels):
            return False
        return self.required is None or self.required.matches(labels, name)

    @property
    def size(self) -> int:
        """How much it holds: terms, requirements, and their values."""
        required = 0 if self.required is None else self.required.size
        return self.selector.size + required + sum([preferred.term.size for preferred in self.preferred])

    @property
    def preferred_error(self) -> str:
        """Upstream's error for broken preferred terms; empty when all could be parsed."""
        errors = [error for preferred in self.preferred for error in preferred.term.errors]
        return errors_text(errors) if errors else ""


NO_NODE_AFFINITY: Final = NodeAffinity()


def selector_from_set(labels: Mapping[str, str]) -> Selector:
    """Make the selector of a nodeSelector, which is not validated (labels.SelectorFromSet)."""
    if not labels:
        return EVERYTHING
    return Selector(tuple(requirement(key, Operator.IN, [labels[key]]) for key in sorted(labels)))
