"""Which plugins decide, and how much each score weighs."""

from typing import Any, TypeAlias

import msgspec

from core.framework.interface import FilterPlugin, ScorePlugin
from core.plugins.interpodaffinity.plugin import InterPodAffinity

# The state that a plugin hands from its Pre extension point to the next is its own affair.
AnyFilter: TypeAlias = FilterPlugin[Any]
AnyScore: TypeAlias = ScorePlugin[Any]


class Profile(msgspec.Struct, frozen=True):
    """The enabled predicates in the order in which they are asked, and the enabled scores with weights (>= 1)."""

    filters: tuple[AnyFilter, ...]
    scores: tuple[tuple[AnyScore, int], ...]


def affinity_profile(
    *, hard_pod_affinity_weight: int = 1, ignore_preferred_terms_of_existing_pods: bool = False
) -> Profile:
    """Return the profile of a registration beside a scheduler: inter-pod affinity and nothing else."""
    plugin = InterPodAffinity(
        hard_pod_affinity_weight=hard_pod_affinity_weight,
        ignore_preferred_terms_of_existing_pods=ignore_preferred_terms_of_existing_pods,
    )
    return Profile(filters=(plugin,), scores=((plugin, 1),))
