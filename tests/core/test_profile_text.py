"""The text of a profile: the plugins that it names, by today's names and by former ones, and its errors."""

from collections.abc import Sequence
from typing import Final

import pytest

from core.framework.evaluation import FreshEvaluation
from core.plugins import PLUGINS
from core.plugins.noderesources.arguments import ResourceSpec, ScoringStrategy
from core.profile import (
    COMPOSITES,
    FORMER_NAMES,
    PROFILES,
    ProfileError,
    Side,
    full_profile,
    parse_profile,
    todays_name,
)
from core.scheduling_cycle import score_nodes
from tests.builders import make_node, make_pod
from tests.core.decoded import mirror_of, pod_of
from tests.core.profile_parts import affinity_profile, filters_of, scores_of

# What getDefaultPlugins gives, in pkg/scheduler/apis/config/v1/default_plugins.go of v1.34.
DEFAULT_FILTERS: Final = [
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
    "PodTopologySpread",
    "InterPodAffinity",
    "NodeDeclaredFeatures",
]
DEFAULT_SCORES: Final = {
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodeResourcesFit": 1,
    "VolumeBinding": 1,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
}


@pytest.mark.parametrize(
    ("text", "filters", "scores"),
    [
        pytest.param("affinity", ["InterPodAffinity"], {"InterPodAffinity": 2}, id="affinity"),
        pytest.param("full", DEFAULT_FILTERS, DEFAULT_SCORES, id="full"),
        pytest.param("NodeAffinity", ["NodeAffinity"], {"NodeAffinity": 1}, id="both-sides-of-a-plugin"),
        pytest.param("NodeName,NodePorts", ["NodeName", "NodePorts"], {}, id="the-side-that-a-plugin-has"),
        pytest.param("ImageLocality=7", [], {"ImageLocality": 7}, id="a-weight"),
        pytest.param("NodePorts,NodeName", ["NodePorts", "NodeName"], {}, id="in-the-order-of-the-list"),
        pytest.param("filter:NodeAffinity", ["NodeAffinity"], {}, id="one-side-filter"),
        pytest.param("score:NodeAffinity=100", [], {"NodeAffinity": 100}, id="one-side-score"),
        pytest.param(
            "filter:NodeAffinity,score:NodeAffinity=5", ["NodeAffinity"], {"NodeAffinity": 5}, id="both-sides-apart"
        ),
        pytest.param(" NodeName ,\n NodePorts\n", ["NodeName", "NodePorts"], {}, id="white-space-around-names"),
        pytest.param("GeneralPredicates", ["GeneralPredicates"], {}, id="a-composite"),
        pytest.param(
            "PodFitsResources,PodFitsHost,PodFitsHostPorts,PodMatchNodeSelector",
            ["NodeResourcesFit", "NodeName", "NodePorts", "NodeAffinity"],
            {},
            id="a-former-name-is-that-of-a-predicate-alone",
        ),
        pytest.param(
            "LeastRequestedPriority=3,InterPodAffinityPriority",
            [],
            {"NodeResourcesFit": 3, "InterPodAffinity": 1},
            id="or-that-of-a-priority-alone",
        ),
        pytest.param(
            "filter:MatchInterPodAffinity,score:InterPodAffinityPriority=2",
            ["InterPodAffinity"],
            {"InterPodAffinity": 2},
            id="a-former-name-on-its-own-side",
        ),
        # The default predicates of v1.17 name the limits of every cloud; one plugin has them all today.
        pytest.param(
            "MaxEBSVolumeCount,MaxGCEPDVolumeCount,CheckNodeUnschedulable,MaxCSIVolumeCount",
            ["NodeVolumeLimits", "NodeUnschedulable"],
            {},
            id="two-names-of-one-predicate",
        ),
        pytest.param(  # the default plugins of v1.30
            "VolumeRestrictions,EBSLimits,GCEPDLimits,NodeVolumeLimits,filter:AzureDiskLimits,VolumeBinding",
            ["VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding"],
            {"VolumeBinding": 1},
            id="removed-plugins",
        ),
    ],
)
def test_a_text_names_the_plugins_of_a_profile(text: str, filters: Sequence[str], scores: dict[str, int]) -> None:
    profile = parse_profile(text)
    assert filters == filters_of(profile)
    assert scores == scores_of(profile)


def test_the_named_profiles_are_those_of_the_functions() -> None:
    for expected, name in ((affinity_profile(), "affinity"), (full_profile(), "full")):
        assert filters_of(expected) == filters_of(parse_profile(name))
        assert scores_of(expected) == scores_of(parse_profile(name))


@pytest.mark.parametrize("name", sorted(PLUGINS))
def test_a_plugin_is_known_by_the_name_that_it_reports(name: str) -> None:
    assert name == PLUGINS[name]().name
    assert {*filters_of(parse_profile(name)), *scores_of(parse_profile(name))} == {name}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("NodeNam", "unknown plugin NodeNam; there are the profiles affinity, full,", id="unknown"),
        pytest.param("NodeName,full=2", "unknown plugin full; ", id="a-profile-with-a-weight"),
        pytest.param("full,NodeAffinity=2", "NodeAffinity=2: NodeAffinity scores already, with weight 2", id="twice"),
        pytest.param("Full", "unknown plugin Full; ", id="names-have-a-case"),
        pytest.param("", "expected [filter:|score:]NAME[=WEIGHT], got ''; there are ", id="empty"),
        pytest.param("NodeName,", "expected [filter:|score:]NAME[=WEIGHT], got ''; ", id="a-comma-too-many"),
        pytest.param("bind:NodeName", "expected [filter:|score:]NAME[=WEIGHT], got 'bind:NodeName'; ", id="no-side"),
        pytest.param("NodeAffinity=0", "NodeAffinity=0: the weight must be 1..100, got '0'", id="weight-too-low"),
        pytest.param("NodeAffinity=101", "NodeAffinity=101: the weight must be 1..100, got '101'", id="too-high"),
        pytest.param("NodeAffinity=-1", "NodeAffinity=-1: the weight must be 1..100, got '-1'", id="negative"),
        pytest.param("NodeAffinity=", "NodeAffinity=: the weight must be 1..100, got ''", id="no-weight"),
        pytest.param("NodeAffinity=1.5", "NodeAffinity=1.5: the weight must be 1..100, got '1.5'", id="no-integer"),
        pytest.param("NodeName=2", "NodeName=2: only scores have a weight", id="weight-of-what-does-not-score"),
        pytest.param("filter:NodeAffinity=2", "filter:NodeAffinity=2: only scores have a weight", id="of-a-filter"),
        pytest.param("MatchNodeSelector=2", "MatchNodeSelector=2: only scores have a weight", id="of-a-predicate"),
        pytest.param("filter:ImageLocality", "filter:ImageLocality: ImageLocality does not filter", id="no-filter"),
        pytest.param("score:NodeName", "score:NodeName: NodeName does not score", id="no-score"),
        pytest.param(
            "score:GeneralPredicates",
            "score:GeneralPredicates: GeneralPredicates does not score",
            id="a-composite-does-not-score",
        ),
        pytest.param(
            "filter:LeastRequestedPriority",
            "filter:LeastRequestedPriority: LeastRequestedPriority is the name of a score",
            id="a-former-name-on-the-other-side",
        ),
        pytest.param(
            "NodeAffinity=2,NodeAffinityPriority=3",
            "NodeAffinityPriority=3: NodeAffinity scores already, with weight 2",
            id="two-weights",
        ),
        pytest.param(
            "LeastRequestedPriority,MostRequestedPriority",
            "MostRequestedPriority: is NodeResourcesFit with the scoringStrategy MostAllocated, but it is ",
            id="two-strategies",
        ),
        pytest.param(
            "RequestedToCapacityRatioPriority",
            "NodeResourcesFit: scoringStrategy.shape: at least one point must be specified",
            id="a-strategy-that-needs-arguments",
        ),
    ],
)
def test_a_text_that_is_no_profile_is_refused_by_what_is_wrong_with_it(text: str, message: str) -> None:
    with pytest.raises(ProfileError) as raised:
        parse_profile(text)
    assert str(raised.value).startswith(message)


def test_no_response_depends_on_devices() -> None:
    with pytest.raises(ProfileError, match="unknown plugin DynamicResources; "):
        parse_profile("full,DynamicResources")


def test_an_unknown_name_is_told_every_name_that_there_is() -> None:
    with pytest.raises(ProfileError) as raised:
        parse_profile("PodToleratesNodeNoExecuteTaints")  # a part of TaintToleration, which nothing of today is
    reported = set(str(raised.value).replace(",", "").replace(";", "").split())
    assert {*PROFILES, *PLUGINS, *COMPOSITES, *FORMER_NAMES} <= reported


PACKED_AND_IDLE: Final = (
    make_node("packed").allocatable(cpu=10, memory=10, pods=10),
    make_node("idle").allocatable(cpu=10, memory=10, pods=10),
    make_pod("there").requests(cpu=5, memory=7).on("packed"),
)


@pytest.mark.parametrize(
    ("text", "strategy", "expected"),
    [
        pytest.param("LeastRequestedPriority", None, [30, 90], id="least"),
        pytest.param("MostRequestedPriority", None, [70, 10], id="most"),
        pytest.param(
            "MostRequestedPriority",
            ScoringStrategy("MostAllocated", (ResourceSpec("memory"),)),
            [80, 10],
            id="most-of-other-resources",
        ),
    ],
)
def test_a_former_name_of_a_score_by_resources_stands_for_its_strategy(
    text: str, strategy: ScoringStrategy | None, expected: Sequence[int]
) -> None:
    arguments = {} if strategy is None else {"NodeResourcesFit": {"scoring_strategy": strategy}}
    mirror = mirror_of(*PACKED_AND_IDLE)
    evaluation = FreshEvaluation(mirror, pod_of(make_pod("p").requests(cpu=1, memory=1)))
    profile = parse_profile(text, arguments)
    assert expected == score_nodes(profile, evaluation, mirror.batch(["packed", "idle"])).tolist()


def test_a_former_name_whose_strategy_is_not_that_of_the_arguments_is_refused() -> None:
    arguments = {"NodeResourcesFit": {"scoring_strategy": ScoringStrategy("MostAllocated")}}
    with pytest.raises(ProfileError, match="scoringStrategy LeastAllocated, but it is MostAllocated"):
        parse_profile("LeastRequestedPriority", arguments)


def test_an_argument_that_a_plugin_refuses_is_named_with_the_plugin() -> None:
    with pytest.raises(ProfileError, match=r"^InterPodAffinity: hardPodAffinityWeight: "):
        parse_profile("affinity", {"InterPodAffinity": {"hard_pod_affinity_weight": 101}})


PREDICATES: Final = {
    "NodeResourcesFit": "PodFitsResources",
    "NodeName": "PodFitsHost HostName",
    "NodePorts": "PodFitsHostPorts",
    "NodeAffinity": "PodMatchNodeSelector MatchNodeSelector",
    "InterPodAffinity": "MatchInterPodAffinity",
    "TaintToleration": "PodToleratesNodeTaints",
    "NodeUnschedulable": "CheckNodeUnschedulable",
    "VolumeRestrictions": "NoDiskConflict",
    "NodeVolumeLimits": "MaxEBSVolumeCount MaxGCEPDVolumeCount MaxAzureDiskVolumeCount MaxCinderVolumeCount "
    "MaxPDVolumeCountPredicate MaxCSIVolumeCount MaxCSIVolumeCountPred EBSLimits GCEPDLimits AzureDiskLimits "
    "CinderLimits",
    "VolumeZone": "NoVolumeZoneConflict",
    "VolumeBinding": "CheckVolumeBinding",
    "PodTopologySpread": "EvenPodsSpread",
    "ServiceAffinity": "CheckServiceAffinity",
}
PRIORITIES: Final = {
    "TaintToleration": "TaintTolerationPriority",
    "NodeAffinity": "NodeAffinityPriority",
    "InterPodAffinity": "InterPodAffinityPriority",
    "PodTopologySpread": "EvenPodsSpreadPriority",
    "NodeResourcesFit": "LeastRequestedPriority MostRequestedPriority",
    "NodeResourcesBalancedAllocation": "BalancedResourceAllocation",
    "ImageLocality": "ImageLocalityPriority",
}


def test_predicates_and_priorities_are_known_by_their_former_names_and_reported_by_todays() -> None:
    for plugin, names in PREDICATES.items():
        for profile in map(parse_profile, names.split()):
            assert (filters_of(profile), scores_of(profile)) == ([plugin], {})
    for plugin, names in PRIORITIES.items():
        for name in names.split():
            profile = parse_profile(f"{name}=4")
            assert (filters_of(profile), scores_of(profile)) == ([], {plugin: 4})


def test_every_former_name_is_in_the_tables_above() -> None:
    reported = " ".join((*PREDICATES.values(), *PRIORITIES.values())).split()
    assert {*FORMER_NAMES} - {*reported} == {"RequestedToCapacityRatioPriority"}  # it needs a shape


def test_every_former_name_is_that_of_a_side_that_its_plugin_has() -> None:
    assert not {*FORMER_NAMES} & {*PLUGINS, *COMPOSITES, *PROFILES}
    for name, former in FORMER_NAMES.items():
        assert hasattr(PLUGINS[former.plugin](), former.side.value), name
        assert bool(former.scoring_strategy) == (former.side is Side.SCORE and former.plugin == "NodeResourcesFit")


def test_the_name_of_today_is_the_plugin_that_a_name_stands_for() -> None:
    assert todays_name("MatchInterPodAffinity") == "InterPodAffinity"
    assert todays_name("InterPodAffinity") == "InterPodAffinity"
