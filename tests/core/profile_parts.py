"""The parts of a profile by name."""

from core.profile import Profile


def filters_of(profile: Profile) -> list[str]:
    return [plugin.name for plugin in profile.filters]


def scores_of(profile: Profile) -> dict[str, int]:
    return {plugin.name: weight for plugin, weight in profile.scores}
