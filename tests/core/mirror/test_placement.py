"""Generations of NodeInfos, and the pods as they are held: what each event changes, and what changes nothing."""

from typing import Final

import pytest
from msgspec.structs import replace

from core.events import Action, Object
from core.mirror.cluster import ClusterMirror
from core.mirror.pod_columns import PodColumns
from core.objects.kinds import ControllerRef, Namespace
from core.objects.pod import Pod
from tests.core.mirror.audit import audit
from tests.core.mirror.values import REPELLING, mirror_of, node, pod, tell

P: Final = pod("p", "na", cpu=5, version="1")
NA: Final = node("na", cpu=10)


def cluster() -> ClusterMirror:
    return mirror_of(NA, node("nb"), P, pod("q", "waiting"))


def generations(mirror: ClusterMirror) -> dict[str, int]:
    return {name: info.generation for name, info in mirror.nodes.infos.items()}


@pytest.mark.parametrize(
    ("action", "thing", "changed"),
    [
        pytest.param("Add", pod("r", "nb"), {"nb"}, id="pod-added"),
        pytest.param("Delete", P, {"na"}, id="pod-deleted"),
        pytest.param("Update", replace(P, node_name="nb"), {"na", "nb"}, id="pod-moved"),
        pytest.param("Update", replace(P, node_name=""), {"na"}, id="pod-unbound"),
        pytest.param("Update", replace(P, terminal=True), {"na"}, id="pod-ended"),
        pytest.param("Update", replace(P, resource_version="2"), {"na"}, id="pod-of-a-newer-version"),
        pytest.param("Update", replace(P, controller=ControllerRef("k", "n", "u")), {"na"}, id="pod-adopted"),
        pytest.param("Update", replace(P, labels={}), {"na"}, id="pod-relabelled"),
        pytest.param("Update", P, set(), id="pod-repeated"),
        pytest.param("Add", pod("r"), set(), id="pod-unassigned"),
        pytest.param("Delete", pod("r", "na"), set(), id="unknown-pod-deleted"),
        pytest.param("Add", pod("r", "waiting"), {"waiting"}, id="pod-added-on-an-unknown-node"),
        pytest.param("Update", pod("q", "waiting", version="2"), {"waiting"}, id="pod-changed-on-an-unknown-node"),
        pytest.param("Update", node("na", cpu=11), {"na"}, id="node-of-another-size"),
        pytest.param("Update", node("na", cpu=10, version="2"), {"na"}, id="node-of-a-newer-version"),
        pytest.param("Update", node("na", cpu=10, labels={"a": "b"}), {"na"}, id="node-relabelled"),
        pytest.param("Add", NA, set(), id="node-repeated"),
        pytest.param("Delete", NA, {"na"}, id="node-deleted"),
        pytest.param("Add", node("waiting"), {"waiting"}, id="node-appears"),
        pytest.param("Delete", node("waiting"), set(), id="unknown-node-deleted"),
        pytest.param("Add", Namespace("x", {"a": "b"}), set(), id="namespace"),
    ],
)
def test_exactly_the_nodes_that_changed_get_a_new_generation(action: Action, thing: Object, changed: set[str]) -> None:
    mirror = cluster()
    before, last = generations(mirror), mirror.generation
    tell(mirror, action, thing)
    after = generations(mirror)
    assert changed == {name for name, generation in after.items() if generation != before.get(name)}
    assert all(after[name] > last for name in changed)
    assert (mirror.generation > last) is bool(changed)
    assert audit(mirror) == []


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param(replace(P, resource_version="2"), id="version"),
        pytest.param(replace(P, resource_version="2", requests={"cpu": 7, "gpu": 1}), id="requests"),
        pytest.param(replace(P, requests={"cpu": 7}), id="requests-of-the-same-version"),
        pytest.param(replace(P, resource_version="2", requests={}, best_effort=True), id="best-effort"),
        pytest.param(replace(P, best_effort=True), id="best-effort-with-the-same-requests"),
        pytest.param(replace(P, controller=ControllerRef("ReplicaSet", "x", "u")), id="controller"),
        pytest.param(replace(P, resource_version="2", labels={"app": "db"}), id="labels"),
        pytest.param(replace(P, affinity=REPELLING), id="terms"),
        pytest.param(replace(P, name="other"), id="name"),
    ],
)
def test_the_newest_state_of_a_pod_is_held_and_counted(changed: Pod) -> None:
    mirror = cluster()
    tell(mirror, "Update", changed)
    assert mirror.get_pod("p") is changed
    assert [mirror.pods.pods[row] for row in mirror.nodes.infos["na"].rows] == [changed]
    assert audit(mirror) == []
    tell(mirror, "Delete", changed)
    assert (mirror.nodes.infos["na"].figures.guaranteed_requested, audit(mirror)) == ({}, [])


def test_a_status_update_moves_no_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    mirror = cluster()
    with monkeypatch.context() as patched:
        for method in ("insert", "remove"):
            patched.setattr(PodColumns, method, lambda *_: pytest.fail("a pod was taken out"))
        tell(mirror, "Update", replace(P, resource_version="2"))
    assert audit(mirror) == []
