"""NodeVolumeLimits: which volumes count by release, why they cannot be counted, and what is kept of nodes."""

from functools import partial
from typing import Final

import numpy as np
import pytest

from core.events import Object
from core.framework.claims import ClaimError
from core.framework.interface import SUCCESS, Code, Status
from core.mirror.cluster import ClusterMirror
from core.objects.kinds import ControllerRef
from core.objects.node import Node
from core.objects.pod import InlineDisk, Pod, PodClaim, PodVolume
from core.objects.volumes import (
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
    VolumeSource,
)
from core.plugins.nodevolumelimits.plugin import NodeVolumeLimits
from core.plugins.nodevolumelimits.volumes_in_use import (
    DriversByVolume,
    Migration,
    StorageObjects,
    VolumesInUse,
    attachable_volumes,
)
from core.releases.differences import rules_of
from core.releases.release import Release
from tests.core.plugins.values import delete, filtered, mirror_of, tell

DRIVER = "csi.example.com"
EBS_DRIVER = "ebs.csi.aws.com"


def pod_with(*volumes: str | PodVolume, name: str = "incoming", on: str = "") -> Pod:
    """Return a pod of the namespace `default`, whose name is its uid; a text is the name of a claim."""
    return Pod(
        uid=name,
        namespace="default",
        name=name,
        node_name=on,
        volumes=tuple(PodClaim(each) if isinstance(each, str) else each for each in volumes),
    )


def claim(
    name: str, volume: str = "", *, storage_class: str = "", owner: str = "", uid: str = ""
) -> PersistentVolumeClaim:
    """Return a claim; `owner` is the uid of the pod for which it was made."""
    return PersistentVolumeClaim(
        namespace="default",
        name=name,
        volume=volume,
        storage_class=storage_class,
        controller=ControllerRef("Pod", owner, owner) if owner else None,
        uid=uid or name,
    )


def csi_volume(name: str, handle: str = "", driver: str = DRIVER) -> PersistentVolume:
    """Return a volume with a CSI source, whose handle is its name unless it is said."""
    return PersistentVolume(name=name, source=VolumeSource(driver, handle or name))


def disk(plugin: str, volume: str, *, kind: str | None = None) -> InlineDisk:
    """Return a disk of an in-tree plugin that a pod names itself."""
    return InlineDisk("data", VolumeSource(f"kubernetes.io/{plugin}", volume, in_tree=True, kind=kind))


def storage_class(name: str, provisioner: str) -> StorageClass:
    """Return a class of a provisioner."""
    return StorageClass(name=name, provisioner=provisioner)


def csi_node(name: str, limit: int | None = None, driver: str = DRIVER, *migrated: str) -> CSINode:
    """Return the CSINode of a node, with the limit of one driver."""
    return CSINode(
        name=name, volume_limits={} if limit is None else {driver: limit}, migrated_plugins=frozenset(migrated)
    )


def attachment(name: str, volume: str, node: str, attacher: str = DRIVER) -> VolumeAttachment:
    """Return an attachment of a volume to a node."""
    return VolumeAttachment(name=name, attacher=attacher, node=node, volume=volume)


# Which volumes of a pod count against a limit, and which pods cannot be counted.
#
# Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/nodevolumelimits/csi.go (filterAttachableVolumes).

PORTWORX: Final = "kubernetes.io/portworx-volume"
NO_EBS_VOLUME: Final = "failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume"


def counted(
    pod: Pod, *objects: Object, migration: Migration = Migration.ALL_BUT_PORTWORX, is_new: bool = True
) -> DriversByVolume:
    return attachable_volumes(StorageObjects(mirror_of(*objects)), pod, migration, is_new=is_new)


def fault(pod: Pod, *objects: Object, is_new: bool = True) -> Status:
    with pytest.raises(ClaimError) as caught:
        counted(pod, *objects, is_new=is_new)
    return caught.value.status


@pytest.mark.parametrize(
    ("csi_node", "expected"),
    [
        pytest.param(None, Migration.NONE, id="no-csi-node"),
        pytest.param(csi_node("n1"), Migration.ALL_BUT_PORTWORX, id="whatever-its-annotation-says"),
        pytest.param(csi_node("n1", 1, DRIVER, PORTWORX), Migration.ALL, id="portworx-by-the-annotation"),
    ],
)
def test_migration_follows_from_the_csi_node(csi_node: CSINode | None, expected: Migration) -> None:
    assert Migration.of(csi_node, rules_of(Release(1, 34))) is expected


def test_since_1_36_portworx_is_migrated_on_every_node_with_a_csi_node() -> None:
    assert Migration.of(csi_node("n1"), rules_of(Release(1, 36))) is Migration.ALL
    assert Migration.of(None, rules_of(Release(1, 36))) is Migration.NONE


@pytest.mark.parametrize(
    ("volume", "expected"),
    [
        pytest.param(disk("aws-ebs", "vol-1"), f"{EBS_DRIVER}/vol-1", id="ebs"),
        pytest.param(
            disk("gce-pd", "d"),
            "pd.csi.storage.gke.io/projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d",
            id="gce-of-no-zone",
        ),
        pytest.param(disk("azure-disk", "/d", kind="managed"), "disk.csi.azure.com//d", id="azure"),
        pytest.param(disk("cinder", ""), "cinder.csi.openstack.org/", id="cinder-without-an-id"),
    ],
)
def test_a_disk_counts_under_the_driver_that_took_it_over(volume: InlineDisk, expected: str) -> None:
    assert counted(pod_with(volume)) == {expected: expected.partition("/")[0]}


def test_one_volume_by_two_claims_counts_once() -> None:
    objects = (claim("a", "pv-1"), claim("b", "pv-2"), csi_volume("pv-1", "h"), csi_volume("pv-2", "h"))
    assert counted(pod_with("a", "b"), *objects) == {f"{DRIVER}/h": DRIVER}


@pytest.mark.parametrize(
    ("pod", "objects", "expected"),
    [
        pytest.param(
            pod_with("a"),
            [],
            Status(
                Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
                ('looking up PVC default/a: persistentvolumeclaim "a" not found',),
            ),
            id="claim-missing",
        ),
        pytest.param(pod_with(""), [], Status(Code.ERROR, ("PersistentVolumeClaim had no name",)), id="claim-unnamed"),
        pytest.param(
            pod_with(PodClaim("a", ephemeral=True)),
            [claim("a", owner="another")],
            Status(Code.ERROR, ("PVC default/a was not created for pod default/incoming (pod is not owner)",)),
            id="ephemeral-claim-of-another-pod",
        ),
        pytest.param(
            pod_with(disk("aws-ebs", "aws://z/x"), "missing"),
            [],
            Status(Code.ERROR, (f"converting volume(data) from inline to csi: {NO_EBS_VOLUME} (aws://z/x)",)),
            id="the-first-volume-at-fault",
        ),
    ],
)
def test_a_new_pod_with_a_fault_cannot_be_counted(pod: Pod, objects: list[Object], expected: Status) -> None:
    assert fault(pod, *objects) == expected


# Which nodes NodeVolumeLimits keeps a pod from.
#
# Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/nodevolumelimits/csi.go (PreFilter, Filter).

NODE: Final = Node(name="n1")
STORAGE: Final[tuple[Object, ...]] = (
    *(claim(name, f"pv-{name}") for name in "abc"),
    *(csi_volume(f"pv-{name}") for name in "abc"),
    csi_volume("pv-other", "pv-other", "other.example.com"),
    claim("other", "pv-other"),
)


statuses: Final = partial(filtered, NodeVolumeLimits())


def test_a_missing_claim_fails_every_node_whatever_its_limits() -> None:
    mirror = mirror_of(NODE, Node(name="n2"), csi_node("n2", 5))
    expected = Status(
        Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ('looking up PVC default/gone: persistentvolumeclaim "gone" not found',)
    )
    assert statuses(mirror, pod_with("gone"), "n1", "n2") == [expected, expected]


def test_a_disk_at_fault_is_an_error_where_it_would_be_attached_by_csi() -> None:
    mirror = mirror_of(NODE, Node(name="n2"), csi_node("n2"))
    missing, broken = statuses(mirror, pod_with(disk("azure-disk", "d", kind="Dedicated"), "gone"), "n1", "n2")
    assert missing.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    expected = "converting volume(data) from inline to csi: kind(Dedicated) is not supported in csi migration"
    assert broken == Status(Code.ERROR, (expected,))


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (None, SUCCESS),
        (9, Status(Code.ERROR, ("PVC default/a was not created for pod default/p (pod is not owner)",))),
    ],
    ids=["no-limit", "limit"],
)
def test_an_existing_pod_at_fault_is_an_error_where_there_are_limits(limit: int | None, expected: Status) -> None:
    there = pod_with(PodClaim("a", ephemeral=True), name="p", on="n1")
    assert statuses(mirror_of(NODE, *STORAGE, csi_node("n1", limit), there), pod_with("b"), "n1") == [expected]


CLUSTER: Final = (Node(name="n1"), csi_node("n1", 5), claim("a", "pv-a"), csi_volume("pv-a"))


def attached_on(mirror: ClusterMirror, name: str = "n1") -> int:
    """Return how many volumes of the driver a node has attached."""
    in_use = mirror.derived(VolumesInUse)
    in_use.refresh()
    column = in_use.attached.get(DRIVER)
    return 0 if column is None else int(column[mirror.nodes.slots[name]])


def test_columns_grow_with_the_nodes() -> None:
    mirror = mirror_of(*CLUSTER, pod_with("a", name="p", on="n40"))
    assert attached_on(mirror) == 0
    tell(mirror, *(Node(name=f"n{number}") for number in range(2, 41)), csi_node("n40", 7))
    assert attached_on(mirror, "n40") == 1
    in_use = mirror.derived(VolumesInUse)
    assert in_use.limits[DRIVER][[mirror.nodes.slots["n1"], mirror.nodes.slots["n40"]]].tolist() == [5, 7]
    assert len(in_use.limited) == mirror.nodes.capacity


def test_what_no_node_follows_from_any_more_is_forgotten() -> None:
    running = pod_with("a", name="p", on="n1")
    mirror = mirror_of(*CLUSTER, running, attachment("att", "pv-a", "n1"))
    assert attached_on(mirror) == 1
    delete(mirror, running, attachment("att", "pv-a", "n1"), Node(name="n1"))
    in_use = mirror.derived(VolumesInUse)
    in_use.refresh()
    assert not in_use.users
    assert not in_use.errors
    assert not np.concatenate([*in_use.attached.values()]).any()
