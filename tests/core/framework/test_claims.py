"""The claims that a pod names, whose they are, and how it fails for an object that is not there."""

from typing import Final

import pytest

from core.events import ClusterEvent
from core.framework.claims import ReadsClaims, find_claim, named_claims, not_found, ownership_error
from core.framework.interface import Code, Status
from core.mirror.cluster import ClusterMirror
from core.objects.kinds import ControllerRef
from core.objects.pod import InlineDisk, Pod, PodClaim, PodVolume
from core.objects.volumes import PersistentVolume, PersistentVolumeClaim, StorageClass, VolumeSource

DISK: Final = InlineDisk("d", VolumeSource("kubernetes.io/aws-ebs", "vol-1", in_tree=True))
EPHEMERAL: Final = PodClaim("web-data", ephemeral=True)


def pod_with(*volumes: PodVolume) -> Pod:
    return Pod(uid="u-web", namespace="shop", name="web", volumes=volumes)


@pytest.mark.parametrize(
    ("volumes", "expected"),
    [
        pytest.param((), None, id="no-volumes"),
        pytest.param((DISK,), None, id="no-claims"),
        pytest.param((PodClaim("b"), DISK, PodClaim("a")), ("uid-b", "uid-a"), id="in-the-order-of-the-volumes"),
        pytest.param((PodClaim("a"), PodClaim("gone")), ("uid-a", None), id="missing"),
        pytest.param((PodClaim("elsewhere"),), (None,), id="of-another-namespace"),
        pytest.param((PodClaim("a", ephemeral=True),), ("uid-a",), id="ephemeral"),
    ],
)
def test_claims_are_told_apart_by_their_uids(
    volumes: tuple[PodVolume, ...], expected: tuple[str | None, ...] | None
) -> None:
    mirror = ClusterMirror()
    for namespace, name in (("shop", "a"), ("shop", "b"), ("other", "elsewhere")):
        claim = PersistentVolumeClaim(namespace=namespace, name=name, uid=f"uid-{name}")
        mirror.apply(ClusterEvent("Add", claim))
    assert ReadsClaims().references(mirror, pod_with(*volumes)) == expected


@pytest.mark.parametrize(
    ("volume", "controller", "expected"),
    [
        pytest.param(PodClaim("web-data"), None, True, id="not-ephemeral"),
        pytest.param(EPHEMERAL, ControllerRef("Pod", "web", "u-web"), True, id="made-for-the-pod"),
        pytest.param(EPHEMERAL, ControllerRef("Pod", "web", "u-older"), False, id="made-for-an-earlier-pod"),
        pytest.param(EPHEMERAL, None, False, id="made-for-no-pod"),
    ],
)
def test_an_ephemeral_claim_must_have_been_made_for_the_pod(
    volume: PodClaim,
    controller: ControllerRef | None,
    expected: bool,  # noqa: FBT001 - a column of the table
) -> None:
    claim = PersistentVolumeClaim(namespace="shop", name="web-data", controller=controller)
    error = "PVC shop/web-data was not created for pod shop/web (pod is not owner)"
    assert ownership_error(pod_with(volume), volume, claim) == ("" if expected else error)


INLINE: Final = InlineDisk("v", VolumeSource("kubernetes.io/gce-pd", "d", in_tree=True))
NAMED, OTHER, OF_NO_CLAIM = PodClaim("c"), PodClaim("d"), PodClaim("p-v", ephemeral=True)
POD: Final = Pod(uid="p", namespace="a", name="p", volumes=(OTHER, INLINE, OF_NO_CLAIM, NAMED))
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
