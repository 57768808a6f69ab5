"""Remedies about claims and volumes, on clusters made for it."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from core.diagnosis.remedies.remedy import AddNode, Kind, LowerRequest, RemovePod, Step
from core.diagnosis.remedies.volume_steps import AllowTopology, CreateClaim, ProvideVolume, ResizeClaim
from core.events import Object
from core.objects.labels import parse_selector
from core.objects.node_selector import parse_node_selector
from core.objects.volumes import (
    CSIDriver,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from tests.builders import PodBuilder
from tests.core.diagnosis.deciding import HOST, ZONE, asking, decision_of, roomy, using
from tests.core.diagnosis.remedies.helping import helps, of_kind

GI = 2**30
FAST = StorageClass(name="fast", provisioner="csi.example.com", volume_binding_mode="WaitForFirstConsumer")
NOW = StorageClass(name="now", provisioner="csi.example.com", volume_binding_mode="Immediate")
BY_HAND = replace(FAST, name="local", provisioner="kubernetes.io/no-provisioner")
DATA = PersistentVolumeClaim(namespace="default", name="data", storage_class="fast", requested=10 * GI, uid="c")
BOUND = replace(DATA, volume="pv", bind_completed=True, phase="Bound")
VOLUME = PersistentVolume(name="pv", storage_class="fast")


def with_claims(*names: str, **requests: str) -> PodBuilder:
    pod = asking(**requests)
    for name in names:
        pod = pod.volume({"name": f"v-{name}", "persistentVolumeClaim": {"claimName": name}})
    return pod


def test_a_claim_that_is_missing_is_created_of_a_class_that_waits_for_the_pod() -> None:
    found = helps(with_claims("data"), roomy("n1"), objects=[NOW, FAST])
    assert [("n1", [CreateClaim("default/data", "fast")])] == of_kind(Kind.CREATE_CLAIMS, found)
    assert found[0].text == "create the PersistentVolumeClaim default/data of StorageClass fast (then it fits on n1)"


def test_without_such_a_class_it_is_bound_to_a_volume() -> None:
    found = helps(with_claims("data", "more"), roomy("n1"), objects=[NOW])
    steps = [CreateClaim("default/data", ""), CreateClaim("default/more", "")]
    assert [("n1", steps)] == of_kind(Kind.CREATE_CLAIMS, found)


def test_a_class_that_no_node_fits_is_passed_over() -> None:
    elsewhere = replace(FAST, allowed_topologies=parse_node_selector([([(ZONE, "In", ["z"])], [])]))
    found = helps(with_claims("data"), roomy("n1", zone="a"), objects=[elsewhere])
    assert [("n1", [CreateClaim("default/data", "")])] == of_kind(Kind.CREATE_CLAIMS, found)


@pytest.mark.parametrize(
    ("claim", "objects", "expected"),
    [
        pytest.param(
            replace(DATA, storage_class="now"), [NOW], ProvideVolume("default/data", "", "now", 10 * GI), id="immediate"
        ),
        pytest.param(
            replace(DATA, storage_class="gone"), [], ProvideVolume("default/data", "", "gone", 10 * GI), id="no-class"
        ),
        pytest.param(BOUND, [FAST], ProvideVolume("default/data", "pv", "fast", 10 * GI), id="volume-is-missing"),
        pytest.param(
            replace(DATA, storage_class="local"),
            [BY_HAND],
            ProvideVolume("default/data", "", "local", 10 * GI),
            id="no-provisioner",
        ),
    ],
)
def test_a_claim_that_waits_in_vain_is_bound_to_a_volume(
    claim: PersistentVolumeClaim, objects: Sequence[Object], expected: ProvideVolume
) -> None:
    found = helps(with_claims("data"), roomy("n1"), objects=[claim, *objects])
    assert [("n1", [expected])] == of_kind(Kind.PROVIDE_VOLUMES, found)


@pytest.mark.parametrize(
    "claim", [replace(DATA, phase="Lost"), replace(DATA, deleting=True), replace(DATA, selected_node="gone")]
)
def test_nothing_helps_a_claim_that_is_lost_is_going_or_is_being_provisioned_elsewhere(
    claim: PersistentVolumeClaim,
) -> None:
    assert not helps(with_claims("data"), roomy("n1"), objects=[claim, FAST])


def test_claims_that_are_missing_and_that_wait_need_both() -> None:
    waiting = replace(DATA, name="other", storage_class="local")
    found = helps(with_claims("data", "other"), roomy("n1"), objects=[waiting, BY_HAND])
    steps: list[Step] = [CreateClaim("default/data", ""), ProvideVolume("default/other", "", "local", 10 * GI)]
    assert [("n1", steps)] == of_kind(Kind.COMBINED, found)


def test_a_claim_is_created_for_a_pod_that_also_requests_too_much() -> None:
    found = helps(with_claims("data", cpu="9"), roomy("n1"))
    steps: list[Step] = [LowerRequest("cpu", 1000, 8000), CreateClaim("default/data", "")]
    assert of_kind(Kind.COMBINED, found) == [("n1", steps)]


def test_a_class_is_given_the_topology_of_a_node() -> None:
    in_z = replace(FAST, allowed_topologies=parse_node_selector([([(ZONE, "In", ["z"])], [])]))
    found = helps(with_claims("data"), roomy("n1", zone="a"), objects=[DATA, in_z])
    assert [("n1", [AllowTopology("fast")])] == of_kind(Kind.ALLOW_TOPOLOGY, found)
    assert of_kind(Kind.PROVIDE_VOLUMES, found)


def test_a_claim_requests_what_there_is_room_for() -> None:
    driver = CSIDriver(name="csi.example.com", storage_capacity=True)
    rooms = [
        CSIStorageCapacity(
            namespace="kube-system",
            name=f"room-{zone}",
            storage_class="fast",
            topology=parse_selector({ZONE: zone}, []),
            limit=size * GI,
        )
        for zone, size in (("a", 3), ("b", 6))
    ]
    nodes = roomy("n1", zone="a"), roomy("n2", zone="b"), roomy("n3", zone="c")
    found = helps(with_claims("data"), *nodes, objects=[DATA, FAST, driver, *rooms])
    assert [("n2", [ResizeClaim("default/data", 10 * GI, 6 * GI)])] == of_kind(Kind.RESIZE_CLAIM, found)
    assert "create the claim default/data anew with 6Gi instead of 10Gi (then it fits on n2)" in [
        each.text for each in found
    ]


def test_a_node_is_added_where_the_volume_is() -> None:
    in_z = replace(VOLUME, node_affinity=parse_node_selector([([(ZONE, "In", ["z"])], [])]))
    found = helps(with_claims("data"), roomy("n1", zone="a"), objects=[BOUND, in_z])
    step = AddNode("n1-copy", "n1", "z", labels={ZONE: "z"})
    assert [("n1-copy", [step])] == of_kind(Kind.ADD_NODE, found)
    assert found[0].text == "add a node like n1 in zone z"


def test_a_node_of_the_volumes_zone_is_the_pattern() -> None:
    labelled = replace(VOLUME, labels={ZONE: "b"})
    nodes = roomy("n1", zone="a"), roomy("n2", zone="b"), using("full", "n2", cpu="8")
    found = helps(with_claims("data", cpu="4"), *nodes, objects=[BOUND, labelled])
    assert [("n2-copy", [AddNode("n2-copy", "n2", "b")])] == of_kind(Kind.ADD_NODE, found)
    assert [("n2", [RemovePod("default/full", "full", "n2")])] == of_kind(Kind.REMOVE_POD, found)


def test_a_local_volume_wants_its_node_back() -> None:
    local = replace(VOLUME, node_affinity=parse_node_selector([([(HOST, "In", ["n7"])], [])]))
    found = helps(with_claims("data"), roomy("n1"), objects=[BOUND, local])
    assert [("n7", [AddNode("n7", "n1", "")])] == of_kind(Kind.ADD_NODE, found)
    assert found[0].text == "add a node like n1 named n7"


def test_nothing_is_left_of_the_objects_that_were_supposed() -> None:
    objects: list[Object] = [replace(DATA, storage_class="now"), NOW, FAST]
    decision = decision_of(with_claims("data", "gone"), roomy("n1"), objects=objects)
    mirror = decision.mirror
    kinds = (PersistentVolume, PersistentVolumeClaim, StorageClass)
    before = [dict(mirror.objects(kind)) for kind in kinds], mirror.generation
    assert helps(with_claims("data", "gone"), roomy("n1"), objects=objects)
    assert before == ([dict(mirror.objects(kind)) for kind in kinds], mirror.generation)
