"""What stands behind the claims of a pod, and whose they are."""

from typing import Final

import pytest

from core.events import ClusterEvent
from core.framework.claims import claim_uids, ownership_error
from core.mirror.cluster import ClusterMirror
from core.objects.kinds import ControllerRef
from core.objects.pod import InlineDisk, Pod, PodClaim, PodVolume
from core.objects.volumes import PersistentVolumeClaim, VolumeSource

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
    assert claim_uids(mirror, pod_with(*volumes)) == expected


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
