"""All that is measured, summed up over the nodes."""

from msgspec.structs import replace

from core.diagnosis.amounts.cluster_amounts import ClusterAmounts, FeatureInCluster, cluster_amounts
from core.events import ClusterEvent
from core.mirror.cluster import ClusterMirror
from core.releases.differences import rules_of
from core.releases.release import Release
from tests.core.decoded import node_of, pod_of
from tests.core.diagnosis.deciding import asking, decision_in, decision_of, roomy

FEATURE = "RestartAllContainersOnContainerExits"


def test_a_pod_that_asks_nothing_of_roomy_nodes_has_resources_alone() -> None:
    found = cluster_amounts(decision_of(asking(), roomy("n1")), 5)
    assert [each.resource for each in found.resources] == ["pods"]
    assert ClusterAmounts(resources=found.resources) == replace(
        found,
        taints=(),
        requirements=(),
        ports=(),
        spread=(),
        bound_elsewhere=(),
        drivers=(),
        claims_in_use=(),
        missing_features=(),
    )


def test_the_node_that_a_pod_names_is_told() -> None:
    assert cluster_amounts(decision_of(asking().on("n2"), roomy("n1")), 5).node_name == "n2"


def test_features_that_nodes_do_not_declare_are_counted() -> None:
    mirror = ClusterMirror(rules=rules_of(Release(1, 37)))
    declaring = replace(node_of(roomy("n2")), declared_features=frozenset({FEATURE}))
    for node in (node_of(roomy("n1")), declaring):
        mirror.apply(ClusterEvent("Add", node))
    found = cluster_amounts(decision_in(mirror, replace(pod_of(asking()), needed_features=frozenset({FEATURE}))), 5)
    assert list(found.missing_features) == [FeatureInCluster(FEATURE, 1)]
