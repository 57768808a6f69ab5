"""The judge of devices finds what is wrong, and nothing else."""

from collections.abc import Sequence
from typing import Any, Final

import pytest

from tests.e2e.allocations import State, misallocations
from tests.e2e.api import Manifest
from tests.e2e.device_load import GPU, RESOURCE, SINGLE, claim, claiming, classes, requesting, resource_slice
from tests.e2e.shapes import node, on

PLUGIN: Final = "node-0002"
NODES: Final = [node(0), node(1), node(2, allocatable={RESOURCE: "2"})]
SLICES: Final = [resource_slice(f"node-{index:04}", [SINGLE, SINGLE, GPU]) for index in range(2)]
A, B = ("node-0000", 0), ("node-0000", 1)
ELSEWHERE, NOWHERE = ("node-0001", 0), ("node-0000", 9)


def placed(made: Manifest, node_name: str = "node-0000") -> Manifest:
    """Return a pod on a node. Its uid is its name."""
    return on({**made, "metadata": {**made["metadata"], "uid": made["metadata"]["name"]}}, node_name)


def allocated(name: str, *devices: tuple[str, int], count: int = 1, pods: Sequence[str] = ("p",)) -> Manifest:
    """Return a claim that is reserved for pods, and that has devices, by their pool and number."""
    results = [
        {"request": "wanted", "driver": "devices.example.com", "pool": pool, "device": f"device-{number}"}
        for pool, number in devices
    ]
    reserved = [{"resource": "pods", "name": each, "uid": each} for each in pods]
    return {
        **claim(name, SINGLE, count),
        "status": {"allocation": {"devices": {"results": results}}, "reservedFor": reserved},
    }


def served(amount: int, node_name: str = "node-0000", resource: str = RESOURCE) -> Manifest:
    """Return a pod for whose resource kube-scheduler has made the claim `c`."""
    mapping = {"containerName": "main", "resourceName": resource, "requestName": "wanted"}
    status = {"resourceClaimName": "c", "requestMappings": [mapping]}
    return {**placed(requesting("p", amount), node_name), "status": {"extendedResourceClaimStatus": status}}


def judged(pods: Sequence[Manifest], claims: Sequence[Manifest]) -> list[str]:
    return misallocations(State(NODES, pods, SLICES, claims, classes()))


CLAIMING: Final = placed(claiming("p", "c"))
REQUESTING: Final = placed(requesting("p", 1))


@pytest.mark.parametrize(
    ("pods", "claims", "faults"),
    [
        pytest.param([CLAIMING], [allocated("c", A)], [], id="one device"),
        pytest.param([CLAIMING], [allocated("c", A, B, count=2)], [], id="two devices"),
        pytest.param(
            [CLAIMING, placed(claiming("q", "c"))], [allocated("c", A, pods=["p", "q"])], [], id="a shared claim"
        ),
        pytest.param([claiming("p", "c")], [claim("c", SINGLE)], [], id="without a node"),
        pytest.param(
            [CLAIMING, placed(claiming("q", "d"))],
            [allocated("c", A), allocated("d", A, pods=["q"])],
            ["Twice"],
            id="a device in two claims",
        ),
        pytest.param([CLAIMING], [allocated("c", A, A, count=2)], ["Twice"], id="a device twice in one claim"),
        pytest.param([CLAIMING], [allocated("c", ELSEWHERE)], ["Elsewhere"], id="a device of another node"),
        pytest.param([CLAIMING], [allocated("c", NOWHERE)], ["Elsewhere"], id="a device of no slice"),
        pytest.param([CLAIMING], [allocated("c", A, ELSEWHERE, count=2)], ["Elsewhere"], id="one of two elsewhere"),
        pytest.param([CLAIMING], [allocated("c", A, count=2)], ["Count"], id="a device too few"),
        pytest.param([CLAIMING], [allocated("c", A, B)], ["Count"], id="a device too many"),
        pytest.param([CLAIMING], [claim("c", SINGLE)], ["NotReserved", "Count"], id="not allocated"),
        pytest.param([CLAIMING], [], ["NoClaim"], id="no claim"),
        pytest.param(
            [CLAIMING, placed(claiming("q", "c"))], [allocated("c", A)], ["NotReserved"], id="reserved for one of two"
        ),
        pytest.param([CLAIMING], [allocated("c", A, pods=[])], ["LeftOver", "NotReserved"], id="reserved for no pod"),
        pytest.param([], [allocated("c", A)], ["LeftOver"], id="reserved for a pod that is gone"),
        pytest.param([served(1)], [allocated("c", A)], [], id="a resource by a claim"),
        pytest.param([placed(requesting("p", 1), PLUGIN)], [], [], id="a resource by a device plugin"),
        pytest.param([REQUESTING], [], ["NoClaim"], id="a resource by nothing"),
        pytest.param([served(2)], [allocated("c", A)], ["Unlike"], id="less than it requests"),
        pytest.param([served(1, resource="other/gpu")], [allocated("c", A)], ["Unlike"], id="another resource"),
        pytest.param(
            [served(1, PLUGIN)], [allocated("c", A)], ["Elsewhere", "Unlike"], id="a claim beside a device plugin"
        ),
    ],
)
def test_each_fault_is_found_once(pods: list[Manifest], claims: list[Manifest], faults: list[str]) -> None:
    assert [line.partition(":")[0] for line in judged(pods, claims)] == faults


def changed(**fields: Any) -> Manifest:  # noqa: ANN401  # JSON
    """Return a claim whose only result has more fields."""
    made = allocated("c", A)
    made["status"]["allocation"]["devices"]["results"][0].update(fields)
    return made


def of_all_devices() -> Manifest:
    made = allocated("c", A)
    made["spec"]["devices"]["requests"][0]["exactly"]["allocationMode"] = "All"
    return made


@pytest.mark.parametrize("unread", [changed(adminAccess=True), of_all_devices()], ids=["result", "request"])
def test_what_it_cannot_read_is_an_error(unread: Manifest) -> None:
    with pytest.raises(ValueError, match="cannot read"):
        judged([CLAIMING], [unread])
