"""What a profile reads, filters and scores, with its arguments and in each release."""

from collections.abc import Sequence

import numpy as np
import pytest

from core.events import Kind
from core.framework.evaluation import FreshEvaluation
from core.framework.interface import SKIP, SUCCESS, Code, FilterPlugin, ScorePlugin, Status, Verdicts
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.topology import Int64Array
from core.objects.kinds import Namespace, ReplicaSet, Service
from core.objects.node import Node
from core.objects.pod import Pod
from core.objects.volumes import CSINode
from core.profile import Profile, full_profile, parse_profile
from core.releases.differences import rules_of
from core.releases.release import Release
from core.scheduling_cycle import filter_nodes, score_nodes
from tests.builders import expressed, labelled, make_node, make_pod, term
from tests.core.decoded import mirror_of, node_of, pod_of
from tests.core.plain_plugin import PlainPlugin
from tests.core.profile_parts import affinity_profile, filters_of, scores_of

WEB = make_pod("web").label("app", "web")
NODES = [make_node("n1").label("zone", "a"), make_node("n2").label("zone", "b")]
BY_ZONE = term("zone", labelled(app="web"))


def test_one_plugin_filters_and_scores() -> None:
    profile = affinity_profile()
    assert [plugin.name for plugin in profile.filters] == ["InterPodAffinity"]
    assert [(plugin.name, weight) for plugin, weight in profile.scores] == [("InterPodAffinity", 2)]


def test_a_profile_by_name_weighs_inter_pod_affinity_as_kube_scheduler_does() -> None:
    (alone,) = parse_profile("affinity").scores
    assert alone[1] == {each.name: weight for each, weight in full_profile().scores}[alone[0].name]


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


class Reads(PlainPlugin, FilterPlugin[None], ScorePlugin[None]):
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


def test_the_full_profile_has_what_the_release_has_and_in_its_order() -> None:
    full = full_profile()
    old, new = (full.under(rules_of(release)) for release in (Release(1, 34), Release(1, 37)))
    assert filters_of(old)[:2] == ["NodeUnschedulable", "NodeName"]
    assert filters_of(new)[:2] == ["NodeName", "NodeUnschedulable"]
    assert ("NodeDeclaredFeatures" in filters_of(old), filters_of(new)[-1]) == (False, "NodeDeclaredFeatures")
    assert (scores_of(new), "VolumeBinding" in scores_of(old)) == ({**scores_of(old), "VolumeBinding": 1}, False)
    assert sorted(filters_of(new)) == sorted([*filters_of(old), "NodeDeclaredFeatures"])


def test_a_gate_takes_a_plugin_out_of_the_profile() -> None:
    off = full_profile().under(rules_of(Release(1, 36), {"NodeDeclaredFeatures": False}))
    assert "NodeDeclaredFeatures" not in filters_of(off)


def test_a_written_profile_keeps_its_order_in_every_release() -> None:
    written = parse_profile("NodeUnschedulable,NodeName,NodeDeclaredFeatures")
    old, new = (written.under(rules_of(release)) for release in (Release(1, 34), Release(1, 37)))
    assert filters_of(new) == ["NodeUnschedulable", "NodeName", "NodeDeclaredFeatures"]
    assert filters_of(old) == ["NodeUnschedulable", "NodeName"]


def test_where_nothing_differs_the_profile_is_itself() -> None:
    profile = parse_profile("NodeName,NodePorts")
    assert profile.under(rules_of(Release(1, 37))) is profile


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
