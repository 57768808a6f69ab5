"""Host ports in the way, and who holds them."""

from core.diagnosis.amounts.ports import PortInCluster, PortOnNode, ports_in_cluster, ports_on_node
from tests.core.diagnosis.deciding import asking, decision_of, roomy, using

NODES = (roomy("n1"), roomy("n2"))
EVERYWHERE = "0.0.0.0"  # noqa: S104  # an address of a port, nothing is bound
HOLDERS = (
    using("web", "n1").host_port(80),
    using("dns", "n1").host_port(53, "UDP"),
    using("other", "n2").host_port(80, host_ip="10.0.0.1"),
)


def test_the_pods_that_hold_a_port_in_the_way_are_named() -> None:
    decision = decision_of(asking().host_port(80), *NODES, *HOLDERS)
    assert [PortOnNode(80, "TCP", EVERYWHERE, ["default/web"])] == list(ports_on_node(decision, 0, 5))
    assert [PortOnNode(80, "TCP", "10.0.0.1", ["default/other"])] == list(ports_on_node(decision, 1, 5))


def test_ports_are_counted_over_the_nodes_that_were_asked_about() -> None:
    decision = decision_of(asking().host_port(80).host_port(53, "UDP"), *NODES, *HOLDERS)
    assert [
        PortInCluster(53, "UDP", EVERYWHERE, 1),
        PortInCluster(80, "TCP", EVERYWHERE, 1),
        PortInCluster(80, "TCP", "10.0.0.1", 1),
    ] == list(ports_in_cluster(decision, 5))


def test_a_pod_without_host_ports_meets_none() -> None:
    decision = decision_of(asking(), *NODES, *HOLDERS)
    assert not ports_on_node(decision, 0, 5)
    assert not ports_in_cluster(decision, 5)
