"""Pods and skew by domain."""

from core.diagnosis.amounts.spread import SpreadDomain, SpreadInCluster, SpreadOnNode, spread_in_cluster, spread_on_node
from tests.builders import PodBuilder, labelled, make_node
from tests.core.diagnosis.deciding import ZONE, asking, decision_of, roomy, using

NODES = (roomy("n1", zone="a"), roomy("n2", zone="b"), make_node("n3").allocatable(cpu="8", pods=10))
WEB = tuple(using(f"w{number}", "n1").label("app", "web") for number in range(3))
NEXT = asking().label("app", "web").spread(ZONE, labelled(app="web"), max_skew=2)


def test_the_skew_of_a_node_is_what_it_would_be_with_the_pod_there() -> None:
    decision = decision_of(NEXT, *NODES, *WEB)
    assert [SpreadOnNode(ZONE, 2, "a", 3, 0, 4)] == list(spread_on_node(decision, 0))
    assert [SpreadOnNode(ZONE, 2, "b", 0, 0, 1)] == list(spread_on_node(decision, 1))
    assert [SpreadOnNode(ZONE, 2, None, 0, 0, 0)] == list(spread_on_node(decision, 2))


def test_domains_are_told_those_with_most_pods_first() -> None:
    expected = SpreadInCluster(
        topology_key=ZONE,
        max_skew=2,
        min_domains=1,
        fewest=0,
        domains=2,
        shown=[SpreadDomain("a", 3, 4), SpreadDomain("b", 0, 1)],
        nodes_without_key=1,
        nodes_refused=1,
    )
    assert [expected] == list(spread_in_cluster(decision_of(NEXT, *NODES, *WEB), 5))


def without_key(pod: PodBuilder) -> list[tuple[int, int]]:
    decision = decision_of(pod, *NODES, *WEB)
    return [(each.domains, each.nodes_without_key) for each in spread_in_cluster(decision, 5)]


def test_a_key_that_no_node_has_is_missing_on_all() -> None:
    nowhere = asking().spread("nowhere", labelled(app="web"))
    assert without_key(nowhere) == [(0, 3)]
    assert [SpreadOnNode("nowhere", 1, None, 0, 0, 0)] == list(spread_on_node(decision_of(nowhere, *NODES), 0))


def test_soft_constraints_refuse_no_node() -> None:
    assert not without_key(asking().spread(ZONE, labelled(app="web"), when="ScheduleAnyway"))
