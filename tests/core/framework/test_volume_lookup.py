"""The claims that a pod names, and how it fails for an object that is not there."""

from typing import Final

import pytest

from core.events import ClusterEvent
from core.framework.claims import find_claim, named_claims, not_found
from core.framework.interface import Code, Status
from core.mirror.cluster import ClusterMirror
from core.objects.pod import InlineDisk, Pod, PodClaim
from core.objects.volumes import PersistentVolume, PersistentVolumeClaim, StorageClass, VolumeSource

DISK: Final = InlineDisk("v", VolumeSource("kubernetes.io/gce-pd", "d", in_tree=True))
NAMED, OTHER, EPHEMERAL = PodClaim("c"), PodClaim("d"), PodClaim("p-v", ephemeral=True)
POD: Final = Pod(uid="p", namespace="a", name="p", volumes=(OTHER, DISK, EPHEMERAL, NAMED))
CLAIM: Final = PersistentVolumeClaim(namespace="a", name="c", uid="1")
OF_ANOTHER_NAMESPACE: Final = PersistentVolumeClaim(namespace="b", name="d", uid="2")


def mirror() -> ClusterMirror:
    made = ClusterMirror()
    for claim in (CLAIM, OF_ANOTHER_NAMESPACE):
        made.apply(ClusterEvent("Add", claim))
    return made


def test_the_claims_that_a_pod_names_are_those_of_no_ephemeral_volume_in_their_order() -> None:
    assert named_claims(POD) == (OTHER, NAMED)


def test_a_claim_lies_in_the_namespace_of_its_pod() -> None:
    assert [find_claim(mirror(), POD, each) for each in (NAMED, OTHER)] == [CLAIM, None]


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        pytest.param(PersistentVolume, 'persistentvolume "x" not found', id="volume"),
        pytest.param(PersistentVolumeClaim, 'persistentvolumeclaim "x" not found', id="claim"),
        pytest.param(StorageClass, 'storageclass.storage.k8s.io "x" not found', id="class"),
    ],
)
def test_an_object_that_is_not_there_is_told_in_the_words_of_the_api(
    kind: type[PersistentVolume | PersistentVolumeClaim | StorageClass], reason: str
) -> None:
    assert not_found(kind, "x") == Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (reason,))
