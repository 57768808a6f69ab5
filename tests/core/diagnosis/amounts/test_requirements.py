"""What nodes lack of what NodeAffinity asks, and which node is the nearest."""

import pytest

from core.diagnosis.amounts import requirements
from core.diagnosis.amounts.requirements import (
    AskedOfNode,
    NearestNode,
    RequirementInCluster,
    Source,
    UnmetRequirement,
    nearest_node,
    requirements_in_cluster,
    unmet_counts,
    unmet_on_node,
)
from tests.builders import PodBuilder, expressed, named
from tests.core.diagnosis.deciding import asking, decision_of, roomy

DISK = AskedOfNode(Source.NODE_SELECTOR, None, "disk", "In", ("ssd",))
TEAM = AskedOfNode(Source.NODE_SELECTOR, None, "team", "In", ("red",))
NODES = (roomy("n1", disk="hdd"), roomy("n2", disk="ssd"), roomy("n3", cores="8"))


def selecting(**labels: str) -> PodBuilder:
    return asking().node_selector(labels)


def test_each_label_that_a_node_lacks_is_told_with_what_it_has() -> None:
    decision = decision_of(selecting(disk="ssd", team="red"), *NODES)
    assert [UnmetRequirement(DISK, "hdd"), UnmetRequirement(TEAM, None)] == list(unmet_on_node(decision, 0))


def test_requirements_are_counted_those_that_exclude_most_nodes_first() -> None:
    decision = decision_of(selecting(disk="ssd", team="red"), *NODES)
    assert [RequirementInCluster(TEAM, 3), RequirementInCluster(DISK, 2)] == list(requirements_in_cluster(decision, 5))


def test_the_nearest_node_lacks_the_fewest_requirements() -> None:
    decision = decision_of(selecting(disk="ssd", team="red"), *NODES)
    assert NearestNode("n2", [UnmetRequirement(TEAM, None)]) == nearest_node(decision)


def test_of_nodes_that_lack_as_much_the_nearest_is_refused_by_the_fewest_others() -> None:
    tainted = roomy("n0").taint("gpu", "", "NoSchedule")
    nearest = nearest_node(decision_of(selecting(team="red"), tainted, *NODES))
    assert nearest is not None
    assert nearest.node == "n1"


def test_of_terms_the_one_counts_of_which_a_node_lacks_the_fewest() -> None:
    both = {
        "matchExpressions": [{"key": "disk", "operator": "In", "values": ["nvme"]}, {"key": "x", "operator": "Exists"}]
    }
    pod = asking().required_node_affinity(both, expressed("cores", "Gt", "8"))
    decision = decision_of(pod, *NODES)
    [unmet] = unmet_on_node(decision, 2)
    assert (unmet.asked.key, unmet.asked.operator, unmet.asked.values, unmet.has) == ("cores", "Gt", ("8",), "8")
    assert unmet_counts(decision).tolist() == [1, 1, 1]


def test_a_name_is_a_requirement_too() -> None:
    decision = decision_of(asking().required_node_affinity(named("In", "n9")), *NODES)
    [unmet] = unmet_on_node(decision, 0)
    assert (
        unmet.asked.key,
        unmet.asked.operator,
        unmet.asked.values,
        unmet.has,
    ) == ("metadata.name", "In", ("n9",), "n1")
    [counted] = requirements_in_cluster(decision, 5)
    assert counted.nodes == 3


def test_without_requirements_nothing_is_lacking() -> None:
    decision = decision_of(asking(), *NODES)
    assert not unmet_on_node(decision, 0)
    assert not requirements_in_cluster(decision, 5)
    assert nearest_node(decision) is None
    assert nearest_node(decision_of(selecting(disk="ssd"))) is None
    assert nearest_node(decision_of(selecting(disk="ssd"), NODES[1])) is None


def test_broken_terms_ask_for_nothing_that_a_node_could_have() -> None:
    decision = decision_of(asking().required_node_affinity(expressed("disk", "In")), *NODES)
    assert not unmet_on_node(decision, 0)


def test_of_very_many_requirements_the_first_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "MAX_REQUIREMENTS", 3)
    decision = decision_of(asking().node_selector(dict.fromkeys("abcde", "1")), *NODES)
    assert [each.asked.key for each in requirements_in_cluster(decision, 9)] == ["a", "b", "c"]
    assert [each.asked.key for each in unmet_on_node(decision, 0)] == ["a", "b", "c"]
    terms = [expressed(key, "Exists") for key in "abcde"]
    assert len(requirements_in_cluster(decision_of(asking().required_node_affinity(*terms), *NODES), 9)) == 3
