"""What nodes declare, held against what pods need, in each release."""

import json

import pytest

from app.objects.decode_node import decode_node
from app.objects.decode_pod import decode_pod
from core.events import ClusterEvent
from core.framework.evaluation import FreshEvaluation
from core.framework.interface import Status
from core.mirror.cluster import ClusterMirror
from core.objects.node import Node
from core.objects.pod import Pod
from core.plugins.nodedeclaredfeatures import NodeDeclaredFeatures
from core.releases.differences import rules_of
from core.releases.release import Release

RESTART = "RestartAllContainersOnContainerExits"
USERS = "UserNamespacesHostNetworkSupport"
MOUNTS = "VolumeBindMountOptions"
RESTARTS = {"name": "c", "restartPolicyRules": [{"action": "RestartAllContainers"}]}
MOUNTING = {"name": "c", "volumeMounts": [{"name": "v"}, {"name": "w", "bindMountOptions": ["noexec"]}]}


def pod(**spec: object) -> Pod:
    return decode_pod(json.dumps({"metadata": {"name": "p"}, "spec": spec}).encode())


def node(name: str, *features: str) -> Node:
    status = {"declaredFeatures": features}
    return decode_node(json.dumps({"metadata": {"name": name}, "status": status}).encode())


@pytest.mark.parametrize(
    ("spec", "needed"),
    [
        pytest.param({}, set(), id="nothing"),
        pytest.param({"containers": [RESTARTS]}, {RESTART}, id="a-rule-that-restarts-all"),
        pytest.param({"initContainers": [RESTARTS]}, {RESTART}, id="of-an-init-container"),
        pytest.param({"ephemeralContainers": [RESTARTS]}, set(), id="not-of-an-ephemeral-one"),
        pytest.param(
            {"containers": [{"name": "c", "restartPolicyRules": [{"action": "Restart"}, {}]}]},
            set(),
            id="another-action",
        ),
        pytest.param({"hostNetwork": True, "hostUsers": False}, {USERS}, id="users-of-its-own-in-the-host-s-network"),
        pytest.param({"hostNetwork": True}, set(), id="users-of-the-host"),
        pytest.param({"hostUsers": False}, set(), id="a-network-of-its-own"),
        pytest.param({"containers": [MOUNTING]}, {MOUNTS}, id="mount-options"),
        pytest.param({"ephemeralContainers": [MOUNTING]}, {MOUNTS}, id="of-an-ephemeral-container-too"),
        pytest.param(
            {"containers": [{"name": "c", "volumeMounts": [{"name": "v", "bindMountOptions": []}]}]},
            set(),
            id="no-mount-options",
        ),
        pytest.param({"containers": [RESTARTS | MOUNTING]}, {RESTART, MOUNTS}, id="two"),
    ],
)
def test_a_pod_needs_what_its_spec_uses(spec: dict[str, object], needed: set[str]) -> None:
    assert pod(**spec).demand.needed_features == needed


def verdicts(release: Release, asking: Pod, *nodes: Node, gates: dict[str, bool] | None = None) -> list[Status] | None:
    mirror = ClusterMirror(rules=rules_of(release, gates))
    for each in nodes:
        mirror.apply(ClusterEvent("Add", each))
    batch = mirror.all_nodes()
    found = FreshEvaluation(mirror, asking).verdicts(NodeDeclaredFeatures(), batch)
    return None if found is None else [found.status(position) for position in range(len(batch))]


@pytest.mark.parametrize(
    ("release", "gates"),
    [(Release(1, 34), {}), (Release(1, 35), {}), (Release(1, 36), {"NodeDeclaredFeatures": False})],
)
def test_without_the_gate_every_node_passes(release: Release, gates: dict[str, bool]) -> None:
    assert verdicts(release, pod(containers=[RESTARTS]), node("none"), gates=gates) is None


def test_1_35_names_what_is_missing() -> None:
    found = verdicts(Release(1, 35), pod(containers=[RESTARTS]), node("none"), gates={"NodeDeclaredFeatures": True})
    assert found is not None
    assert found[0].reasons == (f"node declared features check failed - unsatisfied requirements: {RESTART}",)
