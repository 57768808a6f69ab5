"""v1 nodes to the core's values."""

import json

import pytest

from app.objects.decode_node import decode_node
from core.objects.node import Node
from core.objects.pod import Taint
from tests.builders import Object

NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}
GPU = {"key": "gpu", "value": "a100", "effect": "NoSchedule"}


def decoded(*, spec: object = None, status: object = None) -> Node:
    return decode_node(json.dumps({"metadata": {"name": "n1"}, "spec": spec, "status": status}).encode())


def with_allocatable(allocatable: object) -> Node:
    return decoded(status={"allocatable": allocatable})


# Allocatable.


def test_allocatable_has_cpu_in_thousandths_and_all_others_whole() -> None:
    reported = {
        "cpu": "3920m",
        "memory": "1500m",
        "ephemeral-storage": "1k",
        "example.com/gpu": 8,
        "hugepages-2Mi": "0",
    }
    expected = {"cpu": 3920, "memory": 2, "ephemeral-storage": 1000, "example.com/gpu": 8, "hugepages-2Mi": 0}
    assert expected == with_allocatable(reported).allocatable


# Taints.


def test_taints_keep_the_order_of_the_spec_and_need_neither_a_value_nor_an_effect() -> None:
    since = {"timeAdded": "2026-01-01T00:00:00Z"}
    node = decoded(spec={"taints": [NOT_READY | since, GPU, {"key": "k"}]})
    not_ready = Taint("node.kubernetes.io/not-ready", "", "NoExecute")
    assert node.taints == (not_ready, Taint("gpu", "a100", "NoSchedule"), Taint("k", "", ""))


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


# The memos.


@pytest.mark.parametrize(
    ("member", "few", "many"),
    [
        pytest.param(
            "allocatable",
            {"status": {"allocatable": {"cpu": "4"}}},
            {"status": {"allocatable": {f"example.com/device-{number}": "1" for number in range(300)}}},
            id="allocatable",
        ),
        pytest.param(
            "taints",
            {"spec": {"taints": [NOT_READY, GPU]}},
            {"spec": {"taints": [{"key": f"example.com/taint-{number}", "effect": "x"} for number in range(100)]}},
            id="taints",
        ),
        pytest.param(
            "conditions",
            {"status": {"conditions": [{"type": "Ready", "status": "True"}]}},
            {"status": {"conditions": [{"type": f"Custom{number}", "status": "True"} for number in range(100)]}},
            id="conditions",
        ),
    ],
)
def test_nodes_share_what_is_short_and_what_is_long_is_not_kept(member: str, few: Object, many: Object) -> None:
    assert getattr(decoded(**few), member) is getattr(decoded(**few), member)
    one, other = (getattr(decoded(**many), member) for _ in range(2))
    assert one == other
    assert one is not other


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
                {"type": "KernelDeadlock", "status": "True"},
                {"status": "True"},
                {"type": None},
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
