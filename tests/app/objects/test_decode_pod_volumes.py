"""Volumes of pods to the core's values: which kinds are read, and what of them."""

import json

import pytest

from app.objects.decode_pod import decode_pod
from core.objects.pod import InlineDisk, PodClaim, PodVolume, RBDImage
from core.objects.volumes import VolumeSource
from tests.builders import Object, make_pod


def volumes_of(*wires: object) -> tuple[PodVolume, ...]:
    return decode_pod(json.dumps({"metadata": {"name": "p"}, "spec": {"volumes": wires}}).encode()).volumes


def disk(plugin: str, volume: str, *, read_only: bool = False, kind: str | None = None) -> InlineDisk:
    return InlineDisk("v", VolumeSource(f"kubernetes.io/{plugin}", volume, in_tree=True), read_only, kind)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param({"persistentVolumeClaim": {"claimName": "c"}}, PodClaim("c"), id="claim"),
        pytest.param(
            {"persistentVolumeClaim": {"claimName": "c", "readOnly": True}}, PodClaim("c"), id="claim-to-read"
        ),
        pytest.param({"persistentVolumeClaim": {"claimName": None}}, PodClaim(""), id="claim-without-a-name"),
        pytest.param(
            {"ephemeral": {"volumeClaimTemplate": {"spec": {}}}}, PodClaim("p-v", ephemeral=True), id="ephemeral"
        ),
        pytest.param(
            {"gcePersistentDisk": {"pdName": "d", "readOnly": True}}, disk("gce-pd", "d", read_only=True), id="gce"
        ),
        pytest.param({"gcePersistentDisk": {"pdName": "d", "fsType": "ext4"}}, disk("gce-pd", "d"), id="gce-to-write"),
        pytest.param(
            {"awsElasticBlockStore": {"volumeID": "vol-1", "readOnly": True}},
            disk("aws-ebs", "vol-1"),
            id="ebs-is-the-same-read-only",
        ),
        pytest.param({"azureDisk": {"diskName": "n", "diskURI": "u"}}, disk("azure-disk", "u"), id="azure"),
        pytest.param(
            {"azureDisk": {"diskURI": "u", "kind": "Dedicated"}}, disk("azure-disk", "u", kind="Dedicated"), id="kind"
        ),
        pytest.param({"cinder": {"volumeID": "c"}}, disk("cinder", "c"), id="cinder"),
        pytest.param({"portworxVolume": {"volumeID": "x"}}, disk("portworx-volume", "x"), id="portworx"),
        pytest.param(
            {"iscsi": {"iqn": "iqn.a", "targetPortal": "t", "readOnly": True}},
            disk("iscsi", "iqn.a", read_only=True),
            id="iscsi",
        ),
        pytest.param(
            {"rbd": {"monitors": ["b", "a"], "pool": "rbd", "image": "i", "readOnly": True}},
            RBDImage(frozenset({"a", "b"}), "rbd", "i", read_only=True),
            id="rbd",
        ),
        pytest.param(
            {"rbd": {"monitors": None, "pool": None, "image": None, "readOnly": None}},
            RBDImage(frozenset(), "", ""),
            id="rbd-of-nulls",
        ),
    ],
)
def test_of_a_volume_is_read_what_plugins_read(source: Object, expected: PodVolume) -> None:
    assert volumes_of({"name": "v", **source}) == (expected,)


@pytest.mark.parametrize(
    "kind", ["emptyDir", "configMap", "secret", "projected", "hostPath", "csi", "azureFile", "vsphereVolume", "nfs"]
)
def test_volumes_that_no_plugin_reads_are_left_out(kind: str) -> None:
    assert volumes_of({"name": "v", kind: {"anything": 1}}) == ()


def test_volumes_keep_the_order_of_the_spec() -> None:
    pod = (
        make_pod("p")
        .volume({"name": "b", "persistentVolumeClaim": {"claimName": "b"}})
        .volume({"name": "t", "emptyDir": {}})
        .volume({"name": "a", "persistentVolumeClaim": {"claimName": "a"}})
    )
    assert decode_pod(pod.json()).volumes == (PodClaim("b"), PodClaim("a"))


def test_pods_with_the_same_volumes_share_them_whatever_their_other_volumes_are_called() -> None:
    claim = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
    assert volumes_of(claim, {"name": "token-1"}) is volumes_of(claim, {"name": "token-2"})


@pytest.mark.parametrize(
    "volume",
    [
        pytest.param({"name": "v", "persistentVolumeClaim": {"claimName": "c" * 2000}}, id="claim"),
        pytest.param({"name": "v", "awsElasticBlockStore": {"volumeID": "d" * 2000}}, id="disk"),
        pytest.param({"name": "v", "rbd": {"monitors": [f"m{n}" for n in range(1000)], "image": "i"}}, id="monitors"),
    ],
)
def test_large_volumes_are_not_kept_for_other_pods(volume: Object) -> None:
    assert volumes_of(volume) == volumes_of(volume)
    assert volumes_of(volume) is not volumes_of(volume)


def test_ephemeral_volumes_of_two_pods_are_two_claims() -> None:
    volume = {"name": "v", "ephemeral": {}}
    claims = [decode_pod(make_pod(name).volume(volume).json()).volumes for name in ("p", "q")]
    assert claims == [(PodClaim("p-v", ephemeral=True),), (PodClaim("q-v", ephemeral=True),)]
