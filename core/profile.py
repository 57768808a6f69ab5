"""Which plugins decide, and how much each score weighs."""

from typing import Any, TypeAlias

import msgspec

from core.events import Kind
from core.framework.interface import FilterPlugin, ScorePlugin
from core.objects.node import Node
from core.objects.pod import Pod
from core.plugins.interpodaffinity.plugin import InterPodAffinity

# The state that a plugin hands from its Pre extension point to the next is its own affair.
AnyFilter: TypeAlias = FilterPlugin[Any]
AnyScore: TypeAlias = ScorePlugin[Any]


class Profile(msgspec.Struct, frozen=True):
    """The enabled predicates in the order in which they are asked, and the enabled scores with weights (>= 1)."""

    filters: tuple[AnyFilter, ...]
    scores: tuple[tuple[AnyScore, int], ...]

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of objects that decisions follow from: nodes and pods always, then the others by name."""
        plugins: tuple[AnyFilter | AnyScore, ...] = (*self.filters, *(plugin for plugin, _ in self.scores))
        read = {kind for plugin in plugins for kind in plugin.kinds}
        return (Node, Pod, *sorted(read - {Node, Pod}, key=lambda kind: kind.__name__))


def affinity_profile(
    *, hard_pod_affinity_weight: int = 1, ignore_preferred_terms_of_existing_pods: bool = False
) -> Profile:
    """Return the profile of a registration beside a scheduler: inter-pod affinity and nothing else."""
    plugin = InterPodAffinity(
        hard_pod_affinity_weight=hard_pod_affinity_weight,
        ignore_preferred_terms_of_existing_pods=ignore_preferred_terms_of_existing_pods,
    )
    return Profile(filters=(plugin,), scores=((plugin, 1),))
