"""The profile beside a scheduler is inter-pod affinity, with the arguments that it was given."""

from collections.abc import Sequence

import numpy as np
import pytest

from core.events import Kind
from core.framework.evaluation import FreshEvaluation
from core.framework.interface import Verdicts
from core.framework.status import SKIP, SUCCESS, Status
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.topology import Int64Array
from core.objects.namespace import Namespace
from core.objects.node import Node
from core.objects.owner import ReplicaSet
from core.objects.pod import Pod
from core.objects.service import Service
from core.objects.volumes import CSINode
from core.profile import Profile, affinity_profile
from core.scheduling_cycle import score_nodes
from tests.builders import labelled, make_node, make_pod, term
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
