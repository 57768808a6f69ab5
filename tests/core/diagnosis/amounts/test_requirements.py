"""What nodes lack of what NodeAffinity asks, and which node is the nearest."""

import pytest

from core.diagnosis.remedies.find_remedies import find_remedies
from core.explaining.pod_steps import Kind
from core.explaining.requirements import AskedOfNode, Source, UnmetRequirement
from core.plugins.nodeaffinity import explaining as requirements
from core.plugins.nodeaffinity.explaining import (
    NearestNode,
    RequirementInCluster,
    impossible_terms,
    nearest_node,
    requirements_in_cluster,
    unmet_counts,
    unmet_on_node,
)
from tests.builders import PodBuilder, expressed, named
from tests.core.diagnosis.deciding import asking, decision_of, of_kind, roomy

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
    team, disk = RequirementInCluster(TEAM, 3, "no label team"), RequirementInCluster(DISK, 2, "")
    assert [team, disk] == list(requirements_in_cluster(decision, 5))


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
    assert (counted.nodes, counted.has) == (3, "other names")


def test_values_that_the_nodes_have_instead_are_told() -> None:
    (found,) = requirements_in_cluster(decision_of(selecting(disk="SSD"), *NODES), 5)
    assert found.has == "disk none (1), hdd (1), ssd (1)"


def test_a_label_without_a_value_is_a_label() -> None:
    """Source: the labels node-role.kubernetes.io/… of kubeadm have an empty value."""
    worker = "node-role.kubernetes.io/worker"
    nodes = (roomy("n1", **{worker: ""}), roomy("n2", **{worker: ""}), roomy("n3"))
    (found,) = requirements_in_cluster(decision_of(selecting(**{worker: "true"}), *nodes), 5)
    assert found.has == f"{worker} '' (2), none (1)"
    (found,) = requirements_in_cluster(decision_of(selecting(**{worker: "true"}), *nodes[:2]), 5)
    assert found.has == f"{worker} '' (2)"


def in_list(key: str, *values: str, operator: str = "In") -> dict[str, object]:
    return {"key": key, "operator": operator, "values": [*values]}


@pytest.mark.parametrize(
    ("pod", "stated"),
    [
        pytest.param(
            asking().required_node_affinity(expressed("appVersion", "Gt", "150.1")),
            "nodeSelectorTerms[0].matchExpressions[0].values[0]: Invalid value: \"150.1\": for 'Gt', 'Lt' operators, "
            "the value must be an integer",
            id="kubernetes/kubernetes#86488",
        ),
        pytest.param(
            asking().required_node_affinity({}),
            "it has only empty terms, which match no node",
            id="kubernetes/kubernetes#126325",
        ),
        pytest.param(
            asking().required_node_affinity(
                {"matchExpressions": [in_list("disk", "hdd"), in_list("disk", "ssd"), in_list("x", operator="Exists")]}
            ),
            "disk=hdd and disk=ssd contradict each other",
            id="kubernetes/website#32264 and grafana/jsonnet-libs#249",
        ),
        pytest.param(
            selecting(disk="ssd").required_node_affinity(expressed("disk", "NotIn", "ssd")),
            "disk=ssd and disk notin (ssd) contradict each other",
            id="a nodeSelector against a term",
        ),
        pytest.param(
            asking().required_node_affinity(
                {"matchExpressions": [in_list("cores", "8", operator="Gt"), in_list("cores", "9", operator="Lt")]}
            ),
            "cores < 9 and cores > 8 contradict each other",
            id="no integer between",
        ),
        pytest.param(
            asking().required_node_affinity(
                {"matchExpressions": [in_list("disk", operator="Exists"), in_list("disk", operator="DoesNotExist")]}
            ),
            "disk and !disk contradict each other",
            id="there and not there",
        ),
    ],
)
def test_what_no_node_can_match_is_told_in_place_of_a_node_that_is_near(pod: PodBuilder, stated: str) -> None:
    decision = decision_of(pod, *NODES)
    assert list(impossible_terms(decision, 5)) == [stated]
    assert nearest_node(decision) is None
    assert not of_kind(Kind.LABEL_NODE, find_remedies(decision, 50))


@pytest.mark.parametrize(
    "expressions",
    [
        [in_list("disk", "nvme", "ssd"), in_list("disk", "nvme"), in_list("disk", "ssd", operator="NotIn")],
        [in_list("cores", "8", operator="Gt"), in_list("cores", "10", operator="Lt")],
        [in_list("cores", "8", operator="Gt"), in_list("cores", "9", operator="NotIn")],
        [in_list("disk", "hdd", operator="NotIn"), in_list("disk", operator="DoesNotExist")],
        [in_list("disk", "true", operator="NotIn"), in_list("disk", operator="Exists"), in_list("x", "y")],
    ],
)
def test_what_some_node_could_match_is_not_told_to_be_impossible(expressions: list[dict[str, object]]) -> None:
    decision = decision_of(asking().required_node_affinity({"matchExpressions": expressions}), *NODES[:1])
    assert not len(decision.fitting)
    assert not impossible_terms(decision, 5)
    assert nearest_node(decision) is not None


def test_an_impossible_term_beside_another_is_told_with_the_nearest_node() -> None:
    pod = asking().required_node_affinity(expressed("cores", "Gt", "many"), expressed("disk", "In", "nvme"))
    decision = decision_of(pod, *NODES)
    assert len(impossible_terms(decision, 5)) == 1
    assert nearest_node(decision) is not None
    assert not impossible_terms(decision_of(asking(), *NODES), 5)


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
