"""What keeps claims from volumes, in cases that people have published."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from core.diagnosis.amounts import cluster_amounts
from core.events import Object
from core.explaining.node_labels import selector_text
from core.objects.affinity import parse_node_selector
from core.objects.labels import Operator, Selector, requirement
from core.objects.volumes import (
    CSIDriver,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from core.plugins.volumebinding.claim_facts import claims_without_volume
from tests.core.diagnosis.deciding import HOST, ZONE, asking, decision_of, roomy

GI = 2**30
CLAIM = PersistentVolumeClaim(
    namespace="default",
    name="data",
    uid="c",
    storage_class="pool",
    requested=4 * GI,
    access_modes=frozenset({"ReadWriteOnce"}),
)
WAITS = StorageClass(name="pool", provisioner="csi.example", volume_binding_mode="WaitForFirstConsumer")
AT_ONCE = replace(WAITS, volume_binding_mode="Immediate")
LOCAL = replace(WAITS, provisioner="kubernetes.io/no-provisioner")
PUBLISHES = CSIDriver(name="csi.example", storage_capacity=True)
FREE = PersistentVolume(
    name="pv",
    storage_class="pool",
    capacity=GI,
    phase="Available",
    access_modes=frozenset({"ReadWriteOnce"}),
    node_affinity=parse_node_selector([([(HOST, "In", ["gone"])], [])]),
)
IN_C = parse_node_selector([([(ZONE, "In", ["c"])], [])])


def selecting(key: str, value: str) -> Selector:
    return Selector((requirement(key, Operator.IN, [value]),))


def why(*objects: Object) -> str:
    """Return what is said of the claim of a pod that fits on none of two nodes."""
    pod = asking().volume({"name": "v", "persistentVolumeClaim": {"claimName": "data"}})
    decision = decision_of(pod, roomy("n1", zone="a"), roomy("n2", zone="b"), objects=objects)
    assert not len(decision.fitting)
    (found,) = claims_without_volume(decision)
    assert list(cluster_amounts(decision, 5).claims) == [found]
    assert found.claim == "default/data"
    return found.why


@pytest.mark.parametrize(
    ("objects", "stated"),
    [
        pytest.param(
            [replace(CLAIM, selected_node="ip-10-0-92-212"), WAITS],
            "a volume for it is being made for node ip-10-0-92-212 (volume.kubernetes.io/selected-node), which does "
            "not exist: remove this annotation of the claim; StorageClass pool is of driver csi.example",
            id="kubernetes/kubernetes#100485 and azuredisk-csi-driver#1475",
        ),
        pytest.param(
            [CLAIM, LOCAL],
            "StorageClass pool makes no volumes (kubernetes.io/no-provisioner); no PersistentVolume of the class is "
            "Available",
            id="hashicorp/consul-helm#237",
        ),
        pytest.param(
            [replace(CLAIM, requested=10 * GI), LOCAL, FREE],
            "StorageClass pool makes no volumes (kubernetes.io/no-provisioner); 1 Available, but it needs 10Gi "
            "ReadWriteOnce, and the largest has 1Gi",
            id="goharbor/harbor-helm#559",
        ),
        pytest.param(
            [replace(CLAIM, access_modes=frozenset({"ReadWriteMany"})), LOCAL, FREE],
            "StorageClass pool makes no volumes (kubernetes.io/no-provisioner); 1 Available, none with its access "
            "modes, volume mode and selector (4Gi ReadWriteMany)",
            id="sig-storage-local-static-provisioner#424",
        ),
        pytest.param(
            [CLAIM, LOCAL, replace(FREE, capacity=5 * GI)],
            "StorageClass pool makes no volumes (kubernetes.io/no-provisioner); pv (5Gi) is for "
            f"{HOST}=gone (no node; the nodes have {HOST} n1 (1), n2 (1))",
            id="kubernetes/kubernetes#81020",
        ),
        pytest.param(
            [replace(CLAIM, storage_class="")],
            "it names no StorageClass, so only a PersistentVolume without a class can be bound to it; no "
            "PersistentVolume of the class is Available",
            id="kubernetes/website#26943",
        ),
        pytest.param(
            [replace(CLAIM, storage_class="standard"), WAITS],
            "its StorageClass standard does not exist; StorageClasses of the cluster: pool",
            id="rackerlabs/understack#54",
        ),
        pytest.param(
            [
                replace(CLAIM, name=name, namespace=of)
                for name, of in (("a-2", "default"), ("datta", "default"), ("x", "y"))
            ],
            "it does not exist; claims of the namespace: datta, a-2",
            id="jupyterhub/helm-chart#35",
        ),
        pytest.param(
            [CLAIM, AT_ONCE],
            "StorageClass pool binds at once, before the pod is scheduled, and it is not bound yet; StorageClass pool "
            "is of driver csi.example",
            id="openebs/dynamic-localpv-provisioner#186",
        ),
        pytest.param(
            [CLAIM, replace(WAITS, allowed_topologies=IN_C)],
            f"StorageClass pool is of driver csi.example; its volumes may be for {ZONE}=c (no node; the nodes have "
            f"{ZONE} a (1), b (1))",
            id="a class for a zone without nodes",
        ),
        pytest.param(
            [replace(CLAIM, phase="Lost", volume="pv-gone", bind_completed=True), WAITS],
            "in phase Lost: its PersistentVolume pv-gone is gone",
            id="a lost claim",
        ),
        pytest.param(
            [replace(CLAIM, volume="pv-gone", bind_completed=True), WAITS],
            "its PersistentVolume pv-gone does not exist",
            id="a volume that is gone",
        ),
        pytest.param(
            [replace(CLAIM, volume="pv"), WAITS, FREE],
            "it names the PersistentVolume pv, but is not bound to it yet",
            id="a binding that is not complete",
        ),
    ],
)
def test_what_a_claim_waits_for_is_said(objects: Sequence[Object], stated: str) -> None:
    assert why(*objects) == stated


def test_a_claim_that_its_controller_makes_is_said_to_be_awaited() -> None:
    """Source: volumebinding/binder.go (GetPodVolumeClaims), pkg/controller/volume/ephemeral/controller.go."""
    decision = decision_of(
        asking().volume({"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}), roomy("n1")
    )
    (found,) = claims_without_volume(decision)
    assert found.why == "it does not exist: the ephemeral volume controller makes it"


@pytest.mark.parametrize(
    ("capacities", "stated"),
    [
        ([], "and the driver has reported no capacity for this class (no CSIStorageCapacity)"),
        (
            [(0, ZONE, "a")],
            f"largest capacities that the driver has reported (CSIStorageCapacity): 0 for {ZONE}=a (1 node)",
        ),
        (
            [(60 * GI, "pool.example/node", "n1"), (GI, ZONE, "b")],
            (
                "largest capacities that the driver has reported (CSIStorageCapacity): 60Gi for pool.example/node=n1 "
                f"(no node; the nodes have no label pool.example/node); 1Gi for {ZONE}=b (1 node)"
            ),
        ),
    ],
    ids=["openebs/zfs-localpv#453", "longhorn/longhorn#12807", "openebs/lvm-localpv#265"],
)
def test_capacities_that_the_driver_has_reported_are_said(capacities: list[tuple[int, str, str]], stated: str) -> None:
    published = [
        CSIStorageCapacity(
            namespace="s", name=f"c{place}", storage_class="pool", topology=selecting(key, value), limit=limit
        )
        for place, (limit, key, value) in enumerate(capacities)
    ]
    reported = why(CLAIM, WAITS, PUBLISHES, *published)
    assert reported.startswith("StorageClass pool is of driver csi.example; it needs 4Gi")
    assert reported.endswith(stated)


def test_a_claim_is_not_told_where_no_rule_of_volumes_rejects_a_node() -> None:
    pod = asking(cpu="9").volume({"name": "v", "persistentVolumeClaim": {"claimName": "data"}})
    assert not claims_without_volume(decision_of(pod, roomy("n1"), objects=[CLAIM, WAITS]))


def test_a_volume_of_a_node_that_was_renamed_is_told_with_the_names_that_there_are() -> None:
    """Source: devopsjourney1/jenkins-101#6: the affinity of the example is for another node than minikube's."""
    bound = replace(CLAIM, volume="pv", bind_completed=True)
    pod = asking().volume({"name": "v", "persistentVolumeClaim": {"claimName": "data"}})
    nodes = (roomy("n1"), roomy("n2"))
    (found,) = cluster_amounts(decision_of(pod, *nodes, objects=[bound, FREE]), 3).bound_elsewhere
    assert (found.needs, found.has) == (f"{HOST}=gone", f"{HOST} n1 (1), n2 (1)")
    reached = cluster_amounts(decision_of(pod, *nodes, roomy("gone"), objects=[bound, FREE]), 3).bound_elsewhere
    assert [(each.nodes, each.has) for each in reached] == [(2, "")]


def test_many_values_are_counted() -> None:
    bound = replace(CLAIM, volume="pv", bind_completed=True)
    pod = asking().volume({"name": "v", "persistentVolumeClaim": {"claimName": "data"}})
    nodes = [roomy(f"n{number}") for number in range(9)]
    (found,) = cluster_amounts(decision_of(pod, *nodes, objects=[bound, FREE]), 3).bound_elsewhere
    assert found.has == f"9 other values of {HOST}"


def test_what_volumes_ask_is_cut_where_it_is_long() -> None:
    many = parse_node_selector([([("rack", "In", [f"r{number}" for number in range(9)])], [])] * 5)
    text = selector_text(many)
    assert text.count("rack in (r0, r1, r2, r3, r4)") == 3
    assert text.endswith(" or more")
    others = parse_node_selector([([("a", "NotIn", ["b"]), ("c", "Exists", []), ("d", "Gt", ["7"])], [])])
    assert selector_text(others) == "a notin (b), c, d > 7"
