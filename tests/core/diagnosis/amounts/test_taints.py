"""Taints that are not tolerated, and cordoned nodes."""

from core.diagnosis.amounts.taints import (
    CordonedNodes,
    NodeTaint,
    TaintInCluster,
    cordoned_in_cluster,
    is_cordoned,
    taints_in_cluster,
    taints_on_node,
)
from core.diagnosis.diagnosis import Diagnosis
from tests.core.decoded import mirror_of, pod_of
from tests.core.diagnosis.deciding import asking, decision_of, roomy
from tests.core.profile_parts import affinity_profile

NODES = (
    roomy("n1").taint("gpu", "yes", "NoSchedule").taint("soft", "", "PreferNoSchedule"),
    roomy("n2").taint("gpu", "yes", "NoSchedule").taint("team", "red", "NoExecute"),
    roomy("n3").unschedulable(),
)


def test_only_taints_that_keep_the_pod_off_are_told() -> None:
    decision = decision_of(asking().toleration("team", "Exists"), *NODES)
    assert [NodeTaint("gpu", "yes", "NoSchedule")] == list(taints_on_node(decision, 0))
    assert [NodeTaint("gpu", "yes", "NoSchedule")] == list(taints_on_node(decision, 1))
    assert not taints_on_node(decision, 2)


def test_taints_are_counted_those_of_most_nodes_first() -> None:
    decision = decision_of(asking(), *NODES)
    expected = [
        TaintInCluster("gpu", "yes", "NoSchedule", 2, ["n1", "n2"]),
        TaintInCluster("team", "red", "NoExecute", 1, ["n2"]),
    ]
    assert expected == list(taints_in_cluster(decision, 5))
    assert expected[:1] == list(taints_in_cluster(decision, 1))


def test_cordoned_nodes_are_counted_unless_the_pod_tolerates_them() -> None:
    decision = decision_of(asking(), *NODES)
    assert CordonedNodes(1, ["n3"]) == cordoned_in_cluster(decision)
    assert [is_cordoned(decision, position) for position in range(3)] == [False, False, True]
    tolerant = decision_of(asking().toleration(operator="Exists"), *NODES)
    assert cordoned_in_cluster(tolerant) is None
    assert not is_cordoned(tolerant, 2)


def test_a_profile_without_the_plugin_has_no_taints() -> None:
    mirror = mirror_of(*NODES)
    decision = Diagnosis(affinity_profile(), mirror, pod_of(asking()), mirror.batch(["n1"]))
    assert not taints_on_node(decision, 0)
    assert not taints_in_cluster(decision, 5)
