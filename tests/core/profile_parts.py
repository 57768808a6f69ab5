"""Profiles for tests, and the parts of a profile by name."""

from core.mirror.cluster import ClusterMirror
from core.plugins.interpodaffinity.plugin import InterPodAffinity
from core.profile import Profile
from core.scheduling_cycle import states_of


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


def derive_states(profile: Profile, mirror: ClusterMirror) -> None:
    """Create the states that the plugins of a profile need."""
    for make in states_of(profile):
        mirror.derived(make)
