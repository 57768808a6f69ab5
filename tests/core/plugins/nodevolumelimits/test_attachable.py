"""Which volumes of a pod count against a limit, and which pods cannot be counted.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/nodevolumelimits/csi.go (filterAttachableVolumes).
"""

from typing import Final

import pytest

from core.events import Object
from core.framework.interface import Code, Status
from core.objects.pod import InlineDisk, Pod, PodClaim
from core.objects.volumes import CSINode
from core.plugins.nodevolumelimits.volumes_in_use import (
    DriversByVolume,
    Migration,
    StorageObjects,
    UncountableError,
    attachable_volumes,
)
from core.releases import Release, rules_of
from tests.core.plugins.nodevolumelimits.values import (
    DRIVER,
    EBS_DRIVER,
    claim,
    csi_node,
    csi_volume,
    disk,
    pod_with,
)
from tests.core.plugins.told import mirror_of

PORTWORX: Final = "kubernetes.io/portworx-volume"
NO_EBS_VOLUME: Final = "failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume"


def counted(
    pod: Pod, *objects: Object, migration: Migration = Migration.ALL_BUT_PORTWORX, is_new: bool = True
) -> DriversByVolume:
    return attachable_volumes(StorageObjects(mirror_of(*objects)), pod, migration, is_new=is_new)


def fault(pod: Pod, *objects: Object, is_new: bool = True) -> Status:
    with pytest.raises(UncountableError) as caught:
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


def test_a_disk_does_not_count_without_a_csi_node() -> None:
    assert counted(pod_with(disk("aws-ebs", "aws://z/broken")), migration=Migration.NONE) == {}


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
