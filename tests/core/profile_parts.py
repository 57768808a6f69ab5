"""Profiles for tests, and the parts of a profile by name."""

from core.plugins.interpodaffinity.plugin import InterPodAffinity
from core.profile import Profile


def affinity_profile(
    *, hard_pod_affinity_weight: int = 1, ignore_preferred_terms_of_existing_pods: bool = False
) -> Profile:
    """Return the profile `affinity` with these arguments: inter-pod affinity and no other plugin."""
    plugin = InterPodAffinity(
        hard_pod_affinity_weight=hard_pod_affinity_weight,
        ignore_preferred_terms_of_existing_pods=ignore_preferred_terms_of_existing_pods,
    )
    return Profile(filters=(plugin,), scores=((plugin, 2),))


def filters_of(profile: Profile) -> list[str]:
    return [plugin.name for plugin in profile.filters]


def scores_of(profile: Profile) -> dict[str, int]:
    return {plugin.name: weight for plugin, weight in profile.scores}
