"""When two states of a node are the same to scheduling."""

import pytest

from core.objects.node import Node
from tests.builders import NodeBuilder, make_node
from tests.core.decoded import node_of

BASE = make_node("n").taint("a", "", "NoSchedule").image(7, "i").condition("Ready", "True").allocatable(cpu=4)


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param(BASE.label("zone", "a"), id="labels"),
        pytest.param(BASE.allocatable(cpu=5), id="allocatable"),
        pytest.param(BASE.taint("b", "", "NoSchedule"), id="taints"),
        pytest.param(BASE.unschedulable(), id="unschedulable"),
        pytest.param(BASE.image(7, "j"), id="images"),
        pytest.param(BASE.condition("DiskPressure", "False"), id="conditions"),
        pytest.param(BASE.condition("Ready", "Unknown"), id="condition-status"),
    ],
)
def test_a_node_differs_by_whatever_scheduling_reads(changed: NodeBuilder) -> None:
    assert node_of(BASE) == node_of(BASE)
    assert node_of(changed) != node_of(BASE)


def test_the_order_of_taints_counts() -> None:
    here, there = (
        node_of(make_node("n").taint(one, "", "NoSchedule").taint(other, "", "NoSchedule"))
        for one, other in (("a", "b"), ("b", "a"))
    )
    assert here != there


def test_the_order_of_images_and_conditions_does_not_count() -> None:
    here, there = (
        node_of(make_node("n").image(1, one).image(1, other).condition(one, "True").condition(other, "True"))
        for one, other in (("Ready", "DiskPressure"), ("DiskPressure", "Ready"))
    )
    assert here == there


def test_the_full_name_of_a_node_is_its_name() -> None:
    assert Node("n1").full_name == "n1"


def test_a_node_of_which_only_the_name_is_known_offers_nothing_and_keeps_nothing_off() -> None:
    node = Node("n1")
    assert (node.allocatable, node.taints, node.unschedulable, node.images, node.conditions) == ({}, (), False, {}, {})
