"""Which plugins a profile has, by today's names and by former ones, with the arguments that it was given."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import pytest

from core.events import Kind
from core.framework.evaluation import FreshEvaluation
from core.framework.interface import Verdicts
from core.framework.status import SKIP, SUCCESS, Code, Status
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.topology import Int64Array
from core.objects.namespace import Namespace
from core.objects.node import Node
from core.objects.owner import ReplicaSet
from core.objects.pod import Pod
from core.objects.service import Service
from core.objects.volumes import CSINode
from core.plugin_names import FORMER_NAMES
from core.plugins.noderesources.allocation import ResourceSpec
from core.plugins.noderesources.strategies import ScoringStrategy
from core.profile import (
    COMPOSITES,
    PLUGINS,
    PROFILES,
    Profile,
    ProfileError,
    affinity_profile,
    full_profile,
    parse_profile,
)
from core.releases import Release, rules_of
from core.scheduling_cycle import filter_nodes, score_nodes
from tests.builders import expressed, labelled, make_node, make_pod, term
from tests.core.decoded import mirror_of, node_of, pod_of
from tests.core.plain_plugin import PlainPlugin

WEB = make_pod("web").label("app", "web")
NODES = [make_node("n1").label("zone", "a"), make_node("n2").label("zone", "b")]
BY_ZONE = term("zone", labelled(app="web"))


def test_one_plugin_filters_and_scores_with_weight_one() -> None:
    profile = affinity_profile()
    assert [plugin.name for plugin in profile.filters] == ["InterPodAffinity"]
    assert [(plugin.name, weight) for plugin, weight in profile.scores] == [("InterPodAffinity", 1)]


def test_required_affinity_of_existing_pods_weighs_one_unless_told_otherwise() -> None:
    pods = [WEB.uid("1").required_affinity(BY_ZONE).on("n1"), WEB.uid("2").preferred_affinity(1, BY_ZONE).on("n2")]
    mirror = mirror_of(*NODES, *pods)
    third = mirror.batch(["n1", "n2", "bare"], {2: node_of(make_node("bare"))})
    assert score_nodes(affinity_profile(), FreshEvaluation(mirror, pod_of(WEB)), third).tolist() == [100, 100, 0]


def test_the_hard_weight_reaches_the_plugin() -> None:
    pods = [WEB.uid("1").required_affinity(BY_ZONE).on("n1"), WEB.uid("2").preferred_affinity(50, BY_ZONE).on("n2")]
    mirror = mirror_of(*NODES, *pods)
    batch = mirror.batch(["n1", "n2"])
    assert score_nodes(affinity_profile(), FreshEvaluation(mirror, pod_of(WEB)), batch).tolist() == [0, 100]
    heavy = affinity_profile(hard_pod_affinity_weight=100)
    assert score_nodes(heavy, FreshEvaluation(mirror, pod_of(WEB)), batch).tolist() == [100, 0]


def test_ignoring_preferences_of_existing_pods_reaches_the_plugin() -> None:
    mirror = mirror_of(*NODES, WEB.preferred_affinity(50, BY_ZONE).on("n1"))
    batch = mirror.batch(["n1", "n2"])
    assert score_nodes(affinity_profile(), FreshEvaluation(mirror, pod_of(WEB)), batch).tolist() == [100, 0]
    ignoring = affinity_profile(ignore_preferred_terms_of_existing_pods=True)
    assert score_nodes(ignoring, FreshEvaluation(mirror, pod_of(WEB)), batch).tolist() == [0, 0]


def test_an_argument_out_of_range_is_refused() -> None:
    with pytest.raises(ValueError, match="hardPodAffinityWeight"):
        affinity_profile(hard_pod_affinity_weight=101)


class Reads(PlainPlugin):
    """A plugin of which only what it reads matters here."""

    name = "Reads"

    def __init__(self, *kinds: Kind) -> None:
        self.kinds = kinds

    def pre_filter(self, _mirror: ClusterMirror, _pod: Pod) -> tuple[Status, None]:
        return SKIP, None

    def filter(self, _state: None, batch: NodeBatch) -> Verdicts:
        return Verdicts(np.zeros(len(batch), np.uint8), (SUCCESS,))

    def pre_score(self, _mirror: ClusterMirror, _pod: Pod, _batch: NodeBatch) -> tuple[Status, None]:
        return SKIP, None

    def score(self, _state: None, batch: NodeBatch) -> Int64Array:
        return np.zeros(len(batch), np.int64)

    def normalize(self, raw: Int64Array) -> Int64Array:
        return raw


@pytest.mark.parametrize(
    ("filters", "scores", "expected"),
    [
        pytest.param([], [], (Node, Pod), id="nodes-and-pods-always"),
        pytest.param([Reads(Pod)], [Reads(Node)], (Node, Pod), id="each-once"),
        pytest.param([Reads(Service, Namespace)], [], (Node, Pod, Namespace, Service), id="of-a-filter"),
        pytest.param([], [Reads(ReplicaSet, CSINode)], (Node, Pod, CSINode, ReplicaSet), id="of-a-score"),
        pytest.param(
            [Reads(Pod, Service), Reads(CSINode)],
            [Reads(Service, Node)],
            (Node, Pod, CSINode, Service),
            id="union-in-a-fixed-order",
        ),
    ],
)
def test_a_profile_reads_nodes_pods_and_what_its_plugins_read(
    filters: Sequence[Reads], scores: Sequence[Reads], expected: tuple[Kind, ...]
) -> None:
    profile = Profile(filters=tuple(filters), scores=tuple((plugin, 1) for plugin in scores))
    assert expected == profile.kinds


def test_the_profile_beside_a_scheduler_reads_nodes_pods_and_namespaces() -> None:
    assert affinity_profile().kinds == (Node, Pod, Namespace)


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


def filters_of(profile: Profile) -> list[str]:
    return [plugin.name for plugin in profile.filters]


def scores_of(profile: Profile) -> dict[str, int]:
    return {plugin.name: weight for plugin, weight in profile.scores}


@pytest.mark.parametrize(
    ("text", "filters", "scores"),
    [
        pytest.param("affinity", ["InterPodAffinity"], {"InterPodAffinity": 1}, id="affinity"),
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
    ],
)
def test_a_text_names_the_plugins_of_a_profile(text: str, filters: Sequence[str], scores: dict[str, int]) -> None:
    profile = parse_profile(text)
    assert filters == filters_of(profile)
    assert scores == scores_of(profile)


def names(profile: Profile) -> list[str]:
    return [plugin.name for plugin in profile.filters]


def test_the_full_profile_has_what_the_release_has_and_in_its_order() -> None:
    full = full_profile()
    old, new = (full.under(rules_of(release)) for release in (Release(1, 34), Release(1, 37)))
    assert names(old)[:2] == ["NodeUnschedulable", "NodeName"]
    assert names(new)[:2] == ["NodeName", "NodeUnschedulable"]
    assert ("NodeDeclaredFeatures" in names(old), names(new)[-1]) == (False, "NodeDeclaredFeatures")
    assert (scores_of(new), "VolumeBinding" in scores_of(old)) == ({**scores_of(old), "VolumeBinding": 1}, False)
    assert sorted(names(new)) == sorted([*names(old), "NodeDeclaredFeatures"])


def test_a_gate_takes_a_plugin_out_of_the_profile() -> None:
    off = full_profile().under(rules_of(Release(1, 36), {"NodeDeclaredFeatures": False}))
    assert "NodeDeclaredFeatures" not in names(off)


def test_a_written_profile_keeps_its_order_in_every_release() -> None:
    written = parse_profile("NodeUnschedulable,NodeName,NodeDeclaredFeatures")
    assert names(written.under(rules_of(Release(1, 37)))) == ["NodeUnschedulable", "NodeName", "NodeDeclaredFeatures"]
    assert names(written.under(rules_of(Release(1, 34)))) == ["NodeUnschedulable", "NodeName"]


def test_where_nothing_differs_the_profile_is_itself() -> None:
    profile = parse_profile("NodeName,NodePorts")
    assert profile.under(rules_of(Release(1, 37))) is profile


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


def test_an_unknown_name_is_told_every_name_that_there_is() -> None:
    with pytest.raises(ProfileError) as raised:
        parse_profile("PodToleratesNodeNoExecuteTaints")  # a part of TaintToleration, which nothing of today is
    told = set(str(raised.value).replace(",", "").replace(";", "").split())
    assert {*PROFILES, *PLUGINS, *COMPOSITES, *FORMER_NAMES} <= told


def test_a_plugin_of_both_sides_is_one_and_so_is_a_part_of_a_composite() -> None:
    profile = parse_profile("GeneralPredicates,filter:NodeAffinity,score:NodeAffinity=2")
    assert [plugin.name for plugin in profile.plugins] == ["GeneralPredicates", "NodeAffinity"]


# Of v1.13 predicates.go: noncriticalPredicates (PodFitsResources), then EssentialPredicates (PodFitsHost,
# PodFitsHostPorts, PodMatchNodeSelector).
def test_general_predicates_have_the_reasons_of_resources_host_ports_and_selector_in_this_order() -> None:
    mirror = mirror_of(
        make_node("n1").allocatable(cpu=1, pods=10),
        make_node("n2").label("disk", "ssd").allocatable(cpu=4, pods=10),
        make_pod("there").host_port(80).on("n1"),
    )
    pod = pod_of(make_pod("p").on("n2").requests(cpu=2).host_port(80).node_selector({"disk": "ssd"}))
    batch = mirror.batch(["n1", "n2"])
    verdicts = filter_nodes(parse_profile("GeneralPredicates"), FreshEvaluation(mirror, pod), batch)
    expected = Status(
        Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
        (
            "Insufficient cpu",
            "node(s) didn't match the requested node name",
            "node(s) didn't have free ports for the requested pod ports",
            "node(s) didn't match Pod's node affinity/selector",
        ),
    )
    assert [expected, SUCCESS] == [verdicts.status(0), verdicts.status(1)]


def test_arguments_reach_plugins_and_the_parts_of_composites() -> None:
    mirror = mirror_of(make_node("n1").allocatable(pods=10))
    evaluation = FreshEvaluation(mirror, pod_of(make_pod("p").requests(**{"example.com/gpu": 1})))
    batch = mirror.batch(["n1"])
    ignoring = {"NodeResourcesFit": {"ignored_resources": ("example.com/gpu",)}}
    for text in ("NodeResourcesFit", "GeneralPredicates"):
        assert filter_nodes(parse_profile(text), evaluation, batch).codes.tolist() == [1]
        assert filter_nodes(parse_profile(text, ignoring), evaluation, batch).codes.tolist() == [0]


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


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        pytest.param((1, 1), [50, 50, 100], id="alike"),
        pytest.param((3, 1), [75, 25, 100], id="weighted"),
        pytest.param((2, 1), [66, 33, 100], id="rounded-down"),
        pytest.param((100, 1), [99, 0, 100], id="far-apart"),
    ],
)
def test_the_total_is_the_weighted_mean_of_the_normalised_scores(
    weights: tuple[int, int], expected: Sequence[int]
) -> None:
    mirror = mirror_of(
        make_node("near").label("disk", "ssd").taint("soft", "", "PreferNoSchedule"),
        make_node("clean"),
        make_node("both").label("disk", "ssd"),
    )
    pod = pod_of(make_pod("p").preferred_node_affinity(1, expressed("disk", "Exists")))
    profile = parse_profile("NodeAffinity={},TaintToleration={}".format(*weights))
    batch = mirror.batch(["near", "clean", "both"])
    assert expected == score_nodes(profile, FreshEvaluation(mirror, pod), batch).tolist()
