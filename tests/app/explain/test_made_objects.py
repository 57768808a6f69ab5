"""The claims, volumes and classes that come with the pod of a manifest: of templates, and of its file."""

import json
from time import process_time
from typing import Any

import pytest

from app.explain.explain_request import Manifest, decode_manifest
from app.objects.decode import DecodeError
from core.events import ClusterEvent
from core.objects.pod import InlineDisk, PodClaim, RBDImage
from core.objects.volumes import ClaimRef, PersistentVolume, PersistentVolumeClaim, StorageClass
from tests.app.explain.test_stored_pod import TEMPLATE, at_hand, manifest, of_kind, pod


def test_the_newest_default_class_is_that_of_a_claim_without_one() -> None:
    hand = at_hand({})
    for name, since in (("old", "2025"), ("b", "2026"), ("a", "2026"), ("no", None)):
        hand.mirror.apply(ClusterEvent("Add", StorageClass(name=name, default_since=since)))
    volumes = [
        {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}
        for spec in ({}, {"storageClassName": None}, {"storageClassName": ""}, {"storageClassName": "no"})
    ]
    found, *others = [decode_manifest(json.dumps(pod(volumes=[each])).encode(), hand) for each in volumes]
    (claim,) = claims_of(found)
    assert (claim.full_name, claim.storage_class) == ("default/p-scratch", "a")
    assert claim.controller is not None
    assert claim.controller.uid == found.pod.uid
    assert [each.storage_class for made in others for each in claims_of(made)] == ["a", "", "no"]


def test_a_class_that_binds_at_once_makes_the_volume_of_a_new_claim_before_the_pod_is_tried() -> None:
    hand = at_hand({})
    for name, provisioner in (("imm", "x.csi"), ("local", "kubernetes.io/no-provisioner")):
        of = StorageClass(name=name, provisioner=provisioner, volume_binding_mode="Immediate")
        hand.mirror.apply(ClusterEvent("Add", of))
    volumes: list[dict[str, Any]] = [
        {"name": name, "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": name}}}}
        for name in ("imm", "local", "absent")
    ]
    claim = {"kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": {"storageClassName": "imm"}}
    own = pod(volumes=[*volumes, {"name": "d", "persistentVolumeClaim": {"claimName": "data"}}])
    found = decode_manifest(json.dumps({"kind": "List", "items": [own, claim]}).encode(), hand)
    assert [each.partition(":")[0] for each in found.notes.unknown] == ["claim p-imm", "claim data"]
    assert [each.name for each in found.pod.volumes if isinstance(each, PodClaim)] == ["p-local", "p-absent"]


def of_file(*others: dict[str, Any], **spec: object) -> Manifest:
    return decode_manifest(json.dumps({"kind": "List", "items": [pod(**spec), *others]}).encode(), at_hand({}))


CLAIM: dict[str, Any] = {"kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": {}}
NAMED = [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]


@pytest.mark.parametrize(("mode", "unbound"), [(None, 0), ("Immediate", 0), ("WaitForFirstConsumer", 1)])
def test_a_class_of_the_file_binds_at_once_by_default(mode: str | None, unbound: int) -> None:
    """Source: pkg/apis/storage/v1/defaults.go (SetDefaults_StorageClass)."""
    of = {"kind": "StorageClass", "metadata": {"name": "x"}, "provisioner": "x.csi", "volumeBindingMode": mode}
    found = of_file(of, {**CLAIM, "spec": {"storageClassName": "x"}}, volumes=NAMED)
    assert len(found.pod.volumes) == unbound
    (made,) = [each for each in found.made if isinstance(each, StorageClass)]
    assert made.volume_binding_mode == (mode or "Immediate")


def test_a_default_class_of_the_file_is_newer_than_those_of_the_cluster() -> None:
    hand = at_hand({})
    hand.mirror.apply(ClusterEvent("Add", StorageClass(name="old", default_since="2026")))
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"}
    of = {"kind": "StorageClass", "metadata": {"name": "new", "annotations": annotations}, "provisioner": "x.csi"}
    found = decode_manifest(json.dumps({"kind": "List", "items": [pod(), CLAIM, of]}).encode(), hand)
    assert [each.storage_class for each in claims_of(found)] == ["new"]


@pytest.mark.parametrize(("uid", "phase"), [({}, "Available"), ({"uid": "u"}, "Released")])
def test_a_new_volume_of_the_file_is_free(uid: dict[str, str], phase: str) -> None:
    """The API server drops a status (persistentvolume/strategy.go), and the controller marks a volume as Available."""
    of = {"kind": "PersistentVolume", "metadata": {"name": "v", **uid}, "spec": {}, "status": {"phase": "Released"}}
    (volume,) = of_file(of).made
    assert isinstance(volume, PersistentVolume)
    assert volume.phase == phase


def test_an_image_of_ceph_has_a_pool_and_a_disk_of_azure_a_kind() -> None:
    disks = [{"rbd": {"image": "i"}}, {"rbd": {"pool": "p"}}, {"azureDisk": {}}, {"azureDisk": {"kind": "Managed"}}]
    azure = {"kind": "PersistentVolume", "metadata": {"name": "v"}, "spec": {"azureDisk": {"diskURI": "u"}}}
    found = of_file(azure, volumes=disks)
    pools = [each.pool for each in found.pod.volumes if isinstance(each, RBDImage)]
    kinds = [each.source.kind for each in found.pod.volumes if isinstance(each, InlineDisk)]
    assert (pools, kinds) == (["rbd", "p"], ["Shared", "Managed"])
    assert [each.source.kind for each in found.made if isinstance(each, PersistentVolume) and each.source] == ["Shared"]


def test_the_default_class_of_a_claim_is_unknown_without_classes() -> None:
    volumes = [{"name": "d", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]
    (done,) = manifest(pod(volumes=volumes)).notes.done
    assert done.startswith("claim p-d of the default class, which is not known")


def claims_of(found: Manifest) -> list[PersistentVolumeClaim]:
    return [each for each in found.made if isinstance(each, PersistentVolumeClaim)]


def test_claims_of_the_file_are_those_of_the_namespace_of_the_pod() -> None:
    items = [{"kind": "PersistentVolumeClaim", "metadata": {"name": n, "namespace": n}, "spec": {}} for n in ("a", "b")]
    found = manifest({"kind": "List", "items": [{"kind": "Pod", "metadata": {"name": "p", "namespace": "b"}}, *items]})
    assert [each.full_name for each in claims_of(found)] == ["b/b"]


def test_what_is_wrong_with_a_claim_is_named_by_its_field() -> None:
    broken = {"metadata": {"name": "d"}, "spec": {"resources": {"requests": {"storage": "much"}}}}
    with pytest.raises(DecodeError) as error:
        of_kind("StatefulSet", "apps/v1", {"template": TEMPLATE, "volumeClaimTemplates": [broken]})
    assert error.value.field == "spec.volumeClaimTemplates[0].spec.resources.requests.storage"


def local(name: str, storage: str = "4Gi", **spec: Any) -> dict[str, Any]:  # noqa: ANN401  # any JSON
    spec = {"storageClassName": "manual", "capacity": {"storage": storage}, "accessModes": ["ReadWriteOnce"], **spec}
    return {"kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}


def claim(**spec: object) -> dict[str, Any]:
    requests = {"requests": {"storage": "2Gi"}}
    spec = {"storageClassName": "manual", "resources": requests, "accessModes": ["ReadWriteOnce"], **spec}
    return {**CLAIM, "spec": spec}


_MOST_SECONDS = 1.0  # of a tenth to a quarter, or of 1.2 to 5 with such a product
FOR_DATA: dict[str, Any] = {"claimRef": {"namespace": "default", "name": "data"}}


@pytest.mark.parametrize(
    ("requested", "volumes", "bound"),
    [
        (claim(), [local("b"), local("a"), local("big", "9Gi"), local("small", "1Gi")], "a"),
        (claim(), [local("a", accessModes=["ReadWriteOnce", "ReadWriteMany"]), local("big", "9Gi")], "big"),
        (claim(), [local("a"), local("own", "9Gi", storageClassName="other", **FOR_DATA)], "own"),
        (claim(volumeName="b"), [local("a"), local("b", "9Gi")], "b"),
        (claim(volumeName="b"), [local("b", storageClassName="other", **FOR_DATA)], "b"),
        (claim(storageClassName=""), [local("a"), local("none", storageClassName="")], "none"),
        (claim(volumeName="b"), [local("a"), local("b", "1Gi")], ""),
        (claim(volumeName="b"), [local("b", storageClassName="other")], ""),
        (claim(), [local("a", claimRef={"namespace": "default", "name": "other"})], ""),
        (claim(), [local("a", volumeMode="Block")], ""),
        (claim(selector={"matchLabels": {"disk": "ssd"}}), [local("a")], ""),
        (claim(accessModes=["ReadWriteMany"]), [local("a")], ""),
    ],
    ids=[
        "smallest",
        "fewest-modes",
        "reserved",
        "named",
        "both",
        "no-class",
        "small",
        "class",
        "taken",
        "mode",
        "labels",
        "modes",
    ],
)
def test_a_new_claim_is_bound_to_a_volume_that_is_there_before_the_pod_is_tried(
    requested: dict[str, Any], volumes: list[dict[str, Any]], bound: str
) -> None:
    """Source: persistentvolume/pv_controller.go (syncUnboundClaim). `manual` is a class that does not exist."""
    (made,) = claims_of(of_file(requested, *volumes, volumes=NAMED))
    assert (made.volume if made.bind_completed else "") == bound


def test_a_claim_that_waits_for_its_pod_is_bound_early_only_if_it_names_its_volume() -> None:
    of = {"kind": "StorageClass", "metadata": {"name": "manual"}, "volumeBindingMode": "WaitForFirstConsumer"}
    waits, named = (
        claims_of(of_file(of, each, local("v"), volumes=NAMED)) for each in (claim(), claim(volumeName="v"))
    )
    assert [each.bind_completed for each in (*waits, *named)] == [False, True]


def test_two_new_claims_get_two_volumes_and_one_of_the_cluster_is_free_but_for_its_claims() -> None:
    hand = at_hand({})
    for name, of in (("a", ClaimRef("default", "stored")), ("b", None)):
        volume = PersistentVolume(name=name, claim=of, storage_class="manual", capacity=2**33, phase="Available")
        hand.mirror.apply(ClusterEvent("Add", volume))
    hand.mirror.apply(ClusterEvent("Add", PersistentVolumeClaim(namespace="default", name="stored")))
    requested = [{**claim(accessModes=[]), "metadata": {"name": name}} for name in ("x", "y")]
    items = [pod(volumes=NAMED), *requested, local("c", "9Gi")]
    found = decode_manifest(json.dumps({"kind": "List", "items": items}).encode(), hand)
    assert [(each.name, each.volume) for each in claims_of(found)] == [("x", "b"), ("y", "c")]
    assert "claim x of class manual, bound to PersistentVolume b" in found.notes.done


def test_of_a_file_with_many_claims_those_of_the_pod_are_bound() -> None:
    others = [{**claim(), "metadata": {"name": f"other-{at}"}} for at in range(99)]
    made = claims_of(of_file(*others, claim(), *(local(f"v{at}") for at in range(100)), volumes=NAMED))
    assert [each.bind_completed for each in made if each.name == "data"] == [True]


MANY = range(8000)
IMMEDIATE = {"kind": "StorageClass", "metadata": {"name": "imm"}, "provisioner": "x.csi"}
EPHEMERAL = {"volumeClaimTemplate": {"spec": {"storageClassName": "imm"}}}
RANGE = {"kind": "LimitRange", "metadata": {"name": "l"}, "spec": {"limits": [{"type": "Pod"} for _ in range(300)]}}
TOLERATED = [{"key": f"k{at}"} for at in MANY]
TERM = {"topologyKey": "h", "labelSelector": {}, "matchLabelKeys": [f"k{at}" for at in MANY]}
TERMS = {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}


@pytest.mark.parametrize(
    ("spec", "others"),
    [
        ({"volumes": [{"name": f"v{at}", "ephemeral": EPHEMERAL} for at in MANY[:3000]]}, [IMMEDIATE]),
        ({"containers": [{"name": f"c{at}"} for at in range(200)]}, [RANGE]),
        (
            {"runtimeClassName": "r", "tolerations": TOLERATED},
            [{"kind": "RuntimeClass", "metadata": {"name": "r"}, "scheduling": {"tolerations": TOLERATED}}],
        ),
        ({"affinity": {"podAffinity": TERMS}}, []),
        (
            {"resourceClaims": [{"name": f"r{at}", "resourceClaimTemplateName": "x"} for at in MANY]},
            [{"kind": "ResourceClaimTemplate", "metadata": {"name": f"t{at}"}} for at in MANY],
        ),
    ],
    ids=["claims-dropped", "limits-of-the-pod", "tolerations-of-a-class", "label-keys", "claims-without-template"],
)
def test_the_cost_of_a_manifest_is_linear_in_its_size(spec: dict[str, Any], others: list[dict[str, Any]]) -> None:
    """Each was a product of two lists: seconds for some 300 KB, in which a service heard no other request."""
    of = pod(**spec)
    of["metadata"]["labels"] = {f"k{at}": "v" for at in MANY}
    text = json.dumps({"kind": "List", "items": [of, *others]}).encode()
    begun = process_time()
    decode_manifest(text, at_hand({}))
    assert process_time() - begun < _MOST_SECONDS


@pytest.mark.parametrize(
    ("bounds", "rejection"),
    [
        ({"max": {"storage": "1Gi"}}, "2Gi of requests is more than the max 1Gi of LimitRange l"),
        ({"min": {"storage": "3Gi"}}, "2Gi of requests is less than the min 3Gi of LimitRange l"),
        ({"min": {"storage": "2Gi"}, "max": {"storage": "2Gi"}}, ""),
    ],
)
@pytest.mark.parametrize("namespace", ["default", "other"])
def test_a_claim_outside_of_a_limit_range_is_refused(bounds: dict[str, Any], rejection: str, namespace: str) -> None:
    """Source: limitranger/admission.go (PersistentVolumeClaimValidateLimitFunc)."""
    limits = {"spec": {"limits": [{"type": "PersistentVolumeClaim", **bounds}]}}
    text = json.dumps({"kind": "List", "items": [pod(volumes=NAMED), claim()]}).encode()
    hand = at_hand({"LimitRange": [{"metadata": {"name": "l", "namespace": namespace}, **limits}]})
    if not rejection or namespace == "other":
        assert claims_of(decode_manifest(text, hand))
        return
    with pytest.raises(DecodeError) as error:
        decode_manifest(text, hand)
    message = f"PersistentVolumeClaim data: requests, storage: {rejection}: the API server refuses this claim"
    assert str(error.value) == message


def test_a_claim_that_is_there_was_admitted() -> None:
    limits = {"spec": {"limits": [{"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}]}}
    hand = at_hand({"LimitRange": [{"metadata": {"name": "l"}, **limits}]})
    hand.mirror.apply(ClusterEvent("Add", PersistentVolumeClaim(namespace="default", name="data")))
    text = json.dumps({"kind": "List", "items": [pod(volumes=NAMED), claim()]}).encode()
    assert not decode_manifest(text, hand).made


def test_a_claim_of_the_file_that_was_stored_already_was_admitted() -> None:
    limits = {"spec": {"limits": [{"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}]}}
    hand = at_hand({"LimitRange": [{"metadata": {"name": "l"}, **limits}]})
    stored = {**claim(), "metadata": {"name": "data", "uid": "u"}}
    text = json.dumps({"kind": "List", "items": [pod(volumes=NAMED), stored]}).encode()
    assert claims_of(decode_manifest(text, hand))


def test_more_limit_ranges_than_can_be_held_against_each_container_are_refused() -> None:
    ranges = [{"kind": "LimitRange", "metadata": {"name": f"l{at}"}} for at in MANY]
    with pytest.raises(DecodeError, match="too many to hold each against the LimitRanges of its namespace"):
        of_file(*ranges, containers=[{"name": f"c{at}"} for at in MANY])


@pytest.mark.parametrize("name", [["data"], {"data": 1}, 7])
def test_the_name_of_a_claim_may_be_anything_until_it_is_decoded(name: object) -> None:
    hand = at_hand({})
    of = StorageClass(name="imm", provisioner="x.csi", volume_binding_mode="Immediate")
    hand.mirror.apply(ClusterEvent("Add", of))
    volumes = [{"name": "x", "persistentVolumeClaim": {"claimName": name}}]
    text = {"kind": "List", "items": [pod(volumes=volumes), claim(storageClassName="imm")]}
    with pytest.raises(DecodeError) as error:
        decode_manifest(json.dumps(text).encode(), hand)
    assert error.value.field == "spec.volumes[0].persistentVolumeClaim.claimName"
