"""v1 nodes to the core's values."""

import json

import pytest

from app.objects.decode import DecodeError
from app.objects.decode_node import decode_node
from core.objects.node import Node
from core.objects.pod import Taint

NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}
GPU = {"key": "gpu", "value": "a100", "effect": "NoSchedule"}


def decoded(*, spec: object = None, status: object = None) -> Node:
    return decode_node(json.dumps({"metadata": {"name": "n1"}, "spec": spec, "status": status}).encode())


def with_allocatable(allocatable: object) -> Node:
    return decoded(status={"allocatable": allocatable})


def test_a_broken_capacity_is_refused_by_its_field() -> None:
    with pytest.raises(DecodeError) as caught:
        decoded(status={"capacity": {"cpu": "many"}})
    assert caught.value.field == "status.capacity.cpu"


# Allocatable.


def test_allocatable_has_cpu_in_thousandths_and_all_others_whole() -> None:
    told = {"cpu": "3920m", "memory": "1500m", "ephemeral-storage": "1k", "example.com/gpu": 8, "hugepages-2Mi": "0"}
    expected = {"cpu": 3920, "memory": 2, "ephemeral-storage": 1000, "example.com/gpu": 8, "hugepages-2Mi": 0}
    assert expected == with_allocatable(told).allocatable


def test_nodes_that_offer_the_same_share_it() -> None:
    assert with_allocatable({"cpu": "4"}).allocatable is with_allocatable({"cpu": "4"}).allocatable


def test_a_very_long_allocatable_is_read_but_not_kept() -> None:
    long = {f"example.com/device-{number}": "1" for number in range(300)}
    one, other = with_allocatable(long).allocatable, with_allocatable(long).allocatable
    assert one == other == dict.fromkeys(long, 1)
    assert one is not other


# Taints.


def test_taints_keep_the_order_of_the_spec() -> None:
    node = decoded(spec={"taints": [NOT_READY, GPU]})
    assert node.taints == (Taint("node.kubernetes.io/not-ready", "", "NoExecute"), Taint("gpu", "a100", "NoSchedule"))


@pytest.mark.parametrize(
    "taint",
    [{"key": "k", "value": None, "effect": None}, {"key": "k", "value": "", "effect": ""}, {"key": "k"}],
    ids=["null", "empty", "absent"],
)
def test_a_taint_needs_neither_a_value_nor_an_effect(taint: object) -> None:
    assert decoded(spec={"taints": [taint]}).taints == (Taint("k", "", ""),)


def test_since_when_a_taint_is_there_does_not_count() -> None:
    since = {"timeAdded": "2026-01-01T00:00:00Z"}
    assert decoded(spec={"taints": [NOT_READY]}) == decoded(spec={"taints": [NOT_READY | since]})


def test_nodes_with_the_same_taints_share_them() -> None:
    one, other = (decoded(spec={"taints": [NOT_READY, GPU], "providerID": provider}) for provider in "12")
    assert one.taints is other.taints


def test_very_long_taints_are_read_but_not_kept() -> None:
    long = [{"key": f"example.com/taint-{number}", "effect": "NoSchedule"} for number in range(100)]
    one, other = (decoded(spec={"taints": long}).taints for _ in range(2))
    assert one == other == tuple(Taint(taint["key"], "", "NoSchedule") for taint in long)
    assert one is not other


# Images.


@pytest.mark.parametrize(
    ("images", "expected"),
    [
        pytest.param(
            [{"names": ["a:1", "a@sha256:1"], "sizeBytes": 5}, {"names": ["b:1"], "sizeBytes": 6}],
            {"a:1": 5, "a@sha256:1": 5, "b:1": 6},
            id="every-name",
        ),
        pytest.param(
            [{"names": ["a:1"], "sizeBytes": 5}, {"names": ["a:1", "b:1"], "sizeBytes": 6}],
            {"a:1": 5, "b:1": 6},
            id="first-of-one-name",
        ),
        pytest.param([{"names": ["a:1"]}, {"names": ["b:1"], "sizeBytes": None}], {"a:1": 0, "b:1": 0}, id="no-size"),
        pytest.param([{"names": None, "sizeBytes": 5}, {"names": [], "sizeBytes": 5}, {}], {}, id="no-names"),
        pytest.param([{"names": ["a:1"], "sizeBytes": 2**63 - 1}], {"a:1": 2**63 - 1}, id="largest"),
    ],
)
def test_images_have_their_size_under_every_name(images: object, expected: dict[str, int]) -> None:
    assert expected == decoded(status={"images": images}).images


def test_nodes_with_the_same_image_share_its_name() -> None:
    one, other = (decoded(status={"images": [{"names": ["registry/app:1"], "sizeBytes": size}]}) for size in (1, 2))
    assert next(iter(one.images)) is next(iter(other.images))


# Conditions.


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        pytest.param(
            [
                {"type": "NetworkUnavailable", "status": "False"},
                {"type": "MemoryPressure", "status": "False"},
                {"type": "DiskPressure", "status": "True"},
                {"type": "PIDPressure", "status": "Unknown"},
                {"type": "Ready", "status": "True"},
            ],
            {
                "NetworkUnavailable": "False",
                "MemoryPressure": "False",
                "DiskPressure": "True",
                "PIDPressure": "Unknown",
                "Ready": "True",
            },
            id="all-that-matter",
        ),
        pytest.param(
            [{"type": "KernelDeadlock", "status": "True"}, {"type": "Ready", "status": "True"}],
            {"Ready": "True"},
            id="another-type",
        ),
        pytest.param([{"status": "True"}, {"type": None}, {"type": ""}], {}, id="no-type"),
        pytest.param(
            [{"type": "Ready"}, {"type": "DiskPressure", "status": None}],
            {"Ready": "", "DiskPressure": ""},
            id="no-status",
        ),
        pytest.param(
            [{"type": "Ready", "status": "True"}, {"type": "Ready", "status": "False"}],
            {"Ready": "False"},
            id="last-of-one-type",
        ),
    ],
)
def test_conditions_that_matter_have_their_status(conditions: object, expected: dict[str, str]) -> None:
    assert expected == decoded(status={"conditions": conditions}).conditions


def heartbeat(second: int, **members: str) -> Node:
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": f"2026-01-01T00:00:0{second}Z", **members}
    return decoded(status={"conditions": [ready]})


def test_a_heartbeat_leaves_a_node_equal() -> None:
    assert heartbeat(1) == heartbeat(2)
    assert heartbeat(1) == heartbeat(1, reason="KubeletReady", message="posting", lastTransitionTime="x")
    assert heartbeat(1) != heartbeat(2, status="False")


def test_nodes_in_the_same_condition_share_it() -> None:
    assert heartbeat(1).conditions is heartbeat(2).conditions


def test_very_many_conditions_are_read_but_not_kept() -> None:
    many = [{"type": f"Custom{number}", "status": "True"} for number in range(100)]
    one, other = (decoded(status={"conditions": [*many, {"type": "Ready", "status": "True"}]}) for _ in range(2))
    assert one.conditions == other.conditions == {"Ready": "True"}
    assert one.conditions is not other.conditions
