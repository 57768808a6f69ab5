"""The stand-in for kubelets finds what one would reject, and nothing else."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.e2e.api import Manifest
from tests.e2e.kubelet import rejections
from tests.e2e.shapes import ZONE, node, on, pod, required_node

SMALL = {"cpu": "1", "memory": "1Gi", "pods": "3"}
NODES = [node(index, zones=2, allocatable=SMALL) for index in range(2)]
WITH_PLUGIN = node(3, allocatable={**SMALL, "example.com/gpu": "1"})
TAINTED = {**node(2, allocatable=SMALL), "spec": {"taints": [{"key": "gone", "effect": "NoExecute"}]}}


def placed(name: str, index: int = 0, **fields: Any) -> Manifest:  # noqa: ANN401  # those of `pod`
    return on(pod(name, **fields), f"node-{index:04}")


def with_port(name: str, index: int = 0, **port: object) -> Manifest:
    made = placed(name, index, host_port=80)
    made["spec"]["containers"][0]["ports"][0].update(port)
    return made


def with_devices(name: str, index: int = 0, *, by_claim: bool = False) -> Manifest:
    """Return a pod that requests one of example.com/gpu; `by_claim`: kube-scheduler has made a claim for it."""
    made = placed(name, index)
    made["spec"]["containers"][0]["resources"]["requests"]["example.com/gpu"] = "1"
    mapping = {"containerName": "main", "resourceName": "example.com/gpu", "requestName": "container-0-request-0"}
    claim_status = {"resourceClaimName": f"{name}-gpu", "requestMappings": [mapping]}
    return {**made, "status": {"extendedResourceClaimStatus": claim_status}} if by_claim else made


def named(*names: str) -> Mapping[str, Any]:
    return required_node("matchFields", "metadata.name", *names)


@pytest.mark.parametrize(
    ("pods", "reasons"),
    [
        pytest.param([placed("a", cpu="500m"), placed("b", cpu="0.5")], [], id="full to the last"),
        pytest.param([placed("a", cpu="500m"), placed("b", cpu="501m")], ["OutOfcpu"], id="one thousandth too much"),
        pytest.param([placed("a", cpu="1"), placed("b", 1, cpu="1")], [], id="on two nodes"),
        pytest.param([placed(name) for name in "abcd"], ["OutOfpods"], id="too many"),
        pytest.param([with_devices("a", 3)], [], id="as much as a device plugin has"),
        pytest.param(
            [with_devices("a", 3), with_devices("b", 3)], ["OutOfexample.com/gpu"], id="more than a device plugin has"
        ),
        pytest.param([with_devices("a", 3), with_devices("b", 3, by_claim=True)], [], id="a device by a claim"),
        pytest.param([with_devices("a")], [], id="an extended resource that the node does not list"),
        pytest.param([pod("a", cpu="9")], [], id="without a node"),
        pytest.param([placed("a", 9)], ["NodeName"], id="on no node"),
        pytest.param([{**placed("a"), "status": {"phase": "Failed"}}], ["Failed"], id="rejected already"),
        pytest.param([with_port("a"), with_port("b")], ["NodePorts"], id="one port twice"),
        pytest.param([with_port("a"), with_port("b", 1)], [], id="one port on two nodes"),
        pytest.param([with_port("a"), with_port("b", protocol="UDP")], [], id="one port of two protocols"),
        pytest.param([placed("a", affinity=named("node-0001", "node-0000"))], [], id="on a named node"),
        pytest.param([placed("a", affinity=named("node-0001"))], ["NodeAffinity"], id="on another than the named node"),
        pytest.param(
            [placed("a", 1, affinity=required_node("matchExpressions", ZONE, "zone-0"))], ["NodeAffinity"], id="zone"
        ),
        pytest.param([placed("a", nodeSelector={ZONE: "zone-0"})], [], id="selected"),
        pytest.param([placed("a", nodeSelector={ZONE: "zone-1"})], ["NodeAffinity"], id="not selected"),
        pytest.param([placed("a", 2)], ["Taint"], id="tainted"),
        pytest.param([placed("a", 2, tolerations=[{"operator": "Exists"}])], [], id="tolerated"),
        pytest.param([placed("a", 2, tolerations=[{"key": "gone", "value": "x"}])], ["Taint"], id="another value"),
        pytest.param(
            [placed("a", 2, tolerations=[{"key": "gone", "effect": "NoSchedule"}])], ["Taint"], id="another effect"
        ),
    ],
)
def test_each_rejection_is_found_once(pods: list[Manifest], reasons: list[str]) -> None:
    assert [line.partition(":")[0] for line in rejections([*NODES, TAINTED, WITH_PLUGIN], pods)] == reasons


@pytest.mark.parametrize(
    "unread",
    [
        pytest.param(placed("a", initContainers=[{"name": "i"}]), id="init-container"),
        pytest.param(with_port("a", hostIP="127.0.0.1"), id="host-ip"),
        pytest.param(placed("a", affinity=required_node("matchLabels", "a", "b")), id="affinity"),
    ],
)
def test_what_it_cannot_read_is_an_error(unread: Manifest) -> None:
    with pytest.raises(ValueError, match="cannot read"):
        rejections(NODES, [unread])
