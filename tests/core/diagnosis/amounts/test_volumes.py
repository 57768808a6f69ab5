"""Claims that are bound elsewhere or in use, and attachable volumes."""

from msgspec.structs import replace

from core.diagnosis.amounts import cluster_amounts, node_amounts
from core.events import Object
from core.explaining.bound_claims import BoundElsewhere, BoundElsewhereInCluster
from core.objects.affinity import parse_node_selector
from core.objects.volumes import CSINode, PersistentVolume, PersistentVolumeClaim, VolumeSource
from core.plugins.nodevolumelimits.plugin import DriverInCluster, DriverOnNode, drivers_in_cluster, drivers_on_node
from core.plugins.volumerestrictions import InUse, claims_in_use, disks_on_node
from tests.builders import PodBuilder
from tests.core.diagnosis.deciding import ZONE, asking, decision_of, roomy, using

DRIVER = "csi.example.com"
NODES = (roomy("n1", zone="a"), roomy("n2", zone="b"))
IN_B = parse_node_selector([([(ZONE, "In", ["b"])], [])])
DATA = PersistentVolumeClaim(namespace="default", name="data", volume="pv", bind_completed=True, phase="Bound", uid="c")
VOLUME = PersistentVolume(name="pv", source=VolumeSource(DRIVER, "handle"))


def with_claim(pod: PodBuilder, name: str = "data") -> PodBuilder:
    return pod.volume({"name": "v", "persistentVolumeClaim": {"claimName": name}})


def objects(volume: PersistentVolume = VOLUME, claim: PersistentVolumeClaim = DATA) -> list[Object]:
    return [volume, claim]


def test_a_volume_is_told_that_a_node_cannot_reach() -> None:
    local = objects(replace(VOLUME, node_affinity=IN_B))
    decision = decision_of(with_claim(asking()), *NODES, objects=local)
    needs = f"{ZONE}=b"
    reported = BoundElsewhere("VolumeBinding", "default/data", "pv", needs, f"{ZONE}=a")
    assert [reported] == node_amounts(decision, 0, 3).bound_elsewhere
    assert not node_amounts(decision, 1, 3).bound_elsewhere
    expected = BoundElsewhereInCluster("VolumeBinding", "default/data", "pv", needs, "", 1)
    assert [expected] == cluster_amounts(decision, 3).bound_elsewhere


def test_a_volume_with_a_zone_label_is_told_too() -> None:
    zonal = objects(replace(VOLUME, labels={ZONE: "b"}))
    decision = decision_of(with_claim(asking()), *NODES, objects=zonal)
    expected = BoundElsewhereInCluster("VolumeZone", "default/data", "pv", f"{ZONE} in (b)", "", 1)
    assert [expected] == cluster_amounts(decision, 3).bound_elsewhere


def test_attached_volumes_are_told_with_their_limit() -> None:
    limits = [
        CSINode(name="n1", volume_limits={DRIVER: 1}, drivers=frozenset({DRIVER})),
        CSINode(name="n2", drivers=frozenset({DRIVER})),
    ]
    other = replace(DATA, name="other", volume="pv2", uid="o")
    more = [*objects(), replace(VOLUME, name="pv2", source=VolumeSource(DRIVER, "handle-2")), other, *limits]
    running = with_claim(using("running", "n1"), "other")
    decision = decision_of(with_claim(asking()), *NODES, running, objects=more)
    assert [DriverOnNode(DRIVER, 1, 1, 1)] == list(drivers_on_node(decision, 0))
    assert [DriverOnNode(DRIVER, None, 0, 1)] == list(drivers_on_node(decision, 1))
    assert [DriverInCluster(DRIVER, 1, 1, 0, "n1", 1)] == list(drivers_in_cluster(decision))
    assert decision.fitting.tolist() == [1]


def test_volumes_of_no_limited_driver_are_not_summed_up() -> None:
    assert not drivers_in_cluster(decision_of(with_claim(asking()), *NODES, objects=objects()))


def test_volumes_that_cannot_be_counted_have_no_amounts() -> None:
    decision = decision_of(with_claim(asking(), "gone"), *NODES)
    assert not drivers_on_node(decision, 0)
    assert not drivers_in_cluster(decision)
    assert not cluster_amounts(decision, 3).bound_elsewhere
    assert not cluster_amounts(decision_of(with_claim(asking()), objects=objects()), 3).bound_elsewhere


def test_a_volume_that_cannot_be_translated_is_out_of_reach() -> None:
    """An in-tree volume whose zones are in no form that its CSI driver knows, on a node that attaches by CSI."""
    source = VolumeSource("kubernetes.io/aws-ebs", "not a volume", in_tree=True)
    broken = objects(replace(VOLUME, source=source, node_affinity=IN_B))
    migrated = CSINode(name="n2", migrated_plugins=frozenset({"kubernetes.io/aws-ebs"}))
    decision = decision_of(with_claim(asking()), *NODES, objects=[*broken, migrated])
    assert decision.fitting.tolist() == []
    assert [each.nodes for each in cluster_amounts(decision, 3).bound_elsewhere] == [2]


def test_who_uses_a_read_write_once_pod_claim_is_named() -> None:
    exclusive = objects(claim=replace(DATA, access_modes=frozenset({"ReadWriteOncePod"})))
    running = with_claim(using("running", "n1"))
    decision = decision_of(with_claim(asking()), *NODES, running, objects=exclusive)
    assert [InUse("default/data", ["default/running"])] == list(claims_in_use(decision, 5))


def test_no_pod_is_named_once_the_search_has_taken_too_long() -> None:
    exclusive = objects(claim=replace(DATA, access_modes=frozenset({"ReadWriteOncePod"})))
    decision = decision_of(with_claim(asking()), *NODES, with_claim(using("running", "n1")), objects=exclusive)
    while decision.search.may_look_at(1_000_000):
        pass
    assert [InUse("default/data", [])] == list(claims_in_use(decision, 5))


def test_who_has_mounted_a_disk_is_named() -> None:
    disk = {"name": "v", "gcePersistentDisk": {"pdName": "disk"}}
    image = {"name": "w", "rbd": {"monitors": ["m"], "image": "image", "pool": "p"}}
    running = using("running", "n1").volume(disk).volume(image)
    decision = decision_of(asking().volume(disk).volume(image), *NODES, running)
    named = [InUse("v", ["default/running"]), InUse("image", ["default/running"])]
    assert named == list(disks_on_node(decision, 0, 5))
    assert not disks_on_node(decision, 1, 5)
