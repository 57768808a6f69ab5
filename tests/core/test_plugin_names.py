"""Every predicate and priority is known by the name that it had, and reported by that of its plugin."""

import pytest

from core.profile import COMPOSITES, FORMER_NAMES, PLUGINS, PROFILES, Profile, Side, parse_profile, todays_name


def filters_of(profile: Profile) -> list[str]:
    return [plugin.name for plugin in profile.filters]


def scores_of(profile: Profile) -> dict[str, int]:
    return {plugin.name: weight for plugin, weight in profile.scores}


@pytest.mark.parametrize(
    ("name", "plugin"),
    [
        ("PodFitsResources", "NodeResourcesFit"),
        ("PodFitsHost", "NodeName"),
        ("HostName", "NodeName"),
        ("PodFitsHostPorts", "NodePorts"),
        ("PodMatchNodeSelector", "NodeAffinity"),
        ("MatchNodeSelector", "NodeAffinity"),
        ("MatchInterPodAffinity", "InterPodAffinity"),
        ("PodToleratesNodeTaints", "TaintToleration"),
        ("CheckNodeUnschedulable", "NodeUnschedulable"),
        ("NoDiskConflict", "VolumeRestrictions"),
        ("MaxEBSVolumeCount", "NodeVolumeLimits"),
        ("MaxGCEPDVolumeCount", "NodeVolumeLimits"),
        ("MaxAzureDiskVolumeCount", "NodeVolumeLimits"),
        ("MaxCinderVolumeCount", "NodeVolumeLimits"),
        ("MaxPDVolumeCountPredicate", "NodeVolumeLimits"),
        ("MaxCSIVolumeCount", "NodeVolumeLimits"),
        ("MaxCSIVolumeCountPred", "NodeVolumeLimits"),
        ("EBSLimits", "NodeVolumeLimits"),
        ("GCEPDLimits", "NodeVolumeLimits"),
        ("AzureDiskLimits", "NodeVolumeLimits"),
        ("CinderLimits", "NodeVolumeLimits"),
        ("NoVolumeZoneConflict", "VolumeZone"),
        ("CheckVolumeBinding", "VolumeBinding"),
        ("EvenPodsSpread", "PodTopologySpread"),
        ("CheckServiceAffinity", "ServiceAffinity"),
    ],
)
def test_a_predicate_is_known_by_its_former_name_and_reported_by_todays(name: str, plugin: str) -> None:
    profile = parse_profile(name)
    assert (filters_of(profile), scores_of(profile)) == ([plugin], {})


@pytest.mark.parametrize(
    ("name", "plugin"),
    [
        ("TaintTolerationPriority", "TaintToleration"),
        ("NodeAffinityPriority", "NodeAffinity"),
        ("InterPodAffinityPriority", "InterPodAffinity"),
        ("EvenPodsSpreadPriority", "PodTopologySpread"),
        ("LeastRequestedPriority", "NodeResourcesFit"),
        ("MostRequestedPriority", "NodeResourcesFit"),
        ("BalancedResourceAllocation", "NodeResourcesBalancedAllocation"),
        ("ImageLocalityPriority", "ImageLocality"),
    ],
)
def test_a_priority_is_known_by_its_former_name_and_reported_by_todays(name: str, plugin: str) -> None:
    profile = parse_profile(f"{name}=4")
    assert (filters_of(profile), scores_of(profile)) == ([], {plugin: 4})


def test_every_former_name_is_that_of_a_side_that_its_plugin_has() -> None:
    assert not {*FORMER_NAMES} & {*PLUGINS, *COMPOSITES, *PROFILES}
    for name, former in FORMER_NAMES.items():
        assert hasattr(PLUGINS[former.plugin](), former.side.value), name
        assert bool(former.scoring_strategy) == (former.side is Side.SCORE and former.plugin == "NodeResourcesFit")


def test_the_name_of_today_is_the_plugin_that_a_name_stands_for() -> None:
    assert todays_name("MatchInterPodAffinity") == "InterPodAffinity"
    assert todays_name("InterPodAffinity") == "InterPodAffinity"
