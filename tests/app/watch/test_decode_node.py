"""v1 nodes to the core's values."""

import json
from typing import Any

import pytest

from app.watch.decode import DecodeError
from app.watch.decode_node import decode_node
from core.objects.node import Node
from tests.builders import make_node


def with_allocatable(allocatable: object) -> Node:
    return decode_node(json.dumps({"metadata": {"name": "n1"}, "status": {"allocatable": allocatable}}).encode())


def test_a_node_is_reduced_to_what_scheduling_reads() -> None:
    node: dict[str, Any] = {**make_node("n1").label("zone", "a").obj(), "kind": "Node", "spec": {"taints": []}}
    node["metadata"] |= {"uid": "u-1", "resourceVersion": "7", "annotations": {"a": "b"}}
    node["status"] = {"capacity": {"cpu": "broken"}, "allocatable": {"cpu": "4", "memory": "16Gi", "pods": "110"}}
    expected = Node("n1", {"zone": "a"}, {"cpu": 4000, "memory": 2**34, "pods": 110}, "u-1", "7")
    assert expected == decode_node(json.dumps(node).encode())


def test_allocatable_has_cpu_in_thousandths_and_all_others_whole() -> None:
    told = {"cpu": "3920m", "memory": "1500m", "ephemeral-storage": "1k", "example.com/gpu": 8, "hugepages-2Mi": "0"}
    expected = {"cpu": 3920, "memory": 2, "ephemeral-storage": 1000, "example.com/gpu": 8, "hugepages-2Mi": 0}
    assert expected == with_allocatable(told).allocatable


@pytest.mark.parametrize("nothing", [None, {}], ids=["null", "empty"])
def test_a_node_that_offers_nothing_has_nothing_to_give(nothing: object) -> None:
    assert with_allocatable(nothing).allocatable == {}


@pytest.mark.parametrize(
    ("allocatable", "expected"),
    [
        pytest.param(3, "status.allocatable: expected object | null, got int", id="number"),
        pytest.param(
            {"cpu": "4", "memory": "lots"},
            "status.allocatable.memory: quantities must match the regular expression "
            "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            id="quantity",
        ),
    ],
)
def test_a_broken_allocatable_is_refused_with_the_field(allocatable: object, expected: str) -> None:
    with pytest.raises(DecodeError) as caught:
        with_allocatable(allocatable)
    assert expected == str(caught.value)


def test_nodes_that_offer_the_same_share_it() -> None:
    assert with_allocatable({"cpu": "4"}).allocatable is with_allocatable({"cpu": "4"}).allocatable


def test_a_very_long_allocatable_is_read_but_not_kept() -> None:
    long = {f"example.com/device-{number}": "1" for number in range(300)}
    one, other = with_allocatable(long).allocatable, with_allocatable(long).allocatable
    assert one == other == dict.fromkeys(long, 1)
    assert one is not other
