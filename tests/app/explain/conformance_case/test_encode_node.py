"""What a node says comes back."""

import pytest

from core.objects.node import Node
from tests.app.explain.conformance_case.encoded import again
from tests.builders import NodeBuilder, make_node
from tests.core.decoded import node_of


@pytest.mark.parametrize(
    "node",
    [
        pytest.param(make_node("n"), id="bare"),
        pytest.param(make_node("n").allocatable(cpu="3930m", memory="1.5Gi", pods="0", gpu="-1"), id="allocatable"),
        pytest.param(make_node("n").allocatable(cpu="9E", memory="9E"), id="largest"),
        pytest.param(make_node("n").taint("b", "", "NoSchedule").taint("a", "x", "Odd").unschedulable(), id="taints"),
        pytest.param(make_node("n").image(0, "a", "b").image(5, "a", "c").image(7), id="images"),
        pytest.param(make_node("n").condition("Ready", "").condition("Other", "True"), id="conditions"),
        pytest.param(make_node("n").label("zone", ""), id="labels"),
    ],
)
def test_a_node_comes_back(node: NodeBuilder) -> None:
    assert again(node_of(node)) == node_of(node)


def test_a_node_comes_back_with_its_identity() -> None:
    node = Node("n", uid="u", resource_version="7")
    assert again(node) == node
